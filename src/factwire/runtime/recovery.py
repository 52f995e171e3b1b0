"""Recovery: what a process that died had under way, brought to an end or taken up again.

A turn that ran is closed as `runtime_restarted`. One that waited for a person waits on, if its
agent can resume; its request can be answered as before. Queued turns start when their turn comes.
"""

from typing import TYPE_CHECKING

from factwire.facts import Fact
from factwire.journal import Filter
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.minting import Scope
from factwire.runtime.provider import Provider
from factwire.runtime.submission import submitted

if TYPE_CHECKING:
    from factwire.runtime.runtime import Runtime


async def recover(runtime: "Runtime") -> None:
    """Bring every thread of the journal to a state from which it goes on."""
    for thread_id in await _unsettled(runtime):
        thread = await runtime.thread(thread_id)
        if thread.is_busy:
            continue
        if not await _taken_up(runtime, thread):
            await _close(runtime, thread)
            await thread.go_on()


async def _unsettled(runtime: "Runtime") -> list[str]:
    """Threads that ran, waited, or had turns in their queue."""
    found: dict[str, None] = {}
    for status in ("running", "waiting"):
        after = None
        while True:
            page = await runtime.journal.threads(status=status, after=after)
            found |= dict.fromkeys(thread.thread_id for thread in page.threads)
            if page.after is None:
                break
            after = page.after
    for thread_id, fact in (await _last_queues(runtime)).items():
        if fact.payload.get("queuedTurns"):
            found[thread_id] = None
    return list(found)


async def _last_queues(runtime: "Runtime") -> dict[str, Fact]:
    last: dict[str, Fact] = {}
    async for stretch in runtime.journal.read(filter=Filter(classes=("queue.changed",))):
        for _, fact in stretch.facts():
            if fact.thread_id is not None:
                last[fact.thread_id] = fact
    return last


async def _taken_up(runtime: "Runtime", thread: LiveThread) -> bool:
    """Start a turn that had not begun; let one that waits for a person wait on, where it can."""
    now = thread.projection.state.runtime
    begun = now.active_turn_id is not None
    turn_id = now.active_turn_id or now.latest_turn_id
    if turn_id is None or (not begun and now.latest_turn_status != "submitted"):
        return False
    asked = await submitted(runtime.journal, thread.thread_id, turn_id)
    provider = runtime.agents.get(asked.agent) if asked else None
    if asked is None or provider is None or (begun and not _can_wait(thread, provider, turn_id)):
        return False
    run_id = now.active_run_id or runtime.mint.ids("run")
    thread.take_up(runtime.turn_of(thread, provider, asked, run_id=run_id, resumed=begun))
    return True


def _can_wait(thread: LiveThread, provider: Provider, turn_id: str) -> bool:
    actions = thread.projection.state.actions.values()
    waits = any(action.status == "pending" and action.turn_id == turn_id for action in actions)
    return waits and provider.manifest.resume == "yes"


async def _close(runtime: "Runtime", thread: LiveThread) -> None:
    """Close a turn that nobody runs any more, and what was open in it."""
    state = thread.projection.state
    turn_id = state.runtime.active_turn_id
    if turn_id is None and state.runtime.latest_turn_status == "submitted":
        turn_id = state.runtime.latest_turn_id
    if turn_id is None:
        return
    scope = Scope(
        session_id=state.session_id,
        thread_id=thread.thread_id,
        turn_id=turn_id,
        run_id=state.runtime.active_run_id,
        agent_id=state.runtime.agent_id,
    )
    await thread.approvals.cancel(turn_id)
    for call, turn in list(thread.log.gates.open_tools.items()):
        if turn == turn_id:
            payload = {"failureCategory": "interrupted", "message": "the runtime stopped"}
            thread.log.put(runtime.mint.fact(scope, "tool.failed", payload, tool_call_id=call))
    end = {
        "failureCategory": "runtime_restarted",
        "message": "the runtime stopped while the turn ran",
        "recoveryHint": "Retry the turn.",
    }
    thread.log.put(runtime.mint.fact(scope, "turn.failed", end))
    thread.log.put(runtime.mint.fact(scope, "snapshot.updated", {"status": "failed"}))
    await thread.log.flush()
