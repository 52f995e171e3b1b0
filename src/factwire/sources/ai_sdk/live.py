"""An agent behind an endpoint of the AI SDK: a request each, with the messages so far."""

from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming, UnreadableInput, decode_json
from factwire.facts.json_values import text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision
from factwire.sources.ai_sdk.convert import SOURCE
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.remote import (
    RemoteConnection,
    RemoteDriver,
    RemoteEndpoint,
    read_endpoint,
)
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import (
    INPUTS,
    ThreadMemory,
    past_messages,
    read_sdk_prompt,
    to_data_url,
)

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

    def to_row(self) -> dict[str, Any]:
        """The message as a request carries it, now."""
        return {
            "id": self.message_id,
            "role": "assistant",
            "parts": msgspec.to_builtins(self.parts),
        }

    def take(self, chunk: dict[str, Any]) -> None:
        handle = getattr(self, f"_on_{(text_at(chunk, 'type') or '').replace('-', '_')}", None)
        if handle is not None:
            handle(chunk)

    def has_question(self, approval_id: str) -> bool:
        """Whether an approval was asked for in this message."""
        return approval_id in self._approvals

    def add_answer(self, approval_id: str, *, approved: bool, reason: str | None) -> None:
        """What was decided about a call stands in its part."""
        part = self._approvals[approval_id]
        part["state"] = "approval-responded"
        part["approval"] = {**part["approval"], "approved": approved}
        if reason is not None:
            part["approval"]["reason"] = reason

    def _on_start(self, chunk: dict[str, Any]) -> None:
        self.message_id = text_at(chunk, "messageId") or self.message_id

    def _on_start_step(self, chunk: dict[str, Any]) -> None:
        del chunk
        self.parts.append({"type": "step-start"})

    def _on_reset_step(self, chunk: dict[str, Any]) -> None:
        del chunk
        while self.parts and self.parts[-1]["type"] != "step-start":
            self.parts.pop()

    def _on_text_start(self, chunk: dict[str, Any]) -> None:
        part = self._texts[text_at(chunk, "id") or ""] = {
            "type": "text",
            "text": "",
            "state": "done",
        }
        self.parts.append(part)

    def _on_text_delta(self, chunk: dict[str, Any]) -> None:
        if (text_at(chunk, "id") or "") not in self._texts:
            self._on_text_start(chunk)
        self._texts[text_at(chunk, "id") or ""]["text"] += text_at(chunk, "delta") or ""

    def _on_tool_input_start(self, chunk: dict[str, Any]) -> None:
        self._call(chunk)

    def _on_tool_input_delta(self, chunk: dict[str, Any]) -> None:
        call_id = text_at(chunk, "toolCallId") or ""
        self._inputs[call_id] = self._inputs.get(call_id, "") + (
            text_at(chunk, "inputTextDelta") or ""
        )

    def _on_tool_input_available(self, chunk: dict[str, Any]) -> None:
        self._call(chunk).update(state="input-available", input=chunk.get("input"))

    def _on_tool_approval_request(self, chunk: dict[str, Any]) -> None:
        part, approval = self._call(chunk), text_at(chunk, "approvalId") or ""
        part.update(state="approval-requested", approval={"id": approval})
        if part.get("input") is None:
            part["input"] = self._streamed_input(part["toolCallId"])
        self._approvals[approval] = part

    def _on_tool_output_available(self, chunk: dict[str, Any]) -> None:
        if chunk.get("preliminary") is not True:
            self._call(chunk).update(state="output-available", output=chunk.get("output"))

    def _on_tool_output_error(self, chunk: dict[str, Any]) -> None:
        self._call(chunk).update(
            state="output-error", errorText=text_at(chunk, "errorText") or "failed"
        )

    def _on_tool_output_denied(self, chunk: dict[str, Any]) -> None:
        self._call(chunk)["state"] = "output-denied"

    def _call(self, chunk: dict[str, Any]) -> Part:
        call_id, name = text_at(chunk, "toolCallId") or "", text_at(chunk, "toolName") or "tool"
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

    def _streamed_input(self, call_id: str) -> Any:
        try:
            return decode_json(self._inputs.get(call_id, "{}"))
        except UnreadableInput:
            return {}


