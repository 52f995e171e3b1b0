"""Automatic retries: every attempt kept, nothing repeated that may have changed something."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, inspect_stream
from factwire.facts.inputs import TextInput
from factwire.journal import open_journal
from factwire.projection.thread_status import QueuedTurn
from factwire.runtime import RetryPolicy, Runtime, StartTurn, TurnSettings, UnknownTurn
from factwire.runtime.configuration import load_configuration
from factwire.runtime.limits import RETRY_SECONDS
from tests.runtime.agents import WAIT, Agent, classes, echo, facts_of, wait_for_end
from tests.runtime.steered import Failing, Listener, Steerable, runtime_of, wait_for_fact
from tests.runtime.trusted_files import write_trusted

QUICK = RetryPolicy(attempts=3, delay_seconds=0.001)
SLOW = RetryPolicy(attempts=3, delay_seconds=60)


def settings(retry: RetryPolicy = QUICK, **more: Any) -> TurnSettings:
    return TurnSettings(interrupt_seconds=0.01, retry=retry, **more)


async def wait_settled(runtime: Runtime, turn_id: str) -> str:
    async with asyncio.timeout(WAIT):
        return await (await runtime.thread("thread")).wait_settled(turn_id)


async def wait_for_retry(runtime: Runtime) -> QueuedTurn:
    """The retry that waits for its time."""
    await wait_for_fact(runtime, "turn.failed")
    thread = await runtime.thread("thread")
    async with thread.order:
        [turn] = [turn for turn in thread.queue.turns if turn.status == "retrying"]
        return turn


def list_attempts(facts: list[Fact]) -> list[tuple[Any, Any]]:
    payloads = [fact.payload for fact in facts if fact.event_class == "turn.submitted"]
    return [(payload.get("retryOf"), payload.get("attempt")) for payload in payloads]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.attempts")
async def test_a_failure_that_passes_is_tried_again_and_each_attempt_is_kept(tmp_path: Path):
    failing = Failing(2)
    async with runtime_of({"agent": Agent(failing)}, tmp_path, settings=settings()) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn", options={"depth": 2})
        assert await wait_settled(runtime, "turn") == "completed"
        facts = await facts_of(runtime)

    turns = [start.turn_id for start in failing.tried]
    assert turns[0] == "turn"
    assert len(set(turns)) == 3
    assert [(start.prompt, start.options) for start in failing.tried] == [("go", {"depth": 2})] * 3
    assert list_attempts(facts) == [(None, None), (turns[0], 2), (turns[1], 3)]
    assert [f.turn_id for f in facts if f.event_class == "turn.failed"] == turns[:2]
    retries = [fact.payload for fact in facts if fact.control == "retry"]
    assert [
        (payload["attempt"], payload["maxAttempts"], payload["retryDelayMs"]) for payload in retries
    ] == [
        (2, 3, 1),
        (3, 3, 2),
    ]
    assert retries[0]["failureCategory"] == "rate_limited"
    assert inspect_stream(facts) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.categories")
@pytest.mark.parametrize(
    ("failing", "policy", "tries"),
    [
        (Failing(9), QUICK, 3),
        (Failing(9, "out_of_luck"), QUICK, 1),
        (Failing(9), RetryPolicy(), 1),
        (Failing(9, "odd"), RetryPolicy(attempts=2, delay_seconds=0.001, categories=("odd",)), 2),
    ],
)
async def test_only_named_failures_are_tried_again_and_only_so_often(
    tmp_path: Path, failing: Failing, policy: RetryPolicy, tries: int
):
    agents = {"agent": Agent(failing)}
    async with runtime_of(agents, tmp_path, settings=settings(policy)) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        assert await wait_settled(runtime, "turn") == "failed"

    assert len(failing.tried) == tries


@pytest.mark.requirement("runtime.retry.delay")
@given(
    st.floats(0.001, 1e6),
    st.floats(1, 100),
    st.integers(1, 10_000),
)
def test_each_wait_is_at_least_as_long_as_the_one_before_up_to_a_bound(
    first: float, factor: float, attempt: int
):
    policy = RetryPolicy(attempts=3, delay_seconds=first, factor=factor)
    assert 0 < policy.delay(attempt) <= policy.delay(attempt + 1) <= RETRY_SECONDS
    assert policy.delay(1) == min(first, RETRY_SECONDS)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.effects")
@pytest.mark.parametrize(
    ("tool", "repeat", "tries"), [("read", False, 2), ("deploy", False, 1), ("deploy", True, 2)]
)
async def test_what_may_have_changed_something_is_repeated_only_if_that_is_allowed(
    tmp_path: Path, tool: str, repeat: bool, tries: int
):
    failing = Failing(1, tool=tool)
    policy = RetryPolicy(attempts=3, delay_seconds=0.001, repeat_effects=repeat)
    agents = {"agent": Agent(failing)}
    async with runtime_of(agents, tmp_path, settings=settings(policy)) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        await wait_settled(runtime, "turn")
        state = await runtime.state("thread")

    assert len(failing.tried) == tries
    withheld = [r.message for r in state.diagnostics.items.values() if r.code == "retry_withheld"]
    assert bool(withheld) == (tries == 1)
    assert all("the tool deploy" in (message or "") for message in withheld)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.first")
async def test_a_retry_goes_before_what_waits(tmp_path: Path):
    failing = Failing(1)
    agents = {"agent": Agent(failing), "other": Agent(echo)}
    async with runtime_of(agents, tmp_path, settings=settings()) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        await runtime.submit("thread", "other", "later", turn_id="later")
        assert await wait_for_end(runtime, "later") == "completed"
        facts = await facts_of(runtime)

    started = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    assert started == ["turn", failing.tried[1].turn_id, "later"]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.first")
async def test_a_retry_is_asked_what_was_said_to_the_attempt_before(tmp_path: Path):
    listener, failing = Listener(), Failing(1)

    async def both(turn: StartTurn) -> AsyncIterator[Fact]:
        if turn.prompt == "work" and not turn.input:
            async for fact in listener(turn):
                if fact.event_class != "turn.completed":
                    yield fact
        async for fact in failing(turn):
            yield fact

    async with runtime_of({"agent": Steerable(both)}, tmp_path, settings=settings()) as runtime:
        await runtime.submit("thread", "agent", "work", turn_id="turn")
        await runtime.steer("thread", "to the left")
        assert await wait_settled(runtime, "turn") == "completed"

    assert [start.input for start in failing.tried] == [(), (TextInput(text="to the left"),)]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.cancel")
async def test_a_retry_that_waits_can_be_cancelled_by_any_of_its_attempts(tmp_path: Path):
    failing = Failing(9)
    agents = {"agent": Agent(failing)}
    async with runtime_of(agents, tmp_path, settings=settings(SLOW)) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        retry = await wait_for_retry(runtime)
        queued = await runtime.submit("thread", "agent", "next", turn_id="next")
        await runtime.cancel("thread", "turn", "changed my mind")
        assert await wait_settled(runtime, "turn") == "canceled"
        assert await wait_for_end(runtime, "next") == "failed"
        with pytest.raises(UnknownTurn):
            await runtime.cancel("thread", retry.queued_turn_id)
        facts = await facts_of(runtime)

    assert (retry.retry_of, retry.attempt, queued.status) == ("turn", 2, "queued")
    assert [start.turn_id for start in failing.tried] == ["turn", "next"]
    assert "changed my mind" in [fact.payload.get("reason") for fact in facts]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.retry.attempts")
async def test_a_retry_that_waits_for_its_time_survives_a_restart(tmp_path: Path):
    async with open_journal("memory:") as journal:
        first = Failing(9)
        agents = {"agent": Agent(first)}
        async with runtime_of(agents, tmp_path, journal, settings=settings(SLOW)) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="turn")
            retry = await wait_for_retry(runtime)
        second = Failing(0)
        agents = {"agent": Agent(second)}
        async with runtime_of(agents, tmp_path, journal, settings=settings(SLOW)) as runtime:
            thread = await runtime.thread("thread")
            assert thread.is_busy
            # Its time is up once it is promoted: a person does not want to wait.
            await runtime.cancel("thread", retry.queued_turn_id)
            await runtime.retry("thread", "turn")
            async with asyncio.timeout(WAIT):
                await thread.wait_idle()
            facts = await facts_of(runtime)

    assert len(first.tried) == 1
    assert len(second.tried) == 1
    assert inspect_stream(facts) == []
    assert classes(facts).count("turn.completed") == 1


@pytest.mark.requirement("runtime.retry.configuration")
def test_retries_are_set_for_all_agents_or_for_one(tmp_path: Path):
    write_trusted(
        tmp_path / "factwire.toml",
        "[retry]\nattempts = 2\n"
        '[agents.a]\nkind = "demo"\nretry = { attempts = 5, categories = ["odd"] }\n',
        {"HOME": str(tmp_path)},
    )
    found = load_configuration(tmp_path, environment={"HOME": str(tmp_path)}).configuration
    assert found.retry == RetryPolicy(attempts=2)
    assert found.agents["a"].retry == RetryPolicy(attempts=5, categories=("odd",))
    chosen = TurnSettings(
        retry=found.retry, retries={"a": found.agents["a"].retry or RetryPolicy()}
    )
    assert [chosen.retry_of(name).attempts for name in ("a", "b")] == [5, 2]
