"""A remote agent of A2A 1.0, over JSON-RPC: its task is worked on by a remote teammate.

A task that needs something ends its stream; the answer is a message to the same task, whose stream
goes on with it. The next turn of a thread is in the same context. A turn that is cancelled cancels
the task, and an answer that is refused does so too, because the protocol has no other no.
"""

from itertools import count
from typing import Any, Final, TypeGuard, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.provider import Decision
from factwire.sources.a2a.convert import SOURCE, A2a
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.remote import (
    RemoteConnection,
    RemoteDriver,
    RemoteEndpoint,
    read_endpoint,
)
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import PromptPart, TextPrompt, prompt_text, read_prompt

_HEADERS: Final = {"A2A-Version": "1.0"}

MANIFEST: Final = CapabilityManifest(
    agent_id="a2a",
    title="A2A",
    version="1.0",
    inputs=("text", "document", "workspace"),
    streaming=Streaming(text="no", reasoning="no", tool_args="no", tool_output="no"),
    approvals="interrupt",
    action_types=("clarification", "credential_request"),
    controls=("send", "queue", "stop", "answer", "retry"),
    topologies=("remote_teammate",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="no",
    cost="no",
    structured_output="no",
)


class A2aAgent(LiveAgent):
    """Runs tasks of one remote agent."""

    def __init__(self, place: RemoteEndpoint, *, keep_raw: bool = False) -> None:
        super().__init__(
            SOURCE, msgspec.structs.replace(MANIFEST, title=place.title), keep_raw=keep_raw
        )
        self._place = place

    def make_driver(self, live: LiveTurn) -> "A2aDriver":
        return A2aDriver(live, self._place)


class A2aDriver(RemoteDriver):
    """One task."""

    def __init__(self, live: LiveTurn, place: RemoteEndpoint) -> None:
        super().__init__(live, place)
        self._ids = count(1)
        self._task: str | None = None
        self._context = live.agent_session

    async def follow(self, remote: RemoteConnection) -> None:
        turn = self.live.turn
        prompt = await read_prompt(
            turn.prompt, turn.input, self.live.host.resources.blobs, images=False
        )
        await self._send(
            remote, "\n\n".join(prompt_text(each) for each in prompt if _is_text(each))
        )
        while self._converter.is_waiting:
            if not self.live.builder.actions:
                raise self.silence_failure()
            decisions = await self.wait_for_answers()
            if not all(decision.allowed for decision in decisions.values()):
                await self.cancel_remote(remote)
                self.stop_waiting()
                return
            for question, decision in decisions.items():
                self.live.builder.resolve_action(question, decision.decision)
            await self._send(remote, "\n".join(map(_to_answer, decisions.values())))

    def stop_waiting(self) -> None:
        self._converter.is_waiting = False

    @property
    def _converter(self) -> A2a:
        return cast("A2a", self.live.converter)

    async def cancel_remote(self, remote: RemoteConnection) -> None:
        """The task is cancelled, as far as the agent does that."""
        if self._task is not None:
            await self._follow_stream(remote, "CancelTask", {"id": self._task})

    async def _send(self, remote: RemoteConnection, text: str) -> None:
        message: dict[str, Any] = {
            "messageId": self.live.host.mint.ids("msg"),
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        if self._context is not None:
            message["contextId"] = self._context
        if self._task is not None:
            message["taskId"] = self._task
        await self._follow_stream(remote, "SendStreamingMessage", {"message": message})

    async def _follow_stream(
        self, remote: RemoteConnection, method: str, params: dict[str, Any]
    ) -> None:
        call = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        async for item in remote.stream(call, **_HEADERS):
            self._note_task(item)
            await self.live.hear(_unwrap_response(item, method))

    def _note_task(self, item: Item) -> None:
        """What the other side calls its task and the conversation."""
        result = object_at(item.get("result")) if isinstance(item, dict) else None
        for kind, name in (
            ("task", "id"),
            ("statusUpdate", "taskId"),
            ("artifactUpdate", "taskId"),
        ):
            payload = object_at((result or {}).get(kind))
            if payload is not None:
                self._task = text_at(payload, name) or self._task
                self._remember_context(text_at(payload, "contextId"))

    def _remember_context(self, context: str | None) -> None:
        if context is not None and context != self._context:
            self._context = context
            self.live.builder.set_agent_session(context)


def agent(settings: AgentSettings) -> A2aAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = read_endpoint(settings)
    return A2aAgent(place, keep_raw=options.raw)


def _unwrap_response(item: Item, method: str) -> Item:
    """A cancelled task is the bare result of its request."""
    if method != "CancelTask" or not isinstance(item, dict) or "result" not in item:
        return item
    return {"task": item["result"]}


def _is_text(each: PromptPart) -> TypeGuard[TextPrompt]:
    return isinstance(each, TextPrompt)


def _to_answer(decision: Decision) -> str:
    if isinstance(decision.response, str) and decision.response:
        return decision.response
    payload = object_at(decision.response)
    text = text_at(payload, "text", "answer", "value") if payload else None
    return text or decision.reason or decision.decision
