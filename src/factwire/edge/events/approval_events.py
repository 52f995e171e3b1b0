"""Approvals: what waits for a person, what was decided, and that it was acted upon.

*Decided* and *applied* are two facts, and so two envelopes of the same type: the second says
`applied`, and repeats the decision where its fact does.
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


class ApprovalDecision(EventPayload, frozen=True):
    """What was decided, and whether it took effect: the same decision comes again as applied."""

    approval_id: str
    decision: str
    applied: bool
    run_id: str | None = None
    decided_by: Person | None = None
    reason: str | None = None


class PermissionRequest(EventPayload, frozen=True):
    """The agent may not go on until somebody decides; `input` is what was shown to them."""

    request_id: str
    risk_level: str
    tool_name: str | None = None
    call_id: str | None = None
    input: Any = None
    kind: str | None = None
    summary: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None


class PermissionDecision(EventPayload, frozen=True):
    """What was decided, and whether the agent has acted upon it."""

    request_id: str
    decision: str
    applied: bool
    tool_name: str | None = None
    call_id: str | None = None
    reason: str | None = None
    decided_by: Person | None = None


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

_SHOWN: Final = ("args", "input", "shown", "command")


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
        input=_read_shown_input(fact),
        kind=fields.action_type,
        summary=fields.prompt,
        args_hash=fields.args_hash,
        expires_at=fields.expires_at,
    )


def _read_shown_input(fact: Fact) -> Any:
    shown = (fact.payload.get(name) for name in _SHOWN)
    return next((value for value in shown if value is not None), None)


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
    )


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
