"""Turns: one terminal each, whatever the agent does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import Journal, open_journal
from factwire.projection import project
from factwire.projection.messages import TextPart
from factwire.runtime import (
    StartTurn,
    TurnAlreadyActive,
    TurnFailed,
    UnknownAgent,
    UnknownTurn,
)
from tests.runtime.agents import (
    WAIT,
    Agent,
    ask_and_obey,
    classes,
    decide_shown,
    echo,
    endless,
    facts_of,
    make_fact,
    open_action,
    open_tool,
    run_agent,
    wait_for_end,
)

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("runtime.turn.order")
async def test_a_turn_is_submitted_started_and_ended_in_valid_facts(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "two words", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_of(runtime)

    assert classes(facts) == [
        "turn.submitted",
        "turn.started",
        "run.status",
        "model.delta",
        "model.delta",
        "model.completed",
        "run.status",
        "turn.completed",
        "snapshot.updated",
    ]
    assert [fact.sequence for fact in facts] == list(range(1, 10))
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.turn.idempotent")
async def test_a_turn_that_is_asked_for_twice_runs_once(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        first = await runtime.submit("thread", "agent", "hello", turn_id="turn")
        await wait_for_end(runtime, "turn")
        again = await runtime.submit("thread", "agent", "hello", turn_id="turn")
        facts = await facts_of(runtime)

    assert (first.status, again.status) == ("started", "known")
    assert classes(facts).count("turn.started") == 1


@pytest.mark.requirement("runtime.turn.interrupted")
async def test_a_stream_that_ends_without_a_terminal_was_interrupted(tmp_path: Path):
    async def yield_half(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "model.delta", {"delta": "half a "}, message_id="m")

    async with run_agent(yield_half, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        state = await runtime.state("thread")

    assert state.runtime.failure_category == "stream_interrupted"
    assert state.runtime.recovery_hint
    assert [message.status for message in state.messages] == ["final", "interrupted"]


@pytest.mark.requirement("runtime.turn.failed")
@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ValueError("no"), "provider_error"),
        (TurnFailed("rate_limited", "too many", "Wait."), "rate_limited"),
        (SystemExit(7), "provider_error"),
        (GeneratorExit("misused"), "provider_error"),
    ],
)
async def test_what_an_agent_raises_ends_its_turn_with_a_category(
    tmp_path: Path, error: BaseException, category: str
):
    async def raise_error(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "tool.started", {"toolName": "x"}, tool_call_id="call")
        raise error

    async with run_agent(raise_error, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.failure_category == category
    assert state.tools["call"].state == "output-error"
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.turn.failed")
@pytest.mark.parametrize(("is_coroutine", "got"), [(True, "a coroutine"), (False, "list")])
async def test_a_start_turn_without_a_yield_is_told_as_such(
    tmp_path: Path, is_coroutine: bool, got: str
):
    async def forgetful() -> list[Fact]:
        return []

    def script(turn: StartTurn) -> AsyncIterator[Fact]:
        del turn
        return cast("AsyncIterator[Fact]", forgetful() if is_coroutine else [])

    async with run_agent(script, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        facts = await facts_of(runtime)

    [end] = [fact for fact in facts if fact.event_class == "turn.failed"]
    assert end.payload["failureCategory"] == "provider_error"
    message = f"start_turn must be an async generator (use yield), got {got}"
    assert end.payload["message"] == message


@pytest.mark.requirement("runtime.turn.invalid-fact")
async def test_a_fact_that_a_gate_refuses_ends_the_turn_and_is_not_written(tmp_path: Path):
    async def wrong(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "tool.result", {"summary": "x"}, tool_call_id="never started")

    async with run_agent(wrong, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.failure_category == "invalid_fact"
    assert "tool.result" not in classes(facts)


@pytest.mark.requirement("runtime.turn.timeout")
async def test_a_turn_that_takes_too_long_fails(tmp_path: Path):
    async with run_agent(endless, tmp_path, turn_seconds=0.01) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        state = await runtime.state("thread")

    assert state.runtime.failure_category == "timeout"
    assert state.tools["call"].state == "output-error"


@pytest.mark.requirement("runtime.turn.cancel")
async def test_cancelling_stops_the_agent_and_closes_what_was_open(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        await runtime.cancel("thread", "turn", "changed my mind")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.status == "canceled"
    assert classes(facts)[-2:] == ["turn.canceled", "snapshot.updated"]
    times = {"createdAt": facts[0].created_at}
    if facts[1].event_class == "turn.started":
        times["startedAt"] = facts[1].created_at
    assert facts[-2].payload == {"reason": "changed my mind", "from": "cancelling", **times}
    assert inspect_stream(facts) == []


class SlowJournal:
    """A journal that is never done with a batch before an agent has said more."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, batch: Sequence[Fact]) -> Any:
        for _ in range(10):
            await asyncio.sleep(0)
        return await self._journal.append(batch)


