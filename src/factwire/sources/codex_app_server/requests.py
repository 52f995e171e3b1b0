"""Requests: what the server asks and the client answers, and what the client asks for."""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.codex_app_server.session import Session, input_text, named
from factwire.sources.open_work import OpenTool

_MORE: Final = ("additionalPermissions", "networkApprovalContext", "fileChanges")
"""What a request may ask for beside its command."""

ANSWER_FIELDS: Final = frozenset({"decision", "answers", "action", "permissions", "contentItems"})
"""Fields that only answers of a client have."""


def key_of(item: dict[str, Any]) -> str:
    return f"request-{item.get('id')}"


def is_asked(method: str) -> bool:
    return method in _ASKED or method in _QUIET_ASKED


def server_request(session: Session, item: dict[str, Any], method: str) -> None:
    params = table(item.get("params")) or {}
    session.asked[key_of(item)] = (method, params)
    ask = _ASKED.get(method)
    if ask is not None:
        ask(session, key_of(item), params)


def client_request(session: Session, item: dict[str, Any], method: str) -> None:
    """What a client asks for; most of it shows in what the server then does."""
    params = table(item.get("params")) or {}
    session.sent[key_of(item)] = method
    text = input_text(params.get("input"))
    if method == "turn/start" and text and word(params, "threadId") in (session.thread_id, None):
        session.prompts.append(text)
    elif method == "turn/interrupt" and session.tell.is_open:
        session.tell.fact("run.status", {"status": "cancelling"})


def answer(session: Session, item: dict[str, Any]) -> None:
    """An answer belongs to what was asked under its id; by its form where both sides asked."""
    key, result = key_of(item), table(item.get("result")) or {}
    by_client = key in session.asked and (
        key not in session.sent or bool(ANSWER_FIELDS.intersection(result))
    )
    if by_client:
        _answered(session, key, session.asked.pop(key), result, table(item.get("error")))
        return
    method = session.sent.pop(key, "")
    error = table(item.get("error"))
    if error is not None:
        message = word(error, "message") or "the request was refused"
        session.tell.fact("runtime.error", {"code": "request_refused", "message": message})
        if method == "turn/start" and session.prompts:
            session.prompts.pop()
    elif method in ("thread/start", "thread/resume"):
        thread = word(table(result.get("thread")) or {}, "id")
        session.thread_id = session.thread_id or thread
        if method == "thread/resume" and thread is not None:
            session.resumed.add(thread)


def resolved(session: Session, params: dict[str, Any]) -> None:
    """The server takes a request as settled; without the answer, what was decided is unknown."""
    key = f"request-{params.get('requestId')}"
    session.asked.pop(key, None)
    session.tell.answered(key, "unknown")


def _answered(
    session: Session,
    key: str,
    asked: tuple[str, dict[str, Any]],
    result: dict[str, Any],
    error: dict[str, Any] | None,
) -> None:
    method, params = asked
    said = named(result.get("decision")) or word(result, "action") or ""
    granted = bool(table(result.get("permissions")) or table(result.get("answers")))
    approved = said.startswith(("accept", "approved")) or granted
    decision = "approve" if approved and error is None else "deny"
    reason = word(error or {}, "message") or said or None
    response = result.get("answers") or result.get("content") or result.get("permissions")
    was_open = key in session.tell.actions
    session.tell.answered(key, decision, reason=reason, response=response)
    if was_open and method in _PERMISSIONS:
        told = {"decision": decision, "message": reason}
        item_id = word(params, "itemId", "callId")
        speaker = session.speaker(params)
        session.tell.within(speaker, "permission.resolved", told, tool_call_id=item_id)


