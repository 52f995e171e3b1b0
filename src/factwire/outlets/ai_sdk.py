"""The AI SDK's UI message stream, as chunks of version 5, 6 or 7.

A turn is one message of the assistant, and a request to a model begins a step of it; a step does
not end while a text, a thought or a streamed input is open. Older versions refuse a chunk or a
field that they do not know, so nothing is sent to a version that it may not have: it stands in a
data part of ours (`data-factwire-…`), which our own source reads back. A subagent never speaks in
the answer: its words are data parts, and its calls are marked as its own.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from factwire.facts import Fact
from factwire.facts.json_values import text_at
from factwire.outlets.protocol_writer import (
    ActionAnswer,
    Note,
    OpenCall,
    StreamedText,
    UnansweredAction,
    WireNames,
    content_of,
    failure_details,
    has_failed,
    thing_of,
)
from factwire.outlets.translator import Translator

AiSdkVersion = Literal[5, 6, 7]

_CHUNKS_SINCE: Final = {
    "reset-step": 7,
    "steering-message": 7,
    "tool-approval-request": 6,
    "tool-approval-response": 7,
    "tool-output-denied": 6,
}
_FIELDS_SINCE: Final[dict[str, dict[str, int]]] = {
    "abort": {"reason": 6},
    "finish": {"finishReason": 6},
    "tool-approval-request": {"reason": 7},
    "tool-input-available": {"title": 6},
    "tool-input-start": {"title": 6},
}
_NONE_NEW: Final[dict[str, int]] = {}


def has_chunk(version: AiSdkVersion, kind: str) -> bool:
    """Whether a version knows a kind of chunk."""
    return version >= _CHUNKS_SINCE.get(kind, 0)


def build_chunk(version: AiSdkVersion, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A chunk with the fields that are given and that the version knows."""
    since = _FIELDS_SINCE.get(kind, _NONE_NEW)
    present = {
        name: value
        for name, value in fields.items()
        if value is not None and version >= since.get(name, 0)
    }
    return {"type": kind, **present}


ResolveRef = Callable[[str], str | None]
"""Where a client finds the content of a ref, if it can."""

_OURS: Final = "data-factwire-"
_ASSUMED: Final = "tool_error"
"""The category of a failed call of which nothing else is said."""

_FINISHES: Final = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content-filter": "content-filter",
    "refusal": "content-filter",
    "tool-calls": "tool-calls",
    "tool_use": "tool-calls",
    "interrupt": "tool-calls",
}


