"""Messages of LangChain, whole or in chunks, as LangGraph streams and stores them.

A graph hands the same message over several times: in chunks while it is written, in the update of
its node, in the values. It is told once, by its id.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.recorded_runs import note_usage, parsed, place_of, text_of
from factwire.sources.telling import Telling


class Messages:
    """Tells messages; `told` has those that are whole, `calls` the pieces of open calls."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.told: set[str] = set()
        self.calls: dict[tuple[str, int], tuple[str, list[str]]] = {}

    def take(self, message: dict[str, Any], subagent_id: str | None) -> None:
        """Tell a message or a chunk; what a person or a system prompt says is no news."""
        handle = _KINDS.get(word(message, "type") or "")
        if handle is not None:
            handle(self, message, subagent_id)


def _chunk(messages: Messages, chunk: dict[str, Any], subagent_id: str | None) -> None:
    message_id = word(chunk, "id") or "message"
    for block in map(table, listed(chunk.get("content")) or ()):
        if block and word(block, "type") in _REASONING:
            delta = word(block, "reasoning", "thinking", "text") or ""
            messages.tell.reasoning(message_id, delta, subagent_id=subagent_id)
    delta = _words(chunk)
    if delta:
        messages.tell.text(message_id, delta, subagent_id=subagent_id)
    for call in map(table, listed(chunk.get("tool_call_chunks")) or ()):
        _call_chunk(messages, message_id, call or {}, subagent_id)
    note_usage(messages.tell, chunk.get("usage_metadata"))
    if word(chunk, "chunk_position") == "last":
        _end(messages, message_id)


def _call_chunk(
    messages: Messages, message_id: str, call: dict[str, Any], subagent_id: str | None
) -> None:
    """A piece of a call; only the first has its id."""
    key = (message_id, place_of(call, "index"))
    call_id = word(call, "id")
    if call_id is not None:
        messages.calls[key] = (call_id, [])
        messages.tell.tool(call_id, word(call, "name"), subagent_id=subagent_id)
    known, delta = messages.calls.get(key), word(call, "args")
    if known is not None and delta:
        known[1].append(delta)
        messages.tell.tool_args(known[0], delta)


def _end(messages: Messages, message_id: str) -> None:
    messages.told.add(message_id)
    if message_id in messages.tell.messages:
        messages.tell.text_end(message_id)
    for key in [key for key in messages.calls if key[0] == message_id]:
        call_id, pieces = messages.calls.pop(key)
        if call_id in messages.tell.tools:
            messages.tell.tool(call_id, None, parsed("".join(pieces)))


def _whole(messages: Messages, message: dict[str, Any], subagent_id: str | None) -> None:
    message_id = word(message, "id") or "message"
    if message_id in messages.told:
        return
    is_news = message_id not in messages.tell.messages
    _end(messages, message_id)
    text = _words(message)
    if is_news:
        note_usage(messages.tell, message.get("usage_metadata"))
        if text:
            messages.tell.text_end(message_id, text, subagent_id=subagent_id)
    for call in map(table, listed(message.get("tool_calls")) or ()):
        call_id = word(call or {}, "id")
        if call and call_id:
            messages.tell.tool(
                call_id, word(call, "name"), call.get("args"), subagent_id=subagent_id
            )


def _tool(messages: Messages, message: dict[str, Any], subagent_id: str | None) -> None:
    del subagent_id
    message_id, call_id = word(message, "id"), word(message, "tool_call_id") or "call"
    name = message_id or f"{call_id}:result"
    if name in messages.told:
        return
    messages.told.add(name)
    messages.tell.tool(call_id, word(message, "name"))
    if word(message, "status") == "error":
        reason = text_of(message.get("content")) or "the tool failed"
        messages.tell.tool_failed(call_id, "tool_error", reason)
    else:
        messages.tell.tool_result(call_id, message.get("content"))


def _words(message: dict[str, Any]) -> str:
    """The text of a message, without its reasoning."""
    content = message.get("content")
    blocks = listed(content)
    if blocks is None:
        return text_of(content)
    spoken = [block for block in blocks if word(table(block) or {}, "type") not in _REASONING]
    return text_of(spoken)


_REASONING: Final = ("reasoning", "thinking")
_KINDS: Final = {"AIMessageChunk": _chunk, "ai": _whole, "tool": _tool}
