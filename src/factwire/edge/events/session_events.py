"""What an agent's session is doing: its start, its states, its hooks, its sign-in, its result.

`run.status` has several words. The first whose fields the fact carries is the right one: a retry
counts attempts, a sign-in says so, a summary names the calls it sums up; else its status decides.
"""

from typing import Any, Final, Literal, get_args

from factwire.edge.events.run_events import to_run_status
from factwire.facts import Fact, entity_of
from factwire.facts.classes.payloads import (
    HookPayload,
    PermissionPayload,
    RouteAction,
    RouteDecision,
)
from factwire.facts.json_values import (
    finite_number_at,
    list_at,
    object_at,
    text_at,
    whole_number_at,
)
from factwire.facts.json_values import texts_of as texts
from factwire.projection.payload_fields import read_payload, turn_of
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    map_both_views,
)


class SessionInit(EventPayload, frozen=True):
    """What an agent works with, as it says when its session begins."""

    model: str | None = None
    tools: list[str] | None = None
    mcp_servers: list[Any] | None = None
    permission_mode: str | None = None
    version: str | None = None
    session_id: str | None = None
    cwd: str | None = None


class AgentResult(EventPayload, frozen=True):
    """What a run came to, after its end."""

    success: bool
    duration_ms: float | None = None
    turns: int | None = None
    usage: dict[str, Any] | None = None
    total_cost_usd: float | None = None
    stop_reason: str | None = None
    errors: list[Any] | None = None
    structured_output: Any = None


class CoordinatorRouteDecision(RouteDecision, EventPayload, frozen=True, rename=None):
    """Whom a coordinator gives the work to next; its fields are spelt as the Hub spells them."""


class ApiRetry(EventPayload, frozen=True):
    """A model is asked again."""

    attempt: int
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error: str | None = None


class AuthStatus(EventPayload, frozen=True):
    """Whether the agent is signing in."""

    is_authenticating: bool
    output: str | None = None
    error: str | None = None


class SessionState(EventPayload, frozen=True):
    """What the agent's session is doing."""

    state: Literal["idle", "running", "requires_action"]


class StatusChange(EventPayload, frozen=True):
    """Where the agent is, in its own words, and under which permission mode."""

    status: str | None = None
    permission_mode: str | None = None
    phase: str | None = None
    message: str | None = None


class HookStarted(EventPayload, frozen=True):
    """A hook has begun."""

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None


class HookProgress(EventPayload, frozen=True):
    """What a hook says while it runs."""

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    message: str | None = None


class HookResponse(EventPayload, frozen=True):
    """How a hook ended."""

    hook_id: str
    outcome: str
    hook_name: str | None = None
    hook_event: str | None = None
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    message: str | None = None


class ToolUseSummary(EventPayload, frozen=True):
    """Several calls in one sentence."""

    summary: str
    tool_use_ids: list[str]


_SESSION_STATES: Final[dict[str, Literal["idle", "running", "requires_action"]]] = {
    "idle": "idle",
    "running": "running",
    "requires_action": "requires_action",
    "waiting": "requires_action",
}
_ENDED: Final = {"completed": True, "failed": False, "canceled": False}
_ROUTES: Final = get_args(RouteAction)


def _to_session_init(fact: Fact) -> TypedPayload | None:
    """What a session begins with; a change that names no model is none."""
    payload = fact.payload
    if fact.event_class == "session.updated" and "model" not in payload:
        return None
    return "run.agent.session_init", SessionInit(
        model=text_at(payload, "model"),
        tools=_read_tool_names(payload.get("tools")),
        mcp_servers=list_at(payload.get("mcpServers")),
        permission_mode=text_at(payload, "permissionMode", "mode"),
        version=text_at(payload, "version"),
        session_id=text_at(payload, "sessionId", "agentSessionId") or fact.session_id,
        cwd=text_at(payload, "cwd"),
    )


def _read_tool_names(value: object) -> list[str] | None:
    """Tools by name, whether they came as names or as objects that have one."""
    rows = list_at(value)
    if rows is None:
        return None
    named = (row if isinstance(row, str) else text_at(object_at(row) or {}, "name") for row in rows)
    return [name for name in named if name]


def _to_status_event(fact: Fact) -> TypedPayload | None:
    events = (
        tell(fact)
        for tell in (
            _to_api_retry,
            _to_auth_status,
            _to_tool_use_summary,
            _to_session_state,
            _to_status_change,
        )
    )
    return next((event for event in events if event is not None), None)


def _to_api_retry(fact: Fact) -> TypedPayload | None:
    payload = fact.payload
    attempt = whole_number_at(payload, "attempt")
    if attempt is None:
        return None
    return "run.agent.api_retry", ApiRetry(
        attempt=attempt,
        max_retries=whole_number_at(payload, "maxRetries"),
        retry_delay_ms=finite_number_at(payload, "retryDelayMs"),
        error=text_at(payload, "error", "message", "failureCategory"),
    )


def _to_auth_status(fact: Fact) -> TypedPayload | None:
    signing = fact.payload.get("isAuthenticating")
    if type(signing) is not bool:
        return None
    return "run.agent.auth_status", AuthStatus(
        is_authenticating=signing,
        output=text_at(fact.payload, "output", "message"),
        error=text_at(fact.payload, "error"),
    )


