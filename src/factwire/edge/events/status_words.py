"""What an agent's session is doing: its start, its states, its hooks, its sign-in, its result.

`run.status` has several words. The first whose fields the fact carries is the right one: a retry
counts attempts, a sign-in says so, a summary names the calls it sums up; else its status decides.
"""

from typing import Any, Final

from factwire.edge.events.agent_payloads import (
    AgentResult,
    ApiRetry,
    AuthStatus,
    CoordinatorRouteDecision,
    HookProgress,
    HookResponse,
    HookStarted,
    SessionInit,
    SessionState,
    StatusChange,
    ToolUseSummary,
)
from factwire.edge.events.numbers import amount, whole
from factwire.edge.events.word import Said, Table, alike
from factwire.facts import Fact
from factwire.facts.payloads import Hook, Permission
from factwire.projection.reading import listed, read, subagent_of, table, turn_of, word
from factwire.projection.reading import words as texts

_SESSION_STATES: Final = ("idle", "running", "requires_action")
_ENDED: Final = {"completed": True, "failed": False, "canceled": False}
_ROUTES: Final = ("delegate", "review", "approve", "finish")


def _init(fact: Fact) -> Said | None:
    said = fact.payload
    return "run.agent.session_init", SessionInit(
        model=word(said, "model"),
        tools=_names(said.get("tools")),
        mcp_servers=listed(said.get("mcpServers")),
        permission_mode=word(said, "permissionMode", "mode"),
        version=word(said, "version"),
        session_id=fact.session_id or word(said, "sessionId"),
        cwd=word(said, "cwd"),
    )


def _names(value: object) -> list[str] | None:
    """Tools by name, whether they came as names or as objects that have one."""
    if not isinstance(value, list):
        return None
    rows: list[object] = value  # pyright: ignore[reportUnknownVariableType]
    named = (row if isinstance(row, str) else word(table(row) or {}, "name") for row in rows)
    return [name for name in named if name]


def _status(fact: Fact) -> Said | None:
    told = (tell(fact) for tell in (_retry, _sign_in, _summary, _state, _change))
    return next((said for said in told if said is not None), None)


def _retry(fact: Fact) -> Said | None:
    said = fact.payload
    attempt = whole(said, "attempt")
    if attempt is None:
        return None
    return "run.agent.api_retry", ApiRetry(
        attempt=attempt,
        max_retries=whole(said, "maxRetries"),
        retry_delay_ms=amount(said, "retryDelayMs"),
        error=word(said, "error", "message", "failureCategory"),
    )


def _sign_in(fact: Fact) -> Said | None:
    signing = fact.payload.get("isAuthenticating")
    if type(signing) is not bool:
        return None
    return "run.agent.auth_status", AuthStatus(
        is_authenticating=signing,
        output=word(fact.payload, "output", "message"),
        error=word(fact.payload, "error"),
    )


def _summary(fact: Fact) -> Said | None:
    summary, calls = word(fact.payload, "summary"), texts(fact.payload.get("toolUseIds"))
    if summary is None or not calls:
        return None
    return "run.agent.tool_use_summary", ToolUseSummary(summary=summary, tool_use_ids=calls)


def _state(fact: Fact) -> Said | None:
    state: Any = word(fact.payload, "state", "status")
    plain = "message" not in fact.payload and "phase" not in fact.payload
    if state not in _SESSION_STATES or not plain:
        return None
    return "run.agent.session_state_changed", SessionState(state=state)


def _change(fact: Fact) -> Said | None:
    said = fact.payload
    change = StatusChange(
        status=word(said, "status", "state"),
        permission_mode=word(said, "permissionMode"),
        phase=word(said, "phase"),
        message=word(said, "message"),
    )
    return None if change == StatusChange() else ("run.agent.status_change", change)


def _policy(fact: Fact) -> Said | None:
    mode = read(fact, Permission).mode
    if mode is None:
        return None
    return "run.agent.status_change", StatusChange(permission_mode=mode)


def _hook_began(fact: Fact) -> Said | None:
    said = read(fact, Hook)
    if not said.hook_id:
        return None
    return "run.agent.hook_started", HookStarted(
        hook_id=said.hook_id, hook_name=said.hook_name, hook_event=said.hook_event
    )


def _hook_said(fact: Fact) -> Said | None:
    said = read(fact, Hook)
    if not said.hook_id:
        return None
    return "run.agent.hook_progress", HookProgress(
        hook_id=said.hook_id,
        hook_name=said.hook_name,
        hook_event=said.hook_event,
        stdout=word(fact.payload, "stdout"),
        stderr=word(fact.payload, "stderr"),
        message=said.message,
    )


def _hook_ended(fact: Fact) -> Said | None:
    said = read(fact, Hook)
    if not said.hook_id:
        return None
    ended = "failed" if fact.event_class == "hook.failed" else "completed"
    return "run.agent.hook_response", HookResponse(
        hook_id=said.hook_id,
        outcome=said.outcome or ended,
        hook_name=said.hook_name,
        hook_event=said.hook_event,
        exit_code=said.exit_code,
        message=said.message,
    )


def _result(fact: Fact) -> Said | None:
    """The snapshot that follows the end of a turn; one of a thread at any other time is none."""
    said, status = fact.payload, word(fact.payload, "status")
    if turn_of(fact) is None or subagent_of(fact) is not None or status not in _ENDED:
        return None
    return "run.agent.result", AgentResult(
        success=_ENDED[status],
        duration_ms=amount(said, "durationMs"),
        turns=whole(said, "turns"),
        usage=table(said.get("usage")),
        total_cost_usd=amount(said, "totalCostUsd"),
        stop_reason=word(said, "stopReason"),
        errors=listed(said.get("errors")),
        structured_output=said.get("structuredOutput"),
    )


def _route(fact: Fact) -> Said | None:
    """A decision of a coordinator; the choice of a model is none."""
    said, action = fact.payload, word(fact.payload, "action")
    if action not in _ROUTES:
        return None
    approved, route = said.get("approved"), {name: word(said, name) for name in _ROUTE_TEXTS}
    known: dict[str, Any] = {"action": action, "context": said.get("context"), **route}
    known["approved"] = approved if type(approved) is bool else None
    return "run.agent.route_decision", CoordinatorRouteDecision(**known)


_ROUTE_TEXTS: Final = (
    "next_worker",
    "instructions",
    "reasoning",
    "feedback",
    "summary",
    "blocked_reason",
    "subtask_id",
    "parent_task_id",
    "correlation_id",
)

STATUS_WORDS: Final[Table] = {
    "session.created": alike(_init, "run.agent.session_init"),
    "run.status": alike(
        _status,
        "run.agent.api_retry",
        "run.agent.auth_status",
        "run.agent.tool_use_summary",
        "run.agent.session_state_changed",
        "run.agent.status_change",
    ),
    "model.failed": alike(_retry, "run.agent.api_retry"),
    "policy.changed": alike(_policy, "run.agent.status_change"),
    "hook.started": alike(_hook_began, "run.agent.hook_started"),
    "hook.progress": alike(_hook_said, "run.agent.hook_progress"),
    "hook.completed": alike(_hook_ended, "run.agent.hook_response"),
    "hook.failed": alike(_hook_ended, "run.agent.hook_response"),
    "snapshot.updated": alike(_result, "run.agent.result"),
    "routing.decided": alike(_route, "run.agent.route_decision"),
}
