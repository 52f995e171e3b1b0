"""`assistant` and `user` lines: what was said, which tools were called, and what they gave.

One API message comes as several `assistant` lines, one a block, all with its id. A line may take
earlier lines back by their uuids; ids that nobody knows are nothing to take back.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word, words
from factwire.sources.claude_code.results import tool_result
from factwire.sources.claude_code.session import Session, Stream, blocks_of

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def assistant(session: Session, item: dict[str, Any]) -> None:
    speaker = session.speaker(item)
    message = table(item.get("message")) or {}
    take_back(session, item.get("supersedes"))
    if item.get("is_api_error_message") is True:
        _api_error(session, item)
        return
    message_id = word(message, "id") or word(item, "uuid") or "message"
    stream = session.stream(speaker, message_id, word(message, "model"))
    stream.asserted = True
    calls: list[str] = []
    for block in blocks_of(item):
        _block(session, speaker, stream, block, calls, aborted=item.get("aborted") is True)
    session.remember(item, message_id, calls)


def _block(
    session: Session,
    speaker: str | None,
    stream: Stream,
    block: dict[str, Any],
    calls: list[str],
    *,
    aborted: bool,
) -> None:
    kind = word(block, "type") or ""
    if kind == "text":
        _text(session, speaker, stream, block, aborted=aborted)
    elif kind in ("thinking", "redacted_thinking"):
        _thinking(session, speaker, stream, block)
    elif kind in _CALLS:
        call_id = word(block, "id") or ""
        calls.append(call_id)
        session.tell.tool(call_id, word(block, "name"), block.get("input"), subagent_id=speaker)
    elif kind.endswith("_tool_result"):
        tool_result(session, speaker, block, {}, None)
    else:
        session.tell.unknown(f"block {kind}", block)


def _text(
    session: Session, speaker: str | None, stream: Stream, block: dict[str, Any], *, aborted: bool
) -> None:
    part = stream.open_part or session.next_part(stream.message_id)
    stream.open_part = None
    session.tell.text_end(
        stream.message_id,
        word(block, "text") or "",
        part_id=part,
        subagent_id=speaker,
        finishReason="aborted" if aborted else None,
    )
    for place, cited in enumerate(map(table, listed(block.get("citations")) or ())):
        said = {
            "kind": "citation",
            "title": word(cited or {}, "title", "document_title"),
            "url": word(cited or {}, "url"),
        }
        session.tell.fact("evidence.changed", said, evidence_id=f"{part}:citation:{place}")


def _thinking(session: Session, speaker: str | None, stream: Stream, block: dict[str, Any]) -> None:
    """A thought that was streamed has been told; one whose words are hidden is told without."""
    if not stream.reasoned:
        thought = word(block, "thinking") or ""
        session.tell.reasoning(stream.message_id, thought, subagent_id=speaker)
    stream.reasoned = False


def _api_error(session: Session, item: dict[str, Any]) -> None:
    """The CLI speaks in the model's place: an error, and no answer."""
    texts = [text for block in blocks_of(item) if (text := word(block, "text"))]
    code = word(item, "api_error_type", "error") or "provider_error"
    message = "\n".join(texts) or "the model's API refused the request"
    session.error = code
    session.tell.fact("runtime.error", {"code": code, "message": message})


def user(session: Session, item: dict[str, Any]) -> None:
    speaker = session.speaker(item)
    take_back(session, item.get("retracted_message_uuids"))
    blocks = blocks_of(item)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    meta = {
        word(row, "id"): row
        for row in map(table, listed(item.get("tool_result_meta")) or ())
        if row
    }
    structured = item.get("tool_use_result") if len(results) == 1 else None
    for block in results:
        tool_result(session, speaker, block, meta.get(word(block, "tool_use_id")) or {}, structured)
    calls = [call for block in results if (call := word(block, "tool_use_id"))]
    session.remember(item, "", calls)
    text = "\n".join(text for block in blocks if (text := word(block, "text")))
    if text and not results:
        _said(session, speaker, item, text)


def _said(session: Session, speaker: str | None, item: dict[str, Any], text: str) -> None:
    """A text on the user's side: a subagent's task, a prompt, or what the CLI put in between."""
    if speaker is not None:
        session.tell.within(speaker, "subagent.input", {"message": text})
    elif _is_prompt(item) or (item.get("isReplay") is True and not session.tell.is_open):
        _prompt(session, text)
    elif text != session.prompt:
        session.tell.fact("context.attached", {"message": text})


def _is_prompt(item: dict[str, Any]) -> bool:
    """Whether the host wrote this line: the CLI's own have a time."""
    marked = item.get("isSynthetic") is True or item.get("isReplay") is True
    return not marked and "timestamp" not in item


def _prompt(session: Session, text: str) -> None:
    if not session.tell.is_open:
        session.begin(text)
        return
    session.waiting.append(text)
    session.tell_queue()


def take_back(session: Session, uuids: Any) -> None:
    """Messages that were sent are none any more; their calls are none either."""
    lines = [line for uuid in words(uuids) if (line := session.lines.pop(uuid, None))]
    for call_id in dict.fromkeys(call for line in lines for call in line.calls):
        if call_id in session.tell.tools:
            session.tell.tool_failed(call_id, "retracted", "the message was taken back")
    messages = dict.fromkeys(line.message_id for line in lines if line.message_id)
    if messages:
        session.tell.retract(*messages)
