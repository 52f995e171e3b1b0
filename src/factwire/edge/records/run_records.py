"""Runs and what they wait for: queued, running, ended, and the approvals that hold them up."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from factwire.edge.events.run_events import build_run_error
from factwire.edge.limits import MARKED_TURNS
from factwire.edge.records.thread_records import edit_row, key_of, thread_of
from factwire.facts import Fact, entity_of, id_of, loose_entity_of, to_person
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.classes.payloads import ActionDecisionPayload, ActionRequestPayload
from factwire.facts.json_values import list_at, object_at, text_at
from factwire.facts.open_work import TURN_OPENERS
from factwire.facts.resources import (
    Activity,
    Approval,
    ApprovalStatus,
    Run,
    RunError,
    RunStatus,
    RunWorktree,
    Thread,
)
from factwire.journal.filter import BESIDE_THREAD
from factwire.projection.payload_fields import (
    outcome_of,
    queued_turn_of,
    read_payload,
    subagent_of,
    turn_of,
)
from factwire.projection.thread_status import CANCELLING
from factwire.runtime.action_cards import find_request_hash
from factwire.runtime.mint import run_of
from factwire.serving.envelopes import run_id_of

if TYPE_CHECKING:
    from factwire.edge.records.edge_records import Records


_ENDS: Final[dict[str, tuple[RunStatus, Activity]]] = {
    "completed": ("finished", "completed"),
    "failed": ("failed", "failed"),
    "canceled": ("cancelled", "canceled"),
}


class MarkedTurns(msgspec.Struct, kw_only=True):
    """The last turns of a thread that name a task or a worker: those `beside` it, which began while
    another one ran, and each of its own with the task and the worker that its opening names.
    """

    seq: int
    beside: list[str] = msgspec.field(default_factory=list[str])
    marks: list[tuple[str, str]] = msgspec.field(default_factory=list[tuple[str, str]])


def _edit_marked_turns(records: "Records", seq: int, fact: Fact) -> MarkedTurns:
    thread_id = thread_of(fact) or ""
    row = records.marked_turns.edit(thread_id)
    return row or records.marked_turns.add(thread_id, MarkedTurns(seq=seq))


def _remember(names: list[Any], name: object) -> None:
    """Add a name that is new, in place of the oldest one where there are too many."""
    if name not in names:
        names.append(name)
        del names[:-MARKED_TURNS]


def _update_queue(records: "Records", seq: int, fact: Fact) -> None:
    """One turn that came, went first or was taken out; or the whole queue as it is now."""
    rows = list_at(fact.payload.get("queuedTurns"))
    if rows is None:
        _update_queued_run(records, seq, fact)
    for row in map(object_at, rows or ()):
        turn_id = text_at(row or {}, "queuedTurnId")
        if row and turn_id is not None:
            _enqueue_run(records, seq, fact, turn_id, row)


def _update_queued_run(records: "Records", seq: int, fact: Fact) -> None:
    turn_id, steer_id = queued_turn_of(fact), text_at(fact.payload, "steerId")
    change = text_at(fact.payload, "change")
    if steer_id is not None and text_at(fact.payload, "status") == "delivered":
        _drop_run(records, fact, steer_id, "steered", turn_of(fact))
    elif turn_id is None:
        return
    elif change in _HOLDS:
        _hold_run(records, fact, turn_id, _HOLDS[change])
    elif change != "removed":
        _enqueue_run(records, seq, fact, turn_id, fact.payload)
    elif steer_id is None:
        reason, into = text_at(fact.payload, "reason"), text_at(fact.payload, "steeredInto")
        _drop_run(records, fact, turn_id, reason, into)


_HOLDS: Final[dict[str, RunStatus]] = {"held": "held", "released": "queued"}
_WAITING: Final = ("queued", "held")


def _hold_run(records: "Records", fact: Fact, turn_id: str, status: RunStatus) -> None:
    run = edit_row(records.runs, thread_of(fact), run_of(turn_id))
    if run is not None and run.status in _WAITING:
        run.status, run.updated_at = status, fact.created_at


def _drop_run(
    records: "Records", fact: Fact, turn_id: str, reason: str | None, into: str | None
) -> None:
    """A run that waited never starts: it was taken out, or another run has taken its prompt."""
    run = edit_row(records.runs, thread_of(fact), run_of(turn_id))
    if run is not None and run.status in _WAITING:
        run.status, run.reason = "cancelled", reason
        run.steered_into = None if into is None else run_of(into)
        person = fact.payload.get("changedBy") or fact.payload.get("by")
        run.cancelled_by = to_person(person)
        run.finished_at = run.updated_at = fact.created_at
        _dequeue_run(_find_thread(records, fact), run)


def _enqueue_run(
    records: "Records", seq: int, fact: Fact, turn_id: str, payload: dict[str, Any]
) -> None:
    thread = _find_thread(records, fact)
    run = edit_row(records.runs, thread_of(fact), run_of(turn_id)) or _add_run(
        records, seq, fact, turn_id, payload
    )
    if run.status in _WAITING:
        run.agent_id = text_at(payload, "agentId") or run.agent_id
        run.status = "held" if text_at(payload, "status") == "held" else "queued"
        if thread is not None and run.run_id not in thread.queued_runs:
            thread.queued_runs = (*thread.queued_runs, run.run_id)


def _dequeue_run(thread: Thread | None, run: Run) -> None:
    if thread is not None and run.run_id in thread.queued_runs:
        thread.queued_runs = tuple(each for each in thread.queued_runs if each != run.run_id)


def _submit_run(records: "Records", seq: int, fact: Fact) -> None:
    turn_id = turn_of(fact)
    if turn_id is None or not _is_of_thread(records, seq, fact):
        return
    run = _find_run(records, fact) or _add_run(records, seq, fact, turn_id, fact.payload)
    for mark in filter(None, (id_of(fact, "taskId"), id_of(fact, "workerId"))):
        _remember(_edit_marked_turns(records, seq, fact).marks, (turn_id, mark))
    thread = _find_thread(records, fact)
    _dequeue_run(thread, run)
    if thread is not None:
        thread.activity = "running"
        thread.latest_run_id = run.run_id
        thread.agent_id = run.agent_id or thread.agent_id
        thread.title = thread.title or _derive_title(run.prompt)


def _start_run(records: "Records", seq: int, fact: Fact) -> None:
    if not _is_of_thread(records, seq, fact):
        return
    _submit_run(records, seq, fact)
    run = _find_run(records, fact)
    if run is not None:
        run.status = "running"
        run.started_at = run.started_at or fact.created_at
        run.updated_at = fact.created_at


def _stop_run(records: "Records", seq: int, fact: Fact) -> None:
    """A run that was asked to stop; any other `run.status` says nothing that is listed."""
    run = _find_run(records, fact)
    if text_at(fact.payload, "status") != CANCELLING or not _is_of_thread(records, seq, fact):
        return
    if run is not None and run.status in ("queued", "running", "waiting"):
        run.status, run.updated_at = "cancelling", fact.created_at


def _end_run(records: "Records", seq: int, fact: Fact) -> None:
    run = _find_run(records, fact)
    if run is None or not _is_of_thread(records, seq, fact):
        return
    run.status, activity = _ENDS[outcome_of(fact)]
    run.finished_at = fact.completed_at or fact.created_at
    run.updated_at = fact.created_at
    if run.status == "cancelled":
        run.reason = text_at(fact.payload, "reason")
        run.cancelled_by = to_person(fact.payload.get("by"))
    if run.status == "failed":
        run.error = _read_run_error(fact)
    thread = _find_thread(records, fact)
    if thread is not None:
        thread.activity = activity
        _withdraw_approvals(records, thread, run.run_id, fact)


def _withdraw_approvals(records: "Records", thread: Thread, run_id: str, fact: Fact) -> None:
    """Nobody answers any more what a run asked that is over."""
    for approval_id in thread.open_approvals:
        if _is_open(records, approval_id, run_id):
            row = records.approvals.edit(approval_id)
            if row is not None:
                row.status, row.updated_at = "cancelled", fact.created_at
    left = (each for each in thread.open_approvals if not _is_open(records, each, run_id))
    thread.open_approvals = tuple(left)


def _read_run_error(fact: Fact) -> RunError:
    error = build_run_error(fact)
    details = error.details or {}
    return RunError(
        code=error.code,
        message=error.message,
        failure_category=details.get("failureCategory"),
        recovery_hint=details.get("recoveryHint"),
    )


def _add_run(
    records: "Records", seq: int, fact: Fact, turn_id: str, payload: dict[str, Any]
) -> Run:
    bare = fact.run_id if turn_of(fact) == turn_id and fact.run_id else run_of(turn_id)
    run_id = key_of(records.runs, thread_of(fact), bare)
    attempt, retried = payload.get("attempt"), text_at(payload, "retryOf")
    return records.runs.add(
        run_id,
        Run(
            seq=seq,
            created_at=text_at(payload, "createdAt") or fact.created_at,
            updated_at=fact.created_at,
            run_id=run_id,
            turn_id=turn_id,
            status="queued",
            thread_id=thread_of(fact),
            project_id=fact.project_id,
            agent_id=text_at(payload, "agentId") or fact.agent_id,
            prompt=text_at(payload, "prompt"),
            retry_of=None if retried is None else run_of(retried),
            attempt=attempt if type(attempt) is int else None,
            work_dir=text_at(payload, "workspace"),
            worktree=_read_worktree(payload),
            by=to_person(payload.get("by")),
            under=_find_above(fact),
        ),
    )


def _find_above(fact: Fact) -> str | None:
    """The task or the worker that speaks against a turn being the thread's own."""
    if loose_entity_of(fact) is None:
        return None
    return id_of(fact, "parentTaskId") or id_of(fact, "workerId")


