"""`control_request` and `control_response`: what the CLI asks its host, and what the host answers.

They go both ways over the same pipe and are told apart by their subtype. A question is closed by
the answer with its request id, by its withdrawal, or by the end of the turn; never by a guess.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.claude_code.session import Session

QUESTIONS: Final = {"AskUserQuestion": "structured_input", "ExitPlanMode": "plan_decision"}
"""Tools that are questions by themselves; leave to run any other is a `tool_approval`."""

_QUIET: Final = frozenset(
    {"initialize", "mcp_message", "mcp_status", "mcp_set_servers", "mcp_reconnect", "mcp_toggle"}
)
"""Talk between CLI and host about themselves."""


def control_request(session: Session, item: dict[str, Any]) -> None:
    request = table(item.get("request")) or {}
    subtype, request_id = word(request, "subtype") or "", word(item, "request_id") or "request"
    handle = _REQUESTS.get(subtype)
    if handle is not None:
        session.asked[request_id] = request
        handle(session, request_id, request)
    elif subtype not in _QUIET:
        session.tell.unknown(f"control request {subtype}", item)


def control_response(session: Session, item: dict[str, Any]) -> None:
    """An answer; those to talk that is not told are not told either."""
    response = table(item.get("response")) or {}
    request_id = word(response, "request_id") or "request"
    request = session.asked.pop(request_id, None)
    handle = _ANSWERS.get(word(request or {}, "subtype") or "")
    if handle is not None:
        handle(session, request_id, request or {}, response)


def control_cancel(session: Session, item: dict[str, Any]) -> None:
    request_id = word(item, "request_id") or "request"
    session.asked.pop(request_id, None)
    session.tell.withdrawn(request_id, "the question was withdrawn")


def _can_use_tool(session: Session, request_id: str, request: dict[str, Any]) -> None:
    name, call_id = word(request, "tool_name"), word(request, "tool_use_id")
    speaker, given = _asker(session, request), request.get("input")
    if call_id is not None and call_id not in session.tell.tools:
        session.tell.tool(call_id, name, given, subagent_id=speaker)
    prompt = word(request, "title", "description", "display_name", "tool_name")
    kind = QUESTIONS.get(name or "", "tool_approval")
    if kind == "tool_approval":
        said = {
            "toolName": name,
            "message": prompt,
            "path": word(request, "blocked_path"),
            "reasonCode": word(request, "decision_reason_type"),
        }
        session.tell.within(speaker, "permission.requested", said, tool_call_id=call_id)
    _plan(session, call_id, given)
    command = word(table(given) or {}, "command")
    said = {
        "actionType": kind,
        "prompt": prompt,
        "toolName": name,
        "command": command,
        "cwd": session.cwd if command is not None else None,
        "args": given,
        "options": listed(request.get("permission_suggestions")),
        "responseSchema": _answers(given) if kind == "structured_input" else None,
        "requestedBy": speaker,
        **session.about(request),
    }
    session.tell.ask(request_id, said, tool_call_id=call_id, subagent_id=speaker)


def _plan(session: Session, call_id: str | None, given: Any) -> None:
    """The plan that leave is asked for, where the question has it."""
    plan = word(table(given) or {}, "plan")
    if plan is not None:
        said = {"text": plan, "planId": call_id}
        session.tell.fact("plan.final", said, part_id=call_id)


def _answers(given: Any) -> dict[str, Any] | None:
    """The form that questions to a person ask to be filled in: each answer under its question."""
    rows = [row for row in map(table, listed((table(given) or {}).get("questions")) or ()) if row]
    fields = {text: _answer(row) for row in rows if (text := word(row, "question"))}
    return {"type": "object", "properties": fields, "required": list(fields)} if fields else None


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    options = map(table, listed(row.get("options")) or ())
    labels = [label for option in options if (label := word(option or {}, "label"))]
    one = {"type": "string", "examples": labels}
    titled = {"title": word(row, "header") or word(row, "question")}
    return (
        {**titled, "type": "array", "items": one} if row.get("multiSelect") else {**titled, **one}
    )


def _asker(session: Session, request: dict[str, Any]) -> str | None:
    agent = word(request, "agent_id")
    return agent if agent in session.tell.subagents else None


def _tool_answer(
    session: Session, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    answer, call_id = table(response.get("response")) or {}, word(request, "tool_use_id")
    allowed = word(answer, "behavior") == "allow"
    decision = "approve" if allowed else "deny"
    reason, speaker = word(answer, "message") or word(response, "error"), _asker(session, request)
    changed = answer.get("updatedInput")
    news = changed if changed != request.get("input") else None
    session.tell.answered(request_id, decision, reason=reason, response=news)
    if word(request, "tool_name") not in QUESTIONS:
        said = {"toolName": word(request, "tool_name"), "decision": decision, "message": reason}
        session.tell.within(speaker, "permission.resolved", said, tool_call_id=call_id)
    if allowed and news and call_id in session.tell.tools:
        session.tell.tool(call_id, None, news)
    if not allowed and call_id is not None:
        session.refused.add(call_id)
    if answer.get("interrupt") is True:
        session.stopping = True


def _elicitation(session: Session, request_id: str, request: dict[str, Any]) -> None:
    said = {
        "actionType": "structured_input",
        "prompt": word(request, "title", "message"),
        "requestedBy": word(request, "mcp_server_name"),
        "responseSchema": table(request.get("requested_schema")),
    }
    session.tell.ask(request_id, said)


def _elicited(
    session: Session, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    del request
    answer = table(response.get("response")) or {}
    decision = "approve" if word(answer, "action") == "accept" else "deny"
    session.tell.answered(request_id, decision, response=answer.get("content"))


def _hook(session: Session, request_id: str, request: dict[str, Any]) -> None:
    event = word(table(request.get("input")) or {}, "hook_event_name")
    said = {"hookId": request_id, "hookName": word(request, "callback_id"), "hookEvent": event}
    session.tell.fact("hook.started", said)


def _hooked(
    session: Session, request_id: str, request: dict[str, Any], response: dict[str, Any]
) -> None:
    failed = word(response, "subtype") == "error"
    said = {
        "hookId": request_id,
        "hookName": word(request, "callback_id"),
        "outcome": "error" if failed else "success",
        "message": word(response, "error"),
    }
    session.tell.fact("hook.failed" if failed else "hook.completed", said)


def _interrupt(session: Session, request_id: str, request: dict[str, Any]) -> None:
    del request_id, request
    session.stopping = True
    if session.tell.is_open:
        session.tell.fact("run.status", {"status": "cancelling"})


def _mode(session: Session, request_id: str, request: dict[str, Any]) -> None:
    del request_id
    session.tell.fact("policy.changed", {"mode": word(request, "mode")})


def _model(session: Session, request_id: str, request: dict[str, Any]) -> None:
    del request_id
    said = {"model": word(request, "model"), "reason": "asked for"}
    session.tell.fact("routing.decided", said)


_REQUESTS: Final = {
    "can_use_tool": _can_use_tool,
    "elicitation": _elicitation,
    "hook_callback": _hook,
    "interrupt": _interrupt,
    "set_permission_mode": _mode,
    "set_model": _model,
}
_ANSWERS: Final = {
    "can_use_tool": _tool_answer,
    "elicitation": _elicited,
    "hook_callback": _hooked,
}
