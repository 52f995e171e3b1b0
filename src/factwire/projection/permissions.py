"""Permissions and sandbox: which rule said what, and what the sandbox did.

A permission that is asked for opens no action: only action facts do, since they alone say who is to
answer and how. It is listed as pending and blocks the run; the action that follows makes it wait.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Permission as PermissionPayload
from factwire.facts.standing_payloads import PolicyTerms, SandboxTerms
from factwire.projection import runtime
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.reading import other_id, read, subagent_of, tool_of, turn_of, word
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/permissions"

_REQUESTED: Final = "permission_requested"
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


class Sandbox(View):
    """What the sandbox allows, as applied last, and how often it had to say no."""

    status: str
    blocked: int
    violations: int
    applied: SandboxTerms | None = None
    latest_reason_code: str | None = None


class Permissions(View):
    """The mode, what was decided lately, what is asked for and not decided, and the sandbox."""

    events: list[PermissionEvent]
    pending: list[PermissionEvent]
    sandbox: Sandbox
    evaluated: int
    denied: int
    mode: str | None = None
    policy: PolicyTerms | None = None


def nothing() -> Permissions:
    sandbox = Sandbox(status="unknown", blocked=0, violations=0)
    return Permissions(events=[], pending=[], sandbox=sandbox, evaluated=0, denied=0)


def decided(canvas: "Canvas", fact: Fact) -> None:
    """permission.* and channel.permission_*."""
    permissions, said = canvas.state.permissions, read(fact, PermissionPayload)
    canvas.count(permissions, PATH, "evaluated", fact.event_class == "permission.evaluated")
    denied = fact.event_class == "permission.denied" or said.decision in ("deny", "denied")
    canvas.count(permissions, PATH, "denied", denied)
    canvas.fill(permissions, PATH, mode=said.mode)
    _tell(canvas, fact, said)


def requested(canvas: "Canvas", fact: Fact) -> None:
    """permission.requested: nothing goes on until somebody decides."""
    decided(canvas, fact)
    event = canvas.state.permissions.events[-1]
    canvas.push(canvas.state.permissions.pending, f"{PATH}/pending", event, LANE_EVENTS_KEPT)
    if runtime.is_own(canvas, fact) and subagent_of(fact) is None:
        runtime.block(canvas, _REQUESTED)


def denied(canvas: "Canvas", fact: Fact) -> None:
    """permission.denied: it keeps the run from going on as it wanted to."""
    decided(canvas, fact)
    settled(canvas, fact)
    if runtime.is_own(canvas, fact) and subagent_of(fact) is None:
        said = read(fact, PermissionPayload)
        runtime.block(canvas, _reason(fact) or said.message or "permission_denied")


def resolved(canvas: "Canvas", fact: Fact) -> None:
    decided(canvas, fact)
    settled(canvas, fact)


def settled(canvas: "Canvas", fact: Fact) -> None:
    """An end of a permission or of the action about it: what was asked for is asked no more."""
    asked = other_id(fact, "actionId", "action_id")
    action, turn = canvas.state.actions.get(asked or ""), turn_of(fact)
    ids = (asked, tool_of(fact) or (action.tool_call_id if action else None))
    _leave(canvas, [row for row in canvas.state.permissions.pending if _is_of(row, ids, turn)])


def end_turn(canvas: "Canvas", fact: Fact) -> None:
    forget(canvas, (turn_of(fact),))


def forget(canvas: "Canvas", turns: Collection[str | None], *, every: bool = False) -> None:
    """Nobody decides any more what was asked for in a turn that is over."""
    rows = canvas.state.permissions.pending
    _leave(canvas, [row for row in rows if every or row.turn_id in turns])


def _is_of(row: PermissionEvent, ids: tuple[str | None, str | None], turn: str | None) -> bool:
    """Whether an answer is to a request: by an id that both name, or by the turn where one
    of them names none.
    """
    mine = (row.action_id, row.tool_call_id)
    if any(mine) and any(ids):
        return any(own and own == its for own, its in zip(mine, ids, strict=True))
    return row.turn_id == turn


def _leave(canvas: "Canvas", gone: list[PermissionEvent]) -> None:
    permissions = canvas.state.permissions
    if gone:
        left = [row for row in permissions.pending if row not in gone]
        canvas.put(permissions, PATH, "pending", left)
        if not left and canvas.state.runtime.blocked_reason == _REQUESTED:
            canvas.put(canvas.state.runtime, runtime.PATH, "blocked_reason", None)


def policy_changed(canvas: "Canvas", fact: Fact) -> None:
    permissions, said = canvas.state.permissions, read(fact, PolicyTerms)
    policy = said if said != PolicyTerms() else None
    canvas.fill(permissions, PATH, mode=said.mode, policy=policy)
    _tell(canvas, fact, said)


def sandbox_applied(canvas: "Canvas", fact: Fact) -> None:
    sandbox = canvas.state.permissions.sandbox
    canvas.put(sandbox, _SANDBOX, "status", "applied")
    terms = read(fact, SandboxTerms)
    canvas.fill(sandbox, _SANDBOX, applied=terms if terms != SandboxTerms() else None)


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