def _read_worktree(payload: dict[str, Any]) -> RunWorktree | None:
    try:
        return msgspec.convert(payload.get("worktree"), RunWorktree | None)
    except msgspec.ValidationError:
        return None


def _is_of_thread(records: "Records", seq: int, fact: Fact) -> bool:
    """Whether a fact about a turn is about a run of the thread, by the rule of
    `OpenWork.is_of_thread`; the rows tell which runs the thread itself has begun.
    """
    entity = loose_entity_of(fact)
    if entity is None:
        return entity_of(fact) is None
    run, thread = _find_run(records, fact), _find_thread(records, fact)
    turn_id, opens = turn_of(fact) or "", fact.event_class in TURN_OPENERS
    latest = records.runs.get(thread.latest_run_id or "") if thread is not None and opens else None
    turns = records.marked_turns.get(thread_of(fact) or "")
    if turns is not None and turn_id in turns.beside:
        return False
    is_known = run is not None and run is latest
    if latest is not None and (
        latest.status in _AT_WORK or (latest.under is None and not is_known)
    ):
        _remember(_edit_marked_turns(records, seq, fact).beside, turn_id)
        return False
    is_marked = entity.id is None or (turns is not None and (turn_id, entity.id) in turns.marks)
    return opens or (run is not None and is_marked)


