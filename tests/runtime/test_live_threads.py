"""A thread whose turn cannot come to its end, or not begin: whoever waits hears of it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from factwire.facts import Fact, Person
from factwire.journal import JournalUnwritable, open_journal
from factwire.runtime import StartTurn
from factwire.runtime.control import CancelRequest, ControlRefusal, RuntimeControls
from tests.runtime.agents import (
    WAIT,
    Agent,
    echo,
    endless,
    make_fact,
    open_tool,
    run_agent,
    wait_for_end,
)


@pytest.mark.asyncio
async def test_a_journal_that_takes_no_more_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    going = asyncio.Event()

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        await going.wait()
        yield make_fact(turn.host, "turn.completed")

    async def full(*_: Any, **__: Any) -> None:
        raise JournalUnwritable("the disk is full")

    async with run_agent(script, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "x", turn_id="turn")
        thread = await runtime.thread("thread")
        monkeypatch.setattr(runtime.journal, "append", full)
        going.set()
        async with asyncio.timeout(WAIT):
            with pytest.raises(JournalUnwritable):
                await thread.wait_for("turn")
            with pytest.raises(JournalUnwritable):
                await thread.wait_idle()


@pytest.mark.asyncio
async def test_a_turn_at_its_end_is_not_said_to_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored, noted = asyncio.Event(), asyncio.Event()
    async with run_agent(echo, tmp_path) as runtime:
        append = runtime.journal.append

        async def lag(batch: Sequence[Fact], **more: Any) -> Any:
            """Others read the end before the runtime hears that it is stored."""
            receipt = await append(batch, **more)
            if any(fact.event_class == "turn.completed" for fact in batch):
                stored.set()
                await noted.wait()
            return receipt

        monkeypatch.setattr(runtime.journal, "append", lag)
        async with asyncio.timeout(WAIT):
            await runtime.submit("thread", "agent", "x", turn_id="turn")
            await stored.wait()
            controls = RuntimeControls(runtime, by=Person(name="tester"))
            cancelling = asyncio.ensure_future(controls.cancel(CancelRequest(target="turn")))
            await asyncio.sleep(0)
            noted.set()
            reply = await cancelling
    assert isinstance(reply, ControlRefusal)
    assert reply.code == "turn_ended"


@pytest.mark.asyncio
async def test_a_turn_that_stops_in_time_is_ended_and_followed_however_long_that_takes(
    tmp_path: Path,
):
    stopped = asyncio.Event()

    async def script(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "tool.started", {"toolName": "wait"}, tool_call_id=turn.turn_id)
        await stopped.wait()
        yield make_fact(turn.host, "turn.completed")

    async with run_agent(script, tmp_path) as runtime:
        await runtime.submit("thread", "agent", "x", turn_id="first")
        await open_tool(runtime)
        await runtime.submit("thread", "agent", "y", turn_id="second")
        thread = await runtime.thread("thread")
        assert thread.turn is not None
        async with thread.order:
            # The end cannot be written for as long as somebody else has a say.
            stopped.set()
            await thread.turn.cancel("requested")
        assert await wait_for_end(runtime, "first") == "canceled"
        await runtime.release("thread", "second")
        assert await wait_for_end(runtime, "second") == "completed"


@pytest.mark.asyncio
async def test_a_turn_that_is_about_to_start_when_the_runtime_closes_waits_for_the_next(
    tmp_path: Path,
):
    async with open_journal("memory:") as journal:
        async with run_agent(endless, tmp_path, journal) as runtime:
            await runtime.submit("thread", "agent", "x", turn_id="first")
            await open_tool(runtime)
            await runtime.submit("thread", "agent", "y", turn_id="second")
        async with run_agent(echo, tmp_path, journal):
            pass  # Closed before the task of the second has made a step.
        async with run_agent(echo, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "second") == "completed"
    gc.collect()  # A coroutine that was left behind is a warning, and that an error.


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.threads.idle")
async def test_idle_threads_leave_memory_and_come_back_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.runtime.IDLE_THREADS", 3)
    async with run_agent(echo, tmp_path) as runtime:
        held = await runtime.thread("held")
        log = (await runtime.thread("written")).log
        for number in range(12):
            await runtime.submit(f"thread-{number}", "agent", "x", turn_id=f"turn-{number}")
            await (await runtime.thread(f"thread-{number}")).wait_idle()
        cast("Agent", runtime.agent("agent")).started.clear()
        gc.collect()
        in_memory = {thread.thread_id for thread in runtime.live}
        assert in_memory >= {"held", "written", "thread-11"}
        assert len(in_memory) <= 6
        # Whoever holds a thread or its log has the only one there is.
        assert await runtime.thread("held") is held
        assert (await runtime.thread("written")).log is log
        again = await runtime.thread("thread-0")
        assert again.outcome("turn-0") == "completed"
        receipt = await runtime.submit("thread-0", "agent", "x", turn_id="turn-0")
        assert receipt.status == "known"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.threads.idle")
async def test_a_thread_on_which_something_happens_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.runtime.IDLE_THREADS", 1)
    async with run_agent(endless, tmp_path) as runtime:
        await runtime.submit("busy", "agent", "x", turn_id="turn")
        busy = id(await runtime.thread("busy"))
        for number in range(6):
            await runtime.thread(f"other-{number}")
        gc.collect()
        assert id(await runtime.thread("busy")) == busy
        await runtime.cancel("busy", "turn")
