"""What a server needs of a runtime: limits that refuse, folders that are allowed, a clean end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import open_journal
from factwire.runtime import (
    RuntimeClosing,
    StartTurn,
    TooManyTurns,
    TurnSettings,
    WorkspaceNotAllowed,
)
from tests.runtime.agents import (
    Agent,
    approval,
    classes,
    echo,
    endless,
    facts_of,
    make_fact,
    open_action,
    run_agent,
    wait_for_end,
)
from tests.runtime.steered import runtime_of, wait_for_fact

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("runtime.full")
async def test_more_turns_than_may_run_are_refused_or_wait(tmp_path: Path):
    async with run_agent(endless, tmp_path, active_turns=2) as runtime:
        answers = await asyncio.gather(
            *(
                runtime.submit(f"t{n}", "agent", "x", turn_id=f"{n}", when_full="refuse")
                for n in range(6)
            ),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, TooManyTurns)]
        full = runtime.active_turns
        queued = await runtime.submit("t0", "agent", "next", when_full="refuse")
        known = await runtime.submit("t0", "agent", "x", turn_id="0", when_full="refuse")
        waits = await runtime.submit("patient", "agent", "x", turn_id="p")
        await runtime.cancel("patient", "p")
        await runtime.cancel("t0", queued.turn_id)
        await runtime.cancel("t0", "0")
        again = await runtime.submit("t9", "agent", "x", turn_id="9", when_full="refuse")

    assert [error.code for error in refused] == ["too_many_turns"] * 4
    assert full == 2
    assert (queued.status, known.status, waits.status) == ("queued", "known", "started")
    assert again.status == "started"


@pytest.mark.requirement("runtime.queue")
async def test_a_runtime_promotes_and_removes_what_waits(tmp_path: Path):
    async with run_agent(endless, tmp_path) as runtime:
        for name in ("first", "a", "b", "c"):
            await runtime.submit("thread", "agent", name, turn_id=name)
        await runtime.promote("thread", "c")
        await runtime.remove("thread", "a", "no longer needed")
        state = await runtime.state("thread")

    assert [turn.queued_turn_id for turn in state.queue.turns] == ["c", "b"]
    assert state.runtime.queued_turn_count == 2


async def where(turn: StartTurn) -> AsyncIterator[Fact]:
    payload = {"text": str(turn.host.workspace)}
    yield make_fact(turn.host, "model.completed", payload, message_id=f"m-{turn.turn_id}")
    yield make_fact(turn.host, "turn.completed")


@pytest.mark.requirement("runtime.workspaces")
async def test_a_turn_works_in_the_folder_that_it_names(tmp_path: Path):
    allowed = tmp_path / "allowed"
    (allowed / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(allowed / "project")
    agents = {"agent": Agent(where)}
    async with runtime_of(agents, tmp_path, workspaces=[allowed]) as runtime:
        for turn_id, folder in (("a", tmp_path / "link"), ("b", None)):
            await runtime.submit("thread", "agent", "go", turn_id=turn_id, workspace=folder)
            assert await wait_for_end(runtime, turn_id) == "completed"
        again = await runtime.retry("thread", "a")
        await wait_for_end(runtime, again.turn_id)
        facts = await facts_of(runtime)

    answers = [f.payload["text"] for f in facts if f.event_class == "model.completed"]
    real = str((allowed / "project").resolve())
    assert answers == [real, str(tmp_path), real]
    workspaces = [f.payload.get("workspace") for f in facts if f.event_class == "turn.submitted"]
    assert workspaces == [real, None, real]


@pytest.mark.requirement("runtime.workspaces")
@pytest.mark.parametrize("folder", ["outside", "allowed/../outside", "allowed/link", "missing"])
@pytest.mark.parametrize("any_allowed", [True, False])
async def test_a_folder_outside_of_what_is_allowed_is_refused(
    tmp_path: Path, folder: str, any_allowed: bool
):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "outside")
    allowed = [tmp_path / "allowed"] if any_allowed else []
    async with runtime_of({"agent": Agent(where)}, tmp_path, workspaces=allowed) as runtime:
        with pytest.raises(WorkspaceNotAllowed) as refused:
            await runtime.submit("thread", "agent", "go", workspace=tmp_path / folder)

    assert refused.value.code == "workspace_not_allowed"


@pytest.mark.requirement("runtime.workspaces")
async def test_a_folder_that_leads_elsewhere_when_its_turn_comes_is_refused_then(tmp_path: Path):
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    (allowed / "project").mkdir(parents=True)
    outside.mkdir()
    agents = {"busy": Agent(endless), "agent": Agent(where)}
    async with runtime_of(agents, tmp_path, workspaces=[allowed]) as runtime:
        await runtime.submit("thread", "busy", "work", turn_id="turn")
        await runtime.submit("thread", "agent", "go", turn_id="q", workspace=allowed / "project")
        (allowed / "project").rmdir()
        (allowed / "project").symlink_to(outside)
        await runtime.cancel("thread", "turn")
        await runtime.release("thread")
        assert await wait_for_end(runtime, "q") == "failed"
        state = await runtime.state("thread")

    assert state.runtime.failure_category == "workspace_not_allowed"


@pytest.mark.requirement("runtime.close")
async def test_closing_lets_what_runs_end_and_leaves_what_waits(tmp_path: Path):
    proceed = asyncio.Event()

    async def slow(turn: StartTurn) -> AsyncIterator[Fact]:
        yield make_fact(turn.host, "model.delta", {"delta": "slow"}, message_id="m")
        await proceed.wait()
        yield make_fact(turn.host, "turn.completed")

    async def patient(turn: StartTurn) -> AsyncIterator[Fact]:
        if turn.resumed:
            await turn.host.await_open(next(iter(turn.history.actions)) if turn.history else "")
        else:
            await turn.host.ask(approval())
        yield make_fact(turn.host, "turn.completed")

    agents = {"slow": Agent(slow), "asking": Agent(patient, resume="yes"), "echo": Agent(echo)}
    async with open_journal("memory:") as journal:
        async with runtime_of(dict(agents), tmp_path, journal) as runtime:
            await runtime.submit("works", "slow", "go", turn_id="slow")
            await runtime.submit("works", "echo", "later", turn_id="later")
            await runtime.submit("waits", "asking", "go", turn_id="asks")
            await wait_for_fact(runtime, "model.delta", "works")
            action = await open_action(runtime, "waits")
            closing = asyncio.create_task(runtime.close(20))
            await asyncio.sleep(0)
            for refused in (
                runtime.submit("new", "echo", "x"),
                runtime.steer("works", "x"),
                runtime.retry("works", "slow"),
            ):
                with pytest.raises(RuntimeClosing):
                    await refused
            proceed.set()
            await closing
            ran = await runtime.state("works")
        async with runtime_of(dict(agents), tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "later", "works") == "completed"
            waits = await runtime.state("waits")
            facts = await facts_of(runtime, "works")

    assert ran.runtime.latest_turn_status == "completed"
    assert [turn.queued_turn_id for turn in ran.queue.turns] == ["later"]
    assert waits.actions[action].status == "pending"
    assert "turn.failed" not in classes(facts)
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.close")
async def test_closing_ends_though_a_turn_does_not(tmp_path: Path):
    async with open_journal("memory:") as journal:
        async with runtime_of({"agent": Agent(endless)}, tmp_path, journal) as runtime:
            await runtime.submit("thread", "agent", "go", turn_id="turn")
            await wait_for_fact(runtime, "tool.started")
            await runtime.close(0.01)
            await runtime.close()
            left = classes(await facts_of(runtime))
        async with runtime_of({"agent": Agent(endless)}, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "turn") == "failed"
            state = await runtime.state("thread")

    assert left[-1] == "tool.started"
    assert state.runtime.failure_category == "runtime_restarted"


@pytest.mark.requirement("runtime.close")
async def test_a_turn_that_waits_for_room_is_started_by_the_next_runtime(tmp_path: Path):
    one = TurnSettings(active_turns=1, interrupt_seconds=0.01)
    async with open_journal("memory:") as journal:
        agents = {"agent": Agent(endless)}
        async with runtime_of(agents, tmp_path, journal, settings=one) as runtime:
            await runtime.submit("a", "agent", "go", turn_id="a")
            await wait_for_fact(runtime, "tool.started", "a")
            await runtime.submit("b", "agent", "go", turn_id="b")
            await runtime.close(0.01)
        async with runtime_of({"agent": Agent(echo)}, tmp_path, journal) as runtime:
            assert await wait_for_end(runtime, "b", "b") == "completed"
            facts = await facts_of(runtime, "b")

    assert classes(facts).count("turn.started") == 1
