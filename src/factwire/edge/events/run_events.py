"""Runs: a turn of the runtime in the Edge's words.

A turn of a subagent is no run of its own and keeps its class: its end must never pass for the end
of the run that it is part of.
"""

from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import Fact, Person, to_person
from factwire.facts.classes.payloads import TurnEndPayload
from factwire.facts.json_values import objects_of, text_at, whole_number_at
from factwire.facts.resources import Item, ItemContent, RunStatus
from factwire.projection.payload_fields import (
    outcome_of,
    queued_turn_of,
    read_payload,
    subagent_of,
)
from factwire.projection.thread_status import CANCELLING
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
    """A run that was asked for, `by` whom; `retry_of` names the run that it repeats, and
    `changed_by` is who moved it to the front of the queue.
    """

    run_id: str
    status: RunStatus
    project_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    created_at: str | None = None
    by: Person | None = None
    changed_by: Person | None = None


class RunChange(EventPayload, frozen=True):
    """A run that started or ended, with the times of what has happened to it. One that was
    cancelled as `steered` never ran: the run `steered_into` took its prompt. `by` is who
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
    steered_into: str | None = None
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
    project_id: str | None = None
    thread_id: str | None = None
    created_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class RunStatusChange(EventPayload, frozen=True):
    """From where to where a run went, and its times; `from` is absent where an outside runtime did
    not report it.
    """

    run_id: str
    to: RunStatus
    from_: RunStatus | None = msgspec.field(name="from", default=None)
    reason: str | None = None
    by: Person | None = None
    error: RunErrorEvent | None = None
    created_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


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
_STATUSES: Final = ("queued", "running", "waiting")
_QUEUED: Final = frozenset({"added", "promoted", "queue"})
_UNQUEUED: Final = frozenset({"removed", "cancelled", "canceled"})
_HOLDS: Final[dict[str, tuple[RunStatus, RunStatus]]] = {
    "held": ("queued", "held"),
    "released": ("held", "queued"),
}
"""Change of a queued turn → the status that its run leaves, and the one that it has then."""


def _own_run_id(fact: Fact) -> str | None:
    return None if subagent_of(fact) is not None else run_id_of(fact)


def _to_run_queued(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    return None if run is None else ("run.queued", _build_queued_run(fact, run, fact.payload))


def _build_queued_run(fact: Fact, run: str, payload: dict[str, Any]) -> RunEvent:
    retried = text_at(payload, "retryOf")
    return RunEvent(
        run_id=run,
        status="held" if text_at(payload, "status") == "held" else "queued",
        project_id=fact.project_id or text_at(payload, "projectId"),
        thread_id=thread_id_of(fact),
        agent_id=text_at(payload, "agentId", "agent_id") or fact.agent_id,
        retry_of=None if retried is None else run_of(retried),
        attempt=whole_number_at(payload, "attempt"),
        created_at=_read_times(fact).get("created_at") or sent_at(fact.created_at),
        by=to_person(payload.get("by")),
        changed_by=to_person(payload.get("changedBy")),
    )


def _read_times(fact: Fact) -> dict[str, Any]:
    """When the run of a fact was asked for and started, as far as the fact reports it."""
    names = {"created_at": "createdAt", "started_at": "startedAt"}
    times = {name: text_at(fact.payload, field) for name, field in names.items()}
    return {name: sent_at(time) for name, time in times.items() if time is not None}


def _to_queue_change(fact: Fact) -> TypedPayload | None:
    """A turn that waits in the queue, is held there, or was taken out and will never run. A queue
    that was only put in order says nothing of a run; nor does a turn whose text is to be said to
    another one: it waits until that is done.
    """
    run, change = run_id_of(fact), text_at(fact.payload, "change") or fact.control
    if run is None or queued_turn_of(fact) is None:
        return None
    if change in _HOLDS:
        before, after = _HOLDS[change]
        reason = text_at(fact.payload, "reason")
        by = to_person(fact.payload.get("changedBy"))
        return _STATUS, RunStatusChange(
            run_id=run, from_=before, to=after, reason=reason, by=by, **_read_times(fact)
        )
    if change in _QUEUED:
        return "run.queued", _build_queued_run(fact, run, fact.payload)
    if change not in _UNQUEUED or text_at(fact.payload, "steerId") is not None:
        return None
    into = text_at(fact.payload, "steeredInto")
    ended = _build_run_change(fact, run, "cancelled", finished_at=sent_at(fact.created_at))
    return "run.cancelled", msgspec.structs.replace(
        ended, steered_into=None if into is None else run_of(into)
    )


def _to_queue_status_change(fact: Fact) -> TypedPayload | None:
    change = _to_queue_change(fact) or _to_steer_message(fact)
    if change is None or not isinstance(change[1], RunChange):
        return change
    ended = change[1]
    return _STATUS, RunStatusChange(
        run_id=ended.run_id,
        from_="queued",
        to="cancelled",
        reason=ended.reason,
        by=ended.by,
        created_at=ended.created_at,
        finished_at=ended.finished_at,
    )


_STATUS: Final = "run.status.changed"


def add_cancelling(mappings: ViewMappings) -> ViewMappings:
    """The words of `run.status`, and the one for a run that was asked to stop."""
    return ViewMappings(*map(_add_cancelling, mappings))


def _add_cancelling(mapping: EventMapping) -> EventMapping:
    def to_event(fact: Fact) -> TypedPayload | None:
        run = _own_run_id(fact)
        # What an agent reports of its own stopping comes after the stop was asked for.
        is_asked = "from" in fact.payload and text_at(fact.payload, "status") == CANCELLING
        if run is None or not is_asked:
            return mapping.to_event(fact)
        stated: Any = fact.payload["from"]
        before: RunStatus = stated if stated in _STATUSES else "running"
        reason, by = text_at(fact.payload, "reason"), to_person(fact.payload.get("by"))
        return _STATUS, RunStatusChange(
            run_id=run, from_=before, to=CANCELLING, reason=reason, by=by, **_read_times(fact)
        )

    return EventMapping(to_event, (*mapping.types, _STATUS))


def _to_steer_message(fact: Fact) -> TypedPayload | None:
    """What somebody says to a run under way: an item that waits, and once the run has taken it a
    message.
    """
    steer, run = text_at(fact.payload, "steerId"), _own_run_id(fact)
    name = _STEERS.get(text_at(fact.payload, "status") or "")
    if fact.control != "steer" or steer is None or run is None or name is None:
        return None
    status = "completed" if name == "message.created" else "pending"
    return name, _build_user_item(fact, run, f"{steer}:user", status)


_STEERS: Final = {"pending": "item.created", "delivered": "message.created"}


def _build_user_item(fact: Fact, run: str, item_id: str, status: str) -> Item:
    time = sent_at(fact.created_at)
    return Item(
        item_id=item_id,
        type="user_message",
        role="user",
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        run_id=run,
        content=_read_content(fact.payload),
        created_at=time,
        updated_at=time,
        by=to_person(fact.payload.get("by")),
    )


def _to_user_message(fact: Fact) -> TypedPayload | None:
    """What the user asked, as a message; where they said nothing, the run alone."""
    run = _own_run_id(fact)
    if run is None:
        return None
    if _read_content(fact.payload) is None:
        return _to_run_queued(fact)
    item = _build_user_item(fact, run, user_item_id_of(fact), "completed")
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
    time = _read_times(fact).get("started_at") or sent_at(fact.created_at)
    return "run.started", _build_run_change(fact, run, "running", started_at=time)


def _build_run_change(fact: Fact, run: str, status: RunStatus, **times: str) -> RunChange:
    return RunChange(
        run_id=run,
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        reason=text_at(fact.payload, "reason"),
        by=to_person(fact.payload.get("by")) if status == "cancelled" else None,
        **{**_read_times(fact), **times},
    )


def _to_running_status(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    times: dict[str, Any] = {"started_at": sent_at(fact.created_at), **_read_times(fact)}
    return "run.status.changed", RunStatusChange(run_id=run, from_="queued", to="running", **times)


def to_run_status(fact: Fact) -> TypedPayload | None:
    """A run that waits for a person, or goes on; what else a status says is the agent's own."""
    run, before = _own_run_id(fact), fact.payload.get("from")
    now: Any = fact.payload.get("status")
    if run is None or before not in _STATUSES or now not in _STATUSES:
        return None
    change = RunStatusChange(run_id=run, from_=cast("Any", before), to=now, **_read_times(fact))
    return "run.status.changed", change


