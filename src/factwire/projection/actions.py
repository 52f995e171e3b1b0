"""Actions and permissions: what waits for a person, which rule decided without one, and what the
sandbox did.

Only a fact closes an action: that it was resolved, cancelled or expired. What a person clicks is a
request that the runtime has yet to confirm; a decision and its application are two things. A
permission that is asked for opens no action: it is listed as pending and blocks the run until the
action that follows makes it wait.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import (
    ActionDecisionPayload,
    ActionRequestPayload,
    PermissionPayload,
    Person,
    PolicyTermsPayload,
    SandboxTermsPayload,
)
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import text_at
from factwire.facts.outcomes import QUESTIONS, answer_of, build_answer, is_allowing
from factwire.facts.refs import refs_of
from factwire.projection import reasoning, thread_status
from factwire.projection.artifacts import set_diff
from factwire.projection.diagnostics import add_remark
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.payload_fields import (
    other_id,
    read_payload,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.tools import TOOLS_PATH as TOOLS
from factwire.projection.turns import is_in_ended_turn
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


ACTIONS_PATH: Final = "/actions"

_ACTION_ENDS: Final = {
    "action.resolved": "resolved",
    "action.cancelled": "cancelled",
    "action.canceled": "cancelled",
    "action.expired": "expired",
}
_PLAN_DECISIONS: Final = ("plan_decision", "teammate_plan_decision")


class Action(View):
    """One request. `requested_by` names who asks; a delegated one names the subagent."""

    action_id: str
    status: str
    action_type: str | None = None
    severity: str | None = None
    title: str | None = None
    prompt: str | None = None
    shown: str | None = None
    detail: str | None = None
    requested_by: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    task_id: str | None = None
    turn_id: str | None = None
    run_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    command: Any = None
    cwd: str | None = None
    rule: str | None = None
    diff: str | None = None
    diff_ref: str | None = None
    diff_truncated: bool | None = None
    refs: list[str] | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None
    decision: str | None = None
    reason: str | None = None
    decided_by: Person | str | None = None
    applied: bool | None = None
    response: Any = None
    requested_at: str | None = None
    resolved_at: str | None = None
    sent_at: str | None = None
    applied_at: str | None = None
    sequence: int | None = None


_ANSWER_FIELDS: Final = (
    "decision",
    "reason",
    "decided_by",
    "applied",
    "response",
    "resolved_at",
    "sent_at",
    "applied_at",
)


def open_action(draft: "StateDraft", fact: Fact) -> None:
    """Open an action; one that was closed opens anew."""
    action, path = _ensure_action(draft, fact)
    draft.put(action, path, "status", "pending")
    for field in _ANSWER_FIELDS:
        draft.put(action, path, field, None)
    draft.put(action, path, "requested_at", fact.created_at)
    draft.fill(action, path, turn_id=turn_of(fact))
    draft.memory.open_actions[action.action_id] = None
    _describe_action(draft, action, path, fact)
    _link_action(draft, action)


def update_action(draft: "StateDraft", fact: Fact) -> None:
    """More about a request; it neither opens nor closes one."""
    action, path = _ensure_action(draft, fact)
    _describe_action(draft, action, path, fact)
    payload = read_payload(fact, ActionDecisionPayload)
    if action.status == "resolved":
        draft.fill(action, path, applied=payload.applied, sent_at=payload.sent_at)
        if payload.applied and action.applied_at is None:
            draft.put(action, path, "applied_at", fact.created_at)


def close_action(draft: "StateDraft", fact: Fact) -> None:
    """The answer to a request. The first one counts: the same again changes nothing, and another
    one is remarked on.
    """
    action, path = _ensure_action(draft, fact)
    if is_answered(action):
        _overrule_answer(draft, action, fact)
        return
    payload = read_payload(fact, ActionDecisionPayload)
    status = _end_of_action(fact)
    draft.put(action, path, "status", status)
    draft.fill(
        action,
        path,
        decision=payload.decision,
        reason=payload.reason,
        decided_by=payload.decided_by,
        applied=payload.applied,
        response=payload.response,
        resolved_at=fact.completed_at or fact.created_at,
    )
    draft.extend(action, path, "refs", refs_of(fact))
    draft.memory.open_actions.pop(action.action_id, None)
    _link_answer(draft, action, fact)
    _decide_plan(draft, action)


def is_answered(action: Action) -> bool:
    """Whether a fact closed the action; one that was only found closed has no answer yet."""
    return action.status in _ACTION_ENDS.values() and action.decision != "unknown"


def _overrule_answer(draft: "StateDraft", action: Action, fact: Fact) -> None:
    draft.overruled = fact.id
    first = build_answer(action.status, action.decision, action.response)
    if answer_of(fact) != first:
        decision = action.decision or action.status
        message = f"action {action.action_id} was answered before ({decision}), which counts"
        add_remark(draft, fact, "action_already_decided", message, subject=action.action_id)


def _end_of_action(fact: Fact) -> str:
    """How an action was closed."""
    answer = answer_of(fact)
    return _ACTION_ENDS[fact.event_class or ""] if answer is None else answer.closing


def close_absent_action(draft: "StateDraft", action_id: str) -> None:
    """A newer read model no longer lists an open action: it is closed, nobody says how."""
    withdraw_action(draft, action_id, "closed")


def restore_action(draft: "StateDraft", action: Action) -> None:
    """An action whose end a read model states."""
    draft.create(draft.state.actions, ACTIONS_PATH, action.action_id, action)
    draft.memory.open_actions.pop(action.action_id, None)
    _decide_plan(draft, action)


def withdraw_action(draft: "StateDraft", action_id: str, status: str) -> None:
    """Nobody answers an open action any more; a fact that does so after all still counts."""
    action, path = draft.state.actions[action_id], f"{ACTIONS_PATH}/{escape_key(action_id)}"
    draft.put(action, path, "status", status)
    draft.put(action, path, "decision", "unknown")
    draft.memory.open_actions.pop(action_id, None)
    _decide_plan(draft, action)


def _ensure_action(draft: "StateDraft", fact: Fact) -> tuple[Action, str]:
    key = fact.action_id or other_id(fact, "actionId", "action_id") or ""
    path = f"{ACTIONS_PATH}/{escape_key(key)}"
    existing = draft.state.actions.get(key)
    if existing is not None:
        return existing, path
    action = Action(
        action_id=key,
        status="unknown",
        turn_id=turn_of(fact),
        run_id=fact.run_id,
        task_id=task_of(fact),
        agent_id=fact.agent_id,
        subagent_id=subagent_of(fact),
        tool_call_id=tool_of(fact),
        sequence=fact.sequence,
    )
    return draft.create(draft.state.actions, ACTIONS_PATH, key, action), path


def _describe_action(draft: "StateDraft", action: Action, path: str, fact: Fact) -> None:
    request, payload = read_payload(fact, ActionRequestPayload), fact.payload
    draft.fill(
        action,
        path,
        action_type=request.action_type,
        severity=request.severity or text_at(payload, "risk", "riskLevel"),
        title=fact.title,
        prompt=request.prompt or text_at(payload, "message", "question"),
        shown=text_at(payload, "shown"),
        detail=fact.detail or text_at(payload, "detail"),
        requested_by=request.requested_by or subagent_of(fact) or fact.agent_id,
        tool_call_id=request.tool_call_id or tool_of(fact),
        tool_name=text_at(payload, "toolName"),
        command=payload.get("command"),
        cwd=text_at(payload, "cwd"),
        rule=text_at(payload, "rule"),
        args_hash=request.args_hash,
        expires_at=request.expires_at,
        options=request.options,
        response_schema=request.response_schema,
    )
    set_diff(draft, action, path, fact)
    draft.extend(action, path, "refs", refs_of(fact))


def _link_action(draft: "StateDraft", action: Action) -> None:
    tool = draft.state.tools.get(action.tool_call_id or "")
    if tool is not None:
        draft.fill(tool, f"{TOOLS}/{escape_key(tool.tool_call_id)}", action_id=action.action_id)
    plan = _find_plan(draft, action)
    if plan is not None:
        path = f"{reasoning.PLANS_PATH}/{escape_key(plan.plan_id)}"
        draft.put(plan, path, "action_id", action.action_id)
        draft.put(plan, path, "decision", None)


def _link_answer(draft: "StateDraft", action: Action, fact: Fact) -> None:
    """A call that began after its request is linked with the answer; a no counts before all."""
    tool = draft.state.tools.get(action.tool_call_id or "")
    if tool is None or action.action_type in QUESTIONS:
        return
    if tool.action_id is None or not is_allowing(answer_of(fact)):
        path = f"{TOOLS}/{escape_key(tool.tool_call_id)}"
        draft.put(tool, path, "action_id", action.action_id)


def _decide_plan(draft: "StateDraft", action: Action) -> None:
    if action.action_type not in _PLAN_DECISIONS:
        return
    decided = action.decision if action.status == "resolved" else action.status
    for plan in draft.state.plans.values():
        if plan.action_id == action.action_id:
            path = f"{reasoning.PLANS_PATH}/{escape_key(plan.plan_id)}"
            draft.put(plan, path, "decision", decided or "unknown")


def _find_plan(draft: "StateDraft", action: Action) -> "reasoning.Plan | None":
    """The newest plan of whoever asks, in the turn in which they ask."""
    if action.action_type not in _PLAN_DECISIONS:
        return None
    who = (action.turn_id, action.subagent_id)
    plans = reversed(draft.state.plans.values())
    return next((plan for plan in plans if (plan.turn_id, plan.subagent_id) == who), None)


PERMISSIONS_PATH: Final = "/permissions"

_REQUEST_REASON: Final = "permission_requested"
"""Why a run is blocked while a permission is asked for."""


class PermissionEvent(View):
    """One evaluation, request, grant or denial."""

    event_id: str
    event_class: str
    decision: str | None = None
    mode: str | None = None
    rule: str | None = None
    reason_code: str | None = None
    message: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    subagent_id: str | None = None
    path: str | None = None
    command: str | None = None
    turn_id: str | None = None
    created_at: str | None = None


class SandboxStatus(View):
    """What the sandbox allows, as applied last, and how often it had to say no."""

    status: str
    blocked: int
    violations: int
    applied: SandboxTermsPayload | None = None
    latest_reason_code: str | None = None


class Permissions(View):
    """The mode, what was decided lately, what is asked for and not decided, and the sandbox."""

    events: list[PermissionEvent]
    pending: list[PermissionEvent]
    sandbox: SandboxStatus
    evaluated: int
    denied: int
    mode: str | None = None
    policy: PolicyTermsPayload | None = None


def empty_permissions() -> Permissions:
    sandbox = SandboxStatus(status="unknown", blocked=0, violations=0)
    return Permissions(events=[], pending=[], sandbox=sandbox, evaluated=0, denied=0)


def record_permission(draft: "StateDraft", fact: Fact) -> None:
    """permission.* and channel.permission_*."""
    permissions, payload = draft.state.permissions, read_payload(fact, PermissionPayload)
    draft.count(
        permissions, PERMISSIONS_PATH, "evaluated", fact.event_class == "permission.evaluated"
    )
    denied = fact.event_class == "permission.denied" or payload.decision in ("deny", "denied")
    draft.count(permissions, PERMISSIONS_PATH, "denied", denied)
    draft.fill(permissions, PERMISSIONS_PATH, mode=payload.mode)
    _add_permission_event(draft, fact, payload)


def request_permission(draft: "StateDraft", fact: Fact) -> None:
    """permission.requested: nothing goes on until somebody decides."""
    record_permission(draft, fact)
    event = draft.state.permissions.events[-1]
    draft.push(
        draft.state.permissions.pending, f"{PERMISSIONS_PATH}/pending", event, LANE_EVENTS_KEPT
    )
    thread_status.block_run(draft, fact, _REQUEST_REASON)


def deny_permission(draft: "StateDraft", fact: Fact) -> None:
    """permission.denied: it keeps the run from going on as it wanted to."""
    record_permission(draft, fact)
    settle_permission(draft, fact)
    reason = _reason_code(fact) or read_payload(fact, PermissionPayload).message
    thread_status.block_run(draft, fact, reason or "permission_denied")


def resolve_permission(draft: "StateDraft", fact: Fact) -> None:
    record_permission(draft, fact)
    settle_permission(draft, fact)


def settle_permission(draft: "StateDraft", fact: Fact) -> None:
    """An end of a permission or of the action about it: what was asked for is asked no more."""
    action_id = other_id(fact, "actionId", "action_id")
    action, turn = draft.state.actions.get(action_id or ""), turn_of(fact)
    ids = (action_id, tool_of(fact) or (action.tool_call_id if action else None))
    _remove_pending(
        draft, [row for row in draft.state.permissions.pending if _is_answer_to(row, ids, turn)]
    )


def end_turn_permissions(draft: "StateDraft", fact: Fact) -> None:
    rows = draft.state.permissions.pending
    ended = [row for row in rows if is_in_ended_turn(draft, fact, row.turn_id, row.subagent_id)]
    _remove_pending(draft, ended)


def forget_permissions(
    draft: "StateDraft", turns: Collection[str | None], *, every: bool = False
) -> None:
    """Nobody decides any more what was asked for in a turn that is over."""
    rows = draft.state.permissions.pending
    _remove_pending(draft, [row for row in rows if every or row.turn_id in turns])


def _is_answer_to(
    row: PermissionEvent, ids: tuple[str | None, str | None], turn: str | None
) -> bool:
    """Whether an answer is to a request: by an id that both name, or by the turn where one
    of them names none.
    """
    mine = (row.action_id, row.tool_call_id)
    if any(mine) and any(ids):
        return any(own and own == its for own, its in zip(mine, ids, strict=True))
    return row.turn_id == turn


def _remove_pending(draft: "StateDraft", gone: list[PermissionEvent]) -> None:
    permissions = draft.state.permissions
    if gone:
        left = [row for row in permissions.pending if row not in gone]
        draft.put(permissions, PERMISSIONS_PATH, "pending", left)
        if not left and draft.state.runtime.blocked_reason == _REQUEST_REASON:
            draft.put(draft.state.runtime, thread_status.RUNTIME_PATH, "blocked_reason", None)


def update_policy(draft: "StateDraft", fact: Fact) -> None:
    permissions, payload = draft.state.permissions, read_payload(fact, PolicyTermsPayload)
    policy = payload if payload != PolicyTermsPayload() else None
    draft.fill(permissions, PERMISSIONS_PATH, mode=payload.mode, policy=policy)
    _add_permission_event(draft, fact, payload)


def apply_sandbox(draft: "StateDraft", fact: Fact) -> None:
    sandbox = draft.state.permissions.sandbox
    draft.put(sandbox, _SANDBOX_PATH, "status", "applied")
    terms = read_payload(fact, SandboxTermsPayload)
    draft.fill(sandbox, _SANDBOX_PATH, applied=terms if terms != SandboxTermsPayload() else None)


def count_sandbox_stop(draft: "StateDraft", fact: Fact) -> None:
    """sandbox.blocked and sandbox.violation: something was kept from happening."""
    sandbox, payload = draft.state.permissions.sandbox, read_payload(fact, PermissionPayload)
    field = "blocked" if fact.event_class == "sandbox.blocked" else "violations"
    draft.count(sandbox, _SANDBOX_PATH, field)
    draft.fill(sandbox, _SANDBOX_PATH, latest_reason_code=_reason_code(fact))
    thread_status.block_run(
        draft, fact, _reason_code(fact) or payload.message or fact.event_class or "blocked"
    )
    _add_permission_event(draft, fact, payload)


_SANDBOX_PATH: Final = f"{PERMISSIONS_PATH}/sandbox"


def _reason_code(fact: Fact) -> str | None:
    return text_at(fact.payload, "reasonCode", "reason_code")


def _add_permission_event(draft: "StateDraft", fact: Fact, payload: PermissionPayload) -> None:
    event = PermissionEvent(
        event_id=fact.id,
        event_class=fact.event_class or "",
        decision=payload.decision,
        mode=payload.mode,
        rule=payload.rule,
        reason_code=_reason_code(fact),
        message=payload.message,
        tool_name=payload.tool_name,
        tool_call_id=tool_of(fact),
        action_id=other_id(fact, "actionId", "action_id"),
        subagent_id=subagent_of(fact),
        path=payload.path,
        command=payload.command,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    draft.push(
        draft.state.permissions.events, f"{PERMISSIONS_PATH}/events", event, LANE_EVENTS_KEPT
    )
