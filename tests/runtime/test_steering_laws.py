"""A law of queue and steers: whatever is accepted happens once, whatever happens in between."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from factwire.facts import Fact, inspect_stream
from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import Runtime, RuntimeRefused, StartTurn, TurnSettings
from tests.runtime.agents import WAIT, facts_of, make_fact
from tests.runtime.steered import Steerable

OPERATIONS = (
    "submit",
    "steer",
    "steer",
    "promote",
    "remove",
    "steer_queued",
    "take",
    "end",
    "cancel",
    "release",
    "restart",
)


class Puppet:
    """An agent that takes what was said, and ends, when it is told to."""

    def __init__(self) -> None:
        self.orders: asyncio.Queue[str] = asyncio.Queue()
        self.is_free = False

    async def __call__(self, turn: StartTurn) -> AsyncIterator[Fact]:
        while not self.is_free:
            order = await self.orders.get()
            if order == "take":
                await turn.host.take_steers()
            if order == "end":
                break
        yield make_fact(turn.host, "turn.completed")


class Play:
    """A runtime under random orders, and what it has accepted."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.folder = folder
        self.random = random
        self.accepted: list[str] = []
        self.removed: set[str] = set()

    async def run(self, operations: list[str]) -> list[Fact]:
        async with open_journal("memory:") as journal:
            left = [*operations, "end"]
            while left:
                puppet = Puppet()
                agents = {"agent": Steerable(puppet)}
                async with Runtime(
                    journal,
                    MemoryBlobs(),
                    agents,
                    workspace=self.folder,
                    settings=TurnSettings(interrupt_seconds=0.001),
                ) as runtime:
                    while left and (operation := left.pop(0)) != "restart":
                        await self._do(runtime, puppet, operation)
                        await asyncio.sleep(0)
                    if not left:
                        return await self._end_play(runtime, puppet)
        raise AssertionError("the last order is never a restart")

    async def _end_play(self, runtime: Runtime, puppet: Puppet) -> list[Fact]:
        puppet.is_free = True
        puppet.orders.put_nowait("end")
        thread = await runtime.thread("thread")
        async with asyncio.timeout(WAIT):
            await thread.wait_idle()
            # A turn that was left over may have been held after the first look.
            while thread.queue.turns:
                await runtime.release("thread")
                await thread.wait_idle()
        return await facts_of(runtime)

    async def _do(self, runtime: Runtime, puppet: Puppet, operation: str) -> None:
        if operation in ("take", "end"):
            puppet.orders.put_nowait(operation)
            return
        thread = await runtime.thread("thread")
        name = f"id{len(self.accepted)}"
        queued = [turn.queued_turn_id for turn in thread.queue.turns]
        one = self.random.choice(queued) if queued else "none"
        try:
            if operation == "submit":
                await runtime.submit("thread", "agent", name, turn_id=name)
                self.accepted.append(name)
            elif operation == "steer":
                await runtime.steer("thread", name, steer_id=name, when_unsupported="queue")
                self.accepted.append(name)
            elif operation == "promote":
                await runtime.promote("thread", one)
            elif operation == "remove":
                await runtime.remove("thread", one)
                self.removed.add(one)
            elif operation == "release":
                await runtime.release("thread", self.random.choice([None, one]))
            elif operation == "steer_queued":
                await runtime.steer_queued("thread", one)
            elif operation == "cancel" and thread.turn is not None:
                await runtime.cancel("thread", thread.turn.turn_id)
        except RuntimeRefused:
            # What is refused was not accepted, and must have changed nothing.
            return


@pytest.mark.requirement("runtime.steer.left-over")
@pytest.mark.requirement("runtime.queue")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    operations=st.lists(st.sampled_from(OPERATIONS), min_size=3, max_size=25),
    seed=st.integers(0, 1_000),
)
@example(operations=["submit", "submit", "steer", "cancel", "submit"], seed=1)
@example(operations=["submit", "submit", "cancel", "restart", "release"], seed=1)
def test_whatever_is_accepted_happens_once(tmp_path: Path, operations: list[str], seed: int):
    play = Play(tmp_path, Random(seed))
    facts = asyncio.run(play.run(operations))
    happened = Counter(
        fact.turn_id if fact.event_class == "turn.submitted" else fact.payload["steerId"]
        for fact in facts
        if fact.event_class == "turn.submitted" or fact.payload.get("status") == "delivered"
    )
    assert happened == Counter(set(play.accepted) - play.removed)
    assert find_broken_holds(facts) == []
    assert inspect_stream(facts) == []


def find_broken_holds(facts: list[Fact]) -> list[str]:
    """What waited when a turn was asked to stop and was not held, or started while it was held."""
    waiting: dict[str, bool] = {}
    stopped: dict[str, bool] = {}
    broken: list[str] = []
    for fact in facts:
        if fact.event_class in ("turn.submitted", "turn.started"):
            # What came before a turn was stopped is held by then.
            broken += [
                turn for turn, is_held in waiting.items() if is_held and turn == fact.turn_id
            ]
            waiting.pop(fact.turn_id or "", None)
        elif fact.event_class == "queue.changed" and fact.queued_turn_id is not None:
            if fact.payload.get("change") == "removed":
                waiting.pop(fact.queued_turn_id, None)
            else:
                waiting[fact.queued_turn_id] = fact.payload.get("status") == "held"
        elif fact.payload.get("status") == "cancelling":
            stopped = dict(waiting)
        elif fact.event_class == "turn.canceled":
            broken += [turn for turn in stopped if waiting.get(turn) is False]
    return broken
