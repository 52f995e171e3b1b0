"""Runs: a turn of the runtime in the Edge's words.

A turn of a subagent is no run of its own and keeps its class: its end must never pass for the end
of the run that it is part of.
"""

from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import Fact, Person, to_person
from factwire.facts.classes.payloads import TurnEndPayload
from factwire.facts.json_values import objects_of, text_at, whole_number_at
from factwire.facts.resources import Item, ItemContent
from factwire.projection.payload_fields import other_id, outcome_of, read_payload, subagent_of
from factwire.runtime.mint import run_of
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    run_id_of,
    sent_at,
    thread_id_of,
    user_item_id_of,
)

RunStatus = Literal["queued", "running", "finished", "failed", "cancelled"]
RunErrorCode = Literal[
    "BINARY_NOT_FOUND",
    "TIMEOUT",
    "NONZERO_EXIT",
    "CANCELLED",
    "PERMISSION_DENIED",
    "EDGE_RESTARTED",
    "UNKNOWN",
]


class RunEvent(EventPayload, frozen=True):
    """A run that was asked for, `by` whom; `retry_of` names the run that it repeats."""

    run_id: str
    status: RunStatus
    project_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    created_at: str | None = None
    by: Person | None = None


class RunChange(EventPayload, frozen=True):
    """A run that started or ended; of its three times, those that this fact knows. `by` is who
    cancelled it.
    """

    run_id: str
    status: RunStatus
    project_id: str | None = None
    thread_id: str | None = None
    reason: str | None = None
    created_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    by: Person | None = None


class RunErrorEvent(EventPayload, frozen=True):
    """Why a run failed: one of a few codes, and in `details` what the facts say exactly."""

    code: RunErrorCode
    message: str
    details: dict[str, Any] | None = None


class RunFailure(EventPayload, frozen=True):
    """A run that failed."""

    run_id: str
    status: Literal["failed"]
    error: RunErrorEvent
    finished_at: str | None = None


class RunStatusChange(EventPayload, frozen=True):
    """From where to where a run went; `from` is unknown where the fact alone cannot know it."""

    run_id: str
    from_: Literal["queued", "running", "unknown"] = msgspec.field(name="from")
    to: RunStatus
    error: RunErrorEvent | None = None


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


def _own_run_id(fact: Fact) -> str | None:
    return None if subagent_of(fact) is not None else run_id_of(fact)


def _to_run_queued(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    return None if run is None else ("run.queued", _build_queued_run(fact, run, fact.payload))


def _build_queued_run(fact: Fact, run: str, payload: dict[str, Any]) -> RunEvent:
    retried = text_at(payload, "retryOf")
    return RunEvent(
        run_id=run,
        status="queued",
        project_id=fact.project_id or text_at(payload, "projectId"),
        thread_id=thread_id_of(fact),
        agent_id=text_at(payload, "agentId", "agent_id") or fact.agent_id,
        retry_of=None if retried is None else run_of(retried),
        attempt=whole_number_at(payload, "attempt"),
        created_at=sent_at(fact.created_at),
        by=to_person(payload.get("by")),
    )


def _to_queue_change(fact: Fact) -> TypedPayload | None:
    """A turn that waits in the queue, or was taken out and will never run; a queue that was only
    put in order says nothing of a run.
    """
    turn = other_id(fact, "queuedTurnId", "queued_turn_id")
    change = text_at(fact.payload, "change") or fact.control
    if turn is None or change not in _QUEUED | _UNQUEUED:
        return None
    run = fact.run_id or run_of(turn)
    if change in _QUEUED:
        return "run.queued", _build_queued_run(fact, run, fact.payload)
    finished = sent_at(fact.created_at)
    return "run.cancelled", _build_run_change(fact, run, "cancelled", finished_at=finished)


def _to_queue_status_change(fact: Fact) -> TypedPayload | None:
    change = _to_queue_change(fact)
    if change is None or change[0] == "run.queued":
        return change
    run = fact.run_id or run_of(other_id(fact, "queuedTurnId", "queued_turn_id") or "")
    return "run.status.changed", RunStatusChange(run_id=run, from_="queued", to="cancelled")


def _to_user_message(fact: Fact) -> TypedPayload | None:
    """What the user asked, as a message; where they said nothing, the run alone."""
    run = _own_run_id(fact)
    if run is None:
        return None
    content = _read_content(fact.payload)
    if content is None:
        return _to_run_queued(fact)
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
        by=to_person(fact.payload.get("by")),
    )
    return "message.created", item


