"""The answer of an AI SDK endpoint as its client keeps it: one message, part by part.

An endpoint remembers nothing: each request carries the conversation, and an approval is answered by
sending the message back in which it was asked.
"""

from typing import Any

import msgspec

from factwire.facts import UnreadableInput, decode_json
from factwire.projection.reading import word

Part = dict[str, Any]


class AnswerMessage:
    """The message that a stream of chunks makes."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.parts: list[Part] = []
        self._texts: dict[str, Part] = {}
        self._calls: dict[str, Part] = {}
        self._inputs: dict[str, str] = {}
        self._approvals: dict[str, Part] = {}

    def row(self) -> dict[str, Any]:
        """The message as a request carries it, now."""
        return {
            "id": self.message_id,
            "role": "assistant",
            "parts": msgspec.to_builtins(self.parts),
        }

    def take(self, chunk: dict[str, Any]) -> None:
        handle = getattr(self, f"_on_{(word(chunk, 'type') or '').replace('-', '_')}", None)
        if handle is not None:
            handle(chunk)

    def asks(self, approval_id: str) -> bool:
        """Whether an approval was asked for in this message."""
        return approval_id in self._approvals

    def answer(self, approval_id: str, *, approved: bool, reason: str | None) -> None:
        """What was decided about a call stands in its part."""
        part = self._approvals[approval_id]
        part["state"] = "approval-responded"
        part["approval"] = {**part["approval"], "approved": approved}
        if reason is not None:
            part["approval"]["reason"] = reason

    def _on_start(self, chunk: dict[str, Any]) -> None:
        self.message_id = word(chunk, "messageId") or self.message_id

    def _on_start_step(self, chunk: dict[str, Any]) -> None:
        del chunk
        self.parts.append({"type": "step-start"})

    def _on_reset_step(self, chunk: dict[str, Any]) -> None:
        del chunk
        while self.parts and self.parts[-1]["type"] != "step-start":
            self.parts.pop()

    def _on_text_start(self, chunk: dict[str, Any]) -> None:
        part = self._texts[word(chunk, "id") or ""] = {"type": "text", "text": "", "state": "done"}
        self.parts.append(part)

    def _on_text_delta(self, chunk: dict[str, Any]) -> None:
        if (word(chunk, "id") or "") not in self._texts:
            self._on_text_start(chunk)
        self._texts[word(chunk, "id") or ""]["text"] += word(chunk, "delta") or ""

    def _on_tool_input_start(self, chunk: dict[str, Any]) -> None:
        self._call(chunk)

    def _on_tool_input_delta(self, chunk: dict[str, Any]) -> None:
        call_id = word(chunk, "toolCallId") or ""
        self._inputs[call_id] = self._inputs.get(call_id, "") + (
            word(chunk, "inputTextDelta") or ""
        )

    def _on_tool_input_available(self, chunk: dict[str, Any]) -> None:
        self._call(chunk).update(state="input-available", input=chunk.get("input"))

    def _on_tool_approval_request(self, chunk: dict[str, Any]) -> None:
        part, approval = self._call(chunk), word(chunk, "approvalId") or ""
        part.update(state="approval-requested", approval={"id": approval})
        if part.get("input") is None:
            part["input"] = self._streamed(part["toolCallId"])
        self._approvals[approval] = part

    def _on_tool_output_available(self, chunk: dict[str, Any]) -> None:
        if chunk.get("preliminary") is not True:
            self._call(chunk).update(state="output-available", output=chunk.get("output"))

    def _on_tool_output_error(self, chunk: dict[str, Any]) -> None:
        self._call(chunk).update(
            state="output-error", errorText=word(chunk, "errorText") or "failed"
        )

    def _on_tool_output_denied(self, chunk: dict[str, Any]) -> None:
        self._call(chunk)["state"] = "output-denied"

    def _call(self, chunk: dict[str, Any]) -> Part:
        call_id, name = word(chunk, "toolCallId") or "", word(chunk, "toolName") or "tool"
        part = self._calls.get(call_id)
        if part is None:
            dynamic = chunk.get("dynamic") is True
            kind = (
                {"type": "dynamic-tool", "toolName": name} if dynamic else {"type": f"tool-{name}"}
            )
            part = {**kind, "toolCallId": call_id, "state": "input-streaming"}
            self._calls[call_id] = part
            self.parts.append(part)
        return part

    def _streamed(self, call_id: str) -> Any:
        try:
            return decode_json(self._inputs.get(call_id, "{}"))
        except UnreadableInput:
            return {}