def _to_tool_use_summary(fact: Fact) -> TypedPayload | None:
    summary, calls = text_at(fact.payload, "summary"), texts(fact.payload.get("toolUseIds"))
    if summary is None or not calls:
        return None
    return "run.agent.tool_use_summary", ToolUseSummary(summary=summary, tool_use_ids=calls)


def _to_session_state(fact: Fact) -> TypedPayload | None:
    state = _SESSION_STATES.get(text_at(fact.payload, "state", "status") or "")
    plain = "message" not in fact.payload and "phase" not in fact.payload
    if state is None or not plain:
        return None
    return "run.agent.session_state_changed", SessionState(state=state)


def _to_status_in_conversation(fact: Fact) -> TypedPayload | None:
    return to_run_status(fact) or _to_status_event(fact)


def _to_status_change(fact: Fact) -> TypedPayload | None:
    payload = fact.payload
    change = StatusChange(
        status=text_at(payload, "status", "state"),
        permission_mode=text_at(payload, "permissionMode"),
        phase=text_at(payload, "phase"),
        message=text_at(payload, "message"),
    )
    return None if change == StatusChange() else ("run.agent.status_change", change)


def _to_permission_mode(fact: Fact) -> TypedPayload | None:
    mode = read_payload(fact, PermissionPayload).mode
    if mode is None:
        return None
    return "run.agent.status_change", StatusChange(permission_mode=mode)


def _to_hook_started(fact: Fact) -> TypedPayload | None:
    fields = read_payload(fact, HookPayload)
    if not fields.hook_id:
        return None
    return "run.agent.hook_started", HookStarted(
        hook_id=fields.hook_id, hook_name=fields.hook_name, hook_event=fields.hook_event
    )


def _to_hook_progress(fact: Fact) -> TypedPayload | None:
    fields = read_payload(fact, HookPayload)
    if not fields.hook_id:
        return None
    return "run.agent.hook_progress", HookProgress(
        hook_id=fields.hook_id,
        hook_name=fields.hook_name,
        hook_event=fields.hook_event,
        stdout=text_at(fact.payload, "stdout"),
        stderr=text_at(fact.payload, "stderr"),
        message=fields.message,
    )


def _to_hook_response(fact: Fact) -> TypedPayload | None:
    fields = read_payload(fact, HookPayload)
    if not fields.hook_id:
        return None
    ended = "failed" if fact.event_class == "hook.failed" else "completed"
    return "run.agent.hook_response", HookResponse(
        hook_id=fields.hook_id,
        outcome=fields.outcome or ended,
        hook_name=fields.hook_name,
        hook_event=fields.hook_event,
        exit_code=fields.exit_code,
        stdout=text_at(fact.payload, "stdout"),
        stderr=text_at(fact.payload, "stderr"),
        message=fields.message,
    )


def _to_agent_result(fact: Fact) -> TypedPayload | None:
    """The snapshot that follows the end of a turn; one of a thread at any other time is none."""
    payload, status = fact.payload, text_at(fact.payload, "status")
    if turn_of(fact) is None or entity_of(fact) is not None or status not in _ENDED:
        return None
    return "run.agent.result", AgentResult(
        success=_ENDED[status],
        duration_ms=finite_number_at(payload, "durationMs"),
        turns=whole_number_at(payload, "turns"),
        usage=object_at(payload.get("usage")),
        total_cost_usd=finite_number_at(payload, "totalCostUsd"),
        stop_reason=text_at(payload, "stopReason"),
        errors=list_at(payload.get("errors")),
        structured_output=payload.get("structuredOutput"),
    )


def _to_route_decision(fact: Fact) -> TypedPayload | None:
    """A decision of a coordinator; the choice of a model is none."""
    payload, action = fact.payload, text_at(fact.payload, "action")
    if action not in _ROUTES:
        return None
    approved = payload.get("approved")
    known: dict[str, Any] = {name: text_at(payload, name) for name in _ROUTE_FIELDS}
    known |= {"action": action, "context": payload.get("context")}
    known["approved"] = approved if type(approved) is bool else None
    return "run.agent.route_decision", CoordinatorRouteDecision(**known)


_ROUTE_FIELDS: Final = CoordinatorRouteDecision.__struct_fields__

_STATUS_TYPES: Final = (
    "run.agent.api_retry",
    "run.agent.auth_status",
    "run.agent.tool_use_summary",
    "run.agent.session_state_changed",
    "run.agent.status_change",
)

SESSION_EVENTS: Final[MappingTable] = {
    "session.created": map_both_views(_to_session_init, "run.agent.session_init"),
    "session.updated": map_both_views(_to_session_init, "run.agent.session_init"),
    "run.status": ViewMappings(
        EventMapping(_to_status_event, _STATUS_TYPES),
        EventMapping(_to_status_in_conversation, ("run.status.changed", *_STATUS_TYPES)),
    ),
    "model.failed": map_both_views(_to_api_retry, "run.agent.api_retry"),
    "policy.changed": map_both_views(_to_permission_mode, "run.agent.status_change"),
    "hook.started": map_both_views(_to_hook_started, "run.agent.hook_started"),
    "hook.progress": map_both_views(_to_hook_progress, "run.agent.hook_progress"),
    "hook.completed": map_both_views(_to_hook_response, "run.agent.hook_response"),
    "hook.failed": map_both_views(_to_hook_response, "run.agent.hook_response"),
    "snapshot.updated": map_both_views(_to_agent_result, "run.agent.result"),
    "routing.decided": map_both_views(_to_route_decision, "run.agent.route_decision"),
}
