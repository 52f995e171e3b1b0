"""The converter: which line goes where."""

from typing import Any, Final

from factwire.projection.reading import number, table, word, words
from factwire.sources.claude_code.control import control_cancel, control_request, control_response
from factwire.sources.claude_code.endings import result
from factwire.sources.claude_code.messages import assistant, user
from factwire.sources.claude_code.session import Session
from factwire.sources.claude_code.streaming import stream_event
from factwire.sources.claude_code.system import system
from factwire.sources.moments import moment_of_seconds, moment_of_text
from factwire.sources.telling import Telling


class ClaudeCode:
    """Converts what one process printed, and what its host wrote to it."""

    def __init__(self, telling: Telling) -> None:
        self.session = Session(telling)

    def take(self, item: dict[str, Any]) -> None:
        kind = word(item, "type") or ""
        handle = _TYPES.get(kind)
        if "timestamp" in item:
            self.session.tell.at = moment_of_text(word(item, "timestamp")) or self.session.tell.at
        if handle is not None:
            handle(self.session, item)
        elif kind not in _QUIET:
            self.session.tell.unknown(kind, item)

    def finish(self) -> None:
        """Whatever is open now was cut off."""


def _tool_progress(session: Session, item: dict[str, Any]) -> None:
    call_id, seconds = word(item, "tool_use_id"), number(item, "elapsed_time_seconds")
    if call_id in session.tell.tools:
        session.tell.tool_progress(call_id, message=f"{seconds or 0:g} s")


def _summary(session: Session, item: dict[str, Any]) -> None:
    said = {
        "status": "running",
        "message": word(item, "summary"),
        "toolCallIds": words(item.get("preceding_tool_use_ids")),
    }
    session.tell.fact("run.status", said)


def _rate_limit(session: Session, item: dict[str, Any]) -> None:
    info = table(item.get("rate_limit_info")) or {}
    refused = word(info, "status") == "rejected"
    said = {
        "name": word(info, "rateLimitType") or "rate_limit",
        "utilization": number(info, "utilization"),
        "resetsAt": moment_of_seconds(number(info, "resetsAt")),
        "message": word(info, "status"),
    }
    session.tell.fact("rate_limit.hit" if refused else "limit.changed", said)


def _auth(session: Session, item: dict[str, Any]) -> None:
    error = word(item, "error")
    if error is not None:
        session.tell.fact("runtime.error", {"code": "authentication", "message": error})


def _reset(session: Session, item: dict[str, Any]) -> None:
    """The conversation was discarded: what was said until now is history."""
    said = {"reason": word(item, "trigger"), "conversationId": word(item, "new_conversation_id")}
    session.tell.fact("session.updated", said)


_QUIET: Final = frozenset(
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
    "system": system,
    "assistant": assistant,
    "user": user,
    "stream_event": stream_event,
    "result": result,
    "control_request": control_request,
    "control_response": control_response,
    "control_cancel_request": control_cancel,
    "tool_progress": _tool_progress,
    "tool_use_summary": _summary,
    "rate_limit_event": _rate_limit,
    "auth_status": _auth,
    "conversation_reset": _reset,
}