async def _talk(turn: StartTurn) -> AsyncIterator[Fact]:
    while True:
        yield make_fact(turn.host, "model.delta", {"delta": "and so on\n"}, message_id="m")
        await asyncio.sleep(0)


@pytest.mark.requirement("runtime.turn.cancel")
async def test_an_agent_that_never_stops_talking_is_cancelled(tmp_path: Path):
    async with open_journal("memory:") as journal:
        slow = cast("Journal", SlowJournal(journal))
        async with run_agent(_talk, tmp_path, slow) as runtime, asyncio.timeout(WAIT):
            await runtime.submit("thread", "agent", "x", turn_id="turn")
            while len((await runtime.state("thread")).messages) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert await runtime.cancel("thread", "turn") == "canceled"


@pytest.mark.requirement("runtime.turn.cancel")
async def test_an_agent_stops_though_whoever_cancelled_it_has_left(tmp_path: Path):
    async with run_agent(endless, tmp_path, interrupt_seconds=0.2) as runtime:
        agent = cast("Agent", runtime.agent("agent"))
        await runtime.submit("thread", "agent", "x", turn_id="turn")
        await open_tool(runtime)
        async with asyncio.timeout(WAIT):
            asking = asyncio.create_task(runtime.cancel("thread", "turn"))
            while not agent.canceled:  # noqa: ASYNC110 - the agent is a script
                await asyncio.sleep(0)
            asking.cancel()
        assert await wait_for_end(runtime, "turn") == "canceled"


