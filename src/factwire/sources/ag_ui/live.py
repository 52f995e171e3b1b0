"""An agent behind an AG-UI endpoint: a run for each request, with the messages so far."""

from base64 import b64encode
from typing import Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import list_at, object_at, objects_of, text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.provider import Decision
from factwire.sources.ag_ui.convert import SOURCE, AgUi
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.remote import (
    RemoteConnection,
    RemoteDriver,
    RemoteEndpoint,
    read_endpoint,
)
from factwire.sources.kit.turn_inputs import INPUTS, ThreadMemory, past_messages, read_sdk_prompt

Message = dict[str, Any]

_TEXT: Final = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK")
_CALL: Final = ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK")


class AgUiMessages:
    """One conversation; `rows` are what the next request carries."""

    def __init__(self, rows: list[Message]) -> None:
        self.rows = rows
        self._calls: dict[str, Message] = {}
        self._latest = "message"

    def take(self, event: dict[str, Any]) -> None:
        """Add what an event says; a subagent's words are none of the conversation."""
        kind = text_at(event, "type") or ""
        if text_at(event, "subagentRunId") is not None:
            return
        if kind in _TEXT:
            self._take_text(event)
        elif kind in _CALL:
            self._take_call(event)
        elif kind == "TOOL_CALL_RESULT":
            self._take_result(event)
        elif kind == "MESSAGES_SNAPSHOT":
            self.rows = objects_of(event.get("messages"))

    def _take_text(self, event: dict[str, Any]) -> None:
        self._latest = text_at(event, "messageId") or self._latest
        row = self._find_row(self._latest)
        row["content"] = row.get("content", "") + (text_at(event, "delta") or "")

    def _take_call(self, event: dict[str, Any]) -> None:
        call_id = text_at(event, "toolCallId") or next(reversed(self._calls), "call")
        call = self._calls.get(call_id)
        if call is None:
            function = {"name": text_at(event, "toolCallName") or "tool", "arguments": ""}
            call = self._calls[call_id] = {"id": call_id, "type": "function", "function": function}
            row = self._find_row(text_at(event, "parentMessageId") or call_id)
            row.setdefault("toolCalls", []).append(call)
        call["function"]["arguments"] += text_at(event, "delta") or ""

    def _take_result(self, event: dict[str, Any]) -> None:
        call_id = text_at(event, "toolCallId") or "call"
        message_id = text_at(event, "messageId") or f"{call_id}:result"
        content = event.get("content") or ""
        row = {"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}
        self.rows.append(row)

    def _find_row(self, message_id: str) -> Message:
        for row in reversed(self.rows):
            if row.get("id") == message_id:
                return row
        row: Message = {"id": message_id, "role": "assistant"}
        self.rows.append(row)
        return row


MANIFEST: Final = CapabilityManifest(
    agent_id="ag-ui",
    title="AG-UI",
    version="1.0",
    inputs=INPUTS,
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="interrupt",
    action_types=("tool_approval", "structured_input"),
    controls=("send", "queue", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="no",
    structured_output="no",
)


class AgUiAgent(LiveAgent):
    """Runs one remote agent; what was said on a thread is remembered as it was sent."""

    def __init__(self, place: RemoteEndpoint, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=place.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self.place = place
        self.memory: ThreadMemory[list[Message]] = ThreadMemory()

    def make_driver(self, live: LiveTurn) -> "AgUiDriver":
        return AgUiDriver(live, self)


class AgUiDriver(RemoteDriver):
    """One run and, after each interrupt, the run that goes on with it."""

    def __init__(self, live: LiveTurn, owner: AgUiAgent) -> None:
        super().__init__(live, owner.place)
        self._owner = owner
        self._messages = AgUiMessages([])
        self._forms: set[str] = set()
        self._runs = 0

    async def follow(self, remote: RemoteConnection) -> None:
        memory, turn = self._owner.memory, self.live.turn
        past = memory.recall(turn)
        memory.forget(turn)
        self._messages = AgUiMessages(
            [*(past or self._past_messages()), await self._prompt_message()]
        )
        await self._run(remote, {})
        while self._converter.is_waiting:
            decisions = await self.wait_for_answers()
            entries = [self._to_resume_entry(*each) for each in decisions.items()]
            self._note_resume(entries)
            await self._run(remote, {"resume": entries})
        memory.keep(turn, self._messages.rows)

    def stop_waiting(self) -> None:
        self._converter.is_waiting = False

    @property
    def _converter(self) -> AgUi:
        return cast("AgUi", self.live.converter)

    @property
    def _ids(self) -> dict[str, str]:
        turn = self.live.turn
        run = turn.turn_id if self._runs == 1 else f"{turn.turn_id}:run-{self._runs}"
        return {"threadId": turn.thread_id, "runId": run}

    async def _run(self, remote: RemoteConnection, more: dict[str, Any]) -> None:
        self._runs += not more
        empty: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        body = {**self._ids, **empty, "messages": self._messages.rows, **more}
        async for item in remote.stream(body):
            if isinstance(item, dict):
                self._note_event(item)
            await self.live.hear(item)

    def _note_resume(self, entries: list[dict[str, Any]]) -> None:
        """What is decided is told as the run that goes on has it; not every agent repeats that."""
        parent = self._ids["runId"]
        self._runs += 1
        echo = {**self._ids, "messages": [], "resume": entries}
        begin = {"type": "RUN_STARTED", **self._ids, "parentRunId": parent, "input": echo}
        self.live.take(begin)

    def _note_event(self, event: dict[str, Any]) -> None:
        """What a run has said, and which of its questions are about no call."""
        self._messages.take(event)
        outcome = object_at(event.get("outcome")) or {}
        for each in map(object_at, list_at(outcome.get("interrupts")) or ()):
            if each is not None and text_at(each, "toolCallId") is None:
                self._forms.add(text_at(each, "id") or "")

    def _to_resume_entry(self, question: str, decision: Decision) -> dict[str, Any]:
        """An answer; a form that nobody filled in is cancelled, and a no to a call is an answer."""
        if not decision.allowed and question in self._forms:
            return {"interruptId": question, "status": "cancelled"}
        payload: Any = {"approved": decision.allowed}
        if decision.reason is not None:
            payload["reason"] = decision.reason
        if decision.allowed and decision.response is not None:
            payload = decision.response
        return {"interruptId": question, "status": "resolved", "payload": payload}

    async def _prompt_message(self) -> Message:
        content: Any = await read_sdk_prompt(self.live.turn)
        if not isinstance(content, str):
            content = [_to_part(each) for each in content]
        return {"id": f"{self.live.turn.turn_id}:prompt", "role": "user", "content": content}

    def _past_messages(self) -> list[Message]:
        return [
            {"id": f"past-{at}", "role": each.role, "content": each.text}
            for at, each in enumerate(past_messages(self.live.turn))
        ]


def agent(settings: AgentSettings) -> AgUiAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = read_endpoint(settings)
    return AgUiAgent(place, keep_raw=options.raw)


def _to_part(each: Any) -> dict[str, Any]:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    value = b64encode(each.data).decode()
    return {
        "type": "image",
        "source": {"type": "data", "value": value, "mimeType": each.media_type},
    }
