"""The messages of an AG-UI conversation, as a client keeps them.

An agent of this protocol may remember nothing: each request carries the conversation, with the
calls and their results. What a run says is added event by event.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word

Message = dict[str, Any]

_TEXT: Final = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK")
_CALL: Final = ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK")


class Messages:
    """One conversation; `rows` are what the next request carries."""

    def __init__(self, rows: list[Message]) -> None:
        self.rows = rows
        self._calls: dict[str, Message] = {}
        self._latest = "message"

    def take(self, event: dict[str, Any]) -> None:
        """Add what an event says; a subagent's words are none of the conversation."""
        kind = word(event, "type") or ""
        if word(event, "subagentRunId") is not None:
            return
        if kind in _TEXT:
            self._text(event)
        elif kind in _CALL:
            self._call(event)
        elif kind == "TOOL_CALL_RESULT":
            self._result(event)
        elif kind == "MESSAGES_SNAPSHOT":
            self.rows = [row for row in map(table, listed(event.get("messages")) or ()) if row]

    def _text(self, event: dict[str, Any]) -> None:
        self._latest = word(event, "messageId") or self._latest
        row = self._row(self._latest)
        row["content"] = row.get("content", "") + (word(event, "delta") or "")

    def _call(self, event: dict[str, Any]) -> None:
        call_id = word(event, "toolCallId") or next(reversed(self._calls), "call")
        call = self._calls.get(call_id)
        if call is None:
            function = {"name": word(event, "toolCallName") or "tool", "arguments": ""}
            call = self._calls[call_id] = {"id": call_id, "type": "function", "function": function}
            row = self._row(word(event, "parentMessageId") or call_id)
            row.setdefault("toolCalls", []).append(call)
        call["function"]["arguments"] += word(event, "delta") or ""

    def _result(self, event: dict[str, Any]) -> None:
        call_id = word(event, "toolCallId") or "call"
        message_id = word(event, "messageId") or f"{call_id}:result"
        content = event.get("content") or ""
        row = {"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}
        self.rows.append(row)

    def _row(self, message_id: str) -> Message:
        for row in reversed(self.rows):
            if row.get("id") == message_id:
                return row
        row: Message = {"id": message_id, "role": "assistant"}
        self.rows.append(row)
        return row
