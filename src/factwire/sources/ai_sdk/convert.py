"""The AI SDK's UI message stream as facts, with the data parts of our own outlet read back."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from factwire.facts.json_values import object_at, objects_of, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder, add_outlet_note
from factwire.sources.source_registry import Source

PREFIX: Final = "data-factwire-"


def add_own_part(sdk: "AiSdk", item: dict[str, Any]) -> None:
    """Tell a part of ours."""
    sdk.begin_turn()
    payload = object_at(item.get("data")) or {}
    _PARTS.get((text_at(item, "type") or "").removeprefix(PREFIX), _note)(sdk, payload)


def _note(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    add_outlet_note(sdk.builder, payload)


def _on_call(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    """What a chunk cannot say of a call: whose it is, and why it failed."""
    sdk.calls[text_at(payload, "toolCallId") or ""] = payload


def _on_call_news(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    call_id, delta = text_at(payload, "toolCallId"), text_at(payload, "delta")
    if call_id in sdk.builder.tools and delta is not None:
        sdk.builder.add_tool_output(call_id, delta, text_at(payload, "stream"))


def _on_failure(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    sdk.failure = text_at(payload, "failureCategory")


def _on_action(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    action_id, status = text_at(payload, "actionId") or "", text_at(payload, "status")
    if status == "required":
        fields = {name: text_at(payload, name) for name in ("actionType", "prompt", "expiresAt")}
        value = {
            "responseSchema": object_at(payload.get("responseSchema")),
            "args": payload.get("args"),
        }
        ids = {
            "tool_call_id": text_at(payload, "toolCallId"),
            "subagent_id": text_at(payload, "subagentId"),
        }
        sdk.builder.require_action(action_id, {**fields, **value}, **ids)
    elif status == "resolved":
        answer = {"reason": text_at(payload, "reason"), "response": payload.get("response")}
        sdk.builder.resolve_action(action_id, text_at(payload, "decision") or "unknown", **answer)
    else:
        reason = text_at(payload, "reason") or "withdrawn"
        sdk.builder.cancel_action(action_id, reason, has_expired=status == "expired")


def _on_retraction(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    gone = texts_of(payload.get("messageIds"))
    if gone:
        sdk.builder.retract_messages(*gone)


def _on_subagent(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    subagent_id, status = text_at(payload, "subagentId") or "", text_at(payload, "status")
    fields = {
        name: text_at(payload, name) for name in ("title", "role", "name", "summary", "message")
    }
    if status == "started":
        about = {**fields, "objective": text_at(payload, "objective")}
        ids = {"task_id": text_at(payload, "taskId"), "turn_id": text_at(payload, "turnId")}
        sdk.builder.start_subagent(subagent_id, **ids, **about)
    elif status == "failed":
        category = text_at(payload, "failureCategory") or "subagent_error"
        sdk.builder.end_subagent(subagent_id, "subagent.failed", failureCategory=category, **fields)
    else:
        sdk.builder.end_subagent(subagent_id, "subagent.completed", **fields)


def _on_subagent_delta(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    message_id, delta = text_at(payload, "messageId") or "message", text_at(payload, "delta") or ""
    sdk.builder.add_text(message_id, delta, subagent_id=text_at(payload, "subagentId"))


def _on_subagent_text(sdk: "AiSdk", payload: dict[str, Any]) -> None:
    message_id, text = text_at(payload, "messageId") or "message", text_at(payload, "text") or ""
    sdk.builder.end_text(message_id, text, subagent_id=text_at(payload, "subagentId"))


_PARTS: Final[dict[str, Callable[["AiSdk", dict[str, Any]], None]]] = {
    "action": _on_action,
    "call": _on_call,
    "call-news": _on_call_news,
    "failure": _on_failure,
    "retraction": _on_retraction,
    "subagent": _on_subagent,
    "subagent-delta": _on_subagent_delta,
    "subagent-text": _on_subagent_text,
}


_APPROVAL: Final = "tool_approval"
_AFTER_THE_END: Final = frozenset({"finish-step", "finish", "message-metadata"})
"""Chunks that frame a message and may still follow an error or an abort that has ended it."""


class AiSdk:
    """Converts one stream; a `start` begins a turn. `calls` and `failure` are what parts of our own
    have said about calls and about the end that comes.
    """

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.steps = 0
        self.message_ids: list[str] = []
        self.chunk_digests: list[bytes] = []
        self.replayed: int | None = None
        self.calls: dict[str, dict[str, Any]] = {}
        self.failure: str | None = None
        self.is_over = False
        self.is_aside = False

    def take(self, item: dict[str, Any]) -> None:
        kind = text_at(item, "type") or ""
        if kind == "start" and self.builder.is_open:
            self.replayed = 0
        if self._is_replay(item) or (self.is_over and kind in _AFTER_THE_END):
            return
        handle = _CHUNKS.get(kind) or _data_handler(kind)
        if handle is None:
            self.builder.warn_unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        """A stream without `finish` was cut off."""

    def _is_replay(self, item: dict[str, Any]) -> bool:
        """Whether a chunk was told before the stream began anew."""
        digest = blake2b(msgspec.json.encode(item, order="deterministic"), digest_size=8).digest()
        if self.replayed is not None:
            if (
                self.replayed < len(self.chunk_digests)
                and self.chunk_digests[self.replayed] == digest
            ):
                self.replayed += 1
                return True
            self.replayed = None
        self.chunk_digests.append(digest)
        return False

    def begin_turn(self) -> None:
        self.is_over = False
        if not self.builder.is_open and not self.is_aside:
            self.builder.begin_turn()

    def find_subagent(self, call_id: str) -> str | None:
        """The subagent that a call is of."""
        return text_at(self.calls.get(call_id, {}), "subagentId")


def _data_handler(kind: str) -> "Callable[[AiSdk, dict[str, Any]], None] | None":
    if kind.startswith(PREFIX):
        return add_own_part
    return _on_data if kind.startswith("data-") else None


def _on_start(sdk: AiSdk, item: dict[str, Any]) -> None:
    if sdk.builder.is_open:
        return
    sdk.steps, sdk.chunk_digests, sdk.calls = 0, sdk.chunk_digests[-1:], {}
    ours = object_at((object_at(item.get("messageMetadata")) or {}).get("factwire")) or {}
    sdk.is_aside = ours.get("isAside") is True
    sdk.begin_turn()
    _on_metadata(sdk, item)


def _start_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    sdk.begin_turn()
    sdk.steps += 1
    sdk.message_ids = []
    sdk.builder.set_ids(step_id=f"step-{sdk.steps}")


def _end_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    sdk.message_ids = []


def _on_reset_step(sdk: AiSdk, item: dict[str, Any]) -> None:
    del item
    for message_id in sdk.message_ids:
        if message_id in sdk.builder.messages:
            sdk.builder.end_text(message_id)
    if sdk.message_ids:
        sdk.builder.add_fact("messages.snapshot", {"retractedMessageIds": sdk.message_ids})
    sdk.message_ids = []


def _on_text_start(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.message_ids.append(_read_id(item))


def _on_text_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.add_text(_read_id(item), text_at(item, "delta") or "")


def _on_text_end(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.end_text(_read_id(item))


def _on_reasoning_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.add_reasoning(_read_id(item), text_at(item, "delta") or "")


def _on_reasoning_end(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.add_fact("reasoning.completed", {}, message_id=_read_id(item))


def _on_tool_start(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    call = _call(item)
    title, subagent = text_at(item, "title"), sdk.find_subagent(call)
    sdk.builder.start_tool(call, text_at(item, "toolName"), title=title, subagent_id=subagent)


def _on_tool_delta(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.add_tool_args(_call(item), text_at(item, "inputTextDelta") or "")


def _on_tool_input(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    call = _call(item)
    sdk.builder.start_tool(
        call, text_at(item, "toolName"), item.get("input"), subagent_id=sdk.find_subagent(call)
    )


def _on_tool_input_error(sdk: AiSdk, item: dict[str, Any]) -> None:
    _on_tool_input(sdk, item)
    message = text_at(item, "errorText") or "the input does not match the tool's schema"
    sdk.builder.fail_tool(_call(item), "invalid_input", message)


def _on_tool_output(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    if item.get("preliminary") is True:
        sdk.builder.report_tool_progress(_call(item), output=item.get("output"))
    else:
        sdk.builder.complete_tool(_call(item), item.get("output"))


def _on_tool_error(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    category = text_at(sdk.calls.get(_call(item), {}), "failureCategory") or "tool_error"
    sdk.builder.fail_tool(_call(item), category, text_at(item, "errorText") or "the tool failed")


def _on_tool_denied(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.fail_tool(_call(item), "permission_denied", "it was not allowed")


def _on_approval(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    call = _call(item)
    tool = sdk.builder.tools.get(call)
    name = tool.name if tool is not None else None
    payload = {
        "actionType": _APPROVAL,
        "prompt": text_at(item, "reason") or f"Allow {name or 'the tool'}?",
        "toolName": name,
        "args": tool.args if tool is not None else None,
    }
    ids = {"tool_call_id": call, "subagent_id": sdk.find_subagent(call)}
    sdk.builder.require_action(_read_id(item, "approvalId"), payload, **ids)


def _on_approved(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    decision = "approved" if item.get("approved") is True else "denied"
    sdk.builder.resolve_action(
        _read_id(item, "approvalId"), decision, reason=text_at(item, "reason")
    )


def _on_source(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    title = text_at(item, "title", "filename")
    payload = {"kind": "citation", "title": title, "url": text_at(item, "url")}
    sdk.builder.add_fact("evidence.changed", payload, evidence_id=_read_id(item, "sourceId"))


def _on_file(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    url = text_at(item, "url") or ""
    ref = sdk.builder.keep(url.encode("utf-8", "replace"))
    payload = {"kind": "file", "mediaType": text_at(item, "mediaType"), "contentRef": ref}
    sdk.builder.add_fact(
        "artifact.changed", payload, artifact_id=f"file:{ref.rpartition(':')[2][:16]}"
    )


def _on_data(sdk: AiSdk, item: dict[str, Any]) -> None:
    """A part of the application's own; one with an id is the same thing each time."""
    sdk.begin_turn()
    kind = text_at(item, "type") or "data"
    payload = {
        "kind": kind,
        "status": "transient" if item.get("transient") is True else None,
        "data": item.get("data"),
    }
    sdk.builder.add_fact("artifact.changed", payload, artifact_id=_read_id(item) or kind)


