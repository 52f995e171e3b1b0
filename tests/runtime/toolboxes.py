"""A runtime that lends its agents means, and an agent that uses the toolbox as a test says."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from factwire.facts import Fact, inspect_stream, verify
from factwire.journal import Journal, open_journal
from factwire.journal.blobs import BlobStore, MemoryBlobs
from factwire.projection import ProjectionState
from factwire.runtime import Provider, Runtime, StartTurn, TurnResources, TurnSettings
from factwire.runtime.policy import Policy
from factwire.runtime.sandbox import SandboxPolicy
from factwire.runtime.toolbox import Toolbox, ToolOutcome
from tests.runtime.agents import Agent, facts_of, make_fact, wait_for_end
from tests.runtime.programs import World

BOXED = SandboxPolicy(mode="require")
FREE = Policy.of("acceptEdits", allow=["Bash"])
"""Edits and commands are allowed; what is unclear still asks."""

Uses = Callable[[Toolbox], Awaitable[Any]]


class Kept:
    """A world, its blobs and its means."""

    def __init__(self, folder: Path, policy: Policy = FREE, **changes: Any) -> None:
        self.world = World(folder)
        self.blobs: BlobStore = MemoryBlobs()
        options: dict[str, Any] = {"sandbox": BOXED, **changes}
        options.setdefault("processes", self.world.processes(blobs=self.blobs))
        self.means = TurnResources(blobs=self.blobs, policy=policy, **options)

    @property
    def workspace(self) -> Path:
        return self.world.workspace

    async def content(self, ref: str) -> bytes:
        return b"".join([piece async for piece in self.blobs.get(ref)])

    @asynccontextmanager
    async def run_agents(
        self, agents: dict[str, Provider], journal: Journal | None = None, **settings: Any
    ) -> AsyncGenerator[Runtime]:
        async with (
            open_journal("memory:") as fresh,
            Runtime(
                journal or fresh,
                self.blobs,
                agents,
                workspace=self.workspace,
                resources=self.means,
                settings=TurnSettings(**settings),
            ) as runtime,
        ):
            yield runtime


class Used:
    """What came of a turn that used the toolbox."""

    def __init__(
        self, outcomes: list[ToolOutcome], facts: list[Fact], state: ProjectionState
    ) -> None:
        self.outcomes = outcomes
        self.facts = facts
        self.state = state

    @property
    def outcome(self) -> ToolOutcome:
        [only] = self.outcomes
        return only

    def facts_of_class(self, event_class: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.event_class == event_class]


def make_calling_agent(
    outcomes: list[ToolOutcome], *calls: tuple[str, dict[str, Any]], **how: Any
) -> Agent:
    """An agent whose turn is these calls, one after the other."""

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = Toolbox(turn.host)
        for name, args in calls:
            outcomes.append(await toolbox.call(name, args, **how))
        yield make_fact(turn.host, "turn.completed")

    return Agent(script)


async def use(
    kept: Kept,
    *calls: tuple[str, dict[str, Any]],
    meanwhile: Callable[[Runtime], Awaitable[Any]] | None = None,
    **how: Any,
) -> Used:
    """Make calls in a turn; the facts they come to are sound."""
    outcomes: list[ToolOutcome] = []
    async with kept.run_agents({"agent": make_calling_agent(outcomes, *calls, **how)}) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        if meanwhile is not None:
            await meanwhile(runtime)
        assert await wait_for_end(runtime, "turn") == "completed"
        used = Used(outcomes, await facts_of(runtime), await runtime.state("thread"))
    assert_sound(used.facts)
    return used


def assert_sound(facts: list[Fact]) -> None:
    assert inspect_stream(facts) == []
    assert verify(facts) == []


async def wait_for_fact(runtime: Runtime, event_class: str, thread_id: str = "thread") -> Fact:
    """The first fact of a class, once it is there."""
    log = (await runtime.thread(thread_id)).log
    found: asyncio.Future[Fact] = asyncio.get_running_loop().create_future()

    def look(fact: Fact, _: object) -> None:
        if fact.event_class == event_class and not found.done():
            found.set_result(fact)

    stop = log.watch(look)
    try:
        for fact in await facts_of(runtime, thread_id):
            look(fact, None)
        async with asyncio.timeout(60):
            return await found
    finally:
        stop()
