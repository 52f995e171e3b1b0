"""The AI SDK's UI message stream: chunks of versions 5 to 7, as server-sent events.

A text of a message is told as a message of its own, because a later step may drop it: `reset-step`
takes back what its step had said. A stream that is resumed begins anew from its start; what was
told already is recognised chunk by chunk and not told again.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.sources.ai_sdk_parts import PREFIX, own_part
from factwire.sources.source import Source
from factwire.sources.telling import Telling

_APPROVAL: Final = "tool_approval"
_AFTER_THE_END: Final = frozenset({"finish-step", "finish", "message-metadata"})
"""Chunks that frame a message and may still follow an error or an abort that has ended it."""


class AiSdk:
    """Converts one stream; a `start` begins a turn. `calls` and `failure` are what parts of our own
    have said about calls and about the end that comes.
    """

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.steps = 0
        self.said: list[str] = []
        self.told: list[bytes] = []
        self.replayed: int | None = None
        self.calls: dict[str, dict[str, Any]] = {}
        self.failure: str | None = None
        self.is_over = False
        self.is_aside = False

    def take(self, item: dict[str, Any]) -> None:
        kind = word(item, "type") or ""
        if kind == "start" and self.tell.is_open:
            self.replayed = 0
        if self._is_replay(item) or (self.is_over and kind in _AFTER_THE_END):
            return
        handle = _CHUNKS.get(kind) or _data_handler(kind)
        if handle is None:
            self.tell.unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        """A stream without `finish` was cut off."""

    def _is_replay(self, item: dict[str, Any]) -> bool:
        """Whether a chunk was told before the stream began anew."""
        digest = blake2b(msgspec.json.encode(item, order="deterministic"), digest_size=8).digest()
        if self.replayed is not None:
            if self.replayed < len(self.told) and self.told[self.replayed] == digest:
                self.replayed += 1
                return True
            self.replayed = None
        self.told.append(digest)
        return False

    def begin(self) -> None:
        self.is_over = False
        if not self.tell.is_open and not self.is_aside:
            self.tell.begin()

    def whose(self, call_id: str) -> str | None:
        """The subagent that a call is of."""
        return word(self.calls.get(call_id, {}), "subagentId")


def _data_handler(kind: str) -> "Callable[[AiSdk, dict[str, Any]], None] | None":
    if kind.startswith(PREFIX):
        return own_part
    return _data if kind.startswith("data-") else None


def _start(sdk: AiSdk, item: dict[str, Any]) -> None:
    if sdk.tell.is_open:
        return
    sdk.steps, sdk.told, sdk.calls = 0, sdk.told[-1:], {}
    ours = table((table(item.get("messageMetadata")) or {}).get("factwire")) or {}
    sdk.is_aside = ours.get("isAside") is True
    sdk.begin()
    _metadata(sdk, item)


def _start_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    sdk.begin()
    sdk.steps += 1
    sdk.said = []
    sdk.tell.known(step_id=f"step-{sdk.steps}")


def _end_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    sdk.said = []


def _reset_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    for message_id in sdk.said:
        if message_id in sdk.tell.messages:
            sdk.tell.text_end(message_id)
    if sdk.said:
        sdk.tell.fact("messages.snapshot", {"retractedMessageIds": sdk.said})
    sdk.said = []


def _text_start(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.said.append(_id(item))


def _text_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.text(_id(item), word(item, "delta") or "")


def _text_end(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.text_end(_id(item))


def _reasoning_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.reasoning(_id(item), word(item, "delta") or "")


def _reasoning_end(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.fact("reasoning.completed", {}, message_id=_id(item))


def _tool_start(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    call = _call(item)
    title, subagent = word(item, "title"), sdk.whose(call)
    sdk.tell.tool(call, word(item, "toolName"), title=title, subagent_id=subagent)


def _tool_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.tool_args(_call(item), word(item, "inputTextDelta") or "")


def _tool_input(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    call = _call(item)
    sdk.tell.tool(call, word(item, "toolName"), item.get("input"), subagent_id=sdk.whose(call))


def _tool_input_error(sdk: AiSdk, item: dict[str, Any]) -> None:
    _tool_input(sdk, item)
    message = word(item, "errorText") or "the input is not of the tool's form"
    sdk.tell.tool_failed(_call(item), "invalid_input", message)


def _tool_output(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    if item.get("preliminary") is True:
        sdk.tell.tool_progress(_call(item), output=item.get("output"))
    else:
        sdk.tell.tool_result(_call(item), item.get("output"))


def _tool_error(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    category = word(sdk.calls.get(_call(item), {}), "failureCategory") or "tool_error"
    sdk.tell.tool_failed(_call(item), category, word(item, "errorText") or "the tool failed")


def _tool_denied(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.tool_failed(_call(item), "permission_denied", "it was not allowed")


def _approval(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    call = _call(item)
    tool = sdk.tell.tools.get(call)
    name = tool.name if tool is not None else None
    said = {
        "actionType": _APPROVAL,
        "prompt": word(item, "reason") or f"Allow {name or 'the tool'}?",
        "toolName": name,
        "args": tool.args if tool is not None else None,
    }
    ids = {"tool_call_id": call, "subagent_id": sdk.whose(call)}
    sdk.tell.ask(_id(item, "approvalId"), said, **ids)


def _approved(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    decision = "approved" if item.get("approved") is True else "denied"
    sdk.tell.answered(_id(item, "approvalId"), decision, reason=word(item, "reason"))


def _source(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    title = word(item, "title", "filename")
    said = {"kind": "citation", "title": title, "url": word(item, "url")}
    sdk.tell.fact("evidence.changed", said, evidence_id=_id(item, "sourceId"))


def _file(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    url = word(item, "url") or ""
    ref = sdk.tell.keep(url.encode("utf-8", "replace"))
    said = {"kind": "file", "mediaType": word(item, "mediaType"), "contentRef": ref}
    sdk.tell.fact("artifact.changed", said, artifact_id=f"file:{ref.rpartition(':')[2][:16]}")


def _data(sdk: AiSdk, item: dict[str, Any]) -> None:
    """A part of the application's own; one with an id is the same thing each time."""
    sdk.begin()
    kind = word(item, "type") or "data"
    said = {
        "kind": kind,
        "status": "transient" if item.get("transient") is True else None,
        "data": item.get("data"),
    }
    sdk.tell.fact("artifact.changed", said, artifact_id=_id(item) or kind)


