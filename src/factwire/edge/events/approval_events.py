"""Approvals: what waits for a person, what was decided, and that it was acted upon.

*Decided*, *sent* and *applied* are facts of their own, and so envelopes of the same type: the last
one says `applied`. Each has the times that its fact knows, and repeats the decision where its fact
does.
"""

from typing import Any, Final

from factwire.facts import Fact, Person, to_person
from factwire.facts.classes.payloads import ActionDecisionPayload, ActionRequestPayload
from factwire.facts.json_values import text_at
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.payload_fields import other_id, read_payload, tool_of
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    run_id_of,
    sent_at,
)


class ApprovalRequest(EventPayload, frozen=True):
    """What a person must decide; the answer is bound to `args_hash`."""

    approval_id: str
    kind: str
    risk_level: str
    run_id: str | None = None
    summary: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_by: str | None = None
    call_id: str | None = None
    tool_name: str | None = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None
    requested_at: str | None = None


class ApprovalDecision(EventPayload, frozen=True):
    """What was decided, and whether it took effect: the same decision comes again when it is sent
    to the agent and when it is applied.
    """

    approval_id: str
    decision: str
    applied: bool
    run_id: str | None = None
    decided_by: Person | None = None
    reason: str | None = None
    requested_at: str | None = None
    decided_at: str | None = None
    sent_at: str | None = None
    applied_at: str | None = None


class PermissionRequest(EventPayload, frozen=True):
    """The agent may not go on until somebody decides; `input` are the arguments of the call."""

    request_id: str
    risk_level: str
    tool_name: str | None = None
    call_id: str | None = None
    input: Any = None
    kind: str | None = None
    summary: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_at: str | None = None


class PermissionDecision(EventPayload, frozen=True):
    """What was decided, and whether the agent has acted upon it."""

    request_id: str
    decision: str
    applied: bool
    tool_name: str | None = None
    call_id: str | None = None
    reason: str | None = None
    decided_by: Person | None = None
    requested_at: str | None = None
    decided_at: str | None = None
    sent_at: str | None = None
    applied_at: str | None = None


DECISIONS: Final = {
    "approve": "allow",
    "approved": "allow",
    "allow": "allow",
    "allowed": "allow",
    "deny": "deny",
    "denied": "deny",
    "reject": "deny",
    "rejected": "deny",
    "answer": "answer",
    "answered": "answer",
}
"""The word of an envelope for each decision that facts know; any other stays as it is."""

_CLOSED_UNDECIDED: Final = {
    "action.cancelled": "cancel",
    "action.canceled": "cancel",
    "action.expired": "deny",
}
"""What it comes to when a request is closed and nobody decided: time runs out to no."""


def _to_permission_request(fact: Fact) -> TypedPayload | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    fields = read_payload(fact, ActionRequestPayload)
    return "run.agent.permission_requested", PermissionRequest(
        request_id=action,
        risk_level=fields.severity or UNKNOWN,
        tool_name=text_at(fact.payload, "toolName"),
        call_id=tool_of(fact),
        input=_read_input(fact),
        kind=fields.action_type,
        summary=fields.prompt,
        args_hash=fields.args_hash,
        expires_at=fields.expires_at,
        requested_at=_read_request_time(fact),
    )


def _read_input(fact: Fact) -> Any:
    """The arguments of a call; of one that has only a command, that."""
    for name in ("args", "input"):
        if fact.payload.get(name) is not None:
            return fact.payload[name]
    command = {name: fact.payload.get(name) for name in ("command", "cwd")}
    known = {name: value for name, value in command.items() if value is not None}
    return known if "command" in known else None


def _to_approval_request(fact: Fact) -> TypedPayload | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    fields = read_payload(fact, ActionRequestPayload)
    return "approval.requested", ApprovalRequest(
        approval_id=action,
        kind=fields.action_type or UNKNOWN,
        risk_level=fields.severity or UNKNOWN,
        run_id=run_id_of(fact),
        summary=fields.prompt,
        args_hash=fields.args_hash,
        expires_at=fields.expires_at,
        requested_by=fields.requested_by,
        call_id=tool_of(fact),
        tool_name=text_at(fact.payload, "toolName"),
        options=fields.options,
        response_schema=fields.response_schema,
        requested_at=_read_request_time(fact),
    )


def _to_permission_decision(fact: Fact) -> TypedPayload | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    fields = read_payload(fact, ActionDecisionPayload)
    return "run.agent.permission_decided", PermissionDecision(
        request_id=action,
        decision=_read_decision(fact, fields),
        applied=fields.applied is True,
        tool_name=text_at(fact.payload, "toolName"),
        call_id=tool_of(fact),
        reason=fields.reason,
        decided_by=to_person(fields.decided_by),
        **_read_times(fact, fields),
    )


def _to_approval_decision(fact: Fact) -> TypedPayload | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    fields = read_payload(fact, ActionDecisionPayload)
    return "approval.decided", ApprovalDecision(
        approval_id=action,
        decision=_read_decision(fact, fields),
        applied=fields.applied is True,
        run_id=run_id_of(fact),
        decided_by=to_person(fields.decided_by),
        reason=fields.reason,
        **_read_times(fact, fields),
    )


def _read_request_time(fact: Fact) -> str | None:
    """When a decision was asked for; a later change of the request is not that."""
    return sent_at(fact.created_at) if fact.event_class == "action.required" else None


def _read_times(fact: Fact, fields: ActionDecisionPayload) -> dict[str, str | None]:
    """The times of an approval that a fact after its request knows."""
    time = sent_at(fact.created_at)
    is_answer = fact.event_class != "action.updated"
    return {
        "requested_at": fields.requested_at,
        "decided_at": time if is_answer else fields.decided_at,
        "sent_at": fields.sent_at,
        "applied_at": time if fields.applied is True else None,
    }


def _read_decision(fact: Fact, fields: ActionDecisionPayload) -> str:
    if fields.decision:
        return DECISIONS.get(fields.decision, fields.decision)
    return _CLOSED_UNDECIDED.get(fact.event_class or "", UNKNOWN)


def _to_permission_update(fact: Fact) -> TypedPayload | None:
    return (
        _to_permission_decision(fact) if "applied" in fact.payload else _to_permission_request(fact)
    )


def _to_approval_update(fact: Fact) -> TypedPayload | None:
    return _to_approval_decision(fact) if "applied" in fact.payload else _to_approval_request(fact)


_REQUESTS: Final = ViewMappings(
    EventMapping(_to_permission_request, ("run.agent.permission_requested",)),
    EventMapping(_to_approval_request, ("approval.requested",)),
)
_RESOLUTIONS: Final = ViewMappings(
    EventMapping(_to_permission_decision, ("run.agent.permission_decided",)),
    EventMapping(_to_approval_decision, ("approval.decided",)),
)

APPROVAL_EVENTS: Final[MappingTable] = {
    "action.required": _REQUESTS,
    "action.updated": ViewMappings(
        EventMapping(
            _to_permission_update, (*_REQUESTS.runtime.types, *_RESOLUTIONS.runtime.types)
        ),
        EventMapping(
            _to_approval_update, (*_REQUESTS.conversation.types, *_RESOLUTIONS.conversation.types)
        ),
    ),
    "action.resolved": _RESOLUTIONS,
    "action.cancelled": _RESOLUTIONS,
    "action.canceled": _RESOLUTIONS,
    "action.expired": _RESOLUTIONS,
}
