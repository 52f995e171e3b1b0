"""Claude Code's stream-json as facts: lines by type, the control protocol, how a turn ends."""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import (
    list_at,
    number_at,
    object_at,
    objects_of,
    text_at,
    texts_of,
    whole_number_at,
)
from factwire.sources.claude_code.session_usage import (
    SessionUsage,
    find_window,
    read_turn_tokens,
    to_payloads,
)
from factwire.sources.claude_code.system_messages import on_system
from factwire.sources.claude_code.transcript import (
    ClaudeSession,
    add_denial,
    on_assistant,
    on_stream_event,
    on_user,
)
from factwire.sources.kit.fact_builder import FactBuilder, parse_epoch_seconds, parse_iso_time
from factwire.sources.source_registry import Source

QUESTIONS: Final = {"AskUserQuestion": "structured_input", "ExitPlanMode": "plan_decision"}
"""Tools that are questions by themselves; leave to run any other is a `tool_approval`."""

_QUIET_REQUESTS: Final = frozenset(
    {"initialize", "mcp_message", "mcp_status", "mcp_set_servers", "mcp_reconnect", "mcp_toggle"}
)
"""Talk between CLI and host about themselves."""


def on_control_request(session: ClaudeSession, item: dict[str, Any]) -> None:
    request = object_at(item.get("request")) or {}
    subtype, request_id = (
        text_at(request, "subtype") or "",
        text_at(item, "request_id") or "request",
    )
    handle = _REQUESTS.get(subtype)
    if handle is not None:
        session.requests[request_id] = request
        handle(session, request_id, request)
    elif subtype not in _QUIET_REQUESTS:
        session.builder.warn_unknown(f"control request {subtype}", item)


def on_control_response(session: ClaudeSession, item: dict[str, Any]) -> None:
    """An answer; those to talk that is not told are not told either."""
    response = object_at(item.get("response")) or {}
    request_id = text_at(response, "request_id") or "request"
    request = session.requests.pop(request_id, None)
    handle = _ANSWERS.get(text_at(request or {}, "subtype") or "")
    if handle is not None:
        handle(session, request_id, request or {}, response)


def on_control_cancel(session: ClaudeSession, item: dict[str, Any]) -> None:
    request_id = text_at(item, "request_id") or "request"
    session.requests.pop(request_id, None)
    session.builder.cancel_action(request_id, "the question was withdrawn")


