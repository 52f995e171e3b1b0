"""`stream_event`: the pieces of an API message, with `--include-partial-messages`.

A piece is only a promise: the `assistant` line that follows says what the block came to. Where a
request is sent again, what the first one streamed without such a line is taken back.
"""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.sources.claude_code.session import Session, Stream

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def stream_event(session: Session, item: dict[str, Any]) -> None:
    event = table(item.get("event")) or {}
    handle = _EVENTS.get(word(event, "type") or "")
    if handle is None:
        session.tell.unknown(f"stream event {event.get('type')}", item)
        return
    handle(session, session.speaker(item), event)


def abandon(session: Session, speaker: str | None) -> None:
    """A request is sent again: what it streamed, and nothing else confirmed, never was."""
    stream = session.streams.pop(speaker, None)
    if stream is None or stream.asserted:
        return
    for call_id in stream.calls.values():
        if call_id in session.tell.tools:
            session.tell.tool_failed(call_id, "retracted", "the request was sent again")
    if stream.parts:
        session.tell.retract(stream.message_id)


def _message_start(session: Session, speaker: str | None, event: dict[str, Any]) -> None:
    message = table(event.get("message")) or {}
    session.stream(speaker, word(message, "id") or "message", word(message, "model"))


def _block_start(session: Session, speaker: str | None, event: dict[str, Any]) -> None:
    stream, index = _stream(session, speaker), _index(event)
    block = table(event.get("content_block")) or {}
    kind = word(block, "type") or ""
    if kind == "text":
        stream.parts[index] = stream.open_part = session.next_part(stream.message_id)
    elif kind in _CALLS and (call_id := word(block, "id")):
        stream.calls[index] = call_id
        session.tell.tool(call_id, word(block, "name"), subagent_id=speaker)


def _block_delta(session: Session, speaker: str | None, event: dict[str, Any]) -> None:
    delta = table(event.get("delta")) or {}
    handle = _DELTAS.get(word(delta, "type") or "")
    if handle is None:
        session.tell.unknown(f"delta {delta.get('type')}", event)
        return
    handle(session, speaker, _index(event), delta)


def _text(session: Session, speaker: str | None, index: int, delta: dict[str, Any]) -> None:
    stream, text = _stream(session, speaker), word(delta, "text")
    part = stream.parts.get(index)
    if part is None:
        part = stream.parts[index] = stream.open_part = session.next_part(stream.message_id)
    if text is not None:
        session.tell.text(stream.message_id, text, part_id=part, subagent_id=speaker)


def _thinking(session: Session, speaker: str | None, index: int, delta: dict[str, Any]) -> None:
    del index
    stream, thinking = _stream(session, speaker), word(delta, "thinking")
    if thinking is not None:
        stream.reasoned = True
        session.tell.reasoning(stream.message_id, thinking, subagent_id=speaker)


def _arguments(session: Session, speaker: str | None, index: int, delta: dict[str, Any]) -> None:
    call_id, piece = _stream(session, speaker).calls.get(index), word(delta, "partial_json")
    if call_id in session.tell.tools and piece is not None:
        session.tell.tool_args(call_id, piece)


def _block_stop(session: Session, speaker: str | None, event: dict[str, Any]) -> None:
    stream = _stream(session, speaker)
    if stream.parts.get(_index(event)) == stream.open_part:
        stream.open_part = None


def _nothing(*_: Any) -> None:
    """Nothing that anybody would miss: a signature, a sign of life, an end that shows itself."""


def _stream(session: Session, speaker: str | None) -> Stream:
    known = session.streams.get(speaker)
    return known or session.stream(speaker, "message", None)


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    return index if type(index) is int else 0


_EVENTS: Final = {
    "message_start": _message_start,
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    "content_block_stop": _block_stop,
    "message_delta": _nothing,
    "message_stop": _nothing,
    "ping": _nothing,
}
_DELTAS: Final = {
    "text_delta": _text,
    "thinking_delta": _thinking,
    "input_json_delta": _arguments,
    "signature_delta": _nothing,
    "citations_delta": _nothing,
}
