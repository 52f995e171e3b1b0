"""Finding: which thread an action, a turn or a queued turn belongs to, as the journal has it."""

from factwire.journal import Filter, Journal
from factwire.runtime.live_threads import LiveThread
from factwire.runtime.recovery import left_behind
from factwire.runtime.runtime import Runtime


async def thread_of_action(journal: Journal, action_id: str) -> str | None:
    """The thread that an action was asked on: those that wait are looked at first."""
    after = None
    while True:
        page = await journal.threads(status="waiting", after=after)
        for thread in page.threads:
            if action_id in thread.open_actions:
                return thread.thread_id
        if page.after is None:
            break
        after = page.after
    async for stretch in journal.read(filter=Filter(classes=("action.required",))):
        for _, fact in stretch.facts():
            if fact.action_id == action_id:
                return fact.thread_id
    return None


async def turn_of_target(runtime: Runtime, target: str) -> tuple[str, str | None] | None:
    """The thread and the turn that a turn's or a thread's id means; no turn where none runs."""
    for thread in runtime.live:
        if thread.knows(target):
            return thread.thread_id, target
    if await runtime.journal.thread(target) is not None:
        return target, _current(await runtime.thread(target))
    thread_id = await _thread_of_turn(runtime.journal, target)
    return None if thread_id is None else (thread_id, target)


def _current(thread: LiveThread) -> str | None:
    """The turn that runs, that was left behind, or that waits to be tried again."""
    if thread.turn is not None:
        return thread.turn.turn_id
    turns = thread.queue.turns
    retrying = turns[0].queued_turn_id if turns and turns[0].retry_of is not None else None
    return left_behind(thread) or retrying


async def _thread_of_turn(journal: Journal, turn_id: str) -> str | None:
    wanted = Filter(turn=turn_id, classes=("turn.submitted",))
    async for stretch in journal.read(filter=wanted, limit=1):
        for _, fact in stretch.facts():
            return fact.thread_id
    async for stretch in journal.read(filter=Filter(classes=("queue.changed",))):
        for _, fact in stretch.facts():
            rows: list[dict[str, object]] = fact.payload.get("queuedTurns") or []
            named = any(row.get("queuedTurnId") == turn_id for row in rows)
            if named or fact.queued_turn_id == turn_id:
                return fact.thread_id
    return None
