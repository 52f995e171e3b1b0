"""Steering: what a person says to a turn while it runs, heard once and never lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.projection import conversation
from factwire.projection.messages import TextPart
from factwire.runtime import (
    NothingToSteer,
    QueueFull,
    Runtime,
    StartTurn,
    SteerTooLong,
    SteerUnsupported,
)
from factwire.runtime.agents import DemoAgent, DemoOptions
from factwire.runtime.limits import PENDING_STEERS
from tests.runtime.agents import (
    WAIT,
    Agent,
    classes,
    echo,
    endless,
    facts_of,
    make_fact,
    run_agent,
    wait_for_end,
)
from tests.runtime.steered import Listener, Steerable, Swapped, runtime_of, wait_for_fact

pytestmark = pytest.mark.asyncio


async def spoken(runtime: Runtime) -> list[tuple[str, str]]:
    """The conversation: who said what."""
    messages = conversation(await runtime.state("thread"))
    return [
        (message.role, "".join(str(p.text) for p in message.parts if isinstance(p, TextPart)))
        for message in messages
    ]


def steer_statuses(facts: list[Fact]) -> list[Any]:
    return [fact.payload["status"] for fact in facts if fact.control == "steer"]


@pytest.mark.requirement("runtime.steer.taken")
async def test_a_steer_is_durable_then_taken_then_a_message_in_its_place(tmp_path: Path):
    listener = Listener(count=2)
    async with runtime_of({"agent": Steerable(listener)}, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        first = await runtime.steer("thread", "to the left", steer_id="one")
        await wait_for_fact(runtime, "model.completed")
        await runtime.steer("thread", "and up", turn_id="turn", steer_id="two")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, state = await facts_of(runtime), await runtime.state("thread")
        talk = await spoken(runtime)

    assert (first.status, first.turn_id) == ("pending", "turn")
    assert listener.heard == ["to the left", "and up"]
    assert sorted(steer_statuses(facts)) == ["delivered", "delivered", "pending", "pending"]
    assert [(steer.steer_id, steer.status) for steer in state.queue.steers] == [
        ("one", "delivered"),
        ("two", "delivered"),
    ]
    assert talk.index(("user", "to the left")) < talk.index(("assistant", "Heard to the left."))
    assert talk.index(("user", "and up")) < talk.index(("assistant", "Heard and up."))
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.steer.idempotent")
async def test_a_steer_that_is_given_twice_is_said_once(tmp_path: Path):
    listener = Listener()
    listener.proceed.clear()
    async with runtime_of({"agent": Steerable(listener)}, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        results = await asyncio.gather(
            *(runtime.steer("thread", "left", steer_id="one") for _ in range(8))
        )
        listener.proceed.set()
        await wait_for_end(runtime, "turn")
        late = await runtime.steer("thread", "left", steer_id="one")

    assert {answer.status for answer in results} == {"pending"}
    assert late.status == "delivered"
    assert listener.heard == ["left"]


@pytest.mark.requirement("runtime.steer.unsupported")
async def test_an_agent_that_cannot_be_steered_refuses_or_gets_a_turn(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        with pytest.raises(SteerUnsupported) as refused:
            await runtime.steer("thread", "left")
        queued = await runtime.steer("thread", "left", steer_id="one", when_unsupported="queue")
        again = await runtime.steer("thread", "left", steer_id="one", when_unsupported="queue")
        state = await runtime.state("thread")

    assert refused.value.code == "steer_unsupported"
    assert (queued.status, queued.turn_id, again) == ("queued", "one", queued)
    assert [(turn.queued_turn_id, turn.prompt) for turn in state.queue.turns] == [("one", "left")]


@pytest.mark.requirement("runtime.steer.unsupported")
async def test_without_a_turn_there_is_nothing_to_steer(tmp_path: Path):
    async with runtime_of({"agent": Steerable(echo)}, tmp_path) as runtime:
        for _ in range(2):
            with pytest.raises(NothingToSteer):
                await runtime.steer("thread", "left", when_unsupported="queue")
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        await wait_for_end(runtime, "turn")
        with pytest.raises(NothingToSteer) as refused:
            await runtime.steer("thread", "left", turn_id="turn")
        started = await runtime.steer("thread", "left", steer_id="s", when_unsupported="queue")
        assert await wait_for_end(runtime, "s") == "completed"

    assert refused.value.code == "turn_not_active"
    assert started.status in ("started", "queued")


@pytest.mark.requirement("runtime.steer.left-over")
async def test_what_a_turn_never_took_is_the_next_turn_in_order(tmp_path: Path):
    deaf = Steerable(endless)
    async with runtime_of({"agent": deaf, "other": Agent(echo)}, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        await runtime.submit("thread", "other", "afterwards", turn_id="after")
        await wait_for_fact(runtime, "tool.started")
        for name in ("one", "two"):
            await runtime.steer("thread", f"say {name}", steer_id=name)
        deaf.script = echo  # the turns that follow are to end by themselves
        await runtime.cancel("thread", "turn")
        stopped = [
            (each.queued_turn_id, each.status)
            for each in (await runtime.state("thread")).queue.turns
        ]
        await runtime.release("thread")
        assert await wait_for_end(runtime, "after") == "completed"
        facts, state = await facts_of(runtime), await runtime.state("thread")
        talk = await spoken(runtime)

    started = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    assert started == ["turn", "one", "two", "after"]
    assert stopped == [("one", "held"), ("two", "held"), ("after", "held")]
    assert [steer.status for steer in state.queue.steers] == ["queued", "queued"]
    assert talk.count(("user", "say one")) == 1
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.steer.queued-turn")
async def test_a_queued_turn_can_be_said_to_the_one_that_runs(tmp_path: Path):
    listener = Listener()
    async with runtime_of({"agent": Steerable(listener)}, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        await runtime.submit("thread", "agent", "to the left", turn_id="later")
        steered = await runtime.steer_queued("thread", "later")
        assert await wait_for_end(runtime, "turn") == "completed"
        again = await runtime.submit("thread", "agent", "to the left", turn_id="later")
        facts, state = await facts_of(runtime), await runtime.state("thread")

    assert (steered.steer_id, steered.status, again.status) == ("later", "pending", "known")
    assert listener.heard == ["to the left"]
    assert state.queue.turns == []
    assert classes(facts).count("turn.started") == 1


@pytest.mark.requirement("runtime.steer.bounded")
async def test_what_is_too_long_or_too_much_is_refused(tmp_path: Path):
    async with runtime_of({"agent": Steerable(endless)}, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        with pytest.raises(SteerTooLong):
            await runtime.steer("thread", "x" * 30_000)
        for _ in range(PENDING_STEERS):
            await runtime.steer("thread", "more")
        with pytest.raises(QueueFull):
            await runtime.steer("thread", "more")
        facts = await facts_of(runtime)

    assert "output.spilled" not in classes(facts)


@pytest.mark.requirement("runtime.steer.left-over")
async def test_after_a_restart_a_steer_that_nobody_took_is_the_next_turn(tmp_path: Path):
    async with open_journal("memory:") as journal:
        async with runtime_of({"agent": Steerable(endless)}, tmp_path, journal) as runtime:
            await runtime.submit("thread", "agent", "work", turn_id="turn")
            await wait_for_fact(runtime, "tool.started")
            await runtime.steer("thread", "left", steer_id="one")
        async with runtime_of({"agent": Agent(echo)}, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "one") == "completed"
            facts = await facts_of(runtime)
            talk = await spoken(runtime)

    assert ("user", "left") in talk
    assert classes(facts).count("turn.failed") == 1
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.steer.demo")
async def test_the_demo_takes_steers_between_its_steps_and_says_so(tmp_path: Path):
    begun, proceed = asyncio.Event(), asyncio.Event()

    async def wait_to_proceed(_: float) -> None:
        begun.set()
        await proceed.wait()

    agent = DemoAgent(DemoOptions(pace=0), sleep=wait_to_proceed)
    async with runtime_of({"demo": agent}, tmp_path) as runtime:
        await runtime.submit("thread", "demo", "demo: help", turn_id="turn")
        async with asyncio.timeout(WAIT):
            await begun.wait()
        await runtime.steer("thread", "that is enough")
        proceed.set()
        assert await wait_for_end(runtime, "turn") == "completed"
        talk = await spoken(runtime)

    at = talk.index(("user", "that is enough"))
    assert talk[at + 1] == ("assistant", "Message received: “that is enough”. I will stop here.")


@pytest.mark.requirement("runtime.queue.whole")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_queued_turn_runs_on_all_of_its_prompt(tmp_path: Path, restart: bool):
    prompt, blobs = "word " * 20_000, MemoryBlobs()
    first, second = Swapped(endless), Swapped(_short)
    async with open_journal("memory:") as journal:
        async with runtime_of({"agent": first}, tmp_path, journal, blobs=blobs) as runtime:
            await runtime.submit("thread", "agent", "work", turn_id="turn")
            await runtime.submit("thread", "agent", prompt, turn_id="long")
            if not restart:
                await wait_for_fact(runtime, "tool.started")
                first.script = _short
                await runtime.cancel("thread", "turn")
                await runtime.release("thread", "long")
                await wait_for_end(runtime, "long")
        if restart:
            async with runtime_of({"agent": second}, tmp_path, journal, blobs=blobs) as runtime:
                await wait_for_end(runtime, "long")

    agent = second if restart else first
    assert [start.prompt for start in agent.started if start.turn_id == "long"] == [prompt]


async def _short(turn: StartTurn) -> AsyncIterator[Fact]:
    yield make_fact(turn.host, "turn.completed")


@pytest.mark.requirement("runtime.queue.concurrent")
async def test_turns_that_come_at_once_are_each_run_once(tmp_path: Path):
    names = [f"t{n}" for n in range(20)]
    async with run_agent(echo, tmp_path) as runtime:
        await asyncio.gather(
            *(runtime.submit("thread", "agent", "hi", turn_id=name) for name in names * 2)
        )
        for name in names:
            assert await wait_for_end(runtime, name) == "completed"
        facts = await facts_of(runtime)

    started = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    assert sorted(started, key=str) == sorted(names)
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.queue.cannot-start")
async def test_a_queued_turn_whose_agent_is_gone_ends_as_failed(tmp_path: Path):
    async with open_journal("memory:") as journal:
        agents = {"agent": Agent(endless), "gone": Agent(echo)}
        async with runtime_of(dict(agents), tmp_path, journal) as runtime:
            await runtime.submit("thread", "agent", "work", turn_id="turn")
            await runtime.submit("thread", "gone", "hello", turn_id="lost")
            await runtime.submit("thread", "agent", "hello", turn_id="last")
        async with runtime_of({"agent": Agent(echo)}, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "lost") == "failed"
            assert await wait_for_end(runtime, "last") == "completed"
            facts = await facts_of(runtime)

    [failed] = [f for f in facts if f.event_class == "turn.failed" and f.turn_id == "lost"]
    assert failed.payload["failureCategory"] == "unknown_agent"
    assert inspect_stream(facts) == []
