"""Recovery: what a process that died had under way, brought to an end or taken up again.

A turn that ran is closed as `runtime_restarted`, one that was asked to stop as canceled. One that
waited for a person waits on, if its agent can resume; its request can be answered as before, and
one that was answered meanwhile goes on from there. Queued turns start when their turn comes, unless
they are held. What another runtime claims on a shared journal is left alone: it may well be alive.
Only who knows better takes it over. A thread that another runtime tells is never this one's to end.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from factwire.facts import Fact
from factwire.journal import Cursor, CursorExpired, Filter, JournalError
from factwire.projection.thread_status import CANCELLING
from factwire.runtime.limits import FOLD_SECONDS
from factwire.runtime.live_thread import STOPPED, LiveThread
from factwire.runtime.mint import FactScope, run_of
from factwire.runtime.provider import Provider
from factwire.runtime.runtime_identity import CLAIM
from factwire.runtime.submissions import (
    Submission,
    build_run_times,
    read_started_at,
    read_submission,
)
from factwire.runtime.thread_states import JournalFold
from factwire.runtime.turn_end import close_open_work, failure_payload

if TYPE_CHECKING:
    from factwire.runtime.runtime import Runtime

_ASIDES: Final = frozenset({"queue.changed", "policy.changed", "run.status", "runtime.warning"})
"""What may be told of a thread while a turn waits, without its agent having done anything."""

_FURTHER: Final = 64
"""How many times further each look goes back than the one before."""

_GONE: Final = ("removed", "started", "cancelled", "canceled")
"""What is said of a queued turn that waits no longer."""


async def recover(
    runtime: "Runtime", threads: Collection[str] | None = None, *, take_over: bool = False
) -> None:
    """Bring these threads, or all of the journal, to a state from which they go on."""
    for thread_id in await _find_unsettled(runtime):
        if threads is not None and thread_id not in threads:
            continue
        if not await _began_here(runtime, thread_id):
            continue
        thread = await runtime.thread(thread_id)
        if thread.is_busy or _runs_elsewhere(runtime, thread):
            continue
        other = await find_other_owner(runtime, thread)
        if other is None or take_over:
            await settle_thread(runtime, thread, other)


async def _began_here(runtime: "Runtime", thread_id: str) -> bool:
    """Whether a thread may be this runtime's to end, by its first fact: those that others write
    may be many, and none of them needs to be loaded.
    """
    known = await runtime.journal.thread(thread_id)
    if known is None:
        return False
    epoch = (await runtime.journal.head()).epoch
    after = Cursor(epoch, known.first_seq - 1) if known.first_seq > 1 else None
    try:
        async for batch in runtime.journal.read(after, filter=Filter(thread=thread_id), limit=1):
            for _, fact in batch.facts():
                return fact.runtime_id == runtime.mint.runtime_id
    except CursorExpired:
        # Its beginning has been removed; what is left says whose it is.
        return True
    return True


def _runs_elsewhere(runtime: "Runtime", thread: LiveThread) -> bool:
    """Whether a thread is only told here: its turns run where nobody here could end them."""
    return thread.log.projection.state.runtime_id not in (None, runtime.mint.runtime_id)


async def find_other_owner(runtime: "Runtime", thread: LiveThread) -> str | None:
    """The other runtime to which the turn or the queue of a thread belongs, if one does."""
    if thread.is_busy or runtime.exclusive:
        return None
    turn_id = find_abandoned_turn(thread)
    wanted: list[Filter] = []
    if turn_id is not None:
        opening = ("turn.submitted", "turn.started")
        wanted.append(Filter(thread=thread.thread_id, turn=turn_id, classes=opening))
    if thread.queue.turns:
        wanted.append(Filter(thread=thread.thread_id, classes=("queue.changed",)))
    for each in wanted:
        claimed = await _last_claim(runtime, each)
        if runtime.identity.is_other(claimed):
            return claimed
    return None


async def _last_claim(runtime: "Runtime", wanted: Filter) -> str | None:
    last: str | None = None
    async for batch in runtime.journal.read(filter=wanted):
        for _, fact in batch.facts():
            last = cast("str | None", fact.payload.get(CLAIM, last))
    return last


async def settle_thread(
    runtime: "Runtime",
    thread: LiveThread,
    taken_from: str | None = None,
    *,
    unrecorded: bool = False,
) -> None:
    """Bring a thread that nobody runs to a state from which it goes on; `unrecorded` is one of
    which the journal took no more.
    """
    turn_id = find_abandoned_turn(thread)
    if turn_id is not None and turn_id == thread.projection.state.runtime.cancelling_turn_id:
        await close_turn(runtime, thread, turn_id, "turn.canceled", {"reason": STOPPED})
    elif await _resume_turn(runtime, thread, taken_from):
        return
    elif turn_id is not None:
        end = failure_payload("unrecorded" if unrecorded else "runtime_restarted")
        await close_turn(runtime, thread, turn_id, "turn.failed", end)
    thread.continue_queue()


async def _find_unsettled(runtime: "Runtime") -> list[str]:
    """Threads that ran, waited, or have turns in their queue."""
    found: dict[str, None] = {}
    for status in ("running", "waiting"):
        after = None
        while True:
            page = await runtime.journal.threads(status=status, after=after)
            found |= dict.fromkeys(thread.thread_id for thread in page.threads)
            if page.after is None:
                break
            after = page.after
    return list(found | dict.fromkeys(await _find_queues(runtime)))


async def _find_queues(runtime: "Runtime") -> list[str]:
    """Threads on which a turn was queued that neither started nor was taken out."""
    queues = WaitingTurns()
    await JournalFold(runtime.journal, "queues", WaitingTurns.CLASSES, queues).refresh()
    return list(dict.fromkeys(thread_id for thread_id, _ in queues.waiting))


async def keep_queues_read(runtime: "Runtime") -> None:
    """Read on which turns wait while a runtime works, for as long as nobody cancels it: a start
    reads what was written since, and not since the start before.
    """
    fold = JournalFold(runtime.journal, "queues", WaitingTurns.CLASSES, WaitingTurns())
    while True:
        await asyncio.sleep(FOLD_SECONDS)
        # A journal that cannot be read now can be read the next time.
        with suppress(JournalError):
            await fold.refresh()


class WaitingTurns:
    """The turns that wait in a queue, each with its thread."""

    CLASSES: Final = ("queue.changed", "turn.submitted")

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, str], None] = {}

    def note(self, fact: Fact) -> None:
        thread, turn = fact.thread_id or "", fact.queued_turn_id
        if fact.event_class == "turn.submitted":
            self.waiting.pop((thread, fact.turn_id or ""), None)
            return
        rows = cast("list[dict[str, Any]] | None", fact.payload.get("queuedTurns"))
        if rows is not None:
            for key in [key for key in self.waiting if key[0] == thread]:
                del self.waiting[key]
            self.waiting |= {(thread, str(row.get("queuedTurnId"))): None for row in rows}
        elif turn is not None and fact.payload.get("change") in _GONE:
            self.waiting.pop((thread, turn), None)
        elif turn is not None:
            self.waiting[thread, turn] = None

    def save(self) -> bytes:
        return msgspec.json.encode(list(self.waiting))

    def restore(self, data: bytes) -> None:
        pairs = msgspec.json.decode(data, type=list[tuple[str, str]])
        self.waiting = dict.fromkeys(pairs)

    def clear(self) -> None:
        self.waiting.clear()


async def _resume_turn(runtime: "Runtime", thread: LiveThread, taken_from: str | None) -> bool:
    """Start a turn that had not begun; let one that waits for a person wait on, where it can."""
    now = thread.projection.state.runtime
    begun = now.active_turn_id is not None
    turn_id = now.active_turn_id or now.latest_turn_id
    if turn_id is None or (not begun and now.latest_turn_status != "submitted"):
        return False
    submission = await read_submission(runtime.journal, runtime.blobs, thread.thread_id, turn_id)
    provider = runtime.agents.get(submission.agent) if submission else None
    if submission is None or provider is None:
        return False
    if begun and not await _can_wait(runtime, thread, provider, turn_id):
        return False
    run_id = now.active_run_id or run_of(turn_id)
    turn = await runtime.turn_of(thread, provider, submission, run_id=run_id, resumed=begun)
    await turn.find_open(runtime.journal)
    if begun and taken_from is not None:
        started_at = await read_started_at(runtime.journal, thread.thread_id, turn_id)
        payload = {
            "agentId": submission.agent,
            "takenOverFrom": taken_from,
            **build_run_times(submission, started_at),
            **runtime.identity.claim(),
        }
        await thread.log.write(runtime.mint.fact(turn.scope, "turn.started", payload))
    thread.resume_turn(turn)
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
    """Whether an answer, or that it was sent, is the last that was heard of a turn: nobody has
    acted upon it.
    """
    last = await _find_last_fact(runtime, thread.thread_id)
    if last is None or last.turn_id != turn_id:
        return False
    was_sent = last.event_class == "action.updated" and last.payload.get("applied") is False
    return was_sent or last.event_class == "action.resolved"


async def _find_last_fact(runtime: "Runtime", thread_id: str) -> Fact | None:
    """The last fact of a thread that is no aside: found by looking back ever further."""
    known = await runtime.journal.thread(thread_id)
    epoch, back = (await runtime.journal.head()).epoch, 1
    while known is not None:
        start = max(known.last_seq - back, known.first_seq - 1)
        try:
            last = await _read_last_fact(runtime, thread_id, Cursor(epoch, start))
        except CursorExpired:
            return await _read_last_fact(runtime, thread_id, None)
        if last is not None or start < known.first_seq:
            return last
        back *= _FURTHER
    return None


async def _read_last_fact(runtime: "Runtime", thread_id: str, after: Cursor | None) -> Fact | None:
    last: Fact | None = None
    async for batch in runtime.journal.read(after, filter=Filter(thread=thread_id)):
        for _, fact in batch.facts():
            last = last if fact.event_class in _ASIDES else fact
    return last


def find_abandoned_turn(thread: LiveThread) -> str | None:
    """The turn of a thread that was begun, or asked for, and that nobody here runs."""
    now = thread.projection.state.runtime
    if thread.is_busy:
        return None
    submitted_only = now.active_turn_id is None and now.latest_turn_status == "submitted"
    return now.latest_turn_id if submitted_only else now.active_turn_id


async def close_turn(
    runtime: "Runtime", thread: LiveThread, turn_id: str, event_class: str, end: dict[str, Any]
) -> None:
    """Close a turn that nobody runs any more, and what was open in it."""
    state = thread.projection.state
    submission = await read_submission(runtime.journal, runtime.blobs, thread.thread_id, turn_id)
    scope = FactScope(
        session_id=state.session_id,
        thread_id=thread.thread_id,
        turn_id=turn_id,
        run_id=state.runtime.active_run_id,
        agent_id=state.runtime.agent_id,
        trace_id=None if submission is None else submission.trace_id,
    )
    thread.approvals.trace(turn_id, scope.trace_id)
    await close_open_work(
        thread.log,
        thread.approvals,
        runtime.mint,
        scope,
        category="interrupted",
        message="the runtime stopped",
    )
    submission = submission or Submission(
        turn_id=turn_id, agent=state.runtime.agent_id or "", prompt=""
    )
    started_at = await read_started_at(runtime.journal, thread.thread_id, turn_id)
    end = {**end, **build_run_times(submission, started_at)}
    if state.runtime.cancelling_turn_id == turn_id:
        end["from"] = CANCELLING
    terminal = runtime.mint.fact(scope, event_class, end)
    snapshot = runtime.mint.fact(scope, "snapshot.updated", {"status": terminal.status})
    await thread.finish(submission, terminal, snapshot)
