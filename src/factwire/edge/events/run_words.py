"""Runs: a turn of the runtime in the Edge's words.

A turn of a subagent is no run of its own and keeps its class: its end must never pass for the end
of the run that it is part of.
"""

from typing import Any, Final, cast

from factwire.edge.events.ids import run_id_of, run_of, sent_at, thread_id_of, user_item_id_of
from factwire.edge.events.numbers import whole
from factwire.edge.events.run_payloads import (
    Run,
    RunChange,
    RunError,
    RunErrorCode,
    RunFailure,
    RunStatus,
    RunStatusChange,
)
from factwire.edge.events.thing_payloads import Item, ItemContent
from factwire.edge.events.word import Said, Table, Word, Words
from factwire.facts import Fact
from factwire.facts.payloads import TurnEnd
from factwire.projection.reading import listed, other_id, outcome_of, read, subagent_of, table, word

ERROR_CODES: Final[dict[str, RunErrorCode]] = {
    "program_not_found": "BINARY_NOT_FOUND",
    "timeout": "TIMEOUT",
    "time_limit": "TIMEOUT",
    "nonzero_exit": "NONZERO_EXIT",
    "cancelled": "CANCELLED",
    "canceled": "CANCELLED",
    "permission_denied": "PERMISSION_DENIED",
    "sandbox_unavailable": "PERMISSION_DENIED",
    "folder_refused": "PERMISSION_DENIED",
    "runtime_restarted": "EDGE_RESTARTED",
}
"""The code of a failed run by the category of its turn; any other is UNKNOWN, and in `details`."""

_ENDS: Final[dict[str, RunStatus]] = {
    "completed": "finished",
    "failed": "failed",
    "canceled": "cancelled",
}
_BEFORE: Final = ("queued", "running")
_QUEUED: Final = frozenset({"added", "promoted", "queue"})
_UNQUEUED: Final = frozenset({"removed", "cancelled", "canceled"})


def _own_run(fact: Fact) -> str | None:
    return None if subagent_of(fact) is not None else run_id_of(fact)


def _queued(fact: Fact) -> Said | None:
    run = _own_run(fact)
    return None if run is None else ("run.queued", _asked(fact, run, fact.payload))


def _asked(fact: Fact, run: str, said: dict[str, Any]) -> Run:
    retried = word(said, "retryOf")
    return Run(
        run_id=run,
        status="queued",
        project_id=fact.project_id or word(said, "projectId"),
        thread_id=thread_id_of(fact),
        agent_id=word(said, "agentId", "agent_id") or fact.agent_id,
        retry_of=None if retried is None else run_of(retried),
        attempt=whole(said, "attempt"),
        created_at=sent_at(fact.created_at),
    )


def _lined_up(fact: Fact) -> Said | None:
    """A turn that waits in the queue, or was taken out and will never run; a queue that was only
    put in order says nothing of a run.
    """
    turn = other_id(fact, "queuedTurnId", "queued_turn_id")
    change = word(fact.payload, "change") or fact.control
    if turn is None or change not in _QUEUED | _UNQUEUED:
        return None
    run = fact.run_id or run_of(turn)
    if change in _QUEUED:
        return "run.queued", _asked(fact, run, fact.payload)
    finished = sent_at(fact.created_at)
    return "run.cancelled", _change(fact, run, "cancelled", finished_at=finished)


def _left_the_line(fact: Fact) -> Said | None:
    said = _lined_up(fact)
    if said is None or said[0] == "run.queued":
        return said
    run = fact.run_id or run_of(other_id(fact, "queuedTurnId", "queued_turn_id") or "")
    return "run.status.changed", RunStatusChange(run_id=run, from_="queued", to="cancelled")


def _message(fact: Fact) -> Said | None:
    """What the user asked, as a message; where they said nothing, the run alone."""
    run = _own_run(fact)
    if run is None:
        return None
    content = _content(fact.payload)
    if content is None:
        return _queued(fact)
    time = sent_at(fact.created_at)
    item = Item(
        item_id=user_item_id_of(fact),
        type="user_message",
        role="user",
        status="completed",
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        run_id=run,
        content=content,
        created_at=time,
        updated_at=time,
    )
    return "message.created", item


def _content(payload: dict[str, Any]) -> ItemContent | None:
    parts = [part for part in (table(p) for p in listed(payload.get("input")) or ()) if part]
    texts = [text for part in parts if (text := word(part, "text"))]
    refs = [ref for part in parts if (ref := word(part, "ref"))]
    prompt = word(payload, "prompt", "text") or "\n".join(texts) or None
    return ItemContent(text=prompt, refs=refs or None) if prompt or refs else None


def _started(fact: Fact) -> Said | None:
    run = _own_run(fact)
    if run is None:
        return None
    time = sent_at(fact.created_at)
    return "run.started", _change(fact, run, "running", started_at=time)


def _change(fact: Fact, run: str, status: RunStatus, **times: str | None) -> RunChange:
    return RunChange(
        run_id=run,
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        reason=word(fact.payload, "reason"),
        **times,
    )


def _now_running(fact: Fact) -> Said | None:
    run = _own_run(fact)
    if run is None:
        return None
    return "run.status.changed", RunStatusChange(run_id=run, from_="queued", to="running")


def _ended(fact: Fact) -> Said | None:
    run = _own_run(fact)
    if run is None:
        return None
    status, finished = _ENDS[outcome_of(fact)], sent_at(fact.completed_at or fact.created_at)
    if status == "failed":
        error = run_error(fact)
        return "run.failed", RunFailure(
            run_id=run, status="failed", error=error, finished_at=finished
        )
    started = word(fact.payload, "startedAt")
    change = _change(fact, run, status, started_at=started, finished_at=finished)
    return f"run.{status}", change


def run_error(fact: Fact) -> RunError:
    """Why a turn failed, as a run's error."""
    said = read(fact, TurnEnd)
    category = said.failure_category or ""
    details = {"failureCategory": said.failure_category, "recoveryHint": said.recovery_hint}
    known = {name: value for name, value in details.items() if value is not None}
    return RunError(
        code=ERROR_CODES.get(category, "UNKNOWN"),
        message=said.message or fact.detail or category or "the run failed",
        details=known or None,
    )


def _now_ended(fact: Fact) -> Said | None:
    run = _own_run(fact)
    if run is None:
        return None
    status = _ENDS[outcome_of(fact)]
    # Only a turn that ran can complete; one that failed or was stopped may never have begun.
    before = "running" if status == "finished" else word(fact.payload, "from")
    change = RunStatusChange(
        run_id=run,
        from_=cast("Any", before) if before in _BEFORE else "unknown",
        to=status,
        error=run_error(fact) if status == "failed" else None,
    )
    return "run.status.changed", change


_START: Final = Words(Word(_started, ("run.started",)), Word(_now_running, ("run.status.changed",)))


def _end(*types: str) -> Words:
    return Words(Word(_ended, types), Word(_now_ended, ("run.status.changed",)))


RUN_WORDS: Final[Table] = {
    "turn.submitted": Words(
        Word(_queued, ("run.queued",)), Word(_message, ("message.created", "run.queued"))
    ),
    "queue.changed": Words(
        Word(_lined_up, ("run.queued", "run.cancelled")),
        Word(_left_the_line, ("run.queued", "run.status.changed")),
    ),
    "turn.started": _START,
    "run.started": _START,
    "turn.completed": _end("run.finished", "run.cancelled"),
    "turn.failed": _end("run.failed"),
    "turn.canceled": _end("run.cancelled"),
    "run.finished": _end("run.finished", "run.cancelled"),
    "run.failed": _end("run.failed"),
}