def _to_run_end(fact: Fact) -> TypedPayload | None:
    run = _own_run_id(fact)
    if run is None:
        return None
    status, finished = _ENDS[outcome_of(fact)], sent_at(fact.completed_at or fact.created_at)
    if status == "failed":
        error = build_run_error(fact)
        return "run.failed", RunFailure(
            run_id=run,
            status="failed",
            error=error,
            project_id=fact.project_id,
            thread_id=thread_id_of(fact),
            finished_at=finished,
            **_read_times(fact),
        )
    return f"run.{status}", _build_run_change(fact, run, status, finished_at=finished)


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
    status, times = _ENDS[outcome_of(fact)], _read_times(fact)
    change = RunStatusChange(
        run_id=run,
        from_=_status_before_end(fact, status, times),
        to=status,
        error=build_run_error(fact) if status == "failed" else None,
        finished_at=sent_at(fact.completed_at or fact.created_at),
        **times,
    )
    return "run.status.changed", change


def _status_before_end(fact: Fact, status: RunStatus, times: dict[str, str]) -> Any:
    """Only a turn that ran can complete; one that failed or was stopped may never have begun."""
    stated = fact.payload.get("from")
    if stated in _STATUSES or stated == CANCELLING:
        return stated
    if status == "finished" or "started_at" in times:
        return "running"
    return "queued" if "created_at" in times else None


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
        EventMapping(_to_queue_change, ("run.queued", "run.cancelled", _STATUS)),
        EventMapping(
            _to_queue_status_change,
            ("run.queued", "run.status.changed", "item.created", "message.created"),
        ),
    ),
    "turn.started": _START,
    "run.started": _START,
    "turn.completed": _end_mappings("run.finished", "run.cancelled"),
    "turn.failed": _end_mappings("run.failed"),
    "turn.canceled": _end_mappings("run.cancelled"),
    "run.finished": _end_mappings("run.finished", "run.cancelled"),
    "run.failed": _end_mappings("run.failed"),
}
