"""Permissions and sandbox: which rule said what, and what the sandbox did."""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Permission as PermissionPayload
from factwire.projection import runtime
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.reading import other_id, read, subagent_of, tool_of, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/permissions"


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


class Sandbox(View):
    """What the sandbox allows, as applied last, and how often it had to say no."""

    status: str
    blocked: int
    violations: int
    applied: dict[str, Any] | None = None
    latest_reason_code: str | None = None


class Permissions(View):
    """The mode, what was decided lately, and the sandbox."""

    events: list[PermissionEvent]
    sandbox: Sandbox
    evaluated: int
    denied: int
    mode: str | None = None
    policy: dict[str, Any] | None = None


def nothing() -> Permissions:
    sandbox = Sandbox(status="unknown", blocked=0, violations=0)
    return Permissions(events=[], sandbox=sandbox, evaluated=0, denied=0)


def decided(canvas: "Canvas", fact: Fact) -> None:
    """permission.* and channel.permission_*."""
    permissions, said = canvas.state.permissions, read(fact, PermissionPayload)
    canvas.count(permissions, PATH, "evaluated", fact.event_class == "permission.evaluated")
    denied = fact.event_class == "permission.denied" or said.decision in ("deny", "denied")
    canvas.count(permissions, PATH, "denied", denied)
    canvas.fill(permissions, PATH, mode=said.mode)
    _tell(canvas, fact, said)


def policy_changed(canvas: "Canvas", fact: Fact) -> None:
    permissions, said = canvas.state.permissions, read(fact, PermissionPayload)
    canvas.fill(permissions, PATH, mode=said.mode, policy=fact.payload or None)
    _tell(canvas, fact, said)


def sandbox_applied(canvas: "Canvas", fact: Fact) -> None:
    sandbox = canvas.state.permissions.sandbox
    canvas.put(sandbox, _SANDBOX, "status", "applied")
    canvas.fill(sandbox, _SANDBOX, applied=fact.payload or None)


def sandbox_stopped(canvas: "Canvas", fact: Fact) -> None:
    """sandbox.blocked and sandbox.violation: something was kept from happening."""
    sandbox, said = canvas.state.permissions.sandbox, read(fact, PermissionPayload)
    field = "blocked" if fact.event_class == "sandbox.blocked" else "violations"
    canvas.count(sandbox, _SANDBOX, field)
    canvas.fill(sandbox, _SANDBOX, latest_reason_code=_reason(fact))
    runtime.block(canvas, _reason(fact) or said.message or fact.event_class or "blocked")
    _tell(canvas, fact, said)


_SANDBOX: Final = f"{PATH}/sandbox"


def _reason(fact: Fact) -> str | None:
    return word(fact.payload, "reasonCode", "reason_code")


def _tell(canvas: "Canvas", fact: Fact, said: PermissionPayload) -> None:
    event = PermissionEvent(
        event_id=fact.id,
        event_class=fact.event_class or "",
        decision=said.decision,
        mode=said.mode,
        rule=said.rule,
        reason_code=_reason(fact),
        message=said.message,
        tool_name=said.tool_name,
        tool_call_id=tool_of(fact),
        action_id=other_id(fact, "actionId", "action_id"),
        subagent_id=subagent_of(fact),
        path=said.path,
        command=said.command,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    canvas.push(canvas.state.permissions.events, f"{PATH}/events", event, LANE_EVENTS_KEPT)
