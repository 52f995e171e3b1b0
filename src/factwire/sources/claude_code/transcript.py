"""The transcript of Claude Code: messages whole and streamed, results of tools, and what a
converter remembers between two lines.

Lines come from two sides: what the CLI prints, and, where the recording has it, what its host
wrote to it. The host's lines carry no time. Lines of a subagent name the call that started it.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from factwire.facts.json_values import (
    list_at,
    object_at,
    objects_of,
    text_at,
    texts_of,
    whole_number_at,
)
from factwire.sources.claude_code.session_usage import SessionUsage
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.file_changes import add_file_change, diff_hunks, diff_texts

LINES_KEPT: Final = 10_000
"""Lines whose uuid is remembered, so that a later line can withdraw them; older ones cannot be
withdrawn."""

MESSAGES_KEPT: Final = 1_000
"""Messages whose texts are counted, so that each text of a message is a separate part."""


_CONTEXT_COUNTS: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class MessageStream(msgspec.Struct):
    """The API message that somebody is writing, by the index of its blocks."""

    message_id: str
    parts: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    calls: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    open_part: str | None = None
    reasoned: bool = False
    asserted: bool = False


class TranscriptLine(msgspec.Struct, frozen=True):
    """What a line said, for when it is taken back."""

    message_id: str
    calls: tuple[str, ...]


class ClaudeSession:
    """One process of Claude Code, as far as its lines tell."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.streams: dict[str | None, MessageStream] = {}
        self.lines: dict[str, TranscriptLine] = {}
        self.texts: dict[str, int] = {}
        self.waiting: list[str] = []
        self.prompt: str | None = None
        self.initialised = False
        self.ended = False
        self.cwd: str | None = None
        self.agents: dict[str, str] = {}
        self.background: set[str] = set()
        self.shells: set[str] = set()
        self.requests: dict[str, dict[str, Any]] = {}
        self.denied: set[str] = set()
        self.refused: set[str] = set()
        self.stopping = False
        self.error: str | None = None
        self.usage: SessionUsage | None = SessionUsage()
        self.model: str | None = None
        self.context: tuple[int, int] = (0, 0)
        self.question_details: Callable[[dict[str, Any]], dict[str, Any]] = _no_details

    def begin_turn(self, prompt: str | None = None) -> None:
        """A turn begins."""
        self.builder.begin_turn(prompt)
        self.prompt = prompt
        self.ended = False
        self.reset_turn()

    def begin_next_turn(self) -> None:
        """The next turn begins, with the prompt that has waited longest, if any has."""
        prompt = self.waiting.pop(0) if self.waiting else None
        self.begin_turn(prompt)
        if prompt is not None:
            self.add_queue()

    def add_queue(self) -> None:
        rows = [{"prompt": prompt} for prompt in self.waiting]
        self.builder.add_fact("queue.changed", {"queuedTurns": rows, "queuedTurnCount": len(rows)})

    def reset_turn(self) -> None:
        """Nothing of the turn before counts any more."""
        self.initialised = self.stopping = False
        self.error = None
        self.streams.clear()
        self.denied.clear()
        self.refused.clear()

    def open_stream(self, speaker: str | None, message_id: str, model: str | None) -> MessageStream:
        """The message that a speaker is writing; another id is another message."""
        stream = self.streams.get(speaker)
        if stream is None or stream.message_id != message_id:
            stream = self.streams[speaker] = MessageStream(message_id)
            payload = {"model": model}
            self.builder.add_subagent_fact(
                speaker, "model.requested", payload, message_id=message_id
            )
        return stream

    def note_context(self, speaker: str | None, message: dict[str, Any]) -> None:
        """What the main agent's last request sent and got: that is what its context holds."""
        usage = object_at(message.get("usage"))
        if speaker is not None or usage is None:
            return
        read = sum(whole_number_at(usage, name) or 0 for name in _CONTEXT_COUNTS)
        written = whole_number_at(usage, "output_tokens") or 0
        self.model = text_at(message, "model") or self.model
        self.context = (read or self.context[0], written)

    def next_part(self, message_id: str) -> str:
        """The id of the next text of a message: the first has the message's own name."""
        count = self.texts.pop(message_id, 0)
        self.texts[message_id] = count + 1
        while len(self.texts) > MESSAGES_KEPT:
            del self.texts[next(iter(self.texts))]
        return f"{message_id}:text:{count}"

    def take_part(self, stream: MessageStream) -> str:
        """The part of a text that is whole: the one that is being streamed, or else the first that
        was and is not whole yet. Claude Code says that a text is whole before its block ends, and
        Qwen Code after all of them.
        """
        streamed = (part for part in stream.parts.values() if part in self.builder.messages)
        part = stream.open_part or next(streamed, None) or self.next_part(stream.message_id)
        stream.open_part = None
        return part

    def remember_line(self, item: dict[str, Any], message_id: str, calls: list[str]) -> None:
        uuid = text_at(item, "uuid")
        if uuid is not None:
            self.lines[uuid] = TranscriptLine(message_id, tuple(calls))
        while len(self.lines) > LINES_KEPT:
            del self.lines[next(iter(self.lines))]

    def find_speaker(self, item: dict[str, Any]) -> str | None:
        """The subagent that a line is of; its first line opens it."""
        parent, agent = text_at(item, "parent_tool_use_id"), text_at(item, "agent_id")
        speaker = agent or self.agents.get(parent or "") or parent
        if speaker is not None and speaker not in self.builder.subagents:
            about = {
                "title": text_at(item, "task_description"),
                "role": text_at(item, "subagent_type"),
                "toolCallId": parent,
            }
            self.open_agent(speaker, parent, about, alone=not self.builder.is_open)
        return speaker

    def open_agent(
        self, agent: str, call_id: str | None, about: dict[str, Any], *, alone: bool
    ) -> None:
        """A subagent begins; one that works alone has a turn of its own, which no other ends."""
        if call_id is not None:
            self.agents[call_id] = agent
        own = f"{agent}:turn" if alone else None
        self.builder.start_subagent(agent, task_id=agent, turn_id=own, **about)