class _Step:
    """What stands in the step that is told: texts that count, and whether anything else does."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_more = False


class ChunkWriter:
    """The wire to one client."""

    def __init__(self, version: AiSdkVersion, resolve_ref: ResolveRef) -> None:
        self.version: AiSdkVersion = version
        self.resolve_ref = resolve_ref
        self.out: list[dict[str, Any]] = []
        self.turn_id = ""
        self.names = WireNames()
        self.texts: dict[StreamedText, str] = {}
        self.drafts: dict[StreamedText, tuple[str, list[str]]] = {}
        self.thoughts: dict[str, str] = {}
        self.inputs: dict[str, OpenCall] = {}
        self.introduced: set[str] = set()
        self.approvals: set[str] = set()
        self.current = _Step()

    def drain(self) -> list[dict[str, Any]]:
        out, self.out = self.out, []
        return out

    def emit(self, kind: str, **fields: Any) -> None:
        self.out.append(build_chunk(self.version, kind, fields))

    def has_chunk_kind(self, kind: str) -> bool:
        return has_chunk(self.version, kind)

    def data(self, name: str, data: dict[str, Any], thing: str | None = None) -> None:
        """A part of ours: a thing that is told again when it changes, or news."""
        identity = {"id": thing} if thing is not None else {"transient": True}
        self.out.append({"type": f"{_OURS}{name}", **identity, "data": data})
        self.current.has_more = self.current.has_more or thing is not None

    # The turn

    def begin_turn(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        del prompt  # The client has written it.
        self.names, self.turn_id = WireNames(), turn_id
        ids = {"threadId": fact.thread_id, "turnId": turn_id}
        metadata: dict[str, Any] = {name: value for name, value in ids.items() if value is not None}
        if is_aside:
            metadata["factwire"] = {"isAside": True}
        self.emit("start", messageId=turn_id, messageMetadata=metadata)
        self.emit("start-step")
        self.current, self.introduced = _Step(), set()

    def complete_turn(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        reason = text_at(fact.payload, "stopReason", "finishReason") if fact is not None else None
        finish = _FINISHES.get(reason, "other") if reason else "stop"
        self._close_open()
        self.emit("finish-step")
        self.emit(
            "finish", finishReason=finish, messageMetadata={"usage": usage} if usage else None
        )

    def fail_turn(
        self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]
    ) -> None:
        self._drop_open()
        self.data("failure", {**failure_details(fact, category), "message": message})
        if usage:
            self.emit("message-metadata", messageMetadata={"usage": usage})
        self.emit("error", errorText=message)

    def cancel_turn(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        del fact
        self._drop_open()
        if usage:
            self.emit("message-metadata", messageMetadata={"usage": usage})
        self.emit("abort", reason=reason)

    def pause_turn(self) -> None:
        self._close_open()
        self.emit("finish-step")
        self.emit("finish", finishReason="tool-calls")

    def _close_open(self) -> None:
        """A message that is finished has no part that still streams: what goes on, goes on in
        another one.
        """
        for text in list(self.texts):
            self._end_text(text)
        for name in self.thoughts.values():
            self.emit("reasoning-end", id=name)
        for call in list(self.inputs.values()):
            self._end_input(call)
        self._drop_open()

    def _drop_open(self) -> None:
        self.texts, self.drafts, self.thoughts, self.inputs = {}, {}, {}, {}

    def start_model_request(self, fact: Fact) -> None:
        del fact
        self._begin_next_step()

    def set_step(self, fact: Fact, name: str | None) -> None:
        del fact, name
        self._begin_next_step()

    def _begin_next_step(self) -> None:
        is_used = self.current.texts or self.current.has_more
        if is_used and not (self.texts or self.thoughts or self.inputs):
            self.emit("finish-step")
            self.emit("start-step")
            self.current = _Step()

    # What is said

    def write_text(self, fact: Fact, text: StreamedText, delta: str) -> None:
        if fact.subagent_id is not None:
            self._write_subagent_text(fact, text, delta)
            return
        text_id = self.texts.get(text)
        if text_id is None:
            text_id = self._assign_name(text)
            self.current.texts.append(text_id)
            self.emit("text-start", id=text_id)
        self.emit("text-delta", id=text_id, delta=delta)

    def _assign_name(self, text: StreamedText) -> str:
        name = self.texts[text] = self.names.assign(text.message_id, text.message_id)
        text.names.append(name)
        return name

    def _write_subagent_text(self, fact: Fact, text: StreamedText, delta: str) -> None:
        if text not in self.drafts:
            self._assign_name(text)
            self.drafts[text] = fact.subagent_id or "", []
        self.drafts[text][1].append(delta)
        fields = {"subagentId": fact.subagent_id, "messageId": self.texts[text], "delta": delta}
        self.data("subagent-delta", fields)

    def end_text(self, fact: Fact, text: StreamedText) -> None:
        del fact
        self._end_text(text)

    def _end_text(self, text: StreamedText) -> None:
        text_id, draft = self.texts.pop(text, None), self.drafts.pop(text, None)
        if text_id is None:
            return
        if draft is None:
            self.emit("text-end", id=text_id)
            return
        speaker, pieces = draft
        fields = {"subagentId": speaker, "messageId": text_id, "text": "".join(pieces)}
        self.data("subagent-text", fields, text_id)

    def names_of(self, message_id: str) -> list[str]:
        return self.names.names_of(message_id)

    def retract_texts(self, fact: Fact, names: list[str]) -> None:
        """Texts are taken back; a step of nothing else is dropped as a whole, where that exists."""
        del fact
        is_step = bool(names) and set(names) == set(self.current.texts)
        if self.has_chunk_kind("reset-step") and is_step and not self.current.has_more:
            self.emit("reset-step")
            self.current = _Step()
        elif names:
            self.data("retraction", {"messageIds": names}, f"retraction:{names[0]}")

    def write_thought(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        if fact.subagent_id is not None:
            return
        name = self.thoughts.get(thought_id)
        if name is None:
            name = self.thoughts[thought_id] = self.names.assign(f"{thought_id}:thought")
            self.emit("reasoning-start", id=name)
        if summary:
            self.emit("reasoning-delta", id=name, delta=summary)
        self.current.has_more = True

    def end_thought(self, fact: Fact, thought_id: str) -> None:
        name = self.thoughts.pop(thought_id, None)
        if name is not None and fact.subagent_id is None:
            self.emit("reasoning-end", id=name)

    # What is done

    def _introduce(self, fact: Fact, call: OpenCall) -> None:
        """A call that began in another message begins in this one as well."""
        if call.call_id not in self.introduced:
            self.start_call(fact, call)
            if call.is_whole:
                self.write_args(fact, call)

    def start_call(self, fact: Fact, call: OpenCall) -> None:
        del fact
        self.introduced.add(call.call_id)
        self.inputs[call.call_id] = call
        self.current.has_more = True
        if call.speaker is not None:
            fields = {"toolCallId": call.call_id, "subagentId": call.speaker}
            self.data("call", fields, call.call_id)
        self.emit("tool-input-start", **_call_fields(call))

    def write_args_piece(self, fact: Fact, call: OpenCall, delta: str) -> None:
        self._introduce(fact, call)
        self.emit("tool-input-delta", toolCallId=call.call_id, inputTextDelta=delta)

    def write_args(self, fact: Fact, call: OpenCall) -> None:
        del fact
        self._end_input(call)

    def _end_input(self, call: OpenCall) -> None:
        """The input of a call is whole, or nothing more of it is told for now."""
        self.inputs.pop(call.call_id, None)
        chunk = build_chunk(self.version, "tool-input-available", _call_fields(call))
        self.out.append({**chunk, "input": call.args})

    def write_progress(self, fact: Fact, call: OpenCall) -> None:
        self._introduce(fact, call)
        output = fact.payload.get("output")
        if output is not None:
            ids = {"toolCallId": call.call_id, "dynamic": True}
            self.emit("tool-output-available", **ids, output=output, preliminary=True)
        else:
            self.data("call-news", {**fact.payload, "toolCallId": call.call_id})

    def finish_call(self, fact: Fact, call: OpenCall, output: Any) -> None:
        self._introduce(fact, call)
        self.inputs.pop(call.call_id, None)
        chunk = {"type": "tool-output-available", "toolCallId": call.call_id, "dynamic": True}
        self.out.append({**chunk, "output": output})

    def fail_call(self, fact: Fact, call: OpenCall, category: str, message: str) -> None:
        self._introduce(fact, call)
        self.inputs.pop(call.call_id, None)
        if call.is_denied and self.has_chunk_kind("tool-output-denied"):
            self.emit("tool-output-denied", toolCallId=call.call_id)
            return
        if category != _ASSUMED:
            ids = {"toolCallId": call.call_id, "subagentId": call.speaker}
            fields = {name: value for name, value in ids.items() if value is not None}
            self.data("call", {**fields, "failureCategory": category}, call.call_id)
        self.emit("tool-output-error", toolCallId=call.call_id, errorText=message, dynamic=True)

    def open_action(self, fact: Fact, action: UnansweredAction, call: OpenCall | None) -> None:
        if call is None or not self.has_chunk_kind("tool-approval-request"):
            self._write_action(action, "required", action.payload)
            return
        self._introduce(fact, call)
        if call.call_id in self.inputs:
            self._end_input(call)
        self.approvals.add(action.action_id)
        ids = {"approvalId": action.action_id, "toolCallId": call.call_id}
        self.emit("tool-approval-request", **ids, reason=action.prompt)

    def close_action(self, fact: Fact, action: UnansweredAction, answer: ActionAnswer) -> None:
        del fact
        is_approval = action.action_id in self.approvals and answer.is_approval is not None
        self.approvals.discard(action.action_id)
        if is_approval and self.has_chunk_kind("tool-approval-response"):
            fields = {"approved": answer.is_approval, "reason": answer.reason}
            self.emit("tool-approval-response", approvalId=action.action_id, **fields)
            return
        details = {
            "decision": answer.decision,
            "reason": answer.reason,
            "response": answer.response,
        }
        ending = "expired" if answer.has_expired else "cancelled"
        self._write_action(action, "resolved" if answer.decision else ending, details)

    def _write_action(self, action: UnansweredAction, status: str, payload: dict[str, Any]) -> None:
        ids = {"toolCallId": action.call_id, "subagentId": action.speaker}
        fields = {name: value for name, value in {**payload, **ids}.items() if value is not None}
        action_id = action.action_id
        self.data("action", {**fields, "actionId": action_id, "status": status}, action_id)

    def start_subagent(self, fact: Fact, subagent_id: str) -> None:
        self._write_subagent(fact, subagent_id, "started")

    def end_subagent(self, fact: Fact, subagent_id: str) -> None:
        self._write_subagent(fact, subagent_id, "failed" if has_failed(fact) else "completed")

    def _write_subagent(self, fact: Fact, subagent_id: str, status: str) -> None:
        fields = {**content_of(fact), "status": status}
        if fact.turn_id not in (None, self.turn_id):
            fields["turnId"] = fact.turn_id
        self.data("subagent", fields, subagent_id)

    def write_state(self, fact: Fact) -> None:
        whole = fact.event_class == "state.snapshot"
        self.data("state", content_of(fact), "state" if whole else None)

    def write_note(self, fact: Fact, note: Note) -> None:
        handle = _NOTES.get(note.name)
        if handle is None or not handle(self, fact):
            self.data(note.name, content_of(fact), thing_of(fact, note))


def _call_fields(call: OpenCall) -> dict[str, Any]:
    """A call as a client knows it: tools of somewhere else are dynamic ones."""
    return {
        "toolCallId": call.call_id,
        "toolName": call.name,
        "title": call.title,
        "dynamic": True,
    }


def _write_source(writer: ChunkWriter, fact: Fact) -> bool:
    """Evidence that has an address is a source of the answer."""
    url, source_id = text_at(fact.payload, "url"), fact.evidence_id
    if url is None or source_id is None:
        return False
    writer.current.has_more = True
    writer.emit("source-url", sourceId=source_id, url=url, title=text_at(fact.payload, "title"))
    return True


def _write_file(writer: ChunkWriter, fact: Fact) -> bool:
    """A file that a client can fetch is shown beside being told."""
    ref, media = text_at(fact.payload, "contentRef"), text_at(fact.payload, "mediaType")
    url = writer.resolve_ref(ref) if ref is not None and media is not None else None
    if url is not None:
        writer.emit("file", url=url, mediaType=media)
    return False


def _write_steering(writer: ChunkWriter, fact: Fact) -> bool:
    """What a person has said meanwhile, once it has reached the agent."""
    payload = fact.payload
    text, steer_id = text_at(payload, "text"), text_at(payload, "steerId")
    delivered = (
        text_at(payload, "status") == "delivered" and text is not None and steer_id is not None
    )
    if not delivered or not writer.has_chunk_kind("steering-message"):
        return False
    writer.current.has_more = True
    writer.emit("steering-message", id=steer_id, parts=[{"type": "text", "text": text}])
    return True


_NOTES: Final[dict[str, Callable[[ChunkWriter, Fact], bool]]] = {
    "artifact": _write_file,
    "evidence": _write_source,
    "queue": _write_steering,
}


class AiSdkOutlet:
    """Encodes the facts of one thread; `take` gives the chunks of a fact."""

    def __init__(self, *, version: AiSdkVersion = 7, address: ResolveRef | None = None) -> None:
        self._writer = ChunkWriter(version, address or _resolve_nothing)
        self._translator = Translator(self._writer)

    def take(self, fact: Fact) -> list[dict[str, Any]]:
        self._translator.take(fact)
        return self._writer.drain()

    def finish(self) -> list[dict[str, Any]]:
        """No fact comes any more."""
        self._translator.finish()
        return self._writer.drain()


def _resolve_nothing(ref: str) -> str | None:
    del ref
    return None