def _on_can_use_tool(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    name, call_id = text_at(request, "tool_name"), text_at(request, "tool_use_id")
    speaker, args = _find_asker(session, request), request.get("input")
    if call_id is not None and call_id not in session.builder.tools:
        session.builder.start_tool(call_id, name, args, subagent_id=speaker)
    prompt = text_at(request, "title", "description", "display_name", "tool_name")
    kind = QUESTIONS.get(name or "", "tool_approval")
    if kind == "tool_approval":
        payload = {
            "toolName": name,
            "message": prompt,
            "path": text_at(request, "blocked_path"),
            "reasonCode": text_at(request, "decision_reason_type"),
        }
        session.builder.add_subagent_fact(
            speaker, "permission.requested", payload, tool_call_id=call_id
        )
    _ask_about_plan(session, call_id, args)
    command = text_at(object_at(args) or {}, "command")
    payload = {
        "actionType": kind,
        "prompt": prompt,
        "toolName": name,
        "command": command,
        "cwd": session.cwd if command is not None else None,
        "args": args,
        "options": list_at(request.get("permission_suggestions")),
        "responseSchema": _read_answers(args) if kind == "structured_input" else None,
        "requestedBy": speaker,
        **session.question_details(request),
    }
    session.builder.require_action(request_id, payload, tool_call_id=call_id, subagent_id=speaker)


def _ask_about_plan(session: ClaudeSession, call_id: str | None, args: Any) -> None:
    """The plan that leave is asked for, where the question has it."""
    plan = text_at(object_at(args) or {}, "plan")
    if plan is not None:
        payload = {"text": plan, "planId": call_id}
        session.builder.add_fact("plan.final", payload, part_id=call_id)


def _read_answers(response: Any) -> dict[str, Any] | None:
    """The form that questions to a person ask to be filled in: each answer under its question."""
    rows = objects_of((object_at(response) or {}).get("questions"))
    fields = {text: _answer(row) for row in rows if (text := text_at(row, "question"))}
    return {"type": "object", "properties": fields, "required": list(fields)} if fields else None


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    options = map(object_at, list_at(row.get("options")) or ())
    labels = [label for option in options if (label := text_at(option or {}, "label"))]
    one = {"type": "string", "examples": labels}
    titled = {"title": text_at(row, "header") or text_at(row, "question")}
    return (
        {**titled, "type": "array", "items": one} if row.get("multiSelect") else {**titled, **one}
    )


def _find_asker(session: ClaudeSession, request: dict[str, Any]) -> str | None:
    agent = text_at(request, "agent_id")
    return agent if agent in session.builder.subagents else None


def _on_tool_answer(
    session: ClaudeSession, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    answer, call_id = object_at(response.get("response")) or {}, text_at(request, "tool_use_id")
    allowed = text_at(answer, "behavior") == "allow"
    decision = "approve" if allowed else "deny"
    reason, speaker = (
        text_at(answer, "message") or text_at(response, "error"),
        _find_asker(session, request),
    )
    changed = answer.get("updatedInput")
    news = changed if changed != request.get("input") else None
    session.builder.resolve_action(request_id, decision, reason=reason, response=news)
    if text_at(request, "tool_name") not in QUESTIONS:
        payload = {
            "toolName": text_at(request, "tool_name"),
            "decision": decision,
            "message": reason,
        }
        session.builder.add_subagent_fact(
            speaker, "permission.resolved", payload, tool_call_id=call_id
        )
    if allowed and news and call_id in session.builder.tools:
        session.builder.start_tool(call_id, None, news)
    if not allowed and call_id is not None:
        session.refused.add(call_id)
    if answer.get("interrupt") is True:
        session.stopping = True


def _on_elicitation(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    payload = {
        "actionType": "structured_input",
        "prompt": text_at(request, "title", "message"),
        "requestedBy": text_at(request, "mcp_server_name"),
        "responseSchema": object_at(request.get("requested_schema")),
    }
    session.builder.require_action(request_id, payload)


def _on_elicited(
    session: ClaudeSession, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    del request
    answer = object_at(response.get("response")) or {}
    decision = "approve" if text_at(answer, "action") == "accept" else "deny"
    session.builder.resolve_action(request_id, decision, response=answer.get("content"))


def _on_hook(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    event = text_at(object_at(request.get("input")) or {}, "hook_event_name")
    payload = {
        "hookId": request_id,
        "hookName": text_at(request, "callback_id"),
        "hookEvent": event,
    }
    session.builder.add_fact("hook.started", payload)


def _on_hooked(
    session: ClaudeSession, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    failed = text_at(response, "subtype") == "error"
    payload = {
        "hookId": request_id,
        "hookName": text_at(request, "callback_id"),
        "outcome": "error" if failed else "success",
        "message": text_at(response, "error"),
    }
    session.builder.add_fact("hook.failed" if failed else "hook.completed", payload)


def _on_interrupt(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    del request_id, request
    session.stopping = True
    if session.builder.is_open:
        session.builder.add_fact("run.status", {"status": "cancelling"})


def _on_mode(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    del request_id
    session.builder.add_fact("policy.changed", {"mode": text_at(request, "mode")})


def _on_model(session: ClaudeSession, request_id: str, request: dict[str, Any]) -> None:
    del request_id
    payload = {"model": text_at(request, "model"), "reason": "asked for"}
    session.builder.add_fact("routing.decided", payload)


_REQUESTS: Final = {
    "can_use_tool": _on_can_use_tool,
    "elicitation": _on_elicitation,
    "hook_callback": _on_hook,
    "interrupt": _on_interrupt,
    "set_permission_mode": _on_mode,
    "set_model": _on_model,
}
_ANSWERS: Final = {
    "can_use_tool": _on_tool_answer,
    "elicitation": _on_elicited,
    "hook_callback": _on_hooked,
}


_CATEGORIES: Final = {
    "error_max_turns": "turn_limit",
    "error_max_budget_usd": "budget_limit",
    "error_max_structured_output_retries": "invalid_output",
}
_API_ERRORS: Final = {"authentication_failed": "unauthorized"}
"""What the CLI says in the model's place where no API was asked."""

_HINTS: Final = {
    "turn_limit": "Continue with another turn, or allow more rounds.",
    "budget_limit": "Allow a larger budget, then continue.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Set the key, or sign in again; then retry the turn.",
    "request_rejected": "Check the message; the model or an attachment may not be available.",
    "provider_unavailable": "Retry the turn later; the problem is at the model's server.",
}
_TOO_MANY, _SERVER = 429, 500
_UNAUTHORIZED: Final = (401, 403)


def on_result(session: ClaudeSession, item: dict[str, Any]) -> None:
    if not session.builder.is_open:
        session.begin_next_turn()
    for row in map(object_at, list_at(item.get("permission_denials")) or ()):
        call_id = text_at(row or {}, "tool_use_id")
        if call_id is not None and call_id not in session.denied:
            add_denial(session, call_id, None, None, name=text_at(row or {}, "tool_name"))
    _note_usage(session, item)
    _end_turn(session, item)
    session.ended = True
    session.reset_turn()


def _end_turn(session: ClaudeSession, item: dict[str, Any]) -> None:
    payload = {
        "durationMs": number_at(item, "duration_ms"),
        "turns": whole_number_at(item, "num_turns"),
        "stopReason": text_at(item, "stop_reason"),
        "structuredOutput": item.get("structured_output"),
        "errors": texts_of(item.get("errors")) or None,
    }
    reason = text_at(item, "terminal_reason") or ""
    failed = item.get("is_error") is True or (text_at(item, "subtype") or "").startswith("error")
    if reason.startswith("aborted") or (failed and session.stopping):
        session.builder.cancel_turn(reason or "requested", **payload)
    elif failed:
        category = _failure_category(session, item)
        message = text_at(item, "result") or "\n".join(texts_of(item.get("errors"))) or category
        session.builder.fail_turn(category, message, _HINTS.get(category), **payload)
    else:
        session.builder.complete_turn(**payload)


def _failure_category(session: ClaudeSession, item: dict[str, Any]) -> str:
    known = _CATEGORIES.get(text_at(item, "subtype") or "")
    status = item.get("api_error_status")
    if known is not None or type(status) is not int:
        return known or _API_ERRORS.get(session.error or "", "provider_error")
    if status == _TOO_MANY:
        return "rate_limited"
    if status in _UNAUTHORIZED:
        return "unauthorized"
    return "provider_unavailable" if status >= _SERVER else "request_rejected"


def _note_usage(session: ClaudeSession, item: dict[str, Any]) -> None:
    """What this turn used, and what the session has used by now, from which the next one counts.
    Of a session that was resumed and whose sums were not known, a turn's share is not known.
    """
    tokens, sums = read_turn_tokens(item), SessionUsage.read(item)
    before, session.usage = session.usage, sums
    share = SessionUsage() if before is None else sums.since(before, sum(tokens.values()))
    payloads = to_payloads(share, tokens)
    session.builder.usage = {name: sum(payload[name] for payload in payloads) for name in tokens}
    for payload in payloads[:-1]:
        session.builder.add_fact("cost.recorded", payload)
    so_far = msgspec.to_builtins(sums)
    session.builder.add_fact("cost.recorded", {**payloads[-1], "agentSessionUsage": so_far})
    session.builder.report_context(*session.context, find_window(item, session.model))


class ClaudeCode:
    """Converts what one process printed, and what its host wrote to it."""

    def __init__(self, builder: FactBuilder) -> None:
        self.session = ClaudeSession(builder)

    def take(self, item: dict[str, Any]) -> None:
        kind = text_at(item, "type") or ""
        handle = _TYPES.get(kind)
        if "timestamp" in item:
            self.session.builder.at = (
                parse_iso_time(text_at(item, "timestamp")) or self.session.builder.at
            )
        if handle is not None:
            handle(self.session, item)
        elif kind not in _QUIET_TYPES:
            self.session.builder.warn_unknown(kind, item)

    def finish(self) -> None:
        """Whatever is open now was cut off."""


def _on_tool_progress(session: ClaudeSession, item: dict[str, Any]) -> None:
    call_id, seconds = text_at(item, "tool_use_id"), number_at(item, "elapsed_time_seconds")
    if call_id in session.builder.tools:
        session.builder.report_tool_progress(
            call_id, message=f"{seconds or 0:g} s", elapsedSeconds=seconds
        )


def _on_summary(session: ClaudeSession, item: dict[str, Any]) -> None:
    payload = {
        "status": "running",
        "message": text_at(item, "summary"),
        "summary": text_at(item, "summary"),
        "toolUseIds": [
            session.builder.unique_name(name)
            for name in texts_of(item.get("preceding_tool_use_ids"))
        ],
    }
    session.builder.add_fact("run.status", payload)


def _on_rate_limit(session: ClaudeSession, item: dict[str, Any]) -> None:
    info = object_at(item.get("rate_limit_info")) or {}
    refused = text_at(info, "status") == "rejected"
    payload = {
        "name": text_at(info, "rateLimitType") or "rate_limit",
        "utilization": number_at(info, "utilization"),
        "resetsAt": parse_epoch_seconds(number_at(info, "resetsAt")),
        "message": text_at(info, "status"),
    }
    session.builder.add_fact("rate_limit.hit" if refused else "limit.changed", payload)


def _on_auth(session: ClaudeSession, item: dict[str, Any]) -> None:
    error, signing_in = text_at(item, "error"), item.get("isAuthenticating")
    payload = {
        "status": "authenticating" if signing_in is True else "running",
        "isAuthenticating": signing_in is True,
        "output": "\n".join(texts_of(item.get("output"))) or None,
        "error": error,
    }
    session.builder.add_fact("run.status", payload)
    if error is not None:
        session.builder.add_fact("runtime.error", {"code": "authentication", "message": error})


def _on_reset(session: ClaudeSession, item: dict[str, Any]) -> None:
    """The conversation was discarded: what was said until now is history."""
    payload = {
        "reason": text_at(item, "trigger"),
        "conversationId": text_at(item, "new_conversation_id"),
    }
    session.builder.add_fact("session.updated", payload)


_QUIET_TYPES: Final = frozenset(
    {
        "active_goal",
        "autocompact_state",
        "command_lifecycle",
        "keep_alive",
        "prompt_suggestion",
    }
)
"""What is only for the CLI's own screen, or for its host."""

_TYPES: Final = {
    "system": on_system,
    "assistant": on_assistant,
    "user": on_user,
    "stream_event": on_stream_event,
    "result": on_result,
    "control_request": on_control_request,
    "control_response": on_control_response,
    "control_cancel_request": on_control_cancel,
    "tool_progress": _on_tool_progress,
    "tool_use_summary": _on_summary,
    "rate_limit_event": _on_rate_limit,
    "auth_status": _on_auth,
    "conversation_reset": _on_reset,
}


SOURCE: Final = Source(
    name="claude-code",
    title="Claude Code",
    framing="lines",
    versions="2.1.325",
    converter=ClaudeCode,
    maps={
        "user (from the host)": "turn.submitted, turn.started, or queue.changed",
        "system init": "turn.started, session.updated, tool.catalog.resolved",
        "system status": "policy.changed, context.compaction.started or failed",
        "system compact_boundary": "context.compaction.completed, history.compacted",
        "system api_retry": "rate_limit.hit, run.status, messages.snapshot",
        "system hook_started, hook_progress, hook_response": "hook.*",
        "system task_*": "subagent.*, task.*, worker.notification",
        "system permission_denied": "permission.denied",
        "system model_refusal_fallback": "routing.fallback.applied, messages.snapshot",
        "system session_state_changed": "run.status",
        "system files_persisted": "artifact.created",
        "system informational, notification, local_command_output, …": "runtime.warning",
        "assistant text": "model.requested, model.completed, evidence.changed",
        "assistant thinking": "reasoning.delta",
        "assistant tool_use": "tool.started, tool.args",
        "assistant supersedes": "messages.snapshot",
        "assistant is_api_error_message": "runtime.error",
        "user tool_result": "tool.result or tool.failed, file.read, file.changed",
        "user text (synthetic)": "context.attached, subagent.input",
        "stream_event": "model.delta, reasoning.delta, tool.started, tool.args.delta",
        "control_request can_use_tool": "permission.requested, action.required, plan.final",
        "control_request elicitation": "action.required",
        "control_request hook_callback": "hook.started, hook.completed or hook.failed",
        "control_request interrupt": "run.status",
        "control_request set_permission_mode, set_model": "policy.changed, routing.decided",
        "control_response": "action.resolved, permission.resolved, tool.args",
        "control_cancel_request": "action.cancelled",
        "tool_progress, tool_use_summary": "tool.progress, run.status",
        "rate_limit_event": "limit.changed or rate_limit.hit",
        "auth_status": "run.status, runtime.error",
        "conversation_reset": "session.updated",
        "result": "cost.recorded, metrics.changed, turn.completed, turn.failed or turn.canceled",
    },
    lacks=("exit codes", "output deltas", "the prompt, unless the host's lines are recorded"),
)
