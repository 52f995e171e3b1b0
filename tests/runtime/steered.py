"""Agents that can be steered, that fail as often as they are told, and that ask by their stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from factwire.facts import CapabilityManifest, Fact
from factwire.journal import Journal
from factwire.journal.blobs import BlobStore, MemoryBlobs
from factwire.journal.protocol import open_journal
from factwire.runtime import (
    Provider,
    RespondAction,
    Runtime,
    StartTurn,
    TurnFailed,
    TurnSettings,
)
from tests.runtime.agents import WAIT, Agent, Script, make_fact


class Swapped(Agent):
    """An agent whose script can be another one from its next turn on."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.script = script

    def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        self.started.append(turn)
        return self.script(turn)


class Steerable(Swapped):
    """An agent that says of itself that it can be steered."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.manifest = msgspec.structs.replace(self.manifest, steer="yes")


class Listener:
    """Works until it was told so many things, and says each."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.heard: list[str] = []
        self.proceed = asyncio.Event()
        self.proceed.set()

    async def __call__(self, turn: StartTurn) -> AsyncIterator[Fact]:
        host, heard = turn.host, 0
        yield make_fact(
            host, "model.completed", {"text": "Working."}, message_id=f"a-{turn.turn_id}"
        )
        while heard < self.count and turn.prompt == "work":
            await host.wait_for_steer()
            await self.proceed.wait()
            for steer in await host.take_steers():
                heard += 1
                self.heard.append(steer.text)
                answer = {"text": f"Heard {steer.text}."}
                yield make_fact(host, "model.completed", answer, message_id=f"h-{steer.steer_id}")
        yield make_fact(host, "turn.completed")


class Failing:
    """Fails a number of times, then says that it worked; `tool` is used before each failure."""

    def __init__(self, times: int, category: str = "rate_limited", tool: str | None = None) -> None:
        self.times = times
        self.category = category
        self.tool = tool
        self.tried: list[StartTurn] = []

    async def __call__(self, turn: StartTurn) -> AsyncIterator[Fact]:
        self.tried.append(turn)
        if self.tool is not None:
            call = f"call-{turn.turn_id}"
            yield make_fact(turn.host, "tool.started", {"toolName": self.tool}, tool_call_id=call)
            yield make_fact(turn.host, "tool.result", {"summary": "done"}, tool_call_id=call)
        if len(self.tried) <= self.times:
            raise TurnFailed(self.category, "not now", "Wait.")
        yield make_fact(turn.host, "turn.completed")


class Remote:
    """An agent elsewhere: asks by its stream, and goes on once it has the decision."""

    manifest = CapabilityManifest(agent_id="remote", title="Remote", resume="yes")

    def __init__(self, **fields: Any) -> None:
        self.request_fields = fields
        self.responses: list[RespondAction] = []
        self.error: Exception | None = None
        self.repeats = False
        self.fact: Fact | None = None
        self._arrived = asyncio.Event()

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        host = turn.host
        if not turn.resumed:
            yield make_fact(host, "tool.started", {"toolName": "deploy"}, tool_call_id="call")
        request = {"prompt": "Deploy?", "command": "make deploy", **self.request_fields}
        yield make_fact(host, "action.required", request, action_id="act", tool_call_id="call")
        await self._arrived.wait()
        decision = self.responses[-1].decision
        if self.repeats:
            again = {"decision": decision.decision, "decidedBy": "remote"}
            yield make_fact(host, "action.resolved", again, action_id="act", tool_call_id="call")
        if decision.allowed:
            yield make_fact(host, "tool.result", {"summary": "deployed"}, tool_call_id="call")
        else:
            no = {"failureCategory": "permission_denied"}
            yield make_fact(host, "tool.failed", no, tool_call_id="call")
        yield make_fact(host, "turn.completed")

    async def cancel_turn(self, cancel: object) -> Fact | None:
        del cancel
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        self.responses.append(respond)
        self._arrived.set()
        if self.error is not None:
            raise self.error
        return self.fact

    async def read_thread(self, read: object) -> None:
        del read


@asynccontextmanager
async def runtime_of(
    agents: Mapping[str, Provider],
    folder: Path,
    journal: Journal | None = None,
    *,
    blobs: BlobStore | None = None,
    settings: TurnSettings | None = None,
    **how: Any,
) -> AsyncGenerator[Runtime]:
    """A runtime with these agents, on a fresh memory journal unless another is given."""
    async with open_journal("memory:") as fresh:
        chosen = settings or TurnSettings(interrupt_seconds=0.01)
        async with Runtime(
            journal or fresh,
            blobs or MemoryBlobs(),
            agents,
            workspace=folder,
            settings=chosen,
            **how,
        ) as runtime:
            yield runtime


async def wait_for_fact(runtime: Runtime, event_class: str, thread_id: str = "thread") -> Fact:
    """The first fact of a class that becomes durable from now on, or did before."""
    thread = await runtime.thread(thread_id)
    found: asyncio.Future[Fact] = asyncio.get_running_loop().create_future()

    def look(fact: Fact, _: object) -> None:
        if fact.event_class == event_class and not found.done():
            found.set_result(fact)

    stop = thread.log.watch(look)
    try:
        async for batch in runtime.journal.read():
            for _, fact in batch.facts():
                if fact.thread_id == thread_id:
                    look(fact, None)
        async with asyncio.timeout(WAIT):
            return await found
    finally:
        stop()
