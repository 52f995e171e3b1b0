"""`tool_result` blocks: how a call ended, and which file it read or changed.

Whether a call ran at all is told beside the block, in `tool_result_meta`; its text is prose and is
only handed on. What the CLI kept in a file of its own is a ref.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.claude_code.session import Session, kept_at, text_of

_NOT_RUN: Final = {
    "user-rejected": "permission_denied",
    "permission-rule": "permission_denied",
    "automode-blocked": "permission_denied",
    "automode-unavailable": "permission_denied",
    "automode-parsing-error": "permission_denied",
    "interrupted": "interrupted",
    "cancelled": "cancelled",
}
"""Why an error is no output of the tool → category."""


def tool_result(
    session: Session,
    speaker: str | None,
    block: dict[str, Any],
    meta: dict[str, Any],
    structured: Any,
) -> None:
    call_id = word(block, "tool_use_id") or ""
    if call_id not in session.tell.tools:
        session.tell.tool(call_id, None, subagent_id=speaker)
    content, about = block.get("content"), table(structured) or {}
    output: Any = text_of(content) or content or None
    if block.get("is_error") is True:
        category = _category(session, call_id, word(meta, "non_execution_kind") or "")
        _denied(session, speaker, call_id, meta, category)
        message = text_of(content) or "the tool failed"
        session.tell.tool_failed(call_id, category, message, output=output)
    else:
        _file(session, speaker, call_id, about)
        kept = kept_at(word(about, "persistedOutputPath"))
        session.tell.tool_result(call_id, output, **kept)
    _agent_done(session, call_id, block, about)


def _category(session: Session, call_id: str, kind: str) -> str:
    """Why a call failed. The CLI says of a call that a stop broke off that the user rejected it,
    and so it says of one that a person refused: who refused nothing has only stopped it.
    """
    if kind == "user-rejected" and session.stopping and call_id not in session.refused:
        return "interrupted"
    return _NOT_RUN.get(kind, "tool_error")


def _denied(
    session: Session, speaker: str | None, call_id: str, meta: dict[str, Any], category: str
) -> None:
    if category != "permission_denied" or call_id in session.denied:
        return
    decision = table(meta.get("permission_decision")) or {}
    code = word(decision, "reason_type", "source") or word(meta, "non_execution_kind")
    deny(session, call_id, code, None, speaker)


def deny(
    session: Session,
    call_id: str,
    code: str | None,
    message: str | None,
    speaker: str | None = None,
    *,
    name: str | None = None,
) -> None:
    """A call was not allowed to run; told once."""
    if call_id in session.denied:
        return
    session.denied.add(call_id)
    tool = session.tell.tools.get(call_id)
    said = {
        "reasonCode": code or "denied",
        "message": message,
        "toolName": name or (tool.name if tool else None),
        "decision": "deny",
    }
    session.tell.within(speaker, "permission.denied", said, tool_call_id=call_id)


def _file(session: Session, speaker: str | None, call_id: str, about: dict[str, Any]) -> None:
    """The file that a call read or changed, as its result names it."""
    read = table(about.get("file")) or {}
    if path := word(read, "filePath"):
        ids = {"tool_call_id": call_id}
        session.tell.within(speaker, "file.read", {"path": path}, **ids)
    path, hunks = word(about, "filePath"), listed(about.get("structuredPatch"))
    if not path or hunks is None:
        return
    lines = [line for hunk in map(table, hunks) for line in listed((hunk or {}).get("lines")) or ()]
    changed = [line for line in lines if isinstance(line, str)]
    said = {
        "path": path,
        "change": "created" if word(about, "type") == "create" else "modified",
        "diff": "\n".join(changed) or None,
        "addedLines": sum(line.startswith("+") for line in changed),
        "removedLines": sum(line.startswith("-") for line in changed),
    }
    ids = {"tool_call_id": call_id, "artifact_id": f"file:{path}"}
    session.tell.within(speaker, "file.changed", said, **ids)


def _agent_done(
    session: Session, call_id: str, block: dict[str, Any], about: dict[str, Any]
) -> None:
    """The call that waited for a subagent is over, and so is the subagent; a call that only set it
    off says so, and ends nothing.
    """
    agent = session.agents.get(call_id)
    if agent is None or agent not in session.tell.subagents:
        return
    if about.get("isAsync") is True or word(about, "status") == "async_launched":
        return
    if agent in session.background:
        return
    if block.get("is_error") is True:
        message = text_of(block.get("content")) or "the subagent failed"
        session.tell.subagent_end(
            agent, "subagent.failed", failureCategory="tool_error", message=message
        )
    else:
        session.tell.subagent_end(agent, "subagent.completed")