@pytest.mark.requirement("runtime.turn.cancel")
async def test_cancelling_a_turn_that_asks_denies_what_it_asked_for(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        action = await open_action(runtime)
        await runtime.cancel("thread", "turn")
        state = await runtime.state("thread")

    assert state.actions[action].status == "cancelled"
    assert state.tools["call"].state in ("cancelled", "output-error")
    assert state.runtime.status == "canceled"


@pytest.mark.requirement("runtime.turn.cancel")
async def test_an_agent_that_cannot_be_asked_to_stop_is_stopped_and_that_is_told(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        agent = cast("Agent", runtime.agent("agent"))
        agent.cancel_error = ConnectionError("gone")
        await open_tool(runtime)
        await runtime.cancel("thread", "turn")
        state, facts = await runtime.state("thread"), await facts_of(runtime)

    assert state.runtime.status == "canceled"
    assert [remark.code for remark in state.diagnostics.items.values()] == ["cancel_request_failed"]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.queue")
async def test_turns_wait_for_each_other_in_order(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        states = [
            (await runtime.submit("thread", "agent", f"turn {n}", turn_id=f"t{n}")).status
            for n in range(4)
        ]
        assert await wait_for_end(runtime, "t3") == "completed"
        facts = await facts_of(runtime)

    assert states == ["started", "queued", "queued", "queued"]
    started = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    assert started == ["t0", "t1", "t2", "t3"]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.queue")
async def test_a_queued_turn_can_be_promoted_and_removed(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "first", turn_id="first")
        for name in ("a", "b", "c"):
            await runtime.submit("thread", "agent", name, turn_id=name)
        thread = await runtime.thread("thread")
        await thread.promote("c")
        await runtime.cancel("thread", "a")
        queued = [turn.queued_turn_id for turn in (await runtime.state("thread")).queue.turns]
        with pytest.raises(UnknownTurn):
            await thread.remove("a")

    assert queued == ["c", "b"]


@pytest.mark.requirement("runtime.turn.one-active")
async def test_a_second_turn_can_be_refused_instead_of_queued(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "first", turn_id="first")
        with pytest.raises(TurnAlreadyActive) as refused:
            await runtime.submit("thread", "agent", "second", when_busy="refuse")

    assert refused.value.code == "turn_already_active"


@pytest.mark.requirement("runtime.turn.retry")
async def test_a_retry_is_a_new_turn_that_names_the_old_one(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "again please", turn_id="turn")
        await wait_for_end(runtime, "turn")
        second = await runtime.retry("thread", "turn")
        await wait_for_end(runtime, second.turn_id)
        third = await runtime.retry("thread", second.turn_id)
        await wait_for_end(runtime, third.turn_id)
        facts = await facts_of(runtime)
        with pytest.raises(UnknownTurn):
            await runtime.retry("thread", "never")

    payloads = [fact.payload for fact in facts if fact.event_class == "turn.submitted"]
    assert [payload["prompt"] for payload in payloads] == ["again please"] * 3
    assert [payload.get("attempt") for payload in payloads] == [None, 2, 3]
    assert payloads[2]["retryOf"] == second.turn_id


@pytest.mark.requirement("runtime.agents.unknown")
async def test_an_unknown_agent_is_refused_with_those_that_there_are(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        with pytest.raises(UnknownAgent, match="choose from agent"):
            await runtime.submit("thread", "nobody", "hello")


@pytest.mark.requirement("runtime.turn.limit")
async def test_no_more_turns_run_at_once_than_allowed(tmp_path: Path):
    running_now, most = 0, 0
    gate = asyncio.Event()

    async def count_turn(turn: StartTurn) -> AsyncIterator[Fact]:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        if running_now == 2:
            gate.set()
        await gate.wait()
        running_now -= 1
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(count_turn, tmp_path, active_turns=2) as runtime:
        for n in range(6):
            await runtime.submit(f"thread{n}", "agent", "hello", turn_id=f"turn{n}")
        for n in range(6):
            assert await wait_for_end(runtime, f"turn{n}", f"thread{n}") == "completed"

    assert most == 2


@pytest.mark.requirement("runtime.turn.room")
async def test_a_turn_that_waits_for_a_person_gives_its_place_to_another(tmp_path: Path):
    async def either(turn: StartTurn) -> AsyncIterator[Fact]:
        script = ask_and_obey if turn.prompt == "ask" else echo
        async for fact in script(turn):
            yield fact

    async with run_agent(either, tmp_path, active_turns=1) as runtime:
        for n in range(3):
            await runtime.submit(f"asks{n}", "agent", "ask", turn_id=f"asks{n}")
            await open_action(runtime, f"asks{n}")
        assert runtime.active_turns == 0
        await runtime.submit("works", "agent", "hello", turn_id="works")
        assert await wait_for_end(runtime, "works", "works") == "completed"
        for n in range(3):
            action = await open_action(runtime, f"asks{n}")
            await decide_shown(runtime, f"asks{n}", action, "approve", by="lena")
            assert await wait_for_end(runtime, f"asks{n}", f"asks{n}") == "completed"
        await runtime.submit("again", "agent", "hello", turn_id="again")
        assert await wait_for_end(runtime, "again", "again") == "completed"


@pytest.mark.requirement("runtime.turn.secrets")
async def test_a_secret_in_a_fact_never_reaches_the_journal(tmp_path: Path):
    key = "sk-" + "a1B2" * 12

    async def leak_key(turn: StartTurn) -> AsyncIterator[Fact]:
        for piece in (f"the key is {key[:9]}", f"{key[9:]} and that is it"):
            yield make_fact(turn.host, "model.delta", {"delta": piece}, message_id="m")
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(leak_key, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_of(runtime)

    text = "".join(fact.payload.get("delta", "") for fact in facts)
    assert key not in text
    assert "[redacted]" in text
    assert "output.redacted" in classes(facts)


@pytest.mark.requirement("runtime.turn.id-taken")
async def test_a_fact_that_an_agent_says_twice_is_left_out_and_told(tmp_path: Path):
    async def says_twice(turn: StartTurn) -> AsyncIterator[Fact]:
        first = make_fact(turn.host, "model.delta", {"delta": "once"}, message_id="m")
        yield first
        yield first
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(says_twice, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "say", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state = await runtime.state("thread")
        facts = await facts_of(runtime)

    texts = [part for part in state.messages[-1].parts if isinstance(part, TextPart)]
    assert [str(part.text) for part in texts] == ["once"]
    warnings = [fact.payload for fact in facts if fact.event_class == "runtime.warning"]
    assert [payload["code"] for payload in warnings] == ["id_taken"]
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))


@pytest.mark.requirement("runtime.turn.result")
async def test_the_snapshot_after_a_turn_says_what_it_came_to(tmp_path: Path):
    async def spends(turn: StartTurn) -> AsyncIterator[Fact]:
        cost = {"inputTokens": 7, "outputTokens": 5, "totalCostUsd": 0.25}
        yield make_fact(turn.host, "cost.recorded", cost)
        yield make_fact(turn.host, "turn.completed", {"stopReason": "end_turn"})

    async with run_agent(spends, tmp_path) as runtime:
        for turn in ("one", "two"):
            await runtime.submit("thread", "agent", "spend", turn_id=turn)
            await wait_for_end(runtime, turn)
        facts = await facts_of(runtime)

    results = [fact.payload for fact in facts if fact.event_class == "snapshot.updated"]
    for result in results:
        assert result.pop("durationMs") >= 0
        assert result == {
            "status": "completed",
            "stopReason": "end_turn",
            "usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12},
            "totalCostUsd": 0.25,
        }
    assert len(results) == 2


@pytest.mark.requirement("projection.own-task-turn")
@pytest.mark.parametrize("repeats", [True, False])
async def test_an_agent_that_names_a_task_above_its_turn_ends_it(repeats: bool, tmp_path: Path):
    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        names: dict[str, Any] = {"parent_task_id": "above"}
        if repeats:
            yield make_fact(turn.host, "turn.submitted", **names)
            yield make_fact(turn.host, "turn.started", **names)
        yield make_fact(turn.host, "model.delta", {"delta": "Hi."}, message_id="m", **names)
        yield make_fact(turn.host, "turn.completed", **names)

    async with run_agent(script, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "Go.", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        state = project(await facts_of(runtime))
    assert (state.runtime.status, state.runtime.active_turn_id) == ("completed", None)
    assert [(turn.status, turn.entity) for turn in state.turns.values()] == [("completed", None)]
