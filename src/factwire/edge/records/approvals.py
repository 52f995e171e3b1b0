"""Approvals: what waits for a person, and what was decided."""

from typing import TYPE_CHECKING, Final

from factwire.edge.events.ids import run_id_of
from factwire.edge.records.belonging import key_of, row_of
from factwire.edge.records.rows import Approval, ApprovalStatus
from factwire.edge.records.threads import thread_of
from factwire.facts import Fact, id_of
from factwire.facts.payloads import ActionDecision, ActionRequest
from factwire.projection.reading import read, subagent_of, word

if TYPE_CHECKING:
    from factwire.edge.records.records import Records

_ALLOWED: Final = frozenset({"approved", "allow", "allowed", "answered", "approve"})
_CLOSED: Final[dict[str, ApprovalStatus]] = {
    "action.cancelled": "cancelled",
    "action.canceled": "cancelled",
    "action.expired": "expired",
}


def _required(records: "Records", seq: int, fact: Fact) -> None:
    bare, run_id = id_of(fact, "actionId"), run_id_of(fact)
    if bare is None:
        return
    approval_id = key_of(records.approvals, thread_of(fact), bare)
    records.approvals.remove(approval_id)
    said = read(fact, ActionRequest)
    records.approvals.add(
        approval_id,
        Approval(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            approval_id=approval_id,
            status="pending",
            kind=said.action_type or "unknown",
            risk_level=said.severity or "unknown",
            thread_id=thread_of(fact),
            project_id=fact.project_id,
            run_id=None if run_id is None else key_of(records.runs, thread_of(fact), run_id),
            summary=said.prompt or fact.title,
            shown=word(fact.payload, "shown"),
            cwd=word(fact.payload, "cwd"),
            rule=word(fact.payload, "rule"),
            args_hash=said.args_hash,
            expires_at=said.expires_at,
            requested_by=said.requested_by,
            subagent_id=subagent_of(fact),
            tool_call_id=id_of(fact, "toolCallId"),
            tool_name=word(fact.payload, "toolName"),
        ),
    )
    _count(records, fact, approval_id, is_open=True)


def _resolved(records: "Records", _: int, fact: Fact) -> None:
    row = row_of(records.approvals, thread_of(fact), id_of(fact, "actionId"))
    if row is None:
        return
    said = read(fact, ActionDecision)
    row.decision = said.decision or row.decision
    row.status = "approved" if row.decision in _ALLOWED else "denied"
    row.decided_by = said.decided_by or row.decided_by
    row.reason = said.reason or row.reason
    row.applied = said.applied if said.applied is not None else row.applied
    row.updated_at = fact.created_at
    _count(records, fact, row.approval_id, is_open=False)


def _closed(records: "Records", _: int, fact: Fact) -> None:
    row = row_of(records.approvals, thread_of(fact), id_of(fact, "actionId"))
    if row is None:
        return
    row.status = _CLOSED[fact.event_class or ""]
    row.updated_at = fact.created_at
    _count(records, fact, row.approval_id, is_open=False)


def _count(records: "Records", fact: Fact, approval_id: str, *, is_open: bool) -> None:
    """What an open approval means for its thread and its run: they wait."""
    thread = records.threads.get(thread_of(fact) or "")
    run = row_of(records.runs, thread_of(fact), run_id_of(fact))
    if thread is not None:
        others = tuple(each for each in thread.open_approvals if each != approval_id)
        thread.open_approvals = (*others, approval_id) if is_open else others
        if thread.activity in ("running", "waiting"):
            thread.activity = "waiting" if thread.open_approvals else "running"
    if run is not None and run.status in ("running", "waiting"):
        waits = thread is not None and any(
            _is_open(records, each, run.run_id) for each in thread.open_approvals
        )
        run.status = "waiting" if waits else "running"


def _is_open(records: "Records", approval_id: str, run_id: str) -> bool:
    row = records.approvals.get(approval_id)
    return row is not None and row.run_id == run_id


HANDLERS = {
    "action.required": _required,
    "action.resolved": _resolved,
    **dict.fromkeys(_CLOSED, _closed),
}
