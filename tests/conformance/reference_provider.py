"""The reference: an agent that keeps every rule, to be taken as it is or spoilt."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import msgspec

from factwire.facts import CapabilityManifest, Fact
from factwire.projection import Projection, ThreadReadModel, thread_read_model
from factwire.runtime import (
    CancelTurn,
    Decision,
    DecisionRequest,
    ReadThread,
    RespondAction,
    StartTurn,
)
from factwire.runtime.agents import find_pending_call

PROMPTS = {
    "text": "say something",
    "tool": "count",
    "approval": "deploy",
    "failure": "break",
    "cancel": "talk on",
}
ANSWER = ("Two words ", "or three.")
BIG = b"1234567\n" * 10_000


class Reference:
    """Says, counts, deploys, breaks and talks on; keeps its own thread."""

    conformance_prompts: ClassVar[dict[str, str]] = PROMPTS
    manifest = CapabilityManifest(
        agent_id="reference",
        title="Keeps every rule",
        approvals="inline",
        action_types=("tool_approval",),
        controls=("send", "stop", "approve", "reject"),
        cancel="yes",
        resume="yes",
    )

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._threads: dict[str, Projection] = {}
        self._sequence = 0

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        self._stopping.clear()
        self._sequence = 0
        script = {text: name for name, text in PROMPTS.items()}[turn.prompt]
        async for fact in getattr(self, f"_{script}")(turn):
            for item in self.spoilt(turn, fact):
                if isinstance(item, Fact):
                    self._note(turn, item)
                yield item

    def spoilt(self, turn: StartTurn, fact: Fact) -> list[Any]:
        """What is yielded in place of a fact that is right."""
        del turn
        return [fact]

    def build_fact(
        self, turn: StartTurn, event_class: str, payload: dict[str, Any] | None = None, **ids: Any
    ) -> Fact:
        return turn.host.mint.fact(turn.host.scope, event_class, payload, **ids)

    def assign_sequence(self, fact: Fact) -> Fact:
        self._sequence += 1
        return msgspec.structs.replace(fact, sequence=self._sequence)

    async def _text(self, turn: StartTurn) -> AsyncIterator[Fact]:
        ids = {"message_id": f"msg_{turn.turn_id}"}
        for piece in ANSWER:
            yield self.assign_sequence(
                self.build_fact(turn, "model.delta", {"delta": piece}, **ids)
            )
        whole = {"text": "".join(ANSWER)}
        yield self.assign_sequence(self.build_fact(turn, "model.completed", whole, **ids))
        yield self.assign_sequence(self.build_fact(turn, "turn.completed"))

    async def _tool(self, turn: StartTurn) -> AsyncIterator[Fact]:
        call = {"tool_call_id": f"call_{turn.turn_id}"}
        ref = await turn.host.resources.blobs.put(BIG, kind="output")
        yield self.build_fact(turn, "tool.started", {"toolName": "seq"}, **call)
        yield self.build_fact(
            turn, "tool.result", {"summary": "counted", "outputRef": ref.ref}, **call
        )
        yield self.build_fact(turn, "turn.completed")

    async def _approval(self, turn: StartTurn) -> AsyncIterator[Fact]:
        call = {"tool_call_id": f"call_{turn.turn_id}"}
        pending = find_pending_call(turn)
        if pending is not None:
            decision = await turn.host.await_open(pending.action.action_id)
        else:
            yield self.build_fact(turn, "tool.started", {"toolName": "deploy"}, **call)
            decision = await self.ask(turn, call["tool_call_id"])
        for fact in self.deploy(turn, decision, call):
            yield fact
        yield self.build_fact(turn, "turn.completed")

    async def ask(self, turn: StartTurn, call: str) -> Decision:
        request = DecisionRequest(
            action_type="tool_approval",
            prompt="Deploy?",
            shown="make deploy",
            args_hash="sha256:1",
            tool_call_id=call,
            tool_name="deploy",
        )
        return await turn.host.ask(request)

    def deploy(self, turn: StartTurn, decision: Decision, call: dict[str, str]) -> list[Fact]:
        if decision.allowed:
            return [self.build_fact(turn, "tool.result", {"summary": "deployed"}, **call)]
        failure = {"failureCategory": "permission_denied", "message": "not allowed"}
        return [self.build_fact(turn, "tool.failed", failure, **call)]

    async def _failure(self, turn: StartTurn) -> AsyncIterator[Fact]:
        failure = {"failureCategory": "quota_exceeded", "recoveryHint": "Wait an hour."}
        yield self.build_fact(turn, "turn.failed", failure)

    async def _cancel(self, turn: StartTurn) -> AsyncIterator[Fact]:
        yield self.build_fact(
            turn, "model.delta", {"delta": "And "}, message_id=f"msg_{turn.turn_id}"
        )
        await self._stopping.wait()
        yield self.build_fact(turn, "turn.canceled", {"reason": "told to"})

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        del cancel
        self._stopping.set()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        del respond
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        known = self._threads.get(read.thread_id)
        return None if known is None else thread_read_model(known.state)

    def _note(self, turn: StartTurn, fact: Fact) -> None:
        if self._threads.get(turn.thread_id) is None or fact.sequence == 1:
            self._threads = {turn.thread_id: Projection(turn.thread_id)}
        self._threads[turn.thread_id].apply(msgspec.structs.replace(fact, sequence=None))


class Fresh(Reference):
    """Each trial has a thread of the same name; what was noted of the last one is forgotten."""

    def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        self._threads = {}
        return super().start_turn(turn)


class Keeps(Fresh):
    """The reference."""


class Promptless(Fresh):
    """The reference, except that it does not say how to ask it for anything."""

    conformance_prompts: ClassVar[dict[str, str]] = {}


class AsksByFact(Fresh):
    """The reference, except that it asks in its own stream and is told by `respond_action`."""

    manifest = msgspec.structs.replace(Reference.manifest, resume="no")

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[str, asyncio.Future[Decision]] = {}

    async def _approval(self, turn: StartTurn) -> AsyncIterator[Fact]:
        call, action = {"tool_call_id": f"call_{turn.turn_id}"}, f"act_{turn.turn_id}"
        self._answers[action] = asyncio.get_running_loop().create_future()
        yield self.build_fact(turn, "tool.started", {"toolName": "deploy"}, **call)
        request = {"actionType": "tool_approval", "prompt": "Deploy?", "command": "make deploy"}
        yield self.build_fact(turn, "action.required", request, action_id=action, **call)
        for fact in self.deploy(turn, await self._answers[action], call):
            yield fact
        yield self.build_fact(turn, "turn.completed")

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        self._answers[respond.decision.action_id].set_result(respond.decision)
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        del read
        return None