def _read_content(payload: dict[str, Any]) -> ItemContent | None:
    parts = objects_of(payload.get("input"))
    texts = [text for part in parts if (text := text_at(part, "text"))]
    refs = [ref for part in parts if (ref := text_at(part, "ref"))]
    prompt = text_at(payload, "prompt", "text") or "\n".join(texts) or None
    return ItemContent(text=prompt, refs=refs or None) if prompt or refs else None


def _to_run_started(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    time = sent_at(fact.created_at)
    return "run.started", _build_run_change(fact, run, "running", started_at=time)


def _build_run_change(fact: Fact, run: str, status: RunStatus, **times: str | None) -> RunChange:
    return RunChange(
        run_id=run,
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        reason=text_at(fact.payload, "reason"),
        by=to_person(fact.payload.get("by")) if status == "cancelled" else None,
        **times,
    )


def _to_running_status(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    return "run.status.changed", RunStatusChange(run_id=run, from_="queued", to="running")


def _to_run_end(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    status, finished = _ENDS[outcome_of(fact)], sent_at(fact.completed_at or fact.created_at)
    if status == "failed":
        error = build_run_error(fact)
        return "run.failed", RunFailure(
            run_id=run, status="failed", error=error, finished_at=finished
        )
    started = text_at(fact.payload, "startedAt")
    change = _build_run_change(fact, run, status, started_at=started, finished_at=finished)
    return f"run.{status}", change


def build_run_error(fact: Fact) -> RunErrorEvent:
    """Why a turn failed, as a run's error."""
    fields = read_payload(fact, TurnEndPayload)
    category = fields.failure_category or ""
    details = {"failureCategory": fields.failure_category, "recoveryHint": fields.recovery_hint}
    known = {name: value for name, value in details.items() if value is not None}
    return RunErrorEvent(
        code=ERROR_CODES.get(category, "UNKNOWN"),
        message=fields.message or fact.detail or category or "the run failed",
        details=known or None,
    )


def _to_end_status(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    status = _ENDS[outcome_of(fact)]
    # Only a turn that ran can complete; one that failed or was stopped may never have begun.
    before = "running" if status == "finished" else text_at(fact.payload, "from")
    change = RunStatusChange(
        run_id=run,
        from_=cast("Any", before) if before in _BEFORE else "unknown",
        to=status,
        error=build_run_error(fact) if status == "failed" else None,
    )
    return "run.status.changed", change


_START: Final = ViewMappings(
    EventMapping(_to_run_started, ("run.started",)),
    EventMapping(_to_running_status, ("run.status.changed",)),
)


def _end_mappings(*types: str) -> ViewMappings:
    return ViewMappings(
        EventMapping(_to_run_end, types), EventMapping(_to_end_status, ("run.status.changed",))
    )


RUN_EVENTS: Final[MappingTable] = {
    "turn.submitted": ViewMappings(
        EventMapping(_to_run_queued, ("run.queued",)),
        EventMapping(_to_user_message, ("message.created", "run.queued")),
    ),
    "queue.changed": ViewMappings(
        EventMapping(_to_queue_change, ("run.queued", "run.cancelled")),
        EventMapping(_to_queue_status_change, ("run.queued", "run.status.changed")),
    ),
    "turn.started": _START,
    "run.started": _START,
    "turn.completed": _end_mappings("run.finished", "run.cancelled"),
    "turn.failed": _end_mappings("run.failed"),
    "turn.canceled": _end_mappings("run.cancelled"),
    "run.finished": _end_mappings("run.finished", "run.cancelled"),
    "run.failed": _end_mappings("run.failed"),
}