Row = dict[str, Any]

MANIFEST: Final = CapabilityManifest(
    agent_id="ai-sdk",
    title="AI SDK endpoint",
    version="7",
    inputs=INPUTS,
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="interrupt",
    action_types=("tool_approval",),
    controls=("send", "queue", "stop", "approve", "reject", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="no",
    artifacts="yes",
    evidence="yes",
    sandbox="no",
    cost="no",
    structured_output="no",
)


class AiSdkAgent(LiveAgent):
    """Speaks to one endpoint; what was said on a thread is remembered as it was sent."""

    def __init__(self, place: RemoteEndpoint, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=place.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self.place = place
        self.memory: ThreadMemory[list[Row]] = ThreadMemory()

    def make_driver(self, live: LiveTurn) -> "AiSdkDriver":
        return AiSdkDriver(live, self)


class AiSdkDriver(RemoteDriver):
    """One answer, in as many streams as there were approvals, and one."""

    def __init__(self, live: LiveTurn, owner: AiSdkAgent) -> None:
        super().__init__(live, owner.place)
        self._owner = owner
        self._message = AnswerMessage(f"{live.turn.turn_id}:answer")
        self._end: Item | None = None

    async def follow(self, remote: RemoteConnection) -> None:
        memory, turn = self._owner.memory, self.live.turn
        past = memory.recall(turn)
        memory.forget(turn)
        rows = [*(past or self._past_rows()), await self._prompt_row()]
        await self._stream(remote, rows)
        while self.live.builder.actions and self._end is not None:
            await self._send_decisions()
            await self._stream(remote, [*rows, self._message.to_row()])
        if self._end is not None:
            self.live.take(self._end)
        memory.keep(turn, [*rows, self._message.to_row()])

    async def _stream(self, remote: RemoteConnection, rows: list[Row]) -> None:
        """Hear an answer; its `finish` is held back, because it may wait for an approval."""
        self._end = None
        ids = {"id": self.live.turn.thread_id, "trigger": "submit-message"}
        async for item in remote.stream({**ids, "messages": rows}):
            if isinstance(item, dict):
                self._message.take(item)
                if item.get("type") == "finish":
                    self._end = item
                    continue
            await self.live.hear(item)

    async def _send_decisions(self) -> None:
        for approval_id, decision in (await self.wait_for_answers()).items():
            allowed, reason = decision.allowed, decision.reason
            self._message.add_answer(approval_id, approved=allowed, reason=reason)
            payload = {"approvalId": approval_id, "approved": allowed, "reason": reason}
            self.live.take({"type": "tool-approval-response", **payload})

    async def answer(self, question: str, decision: Decision) -> None:
        if not self._message.has_question(question):
            raise TurnFailed(
                "decision_not_delivered", "the endpoint only accepts approvals of tool calls"
            )
        await super().answer(question, decision)

    async def _prompt_row(self) -> Row:
        content = await read_sdk_prompt(self.live.turn)
        each = [content] if isinstance(content, str) else content
        parts = [_to_part(part) for part in each]
        return {"id": f"{self.live.turn.turn_id}:prompt", "role": "user", "parts": parts}

    def _past_rows(self) -> list[Row]:
        return [
            {"id": f"past-{at}", "role": each.role, "parts": [_to_part(each.text)]}
            for at, each in enumerate(past_messages(self.live.turn))
        ]


def agent(settings: AgentSettings) -> AiSdkAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = read_endpoint(settings)
    return AiSdkAgent(place, keep_raw=options.raw)


def _to_part(each: Any) -> Row:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    return {"type": "file", "mediaType": each.media_type, "url": to_data_url(each)}