def _on_metadata(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    metadata = object_at(item.get("messageMetadata"))
    if metadata:
        sdk.builder.add_fact("session.updated", {"metadata": metadata})


def _on_steering(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    parts = objects_of(item.get("parts"))
    text = "\n".join(text for part in parts if (text := text_at(part, "text")))
    payload = {"control": "steer", "steerId": _read_id(item), "text": text, "status": "delivered"}
    sdk.builder.add_fact("queue.changed", payload, control="steer")


def _on_error(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    category, sdk.failure = sdk.failure or "provider_error", None
    sdk.builder.fail_turn(category, text_at(item, "errorText") or "the stream ended with an error")
    sdk.is_over = True


def _on_abort(sdk: AiSdk, item: dict[str, Any]) -> None:
    sdk.begin_turn()
    sdk.builder.cancel_turn(text_at(item, "reason") or "aborted")
    sdk.is_over = True


def _on_finish(sdk: AiSdk, item: dict[str, Any]) -> None:
    _on_metadata(sdk, item)
    reason = text_at(item, "finishReason")
    sdk.is_aside = False
    if reason == "error":
        sdk.builder.fail_turn("provider_error", "the model ended with an error")
    else:
        sdk.builder.complete_turn(stopReason=reason)


def _ignore_event(sdk: AiSdk, item: dict[str, Any]) -> None:
    """A chunk that only frames others."""
    del item
    sdk.begin_turn()


def _read_id(item: dict[str, Any], name: str = "id") -> str:
    return text_at(item, name) or f"unnamed-{text_at(item, 'type') or 'part'}"


def _call(item: dict[str, Any]) -> str:
    return _read_id(item, "toolCallId")


_CHUNKS: Final = {
    "start": _on_start,
    "start-step": _start_step,
    "finish-step": _end_step,
    "reset-step": _on_reset_step,
    "text-start": _on_text_start,
    "text-delta": _on_text_delta,
    "text-end": _on_text_end,
    "reasoning-start": _ignore_event,
    "reasoning-delta": _on_reasoning_delta,
    "reasoning-end": _on_reasoning_end,
    "reasoning-file": _on_file,
    "tool-input-start": _on_tool_start,
    "tool-input-delta": _on_tool_delta,
    "tool-input-available": _on_tool_input,
    "tool-input-error": _on_tool_input_error,
    "tool-approval-request": _on_approval,
    "tool-approval-response": _on_approved,
    "tool-output-available": _on_tool_output,
    "tool-output-error": _on_tool_error,
    "tool-output-denied": _on_tool_denied,
    "source-url": _on_source,
    "source-document": _on_source,
    "file": _on_file,
    "message-metadata": _on_metadata,
    "steering-message": _on_steering,
    "error": _on_error,
    "abort": _on_abort,
    "finish": _on_finish,
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
        "reset-step": "messages.snapshot that withdraws the step's texts",
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