def _no_details(request: dict[str, Any]) -> dict[str, Any]:
    """What a host adds to a question that it puts to somebody; a recording has no host."""
    del request
    return {}


def message_blocks(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of a line's message, as blocks; a bare text is one."""
    message = object_at(item.get("message")) or {}
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects_of(content)


def result_text(content: Any) -> str:
    """The text of what a tool gave: a text, or the texts among its blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for row in objects_of(content) if (text := text_at(row, "text")))


def output_location(path: str | None) -> dict[str, Any]:
    """Where the CLI kept an output: the path for those on its machine, and a ref for the others."""
    if path is None:
        return {}
    name = sha256(path.encode()).hexdigest()[:16]
    return {"outputFile": path, "outputRef": f"claude-code:output:{name}"}


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


def add_tool_result(
    session: ClaudeSession,
    speaker: str | None,
    block: dict[str, Any],
    meta: dict[str, Any],
    structured: Any,
) -> None:
    call_id = text_at(block, "tool_use_id") or ""
    if call_id not in session.builder.tools:
        session.builder.start_tool(call_id, None, subagent_id=speaker)
    content, about = block.get("content"), object_at(structured) or {}
    output: Any = result_text(content) or content or None
    if block.get("is_error") is True:
        category = _result_category(session, call_id, text_at(meta, "non_execution_kind") or "")
        _deny_call(session, speaker, call_id, meta, category)
        message = result_text(content) or "the tool failed"
        session.builder.fail_tool(call_id, category, message, output=output)
    else:
        _add_file_facts(session, speaker, call_id, about)
        kept = output_location(text_at(about, "persistedOutputPath"))
        session.builder.complete_tool(call_id, output, **kept)
    _end_agent(session, call_id, block, about)


def _result_category(session: ClaudeSession, call_id: str, kind: str) -> str:
    """Why a call failed. The CLI says of a call that a stop broke off that the user rejected it,
    and so it says of one that a person refused: who refused nothing has only stopped it.
    """
    if kind == "user-rejected" and session.stopping and call_id not in session.refused:
        return "interrupted"
    return _NOT_RUN.get(kind, "tool_error")


def _deny_call(
    session: ClaudeSession, speaker: str | None, call_id: str, meta: dict[str, Any], category: str
) -> None:
    if category != "permission_denied" or call_id in session.denied:
        return
    decision = object_at(meta.get("permission_decision")) or {}
    code = text_at(decision, "reason_type", "source") or text_at(meta, "non_execution_kind")
    add_denial(session, call_id, code, None, speaker)


def add_denial(
    session: ClaudeSession,
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
    tool = session.builder.tools.get(call_id)
    payload = {
        "reasonCode": code or "denied",
        "message": message,
        "toolName": name or (tool.name if tool else None),
        "decision": "deny",
    }
    session.builder.add_subagent_fact(speaker, "permission.denied", payload, tool_call_id=call_id)


def _add_file_facts(
    session: ClaudeSession, speaker: str | None, call_id: str, about: dict[str, Any]
) -> None:
    """The file that a call read or changed, as its result names it."""
    read = object_at(about.get("file")) or {}
    if path := text_at(read, "filePath"):
        ids = {"tool_call_id": call_id}
        session.builder.add_subagent_fact(speaker, "file.read", {"path": path}, **ids)
    path = text_at(about, "filePath")
    if not path or _CHANGE_FIELDS.isdisjoint(about):
        return
    change = "created" if text_at(about, "type") == "create" else "modified"
    diff = _read_diff(path, change, about)
    add_file_change(session.builder, path, change, diff, call_id=call_id, subagent_id=speaker)


_CHANGE_FIELDS: Final = frozenset({"structuredPatch", "oldString", "newString"})


def _read_diff(path: str, change: str, about: dict[str, Any]) -> str | None:
    """The diff of an edit: its hunks, or else the texts before and after, as far as the result has
    them. A new file has a text and no hunks.
    """
    stated = diff_hunks(path, change, about.get("structuredPatch"))
    if stated is not None:
        return stated
    content, old, new = (about.get(name) for name in ("content", "oldString", "newString"))
    if change == "created":
        return diff_texts(path, None, content) if isinstance(content, str) else None
    whole = about.get("originalFile")
    if isinstance(old, str) and isinstance(new, str):
        if isinstance(whole, str) and old and old in whole:
            count = -1 if about.get("replaceAll") is True else 1
            return diff_texts(path, whole, whole.replace(old, new, count))
        return diff_texts(path, old, new)
    is_written = isinstance(content, str) and isinstance(whole, str)
    return diff_texts(path, whole, content) if is_written else None


def _end_agent(
    session: ClaudeSession, call_id: str, block: dict[str, Any], about: dict[str, Any]
) -> None:
    """The call that waited for a subagent is over, and so is the subagent; a call that only set it
    off says so, and ends nothing.
    """
    agent = session.agents.get(call_id)
    if agent is None or agent not in session.builder.subagents:
        return
    if about.get("isAsync") is True or text_at(about, "status") == "async_launched":
        return
    if agent in session.background:
        return
    if block.get("is_error") is True:
        message = result_text(block.get("content")) or "the subagent failed"
        session.builder.end_subagent(
            agent, "subagent.failed", failureCategory="tool_error", message=message
        )
    else:
        session.builder.end_subagent(agent, "subagent.completed")


_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def on_assistant(session: ClaudeSession, item: dict[str, Any]) -> None:
    speaker = session.find_speaker(item)
    message = object_at(item.get("message")) or {}
    retract_lines(session, item.get("supersedes"))
    if item.get("is_api_error_message") is True:
        _note_api_error(session, item)
        return
    message_id = text_at(message, "id") or text_at(item, "uuid") or "message"
    stream = session.open_stream(speaker, message_id, text_at(message, "model"))
    stream.asserted = True
    session.note_context(speaker, message)
    calls: list[str] = []
    for block in message_blocks(item):
        _add_block(session, speaker, stream, block, calls, aborted=item.get("aborted") is True)
    session.remember_line(item, message_id, calls)


def _add_block(
    session: ClaudeSession,
    speaker: str | None,
    stream: MessageStream,
    block: dict[str, Any],
    calls: list[str],
    *,
    aborted: bool,
) -> None:
    kind = text_at(block, "type") or ""
    if kind == "text":
        _add_text_block(session, speaker, stream, block, aborted=aborted)
    elif kind in ("thinking", "redacted_thinking"):
        _add_thinking_block(session, speaker, stream, block)
    elif kind in _CALLS:
        call_id = text_at(block, "id") or ""
        calls.append(call_id)
        session.builder.start_tool(
            call_id, text_at(block, "name"), block.get("input"), subagent_id=speaker
        )
    elif kind.endswith("_tool_result"):
        add_tool_result(session, speaker, block, {}, None)
    else:
        session.builder.warn_unknown(f"block {kind}", block)


def _add_text_block(
    session: ClaudeSession,
    speaker: str | None,
    stream: MessageStream,
    block: dict[str, Any],
    *,
    aborted: bool,
) -> None:
    part = session.take_part(stream)
    session.builder.end_text(
        stream.message_id,
        text_at(block, "text") or "",
        part_id=part,
        subagent_id=speaker,
        finishReason="aborted" if aborted else None,
    )
    for place, cited in enumerate(map(object_at, list_at(block.get("citations")) or ())):
        payload = {
            "kind": "citation",
            "title": text_at(cited or {}, "title", "document_title"),
            "url": text_at(cited or {}, "url"),
        }
        session.builder.add_fact(
            "evidence.changed", payload, evidence_id=f"{part}:citation:{place}"
        )


def _add_thinking_block(
    session: ClaudeSession, speaker: str | None, stream: MessageStream, block: dict[str, Any]
) -> None:
    """A thought that was streamed has been told; one whose words are hidden is told without."""
    if not stream.reasoned:
        thought = text_at(block, "thinking") or ""
        session.builder.add_reasoning(stream.message_id, thought, subagent_id=speaker)
    stream.reasoned = False


def _note_api_error(session: ClaudeSession, item: dict[str, Any]) -> None:
    """The CLI speaks in the model's place: an error, and no answer."""
    texts = [text for block in message_blocks(item) if (text := text_at(block, "text"))]
    code = text_at(item, "api_error_type", "error") or "provider_error"
    message = "\n".join(texts) or "the model's API refused the request"
    session.error = code
    session.builder.add_fact("runtime.error", {"code": code, "message": message})


def on_user(session: ClaudeSession, item: dict[str, Any]) -> None:
    speaker = session.find_speaker(item)
    retract_lines(session, item.get("retracted_message_uuids"))
    blocks = message_blocks(item)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    meta = {
        text_at(row, "id"): row
        for row in map(object_at, list_at(item.get("tool_result_meta")) or ())
        if row
    }
    structured = item.get("tool_use_result") if len(results) == 1 else None
    for block in results:
        add_tool_result(
            session, speaker, block, meta.get(text_at(block, "tool_use_id")) or {}, structured
        )
    calls = [call for block in results if (call := text_at(block, "tool_use_id"))]
    session.remember_line(item, "", calls)
    text = "\n".join(text for block in blocks if (text := text_at(block, "text")))
    if text and not results:
        _add_user_text(session, speaker, item, text)


def _add_user_text(
    session: ClaudeSession, speaker: str | None, item: dict[str, Any], text: str
) -> None:
    """A text on the user's side: a subagent's task, a prompt, or what the CLI put in between."""
    if speaker is not None:
        session.builder.add_subagent_fact(speaker, "subagent.input", {"message": text})
    elif _is_prompt(item) or (item.get("isReplay") is True and not session.builder.is_open):
        _take_prompt(session, text)
    elif text != session.prompt:
        session.builder.add_fact("context.attached", {"message": text})


def _is_prompt(item: dict[str, Any]) -> bool:
    """Whether the host wrote this line: the CLI's own have a time."""
    marked = item.get("isSynthetic") is True or item.get("isReplay") is True
    return not marked and "timestamp" not in item


def _take_prompt(session: ClaudeSession, text: str) -> None:
    if not session.builder.is_open:
        session.begin_turn(text)
        return
    session.waiting.append(text)
    session.add_queue()


def retract_lines(session: ClaudeSession, uuids: Any) -> None:
    """Messages that were sent are none any more; their calls are none either."""
    lines = [line for uuid in texts_of(uuids) if (line := session.lines.pop(uuid, None))]
    for call_id in dict.fromkeys(call for line in lines for call in line.calls):
        if call_id in session.builder.tools:
            session.builder.fail_tool(call_id, "retracted", "the message was withdrawn")
    messages = dict.fromkeys(line.message_id for line in lines if line.message_id)
    if messages:
        session.builder.retract_messages(*messages)


def on_stream_event(session: ClaudeSession, item: dict[str, Any]) -> None:
    event = object_at(item.get("event")) or {}
    handle = _EVENTS.get(text_at(event, "type") or "")
    if handle is None:
        session.builder.warn_unknown(f"stream event {event.get('type')}", item)
        return
    handle(session, session.find_speaker(item), event)


def abandon_stream(session: ClaudeSession, speaker: str | None) -> None:
    """A request is sent again: what it streamed, and nothing else confirmed, never was."""
    stream = session.streams.pop(speaker, None)
    if stream is None or stream.asserted:
        return
    for call_id in stream.calls.values():
        if call_id in session.builder.tools:
            session.builder.fail_tool(call_id, "retracted", "the request was sent again")
    if stream.parts:
        session.builder.retract_messages(stream.message_id)


def _on_message_start(session: ClaudeSession, speaker: str | None, event: dict[str, Any]) -> None:
    message = object_at(event.get("message")) or {}
    session.open_stream(speaker, text_at(message, "id") or "message", text_at(message, "model"))


def _on_message_delta(session: ClaudeSession, speaker: str | None, event: dict[str, Any]) -> None:
    session.note_context(speaker, event)


def _on_block_start(session: ClaudeSession, speaker: str | None, event: dict[str, Any]) -> None:
    stream, index = _find_stream(session, speaker), _block_index(event)
    block = object_at(event.get("content_block")) or {}
    kind = text_at(block, "type") or ""
    if kind == "text":
        stream.parts[index] = stream.open_part = session.next_part(stream.message_id)
    elif kind in _CALLS and (call_id := text_at(block, "id")):
        stream.calls[index] = call_id
        session.builder.start_tool(call_id, text_at(block, "name"), subagent_id=speaker)


def _on_block_delta(session: ClaudeSession, speaker: str | None, event: dict[str, Any]) -> None:
    delta = object_at(event.get("delta")) or {}
    handle = _DELTAS.get(text_at(delta, "type") or "")
    if handle is None:
        session.builder.warn_unknown(f"delta {delta.get('type')}", event)
        return
    handle(session, speaker, _block_index(event), delta)


def _on_text(
    session: ClaudeSession, speaker: str | None, index: int, delta: dict[str, Any]
) -> None:
    stream, text = _find_stream(session, speaker), text_at(delta, "text")
    part = stream.parts.get(index)
    if part is None:
        part = stream.parts[index] = stream.open_part = session.next_part(stream.message_id)
    if text is not None:
        session.builder.add_text(stream.message_id, text, part_id=part, subagent_id=speaker)


def _on_thinking(
    session: ClaudeSession, speaker: str | None, index: int, delta: dict[str, Any]
) -> None:
    del index
    stream, thinking = _find_stream(session, speaker), text_at(delta, "thinking")
    if thinking is not None:
        stream.reasoned = True
        session.builder.add_reasoning(stream.message_id, thinking, subagent_id=speaker)


def _on_arguments(
    session: ClaudeSession, speaker: str | None, index: int, delta: dict[str, Any]
) -> None:
    call_id, piece = _find_stream(session, speaker).calls.get(index), text_at(delta, "partial_json")
    if call_id in session.builder.tools and piece is not None:
        session.builder.add_tool_args(call_id, piece)


def _on_block_stop(session: ClaudeSession, speaker: str | None, event: dict[str, Any]) -> None:
    stream = _find_stream(session, speaker)
    if stream.parts.get(_block_index(event)) == stream.open_part:
        stream.open_part = None


def _ignore_event(*_: Any) -> None:
    """Nothing that anybody would miss: a signature, a sign of life, an end that shows itself."""


def _find_stream(session: ClaudeSession, speaker: str | None) -> MessageStream:
    known = session.streams.get(speaker)
    return known or session.open_stream(speaker, "message", None)


def _block_index(event: dict[str, Any]) -> int:
    index = event.get("index")
    return index if type(index) is int else 0


_EVENTS: Final = {
    "message_start": _on_message_start,
    "content_block_start": _on_block_start,
    "content_block_delta": _on_block_delta,
    "content_block_stop": _on_block_stop,
    "message_delta": _on_message_delta,
    "message_stop": _ignore_event,
    "ping": _ignore_event,
}
_DELTAS: Final = {
    "text_delta": _on_text,
    "thinking_delta": _on_thinking,
    "input_json_delta": _on_arguments,
    "signature_delta": _ignore_event,
    "citations_delta": _ignore_event,
}