_AT_WORK: Final = ("running", "waiting", "cancelling")


def _find_run(records: "Records", fact: Fact) -> Run | None:
    return edit_row(records.runs, thread_of(fact), run_id_of(fact))


def _find_thread(records: "Records", fact: Fact) -> Thread | None:
    return records.threads.edit(thread_of(fact) or "")


def _derive_title(prompt: str | None) -> str | None:
    """The first line of the first prompt, until somebody names the thread."""
    first = (prompt or "").strip().partition("\n")[0].strip()
    return first[:_TITLE_CHARACTERS] or None


_TITLE_CHARACTERS: Final = 120

RUN_HANDLERS = {
    "queue.changed": _update_queue,
    "turn.submitted": _submit_run,
    "turn.started": _start_run,
    "run.status": _stop_run,
    **dict.fromkeys(TURN_TERMINALS, _end_run),
}


_ALLOWED: Final = frozenset({"approved", "allow", "allowed", "answered", "approve"})
_CLOSED_STATUS: Final[dict[str, ApprovalStatus]] = {
    "action.cancelled": "cancelled",
    "action.canceled": "cancelled",
    "action.expired": "expired",
}


def _add_approval(records: "Records", seq: int, fact: Fact) -> None:
    bare, run_id = id_of(fact, "actionId"), run_id_of(fact)
    if bare is None:
        return
    approval_id = key_of(records.approvals, thread_of(fact), bare)
    records.approvals.remove(approval_id)
    fields = read_payload(fact, ActionRequestPayload)
    records.approvals.add(
        approval_id,
        Approval(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            approval_id=approval_id,
            status="pending",
            kind=fields.action_type or "unknown",
            risk_level=fields.severity or "unknown",
            thread_id=thread_of(fact),
            project_id=fact.project_id,
            run_id=None if run_id is None else key_of(records.runs, thread_of(fact), run_id),
            summary=fields.prompt or fact.title,
            shown=text_at(fact.payload, "shown"),
            cwd=text_at(fact.payload, "cwd"),
            rule=text_at(fact.payload, "rule"),
            args_hash=find_request_hash(fact),
            expires_at=fields.expires_at,
            requested_by=fields.requested_by,
            subagent_id=subagent_of(fact),
            tool_call_id=id_of(fact, "toolCallId"),
            tool_name=text_at(fact.payload, "toolName"),
        ),
    )
    _update_waiting(records, fact, approval_id, is_open=True)


