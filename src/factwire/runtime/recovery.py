"""Recovery: what a process that died had under way, brought to an end or taken up again.

A turn that ran is closed as `runtime_restarted`. One that waited for a person waits on, if its
agent can resume; its request can be answered as before, and one that was answered meanwhile goes on
from there. Queued turns start when their turn comes.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from factwire.facts import Fact
from factwire.journal import Cursor, Filter
from factwire.runtime.closing import close_open
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.minting import Scope
from factwire.runtime.provider import Provider
from factwire.runtime.submission import submitted

if TYPE_CHECKING:
    from factwire.runtime.runtime import Runtime

_RESTARTED: Final = {
    "failureCategory": "runtime_restarted",
    "message": "the runtime stopped while the turn ran",
    "recoveryHint": "Retry the turn.",
}


async def recover(runtime: "Runtime", threads: Collection[str] | None = None) -> None:
    """Bring these threads, or all of the journal, to a state from which they go on."""
    for thread_id in await _unsettled(runtime):
        if threads is not None and thread_id not in threads:
            continue
        thread = await runtime.thread(thread_id)
        if thread.is_busy:
            continue
        if not await _taken_up(runtime, thread):
            turn_id = left_behind(thread)
            if turn_id is not None:
                await close(runtime, thread, turn_id, "turn.failed", _RESTARTED)
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
    if asked is None or provider is None:
        return False
    if begun and not await _can_wait(runtime, thread, provider, turn_id):
        return False
    run_id = now.active_run_id or runtime.mint.ids("run")
    thread.take_up(runtime.turn_of(thread, provider, asked, run_id=run_id, resumed=begun))
    return True


async def _can_wait(
    runtime: "Runtime", thread: LiveThread, provider: Provider, turn_id: str
) -> bool:
    if provider.manifest.resume != "yes":
        return False
    actions = thread.projection.state.actions.values()
    waits = any(action.status == "pending" and action.turn_id == turn_id for action in actions)
    return waits or await _was_answered(runtime, thread, turn_id)


async def _was_answered(runtime: "Runtime", thread: LiveThread, turn_id: str) -> bool:
    """Whether an answer is the last that was heard of a turn: nobody has acted upon it."""
    known = await runtime.journal.thread(thread.thread_id)
    if known is None:
        return False
    before = Cursor((await runtime.journal.head()).epoch, known.last_seq - 1)
    last: Fact | None = None
    wanted = Filter(thread=thread.thread_id)
    async for stretch in runtime.journal.read(before, filter=wanted):
        for _, fact in stretch.facts():
            last = fact
    return last is not None and (last.event_class, last.turn_id) == ("action.resolved", turn_id)


def left_behind(thread: LiveThread) -> str | None:
    """The turn of a thread that was begun, or asked for, and that nobody here runs."""
    now = thread.projection.state.runtime
    if thread.is_busy:
        return None
    submitted_only = now.active_turn_id is None and now.latest_turn_status == "submitted"
    return now.latest_turn_id if submitted_only else now.active_turn_id


async def close(
    runtime: "Runtime", thread: LiveThread, turn_id: str, event_class: str, end: dict[str, Any]
) -> None:
    """Close a turn that nobody runs any more, and what was open in it."""
    state = thread.projection.state
    scope = Scope(
        session_id=state.session_id,
        thread_id=thread.thread_id,
        turn_id=turn_id,
        run_id=state.runtime.active_run_id,
        agent_id=state.runtime.agent_id,
    )
    await close_open(
        thread.log,
        thread.approvals,
        runtime.mint,
        scope,
        category="interrupted",
        message="the runtime stopped",
    )
    terminal = runtime.mint.fact(scope, event_class, end)
    thread.log.put(terminal)
    thread.log.put(runtime.mint.fact(scope, "snapshot.updated", {"status": terminal.status}))
    await thread.log.flush()