def _metadata(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    metadata = table(item.get("messageMetadata"))
    if metadata:
        sdk.tell.fact("session.updated", {"metadata": metadata})


def _steering(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    parts = [part for part in map(table, listed(item.get("parts")) or ()) if part]
    text = "\n".join(text for part in parts if (text := word(part, "text")))
    said = {"control": "steer", "steerId": _id(item), "text": text, "status": "delivered"}
    sdk.tell.fact("queue.changed", said, control="steer")


def _error(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    category, sdk.failure = sdk.failure or "provider_error", None
    sdk.tell.fail(category, word(item, "errorText") or "the stream ended with an error")
    sdk.is_over = True


def _abort(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin()
    sdk.tell.cancel(word(item, "reason") or "aborted")
    sdk.is_over = True


def _finish(sdk: AiSdk, item: dict[str, Any]) -> None:
    _metadata(sdk, item)
    reason = word(item, "finishReason")
    sdk.is_aside = False
    if reason == "error":
        sdk.tell.fail("provider_error", "the model ended with an error")
    else:
        sdk.tell.complete(stopReason=reason)


def _nothing(sdk: AiSdk, item: dict[str, Any]) -> None:
    """A chunk that only frames others."""
    del item
    sdk.begin()


def _id(item: dict[str, Any], name: str = "id") -> str:
    return word(item, name) or f"unnamed-{word(item, 'type') or 'part'}"


def _call(item: dict[str, Any]) -> str:
    return _id(item, "toolCallId")


_CHUNKS: Final = {
    "start": _start,
    "start-step": _start_step,
    "finish-step": _end_step,
    "reset-step": _reset_step,
    "text-start": _text_start,
    "text-delta": _text_delta,
    "text-end": _text_end,
    "reasoning-start": _nothing,
    "reasoning-delta": _reasoning_delta,
    "reasoning-end": _reasoning_end,
    "reasoning-file": _file,
    "tool-input-start": _tool_start,
    "tool-input-delta": _tool_delta,
    "tool-input-available": _tool_input,
    "tool-input-error": _tool_input_error,
    "tool-approval-request": _approval,
    "tool-approval-response": _approved,
    "tool-output-available": _tool_output,
    "tool-output-error": _tool_error,
    "tool-output-denied": _tool_denied,
    "source-url": _source,
    "source-document": _source,
    "file": _file,
    "message-metadata": _metadata,
    "steering-message": _steering,
    "error": _error,
    "abort": _abort,
    "finish": _finish,
}

SOURCE: Final = Source(
    name="ai-sdk",
    title="AI SDK (UI message stream)",
    framing="events",
    versions="chunks of 5 to 7",
    converter=AiSdk,
    maps={
        "start, finish": "turn.submitted, turn.started, turn.completed",
        "start-step, finish-step": "the stepId of what is between them",
        "reset-step": "messages.snapshot that takes the step's texts back",
        "text-*": "model.delta, model.completed",
        "reasoning-*": "reasoning.delta, reasoning.completed",
        "tool-input-*": "tool.started, tool.args.delta, tool.args",
        "tool-output-*": "tool.progress (preliminary), tool.result, tool.failed",
        "tool-approval-*": "action.required, action.resolved",
        "source-*": "evidence.changed",
        "file, reasoning-file, data-*": "artifact.changed",
        "steering-message": "queue.changed (steer)",
        "message-metadata": "session.updated",
        "error, abort": "turn.failed, turn.canceled",
    },
    lacks=("times", "the prompt", "usage", "subagents"),
)
