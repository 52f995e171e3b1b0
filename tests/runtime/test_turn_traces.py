"""Traces of turns: who asked for a turn finds it by one id, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from factwire.facts import Fact
from factwire.journal import open_journal
from factwire.runtime import Runtime, StartTurn
from factwire.runtime.retry_policy import RetryPolicy
from tests.runtime.agents import (
    WAIT,
    ask_and_obey,
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

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "1bf7651916cd43dd8448eb211c80319c"


async def traces(runtime: Runtime, turn_id: str) -> set[str | None]:
    """The trace ids of a turn's facts, those of its time in the queue among them."""
    facts = await facts_of(runtime)
    return {fact.trace_id for fact in facts if turn_id in (fact.turn_id, fact.queued_turn_id)}


@pytest.mark.requirement("edge.observing.kept-trace")
async def test_every_fact_of_a_turn_carries_the_trace_of_who_asked(tmp_path: Path):
    async with run_agent(ask_and_obey, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "deploy", turn_id="turn", trace_id=TRACE)
        await decide_shown(runtime, "thread", await open_action(runtime), "allow", by="somebody")
        assert await wait_for_end(runtime, "turn") == "completed"
        classes = {fact.event_class for fact in await facts_of(runtime)}
        assert {"action.resolved", "action.updated", "snapshot.updated"} <= classes
        assert await traces(runtime, "turn") == {TRACE}


@pytest.mark.requirement("edge.observing.kept-trace")
async def test_a_turn_without_a_trace_has_none(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn")
        await wait_for_end(runtime, "turn")
        assert await traces(runtime, "turn") == {None}


@pytest.mark.requirement("edge.observing.kept-trace")
async def test_a_queued_turn_keeps_its_trace_across_a_restart(tmp_path: Path):
    async with open_journal("memory:") as journal:
        async with run_agent(endless, tmp_path, journal) as runtime:
            await runtime.submit("thread", "agent", "first", turn_id="first", trace_id=TRACE)
            await runtime.submit("thread", "agent", "next", turn_id="next", trace_id=OTHER)
            await open_tool(runtime)
        async with run_agent(echo, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "next") == "completed"
            assert (await runtime.thread("thread")).outcome("first") == "failed"
            assert await traces(runtime, "first") == {TRACE}
            assert await traces(runtime, "next") == {OTHER}


@pytest.mark.requirement("edge.observing.kept-trace")
async def test_another_try_is_of_the_trace_of_who_asked_for_it(tmp_path: Path):
    async with run_agent(echo, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn", trace_id=TRACE)
        await wait_for_end(runtime, "turn")
        again = await runtime.retry("thread", "turn", trace_id=OTHER)
        await wait_for_end(runtime, again.turn_id)
        assert await traces(runtime, again.turn_id) == {OTHER}


@pytest.mark.requirement("edge.observing.kept-trace")
async def test_a_try_that_follows_by_itself_stays_in_the_trace(tmp_path: Path):
    async def fail_turn(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "turn.failed", {"failureCategory": "rate_limited"})

    policy = RetryPolicy(attempts=2, delay_seconds=0.001)
    async with run_agent(fail_turn, tmp_path, retry=policy) as runtime:
        await runtime.submit("thread", "agent", "hello", turn_id="turn", trace_id=TRACE)
        async with asyncio.timeout(WAIT):
            await (await runtime.thread("thread")).wait_settled("turn")
        found = {(fact.turn_id, fact.trace_id) for fact in await facts_of(runtime) if fact.turn_id}
        assert len(found) == 2
        assert {trace_id for _, trace_id in found} == {TRACE}
