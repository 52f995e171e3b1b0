"""kill -9 while a turn is steered, and while one waits to be tried again."""

import asyncio
import shutil
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import open_journal
from factwire.projection import ProjectionState
from factwire.runtime import recovery
from factwire.runtime.submissions import Steers
from tests.runtime.agents import WAIT, facts_of
from tests.runtime.killed_steering import THREAD, runtime_in, start

ROUNDS = 6


def kill_runtime(folder: Path, doing: str, moment: int) -> list[str]:
    """Kill a runtime after so many things that it said were durable; what it said in all."""
    folder.mkdir()
    process, receiver = start(folder, doing)
    messages: list[str] = []
    try:
        while receiver.poll(WAIT):
            messages.append(receiver.recv_bytes().decode())
            if len(messages) == moment:
                process.kill()
    except (EOFError, ConnectionError):
        pass
    process.join(WAIT)
    assert process.exitcode == -SIGKILL
    return messages


async def gone_on(folder: Path, doing: str) -> tuple[ProjectionState, list[Fact]]:
    """Let another runtime finish what there is."""
    async with open_journal(f"sqlite:{folder / 'journal.db'}") as journal:
        assert (await journal.verify()).ok
        async with runtime_in(folder, journal, doing) as runtime:
            thread = await runtime.thread(THREAD)
            async with asyncio.timeout(WAIT):
                await thread.wait_idle()
            return thread.projection.state, await facts_of(runtime, THREAD)


def find_lost(state: ProjectionState, steers: list[str]) -> list[str]:
    """Steers that were acknowledged, and are neither in the conversation nor a turn."""
    taken = {message.message_id for message in state.messages}
    return [
        steer
        for steer in steers
        if f"{steer}:user" not in taken and f"turn:{steer}" not in state.graph.nodes
    ]


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("runtime.steer.kill")
async def test_no_steer_is_lost_by_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    random, missing = Random("steer"), 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        steers = kill_runtime(folder, "listening", 1 + random.randrange(20))
        copy = tmp_path / f"{number}-without"
        shutil.copytree(folder, copy)
        state, facts = await gone_on(folder, "working")
        assert find_lost(state, steers) == []
        assert [s.steer_id for s in state.queue.steers if s.status == "pending"] == []
        assert inspect_stream(facts) == []
        with monkeypatch.context() as without:
            without.setattr(Steers, "build_leftover_turns", _return_nothing)
            state, _ = await gone_on(copy, "working")
            missing += len(find_lost(state, steers))
    # Bites: without the step that makes turns of what nobody took, steers are lost.
    assert missing > 0


def attempts(facts: list[Fact]) -> list[tuple[Any, int]]:
    submissions = [fact for fact in facts if fact.event_class == "turn.submitted"]
    return [(fact.payload.get("retryOf"), fact.payload.get("attempt", 1)) for fact in submissions]


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("runtime.retry.kill")
async def test_a_retry_that_was_due_happens_once_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    random, missing = Random("backoff"), 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        kill_runtime(folder, "failing", 4 + random.randrange(24))
        copy = tmp_path / f"{number}-without"
        shutil.copytree(folder, copy)
        state, facts = await gone_on(folder, "working")
        turns = [fact.turn_id for fact in facts if fact.event_class == "turn.submitted"]
        assert attempts(facts) == [
            (turns[place - 1] if place else None, place + 1) for place in range(len(turns))
        ]
        assert state.runtime.latest_turn_status == "completed"
        assert state.queue.turns == []
        assert inspect_stream(facts) == []
        with monkeypatch.context() as without:
            without.setattr(recovery, "_find_queues", _none)
            state, _ = await gone_on(copy, "working")
            missing += state.runtime.latest_turn_status != "completed"
    # Bites: without the look at the queues, a retry that waited never happens.
    assert missing > 0


def _return_nothing(*_: object, **__: object) -> list[Fact]:
    return []


async def _none(_: object) -> list[str]:
    return []
