"""Recording: anyone's own loop becomes whole, valid facts."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal import JournalError, open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.projection import conversation, transcript
from factwire.projection.actions import Action
from factwire.runtime import TurnAlreadyActive, TurnFailed
from factwire.runtime.recording import BlockingRecorder, Recorder


async def read_facts(url: str) -> list[Fact]:
    found: list[Fact] = []
    async with open_journal(url) as journal:
        async for batch in journal.read():
            found += [fact for _, fact in batch.facts()]
    return found


async def record_everything(recorder: Recorder) -> None:
    async with recorder.turn("Do it all") as turn:
        turn.status("looking around", "preparing")
        turn.reasoning("Look, then act.")
        turn.plan("1. look\n2. act")
        turn.text("I look ")
        turn.text("first.")
        async with turn.tool("look", {"at": "src"}, title="Look") as call:
            call.progress("half", 1, 2)
            call.output("seen\n")
            call.result({"files": 2})
        async with turn.subagent("helper", "count the files") as helper:
            helper.text("There are two.")
            async with helper.tool("count"):
                pass
        await turn.artifact("notes.md", "# Notes", artifact_id="art")
        await turn.artifact("notes.md", "# Notes, again", artifact_id="art")
        await turn.evidence("A check", verdict="passed", content=b"log")
        turn.cost(input_tokens=10, output_tokens=2, total_cost_usd=0.1, model="m")
        turn.warning("nearly done", code="near")
        turn.say("Done.")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.turn")
async def test_a_turn_with_everything_in_it_is_whole_and_valid(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'runs.db'}"
    async with Recorder(url, thread_id="thread") as recorder:
        await record_everything(recorder)
        state = recorder.state
    facts = await read_facts(url)

    assert inspect_stream(facts) == []
    assert state.runtime.status == "completed"
    assert [message.role for message in conversation(state)] == ["user", *["assistant"] * 3]
    [subagent] = state.subagents.threads
    assert len(transcript(state, subagent)) == 1
    assert {tool.state for tool in state.tools.values()} == {"output-available"}
    assert len(state.artifacts["art"].versions) == 2
    assert state.metrics.usage.total_tokens == 12
    assert [task.status for task in state.tasks.values()] == ["completed"]


async def record_crash(recorder: Recorder, error: BaseException) -> None:
    async with recorder.turn("Crash") as turn:
        turn.text("half a sen")
        async with turn.subagent("helper", "crash"), turn.tool("crash"):
            raise error


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.crash")
@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ValueError("boom"), "exception"),
        (TurnFailed("no_money", "the budget is spent"), "no_money"),
        (KeyboardInterrupt(), "exception"),
    ],
)
async def test_a_crash_is_a_failed_turn_with_a_category(error: BaseException, category: str):
    async with Recorder("memory:", thread_id="thread") as recorder:
        with pytest.raises(type(error)):
            await record_crash(recorder, error)
        state = recorder.state

    assert (state.runtime.status, state.runtime.failure_category) == ("failed", category)
    assert [tool.failure_category for tool in state.tools.values()] == [category]
    assert [task.status for task in state.tasks.values()] == ["failed"]
    assert {message.status for message in state.messages} == {"final"}


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.ask")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_request_is_answered_by_whoever_is_there(answer: str):
    seen: list[Action] = []

    async def decide(action: Action) -> str:
        seen.append(action)
        return answer

    async with Recorder("memory:", on_ask=decide) as recorder:
        async with recorder.turn("Deploy") as turn, turn.tool("deploy") as call:
            decision = await turn.ask("Deploy?", args={"to": "staging"}, call=call)
            if not decision.allowed:
                call.fail("permission_denied", "no")
        state = recorder.state

    assert decision.allowed == (answer == "approve")
    assert seen[0].shown == 'Deploy?\n{\n  "to": "staging"\n}'
    assert [tool.state for tool in state.tools.values()] == [
        "output-available" if decision.allowed else "output-error"
    ]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.ask")
async def test_a_request_can_be_decided_by_name():
    async with Recorder("memory:") as recorder:
        is_open = asyncio.Event()
        recorder.watch(lambda fact, _: is_open.set() if fact.action_id else None)

        async def work() -> bool:
            async with recorder.turn("Deploy") as turn:
                return (await turn.ask("Deploy?")).allowed

        working = asyncio.create_task(work())
        async with asyncio.timeout(60):
            await is_open.wait()
            [action] = recorder.state.actions
            await recorder.decide(action, "approve", by="lena", reason="fine")
            assert await working


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.turn.one-active")
async def test_a_recorder_has_one_turn_at_a_time():
    async with Recorder("memory:") as recorder, recorder.turn("One"):
        with pytest.raises(TurnAlreadyActive):
            async with recorder.turn("Two"):
                pass


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.recording.goes-on")
async def test_a_recorder_goes_on_with_a_thread_that_it_finds(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'runs.db'}"
    for prompt in ("One", "Two"):
        opened = Recorder(url, thread_id="thread", blobs=MemoryBlobs())
        async with opened as recorder, recorder.turn(prompt) as turn:
            turn.say(f"{prompt}!")
    facts = await read_facts(url)

    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    assert len({fact.session_id for fact in facts}) == 1
    assert inspect_stream(facts) == []


@pytest.mark.requirement("runtime.recording.blocking")
def test_plain_code_records_the_same(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'runs.db'}"

    async def yes(_: Action) -> str:
        return "approve"

    with BlockingRecorder(url, thread_id="thread", on_ask=yes) as recorder:
        with recorder.turn("Do it") as turn:
            turn.status("on it")
            turn.reasoning("Simple.")
            turn.plan("Do it")
            turn.text("Doing ")
            turn.text("it.")
            with turn.tool("do", {"what": "it"}) as call:
                call.progress("half")
                call.output("done\n")
                assert turn.ask("Really?", call=call).allowed
                call.result(summary="did it")
            with pytest.raises(ZeroDivisionError), turn.tool("divide"):
                _ = 1 / 0
            with turn.tool("skip") as call:
                call.fail("skipped", "not needed")
            with turn.subagent("helper", "help") as helper:
                helper.say("Helped.")
            turn.artifact("it.txt", "it")
            turn.evidence("It is done", verdict="passed")
            turn.cost(input_tokens=1)
            turn.warning("careful")
            turn.say("Done.")
        state = recorder.state
        assert recorder.thread_id == "thread"
        with pytest.raises(TurnFailed), recorder.turn("Fail"):
            raise TurnFailed("tired", "enough")
        failed = recorder.state.runtime.failure_category

    facts = asyncio.run(read_facts(url))
    assert inspect_stream(facts) == []
    assert failed == "tired"
    states: list[Any] = sorted(tool.state for tool in state.tools.values())
    assert states == ["output-available", "output-error", "output-error"]


@pytest.mark.requirement("runtime.recording.blocking")
def test_a_recorder_that_cannot_open_says_so_and_leaves_no_thread(tmp_path: Path):
    with pytest.raises(JournalError), BlockingRecorder(f"sqlite:{tmp_path}"):
        pass


@pytest.mark.requirement("runtime.recording.blocking")
def test_a_recorder_that_is_closed_takes_no_more_and_leaves_nothing_behind():
    with BlockingRecorder("memory:") as recorder:
        pass
    with pytest.raises(RuntimeError, match="closed"), recorder.turn("Too late"):
        pass
    gc.collect()  # A coroutine that was left behind is a warning, and that an error.


@pytest.mark.requirement("runtime.recording.turn")
def test_a_recorder_that_is_not_open_says_how_to_open_it():
    with pytest.raises(RuntimeError, match="async with Recorder"):
        _ = Recorder("memory:").state
