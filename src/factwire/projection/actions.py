"""Actions: what waits for a person, who asks, and what was decided.

Only a fact closes an action: that it was resolved, cancelled or expired. What a person clicks is a
request that the runtime has yet to confirm. A decision and its application are two things.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import ActionDecision, ActionRequest
from factwire.projection import reasoning
from factwire.projection.pointers import escaped
from factwire.projection.reading import other_id, read, subagent_of, task_of, tool_of, turn_of, word
from factwire.projection.tools import PATH as TOOLS
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/actions"

_CLOSED_AS: Final = {
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
    diff_ref: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None
    decision: str | None = None
    reason: str | None = None
    decided_by: str | None = None
    applied: bool | None = None
    response: Any = None
    requested_at: str | None = None
    resolved_at: str | None = None
    sequence: int | None = None


def required(canvas: "Canvas", fact: Fact) -> None:
    """Open an action; one that was closed opens anew."""
    action, path = _action(canvas, fact)
    canvas.put(action, path, "status", "pending")
    for field in ("decision", "reason", "decided_by", "applied", "response", "resolved_at"):
        canvas.put(action, path, field, None)
    canvas.memory.open_actions[action.action_id] = None
    _describe(canvas, action, path, fact)
    _link(canvas, action)


def updated(canvas: "Canvas", fact: Fact) -> None:
    """More about a request; it neither opens nor closes one."""
    action, path = _action(canvas, fact)
    _describe(canvas, action, path, fact)
    said = read(fact, ActionDecision)
    if action.status == "resolved":
        canvas.fill(action, path, applied=said.applied)


def closed(canvas: "Canvas", fact: Fact) -> None:
    action, path = _action(canvas, fact)
    said = read(fact, ActionDecision)
    status = _CLOSED_AS[fact.event_class or ""]
    canvas.put(action, path, "status", status)
    canvas.fill(
        action,
        path,
        decision=said.decision,
        reason=said.reason,
        decided_by=said.decided_by,
        applied=said.applied,
        response=said.response,
        resolved_at=fact.completed_at or fact.created_at,
    )
    canvas.memory.open_actions.pop(action.action_id, None)
    _decide_plan(canvas, action)


def close_absent(canvas: "Canvas", action_id: str) -> None:
    """A newer read model no longer lists an open action: it is closed, nobody says how."""
    action, path = canvas.state.actions[action_id], f"{PATH}/{escaped(action_id)}"
    canvas.put(action, path, "status", "closed")
    canvas.put(action, path, "decision", "unknown")
    canvas.memory.open_actions.pop(action_id, None)
    _decide_plan(canvas, action)


def _action(canvas: "Canvas", fact: Fact) -> tuple[Action, str]:
    key = fact.action_id or other_id(fact, "actionId", "action_id") or ""
    path = f"{PATH}/{escaped(key)}"
    known = canvas.state.actions.get(key)
    if known is not None:
        return known, path
    action = Action(
        action_id=key,
        status="unknown",
        turn_id=turn_of(fact),
        run_id=fact.run_id,
        task_id=task_of(fact),
        agent_id=fact.agent_id,
        subagent_id=subagent_of(fact),
        tool_call_id=tool_of(fact),
        requested_at=fact.created_at,
        sequence=fact.sequence,
    )
    return canvas.create(canvas.state.actions, PATH, key, action), path


def _describe(canvas: "Canvas", action: Action, path: str, fact: Fact) -> None:
    asked, payload = read(fact, ActionRequest), fact.payload
    canvas.fill(
        action,
        path,
        action_type=asked.action_type,
        severity=asked.severity or word(payload, "risk", "riskLevel"),
        title=fact.title,
        prompt=asked.prompt or word(payload, "message", "question"),
        shown=word(payload, "shown"),
        detail=fact.detail,
        requested_by=asked.requested_by or subagent_of(fact) or fact.agent_id,
        tool_call_id=asked.tool_call_id or tool_of(fact),
        tool_name=word(payload, "toolName"),
        command=payload.get("command"),
        cwd=word(payload, "cwd"),
        rule=word(payload, "rule"),
        diff_ref=word(payload, "diffRef"),
        args_hash=asked.args_hash,
        expires_at=asked.expires_at,
        options=asked.options,
        response_schema=asked.response_schema,
    )


def _link(canvas: "Canvas", action: Action) -> None:
    tool = canvas.state.tools.get(action.tool_call_id or "")
    if tool is not None:
        canvas.fill(tool, f"{TOOLS}/{escaped(tool.tool_call_id)}", action_id=action.action_id)
    plan = _plan_of(canvas, action)
    if plan is not None:
        path = f"{reasoning.PLANS}/{escaped(plan.plan_id)}"
        canvas.put(plan, path, "action_id", action.action_id)
        canvas.put(plan, path, "decision", None)


def _decide_plan(canvas: "Canvas", action: Action) -> None:
    if action.action_type not in _PLAN_DECISIONS:
        return
    decided = action.decision if action.status == "resolved" else action.status
    for plan in canvas.state.plans.values():
        if plan.action_id == action.action_id:
            path = f"{reasoning.PLANS}/{escaped(plan.plan_id)}"
            canvas.put(plan, path, "decision", decided or "unknown")


def _plan_of(canvas: "Canvas", action: Action) -> "reasoning.Plan | None":
    """The newest plan of whoever asks, in the turn in which they ask."""
    if action.action_type not in _PLAN_DECISIONS:
        return None
    who = (action.turn_id, action.subagent_id)
    plans = reversed(canvas.state.plans.values())
    return next((plan for plan in plans if (plan.turn_id, plan.subagent_id) == who), None)
