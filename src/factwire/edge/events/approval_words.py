"""Approvals: what waits for a person, what was decided, and that it was acted upon.

*Decided* and *applied* are two facts, and so two envelopes of the same type: the second says
`applied`, and repeats the decision where its fact does.
"""

from typing import Any, Final

from factwire.edge.events.agent_payloads import PermissionDecision, PermissionRequest
from factwire.edge.events.ids import run_id_of
from factwire.edge.events.run_payloads import ApprovalDecision, ApprovalRequest
from factwire.edge.events.word import Said, Table, Word, Words
from factwire.facts import Fact
from factwire.facts.payloads import ActionDecision, ActionRequest
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.reading import other_id, read, tool_of, word

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

_WITHOUT_ONE: Final = {
    "action.cancelled": "cancel",
    "action.canceled": "cancel",
    "action.expired": "deny",
}
"""What it comes to when a request is closed and nobody decided: time runs out to no."""

_SHOWN: Final = ("args", "input", "shown", "command")


def _asked(fact: Fact) -> Said | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    said = read(fact, ActionRequest)
    return "run.agent.permission_requested", PermissionRequest(
        request_id=action,
        risk_level=said.severity or UNKNOWN,
        tool_name=word(fact.payload, "toolName"),
        call_id=tool_of(fact),
        input=_input(fact),
        kind=said.action_type,
        summary=said.prompt,
        args_hash=said.args_hash,
        expires_at=said.expires_at,
    )


def _input(fact: Fact) -> Any:
    shown = (fact.payload.get(name) for name in _SHOWN)
    return next((value for value in shown if value is not None), None)


def _requested(fact: Fact) -> Said | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    said = read(fact, ActionRequest)
    return "approval.requested", ApprovalRequest(
        approval_id=action,
        kind=said.action_type or UNKNOWN,
        risk_level=said.severity or UNKNOWN,
        run_id=run_id_of(fact),
        summary=said.prompt,
        args_hash=said.args_hash,
        expires_at=said.expires_at,
        requested_by=said.requested_by,
        call_id=tool_of(fact),
        tool_name=word(fact.payload, "toolName"),
        options=said.options,
        response_schema=said.response_schema,
    )


def _closed(fact: Fact) -> Said | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    said = read(fact, ActionDecision)
    return "run.agent.permission_decided", PermissionDecision(
        request_id=action,
        decision=_decision(fact, said),
        applied=said.applied is True,
        tool_name=word(fact.payload, "toolName"),
        call_id=tool_of(fact),
        reason=said.reason,
        decided_by=said.decided_by,
    )


def _decided(fact: Fact) -> Said | None:
    action = other_id(fact, "actionId", "action_id")
    if action is None:
        return None
    said = read(fact, ActionDecision)
    return "approval.decided", ApprovalDecision(
        approval_id=action,
        decision=_decision(fact, said),
        applied=said.applied is True,
        run_id=run_id_of(fact),
        decided_by=said.decided_by,
        reason=said.reason,
    )


def _decision(fact: Fact, said: ActionDecision) -> str:
    if said.decision:
        return DECISIONS.get(said.decision, said.decision)
    return _WITHOUT_ONE.get(fact.event_class or "", UNKNOWN)


def _updated(fact: Fact) -> Said | None:
    return _closed(fact) if "applied" in fact.payload else _asked(fact)


def _changed(fact: Fact) -> Said | None:
    return _decided(fact) if "applied" in fact.payload else _requested(fact)


_ASKS: Final = Words(
    Word(_asked, ("run.agent.permission_requested",)), Word(_requested, ("approval.requested",))
)
_CLOSES: Final = Words(
    Word(_closed, ("run.agent.permission_decided",)), Word(_decided, ("approval.decided",))
)

APPROVAL_WORDS: Final[Table] = {
    "action.required": _ASKS,
    "action.updated": Words(
        Word(_updated, (*_ASKS.runtime.types, *_CLOSES.runtime.types)),
        Word(_changed, (*_ASKS.conversation.types, *_CLOSES.conversation.types)),
    ),
    "action.resolved": _CLOSES,
    "action.cancelled": _CLOSES,
    "action.canceled": _CLOSES,
    "action.expired": _CLOSES,
}
