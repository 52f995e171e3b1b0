"""kill -9 of a runtime at any moment: nothing is lost, and everything goes on or is closed."""

import asyncio
from pathlib import Path
from random import Random
from signal import SIGKILL

import pytest

from factwire.facts import inspect_stream
from factwire.journal import open_journal
from factwire.projection import ProjectionState
from factwire.runtime import Runtime
from tests.runtime.agents import WAIT, decide_shown, facts_of, open_action
from tests.runtime.killed_runtime import CHATTER, THREAD, runtime_in, start

ROUNDS = {"answer": 20, "approval": 15, "output": 15}
MORE = {"answer": 200, "approval": 1, "output": 60}
LEAST = {"answer": 5, "approval": 1, "output": 8}
"""Facts after which the turn is doing what it is about."""


def prepare(folder: Path) -> None:
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "chatter.sh").write_text(CHATTER)


def open_now() -> tuple[int, int]:
    """Tasks and files that are open now."""
    return len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir()))


def kill_runtime(folder: Path, doing: str, moment: int) -> int:
    """Kill a runtime after so many durable facts; how many it told of."""
    process, receiver = start(folder, doing)
    seen, waiting = 0, doing != "approval"
    try:
        while receiver.poll(WAIT):
            waiting = receiver.recv_bytes() == b"action.required" or waiting
            seen += 1
            if waiting and seen >= moment:
                process.kill()
    except (EOFError, ConnectionError):
        pass
    process.join(WAIT)
    assert process.exitcode == -SIGKILL
    return seen


def left_running(named: Path) -> bool:
    """Whether the program that wrote its number there is still at work."""
    number = named.read_text().strip() if named.exists() else ""
    stat = Path(f"/proc/{number}/stat")
    return bool(number) and stat.exists() and stat.read_text().split()[2] != "Z"


async def gone_on(runtime: Runtime, doing: str) -> ProjectionState:
    """Let a restarted runtime finish what there is; the state at the end."""
    thread = await runtime.thread(THREAD)
    async with asyncio.timeout(WAIT):
        if doing == "approval" and thread.projection.state.runtime.status == "waiting":
            await decide_shown(
                runtime, THREAD, await open_action(runtime, THREAD), "approve", by="me"
            )
        if thread.knows("second"):
            await thread.wait_for("second")
        await thread.wait_idle()
    return thread.projection.state


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(900)
@pytest.mark.requirement("runtime.kill")
@pytest.mark.parametrize("doing", ROUNDS)
async def test_a_killed_runtime_leaves_nothing_half_done(tmp_path: Path, doing: str):
    random, outlived = Random(doing), 0
    for number in range(ROUNDS[doing]):
        folder = tmp_path / str(number)
        prepare(folder)
        reported = kill_runtime(folder, doing, LEAST[doing] + random.randrange(MORE[doing]))
        outlived += left_running(folder / "workspace" / "pid")
        async with open_journal(f"sqlite:{folder / 'journal.db'}") as journal:
            assert (await journal.verify()).ok
            assert (await journal.stats()).facts >= reported
            async with runtime_in(folder, journal, doing) as runtime:
                state = await gone_on(runtime, doing)
                facts = await facts_of(runtime, THREAD)

        check_whole(state, doing)
        assert inspect_stream(facts) == []
        assert not left_running(folder / "workspace" / "pid")
    # Bites: a program does outlive its runtime until the next one ends it.
    assert outlived > 0 or doing != "output"


def check_whole(state: ProjectionState, doing: str) -> None:
    turns = {
        key.removeprefix("turn:"): node.status
        for key, node in state.graph.nodes.items()
        if node.node_type == "turn"
    }
    assert state.hydration.status == "live"
    assert turns.get("second", "completed") == "completed"
    assert turns["first"] in ("completed", "failed")
    if turns["first"] == "failed":
        categories = {tool.failure_category for tool in state.tools.values()}
        assert categories <= {None, "interrupted"}
    assert not any(action.status == "pending" for action in state.actions.values())
    assert doing != "approval" or turns["first"] == "completed"
    assert all(tool.completed_at is not None for tool in state.tools.values())


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("runtime.no-leaks")
async def test_two_thousand_short_turns_leave_nothing_behind(tmp_path: Path):
    prepare(tmp_path)
    async with (
        open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal,
        runtime_in(tmp_path, journal, "answer") as runtime,
    ):
        thread = await runtime.thread(THREAD)
        await one_turn(runtime, "warm")
        before = open_now()
        for number in range(2_000):
            await one_turn(runtime, f"turn-{number}")
        after = open_now()
        state = thread.projection.state

    assert after[0] <= before[0]
    assert after[1] <= before[1] + 2
    assert state.runtime.status == "completed"
    assert len(state.messages) == 2 * 2_001


async def one_turn(runtime: Runtime, turn_id: str) -> None:
    await runtime.submit(THREAD, "talker", "once", turn_id=turn_id)
    async with asyncio.timeout(WAIT):
        assert await (await runtime.thread(THREAD)).wait_for(turn_id) == "completed"
        await (await runtime.thread(THREAD)).wait_idle()
