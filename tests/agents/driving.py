"""Turns of a real agent in a real runtime, on a journal on disk, each wait bounded."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from factwire.facts import Fact, inspect_stream, verify
from factwire.journal import open_journal
from factwire.journal.blobs import FileBlobs
from factwire.projection import ProjectionState
from factwire.projection.actions import Action
from factwire.projection.messages import TextPart
from factwire.runtime import Provider, Runtime, TurnResources, TurnSettings
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes
from tests.agents.homes import KEY, AgentHome

WAIT: Final = 60.0
"""Seconds after which a wait for a real agent has failed."""

Answer = str | Mapping[str, Any]
"""A decision, or what `Runtime.decide` takes: decision, reason, response, always."""

Decide = Callable[[Action], Answer | None]
"""What a person says to a request; None leaves it open."""

THREAD: Final = "thread"
AGENT: Final = "agent"


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended, with the facts of its thread and what they come to."""

    status: str
    turn_id: str
    facts: list[Fact]
    state: ProjectionState

    def facts_of_class(self, event_class: str) -> list[Fact]:
        """Facts of a class, of this turn."""
        return [fact for fact in self.of_turn if fact.event_class == event_class]

    def payloads_of(self, event_class: str) -> list[dict[str, Any]]:
        return [fact.payload for fact in self.facts_of_class(event_class)]

    @property
    def of_turn(self) -> list[Fact]:
        return [fact for fact in self.facts if fact.turn_id == self.turn_id]

    @property
    def answers(self) -> list[str]:
        """The texts of the assistant's messages on the thread that have one."""
        found = [
            "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))
            for message in self.state.messages
            if message.role == "assistant"
        ]
        return [text for text in found if text]

    @property
    def failure(self) -> dict[str, Any]:
        [only] = self.payloads_of("turn.failed")
        return only


class DrivenAgent:
    """A runtime with one agent, called `agent`, and one thread, called `thread`."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def turn(self, prompt: str, *, decide: Decide | None = None, **how: Any) -> TurnOutcome:
        """Hold a turn to its end; whatever is asked is decided. Its facts are sound."""
        turn_id = await self.submit(prompt, **how)
        return await self.wait_for_end(turn_id, decide=decide)

    async def submit(self, prompt: str, **how: Any) -> str:
        return (await self.runtime.submit(THREAD, AGENT, prompt, **how)).turn_id

    async def wait_for_end(self, turn_id: str, *, decide: Decide | None = None) -> TurnOutcome:
        deciding = asyncio.create_task(self._decide(decide)) if decide else None
        try:
            async with asyncio.timeout(WAIT):
                status = await (await self.runtime.thread(THREAD)).wait_for(turn_id)
        except TimeoutError as error:
            raise AssertionError(f"the turn did not end: {await self._last()}") from error
        finally:
            if deciding is not None:
                await _over(deciding)
        return await self.outcome_of(turn_id, status)

    async def outcome_of(self, turn_id: str, status: str = "") -> TurnOutcome:
        """What is on the thread now; it is sound, and nowhere in it is a key."""
        facts = await self.facts()
        assert inspect_stream(facts) == []
        assert verify(facts) == []
        assert KEY not in str(facts)
        return TurnOutcome(status=status, turn_id=turn_id, facts=facts, state=await self.state())

    async def facts(self) -> list[Fact]:
        found: list[Fact] = []
        async for batch in self.runtime.journal.read():
            found += [fact for _, fact in batch.facts() if fact.thread_id == THREAD]
        return found

    async def state(self) -> ProjectionState:
        return await self.runtime.state(THREAD)

    async def wait_for_fact(self, event_class: str, count: int = 1) -> Fact:
        """The first fact of a class, or another one by its number, once it is there."""
        log = (await self.runtime.thread(THREAD)).log
        arrived = asyncio.Event()
        stop = log.watch(lambda _fact, _changes: arrived.set())
        try:
            async with asyncio.timeout(WAIT):
                while True:
                    arrived.clear()
                    found = [fact for fact in await self.facts() if fact.event_class == event_class]
                    if len(found) >= count:
                        return found[count - 1]
                    await arrived.wait()
        except TimeoutError as error:
            raise AssertionError(f"no {event_class}: {await self._last()}") from error
        finally:
            stop()

    async def next_action(self) -> Action:
        """The first request that is open, once there is one."""
        found: asyncio.Queue[Action] = asyncio.Queue()
        watching = asyncio.create_task(self._watch(found, set()))
        try:
            async with asyncio.timeout(WAIT):
                return await found.get()
        except TimeoutError as error:
            raise AssertionError(f"nothing was asked: {await self._last()}") from error
        finally:
            await _over(watching)

    async def answer(self, action: Action, answer: Answer) -> None:
        """Say to a request what a person says, bound to what was shown."""
        settings: dict[str, Any] = {"decision": answer} if isinstance(answer, str) else dict(answer)
        decision = settings.pop("decision")
        await self.runtime.decide(
            THREAD,
            action.action_id,
            decision,
            by="tester",
            args_hash=action.args_hash or "",
            **settings,
        )

    async def cancel(self, turn_id: str) -> TurnOutcome:
        """Stop a turn, and wait for its end."""
        async with asyncio.timeout(WAIT):
            await self.runtime.cancel(THREAD, turn_id)
        return await self.wait_for_end(turn_id)

    async def _decide(self, decide: Decide) -> None:
        found: asyncio.Queue[Action] = asyncio.Queue()
        watching = asyncio.create_task(self._watch(found, set()))
        try:
            while True:
                action = await found.get()
                answer = decide(action)
                if answer is not None:
                    await self.answer(action, answer)
        finally:
            await _over(watching)

    async def _watch(self, found: asyncio.Queue[Action], known: set[str]) -> None:
        """Hand on each request that opens, once."""
        log = (await self.runtime.thread(THREAD)).log
        arrived = asyncio.Event()
        stop = log.watch(lambda fact, _changes: arrived.set() if fact.action_id else None)
        try:
            while True:
                arrived.clear()
                for action in list(log.projection.state.actions.values()):
                    if action.status == "pending" and action.action_id not in known:
                        known.add(action.action_id)
                        found.put_nowait(action)
                await arrived.wait()
        finally:
            stop()

    async def _last(self) -> list[str | None]:
        return [fact.event_class for fact in (await self.facts())[-12:]]


@asynccontextmanager
async def driven_agent(
    agent: Provider, home: AgentHome, *, policy: Policy | None = None, **settings: Any
) -> AsyncGenerator[DrivenAgent]:
    """A runtime around an agent that lives in a home. Entered again with the same home, it goes on
    with the journal that is there.
    """
    data = home.folder / "factwire"
    data.mkdir(exist_ok=True)
    blobs = FileBlobs(data / "blobs")
    processes = Processes(data, workspaces=[home.workspace], blobs=blobs)
    means = TurnResources(blobs=blobs, policy=policy or Policy(), processes=processes)
    async with (
        open_journal(f"sqlite:{data / 'journal.db'}") as journal,
        Runtime(
            journal,
            blobs,
            {AGENT: agent},
            workspace=home.workspace,
            resources=means,
            settings=TurnSettings(**settings),
        ) as runtime,
    ):
        yield DrivenAgent(runtime)


async def _over(task: "asyncio.Task[Any]") -> None:
    """End a task; what it raised by itself is raised here."""
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
