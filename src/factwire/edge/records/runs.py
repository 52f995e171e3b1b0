"""Runs: queued, running, ended; and what that makes of their thread."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from factwire.edge.events.ids import run_id_of, run_of
from factwire.edge.events.run_words import run_error
from factwire.edge.records.belonging import key_of, row_of
from factwire.edge.records.rows import (
    Activity,
    Run,
    RunError,
    RunStatus,
    RunWorktree,
    Thread,
)
from factwire.edge.records.threads import thread_of
from factwire.facts import Fact
from factwire.projection.reading import listed, other_id, subagent_of, table, turn_of, word

if TYPE_CHECKING:
    from factwire.edge.records.records import Records

_ENDS: Final[dict[str, tuple[RunStatus, Activity]]] = {
    "turn.completed": ("finished", "completed"),
    "turn.failed": ("failed", "failed"),
    "turn.canceled": ("cancelled", "canceled"),
}


def _queue(records: "Records", seq: int, fact: Fact) -> None:
    """One turn that came, went first or was taken out; or the whole queue as it is now."""
    rows = listed(fact.payload.get("queuedTurns"))
    if rows is None:
        _queue_one(records, seq, fact)
    for row in map(table, rows or ()):
        turn_id = word(row or {}, "queuedTurnId")
        if row and turn_id is not None:
            _line_up(records, seq, fact, turn_id, row)


def _queue_one(records: "Records", seq: int, fact: Fact) -> None:
    turn_id = other_id(fact, "queuedTurnId", "queued_turn_id")
    if turn_id is None or word(fact.payload, "steerId") is not None:
        return
    if word(fact.payload, "change") != "removed":
        _line_up(records, seq, fact, turn_id, fact.payload)
        return
    run = row_of(records.runs, thread_of(fact), run_of(turn_id))
    if run is not None and run.status == "queued":
        run.status = "cancelled"
        run.finished_at = run.updated_at = fact.created_at
        _leave_line(_thread(records, fact), run)


def _line_up(records: "Records", seq: int, fact: Fact, turn_id: str, said: dict[str, Any]) -> None:
    thread = _thread(records, fact)
    run = row_of(records.runs, thread_of(fact), run_of(turn_id)) or _add(
        records, seq, fact, turn_id, said
    )
    if thread is not None and run.status == "queued" and run.run_id not in thread.queued_runs:
        thread.queued_runs = (*thread.queued_runs, run.run_id)


def _leave_line(thread: Thread | None, run: Run) -> None:
    if thread is not None and run.run_id in thread.queued_runs:
        thread.queued_runs = tuple(each for each in thread.queued_runs if each != run.run_id)


def _submitted(records: "Records", seq: int, fact: Fact) -> None:
    turn_id = turn_of(fact)
    if turn_id is None or subagent_of(fact) is not None:
        return
    run = _run(records, fact) or _add(records, seq, fact, turn_id, fact.payload)
    thread = _thread(records, fact)
    _leave_line(thread, run)
    if thread is not None:
        thread.activity = "running"
        thread.latest_run_id = run.run_id
        thread.agent_id = run.agent_id or thread.agent_id
        thread.title = thread.title or _title(run.prompt)


def _started(records: "Records", seq: int, fact: Fact) -> None:
    if subagent_of(fact) is not None:
        return
    _submitted(records, seq, fact)
    run = _run(records, fact)
    if run is not None:
        run.status = "running"
        run.started_at = run.started_at or fact.created_at
        run.updated_at = fact.created_at


def _ended(records: "Records", _: int, fact: Fact) -> None:
    run = _run(records, fact)
    if run is None or subagent_of(fact) is not None:
        return
    run.status, activity = _ENDS[fact.event_class or ""]
    run.finished_at = fact.completed_at or fact.created_at
    run.updated_at = fact.created_at
    if run.status == "failed":
        run.error = _error(fact)
    thread = _thread(records, fact)
    if thread is not None:
        thread.activity = activity


def _error(fact: Fact) -> RunError:
    error = run_error(fact)
    details = error.details or {}
    return RunError(
        code=error.code,
        message=error.message,
        failure_category=details.get("failureCategory"),
        recovery_hint=details.get("recoveryHint"),
    )


def _add(records: "Records", seq: int, fact: Fact, turn_id: str, said: dict[str, Any]) -> Run:
    bare = fact.run_id if turn_of(fact) == turn_id and fact.run_id else run_of(turn_id)
    run_id = key_of(records.runs, thread_of(fact), bare)
    attempt, retried = said.get("attempt"), word(said, "retryOf")
    return records.runs.add(
        run_id,
        Run(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            run_id=run_id,
            turn_id=turn_id,
            status="queued",
            thread_id=thread_of(fact),
            project_id=fact.project_id,
            agent_id=word(said, "agentId") or fact.agent_id,
            prompt=word(said, "prompt"),
            retry_of=None if retried is None else run_of(retried),
            attempt=attempt if type(attempt) is int else None,
            work_dir=word(said, "workspace"),
            worktree=_worktree(said),
        ),
    )


def _worktree(said: dict[str, Any]) -> RunWorktree | None:
    try:
        return msgspec.convert(said.get("worktree"), RunWorktree | None)
    except msgspec.ValidationError:
        return None


def _run(records: "Records", fact: Fact) -> Run | None:
    return row_of(records.runs, thread_of(fact), run_id_of(fact))


def _thread(records: "Records", fact: Fact) -> Thread | None:
    return records.threads.get(thread_of(fact) or "")


def _title(prompt: str | None) -> str | None:
    """The first line of the first prompt, until somebody names the thread."""
    first = (prompt or "").strip().partition("\n")[0].strip()
    return first[:_TITLE_CHARACTERS] or None


_TITLE_CHARACTERS: Final = 120

HANDLERS = {
    "queue.changed": _queue,
    "turn.submitted": _submitted,
    "turn.started": _started,
    **dict.fromkeys(_ENDS, _ended),
}