def _resolve_approval(records: "Records", _: int, fact: Fact) -> None:
    fact = _place_decision(fact)
    row = edit_row(records.approvals, thread_of(fact), id_of(fact, "actionId"))
    if row is None or row.status in _ANSWERED:
        return
    fields = read_payload(fact, ActionDecisionPayload)
    row.decision = fields.decision or row.decision
    row.status = "approved" if row.decision in _ALLOWED else "denied"
    row.decided_by = to_person(fields.decided_by) or row.decided_by
    row.reason = fields.reason or row.reason
    row.applied = fields.applied if fields.applied is not None else row.applied
    row.response = fact.payload.get("response")
    row.updated_at = row.decided_at = fact.created_at
    _update_waiting(records, fact, row.approval_id, is_open=False)


def _place_decision(fact: Fact) -> Fact:
    """A decision beside its thread, as one of the thread."""
    thread_id = thread_of(fact) or text_at(fact.payload, BESIDE_THREAD)
    return msgspec.structs.replace(fact, thread_id=thread_id)


def _apply_approval(records: "Records", _: int, fact: Fact) -> None:
    """That a decision was sent to the agent, or applied; the first time of each counts."""
    row = edit_row(records.approvals, thread_of(fact), id_of(fact, "actionId"))
    fields = read_payload(fact, ActionDecisionPayload)
    if row is not None and row.status == "pending":
        _change_request(row, fact)
    if row is None or row.decided_at is None or fields.applied is None:
        return
    row.sent_at = row.sent_at or fields.sent_at
    row.updated_at = fact.created_at
    if fields.applied:
        row.applied, row.applied_at = True, row.applied_at or fact.created_at


def _change_request(row: Approval, fact: Fact) -> None:
    """A request that was changed before anybody decided: what it states now is what is asked."""
    fields = read_payload(fact, ActionRequestPayload)
    row.summary = fields.prompt or row.summary
    row.shown = text_at(fact.payload, "shown") or row.shown
    row.args_hash = find_request_hash(fact, row.args_hash)
    row.expires_at = fields.expires_at or row.expires_at
    row.updated_at = fact.created_at


def _close_approval(records: "Records", _: int, fact: Fact) -> None:
    row = edit_row(records.approvals, thread_of(fact), id_of(fact, "actionId"))
    if row is None or row.status in _ANSWERED:
        return
    row.status = _CLOSED_STATUS[fact.event_class or ""]
    row.updated_at = fact.created_at
    _update_waiting(records, fact, row.approval_id, is_open=False)


_ANSWERED: Final = ("approved", "denied", "expired")
"""The first answer counts. An approval that was withdrawn may still get one."""


def _update_waiting(records: "Records", fact: Fact, approval_id: str, *, is_open: bool) -> None:
    """What an open approval means for its thread and its run: they wait."""
    thread = records.threads.edit(thread_of(fact) or "")
    run = edit_row(records.runs, thread_of(fact), run_id_of(fact))
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


APPROVAL_HANDLERS = {
    "action.required": _add_approval,
    "action.updated": _apply_approval,
    "action.resolved": _resolve_approval,
    **dict.fromkeys(_CLOSED_STATUS, _close_approval),
}