def _approval(session: Session, key: str, params: dict[str, Any]) -> None:
    command = params.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else word(params, "command")  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    item_id, speaker = word(params, "itemId", "callId"), session.speaker(params)
    said = {"command": text, "path": word(params, "grantRoot"), "message": word(params, "reason")}
    session.tell.within(speaker, "permission.requested", said, tool_call_id=item_id)
    tool = session.tell.tools.get(item_id or "")
    asked = {
        "actionType": "tool_approval",
        "prompt": _question(text, word(params, "reason")),
        "toolName": tool.name if tool is not None else None,
        "command": text,
        "cwd": word(params, "cwd"),
        "path": word(params, "grantRoot"),
        "args": _about(tool, text, params),
        "options": listed(params.get("availableDecisions")),
    }
    session.tell.ask(key, asked, tool_call_id=item_id, subagent_id=speaker)


def _question(command: str | None, reason: str | None) -> str:
    """What is asked, in our words: an agent's reason for it is an agent's, and said to be."""
    return _given("Run this command?" if command is not None else "Change these files?", reason)


def _given(question: str, reason: str | None) -> str:
    return question if reason is None else f"{question} The agent's reason: {reason}"


def _about(
    tool: OpenTool | None, command: str | None, params: dict[str, Any]
) -> dict[str, Any] | None:
    """What would be done beside a command; a request for a patch leaves it to its item to say."""
    known = table(tool.args) if tool is not None and command is None else None
    more = {name: params.get(name) for name in _MORE if params.get(name) is not None}
    return {**(known or {}), **more} or None


def _permissions(session: Session, key: str, params: dict[str, Any]) -> None:
    item_id, speaker = word(params, "itemId"), session.speaker(params)
    reason = word(params, "reason")
    told = {"message": reason, "path": word(params, "cwd")}
    session.tell.within(speaker, "permission.requested", told, tool_call_id=item_id)
    said = {
        "actionType": "permission_grant",
        "prompt": _given("Give these permissions?", reason),
        "args": params.get("permissions"),
    }
    session.tell.ask(key, said, tool_call_id=item_id, subagent_id=speaker)


def _user_input(session: Session, key: str, params: dict[str, Any]) -> None:
    questions = [row for row in map(table, listed(params.get("questions")) or ()) if row]
    texts = [text for row in questions if (text := word(row, "question", "header"))]
    said = {
        "actionType": "structured_input",
        "prompt": "\n".join(texts) or "An answer is asked for.",
        "options": questions,
    }
    item_id, speaker = word(params, "itemId"), session.speaker(params)
    session.tell.ask(key, said, tool_call_id=item_id, subagent_id=speaker)


def _elicitation(session: Session, key: str, params: dict[str, Any]) -> None:
    """A server's question; Codex asks in this way, too, for leave to call a tool."""
    meta = table(params.get("_meta")) or {}
    is_call = word(meta, "codex_approval_kind") == "mcp_tool_call"
    said = {
        "actionType": "tool_approval" if is_call else "structured_input",
        "prompt": word(params, "message"),
        "args": meta.get("tool_params") if is_call else None,
        "requestedBy": word(params, "serverName"),
        "responseSchema": table(params.get("requestedSchema")),
    }
    session.tell.ask(key, said, subagent_id=session.speaker(params))


def _tool_call(session: Session, key: str, params: dict[str, Any]) -> None:
    """The client runs a tool of its own: no question, but a call."""
    del key
    call_id, speaker = word(params, "callId") or "", session.speaker(params)
    if call_id not in session.tell.tools:
        session.tell.tool(
            call_id, word(params, "tool"), params.get("arguments"), subagent_id=speaker
        )


_ASKED: Final = {
    "item/commandExecution/requestApproval": _approval,
    "item/fileChange/requestApproval": _approval,
    "execCommandApproval": _approval,
    "applyPatchApproval": _approval,
    "item/permissions/requestApproval": _permissions,
    "item/tool/requestUserInput": _user_input,
    "mcpServer/elicitation/request": _elicitation,
    "item/tool/call": _tool_call,
}
_PERMISSIONS: Final = frozenset(
    {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "execCommandApproval",
        "applyPatchApproval",
    }
)
_QUIET_ASKED: Final = frozenset({"account/chatgptAuthTokens/refresh", "attestation/generate"})
"""What the server asks of the client's own account."""
