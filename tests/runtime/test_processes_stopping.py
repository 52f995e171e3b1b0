"""A program ends when it is told to, whatever it thinks of it, and leaves nothing behind."""

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest

from factwire.runtime.processes import Exit, ProcessStuck, RunningProcess, StopEscalation
from factwire.runtime.processes.process_reaper import find_entry
from factwire.runtime.processes.running_process import wait_until_ended
from tests.runtime.programs import (
    BOUND,
    PATIENT,
    QUICK,
    Watched,
    World,
    children,
    heard,
    open_files,
    run,
)

DEAF = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("ready", os.getpid(), flush=True)
while True: signal.pause()
"""

FAMILY = """
import os, signal, sys
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("grandchild", os.getpid(), flush=True)
    while True: signal.pause()
LEADER
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def grandchild_of(process: RunningProcess) -> Watched:
    text = await heard(process, "\n")
    return Watched(int(text.split()[1]))


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.ladder")
async def test_a_program_that_listens_ends_by_sigterm(world: World):
    code = "import signal; print('ready', flush=True); signal.pause()"
    async with asyncio.timeout(BOUND), world.processes().start(world.python(code)) as process:
        await heard(process, "ready")
        assert await process.stop() == Exit(signal="SIGTERM", stopped="stopped", rung="terminate")
        assert await process.stop() == await process.wait()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.ladder")
async def test_a_program_that_ignores_sigterm_is_killed(world: World):
    processes = world.processes(ladder=QUICK)
    async with asyncio.timeout(BOUND), processes.start(world.python(DEAF)) as process:
        await heard(process, "ready")
        assert await process.stop() == Exit(signal="SIGKILL", stopped="stopped", rung="kill")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.ladder")
async def test_the_protocol_is_asked_first_and_its_answer_is_enough(world: World):
    spec = world.python(
        f"{DEAF.replace('while True: signal.pause()', 'sys.stdin.readline()')}", stdin="pipe"
    )

    async def interrupt(process: RunningProcess) -> None:
        await process.write(b"please\n")

    async with asyncio.timeout(BOUND):
        async with world.processes().start(spec, interrupt=interrupt) as process:
            await heard(process, "ready")
            stopped = await process.stop("a person said so")
    assert stopped == Exit(exit_code=0, stopped="a person said so", rung="interrupt")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.ladder")
@pytest.mark.parametrize("fails", [True, False])
async def test_a_protocol_that_fails_or_hangs_does_not_hold_up_the_ladder(
    world: World, fails: bool
):
    async def interrupt(_process: RunningProcess) -> None:
        if fails:
            raise ConnectionError("gone")
        await asyncio.Event().wait()

    processes = world.processes(ladder=QUICK)
    async with asyncio.timeout(BOUND):
        async with processes.start(world.python(DEAF), interrupt=interrupt) as process:
            await heard(process, "ready")
            assert (await process.stop()).rung == "kill"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.ladder")
async def test_two_who_stop_at_once_get_the_same_end(world: World):
    processes = world.processes(ladder=QUICK)
    async with asyncio.timeout(BOUND), processes.start(world.python(DEAF)) as process:
        await heard(process, "ready")
        first, second = await asyncio.gather(process.stop("one"), process.stop("two"))
    assert first == second == Exit(signal="SIGKILL", stopped="one", rung="kill")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.group")
async def test_grandchildren_are_killed_with_the_group(world: World):
    spec = world.python(FAMILY.replace("LEADER", "signal.pause()"))
    async with asyncio.timeout(BOUND), world.processes(ladder=QUICK).start(spec) as process:
        grandchild = await grandchild_of(process)
        await process.stop()
        assert grandchild.ends()
        grandchild.close()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.stop.group")
async def test_a_program_that_ends_leaves_no_grandchild_behind(world: World):
    """The grandchild holds the pipes open as well, and does not keep the run from ending."""
    spec = world.python(FAMILY.replace("LEADER", "sys.stdin.readline()"), stdin="pipe")
    async with asyncio.timeout(BOUND), world.processes(ladder=QUICK).start(spec) as process:
        grandchild = await grandchild_of(process)
        await process.write(b"\n")
        assert await process.wait() == Exit(exit_code=0)
        assert grandchild.ends()
        grandchild.close()


@pytest.mark.asyncio
async def test_who_left_the_group_and_holds_the_pipes_is_not_waited_for(world: World):
    spec = world.python(
        FAMILY.replace("fork() == 0:", "fork() == 0:\n    os.setsid()").replace(
            "LEADER", "sys.stdin.readline()"
        ),
        stdin="pipe",
    )
    async with asyncio.timeout(BOUND), world.processes(ladder=QUICK).start(spec) as process:
        daemon = await grandchild_of(process)
        await process.write(b"\n")
        assert await process.wait() == Exit(exit_code=0)
    assert daemon.is_alive
    os.kill(daemon.pid, signal.SIGKILL)
    assert daemon.ends()
    daemon.close()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.time-limit")
async def test_a_program_that_takes_too_long_is_stopped(world: World):
    ran = await run(world.processes(ladder=QUICK), world.python(DEAF, time_limit=0.2))
    assert (ran.exit.stopped, ran.exit.signal) == ("time_limit", "SIGKILL")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.time-limit")
async def test_a_program_that_ends_in_time_is_not_stopped(world: World):
    ran = await run(world.processes(), world.python("", time_limit=BOUND))
    assert ran.exit == Exit(exit_code=0)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.cancel")
@pytest.mark.parametrize("where", ["reading", "waiting", "stopping"])
async def test_a_caller_that_is_cancelled_leaves_nothing(world: World, where: str):
    before, files, ours = asyncio.all_tasks(), open_files(), children()
    started: asyncio.Future[RunningProcess] = asyncio.get_running_loop().create_future()

    async def caller() -> None:
        async with world.processes(ladder=PATIENT).start(world.python(DEAF)) as process:
            await heard(process, "ready")
            started.set_result(process)
            if where == "reading":
                await heard(process, "never")
            await (process.wait() if where == "waiting" else process.stop())

    task = asyncio.create_task(caller())
    async with asyncio.timeout(BOUND):
        process = await started
        watched = Watched(process.pid)
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert watched.ends()
    watched.close()
    assert (asyncio.all_tasks(), open_files(), children()) == (before, files, ours)
    assert list((world.data / "processes").iterdir()) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.cancel")
async def test_a_caller_that_is_cancelled_twice_still_leaves_nothing(world: World):
    before, files = asyncio.all_tasks(), open_files()
    inside = asyncio.Event()

    async def caller() -> None:
        async with world.processes().start(world.python(DEAF)) as process:
            await heard(process, "ready")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(caller())
    async with asyncio.timeout(BOUND):
        await inside.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (asyncio.all_tasks(), open_files()) == (before, files)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.cancel")
async def test_a_caller_that_is_cancelled_while_it_starts_leaves_nothing(world: World):
    before, files, ours = asyncio.all_tasks(), open_files(), children()
    for steps in range(12):

        async def caller() -> None:
            async with world.processes().start(world.python(DEAF)):
                await asyncio.Event().wait()

        task = asyncio.create_task(caller())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(BOUND):
            with pytest.raises(asyncio.CancelledError):
                await task
    assert (asyncio.all_tasks(), open_files(), children()) == (before, files, ours)
    assert list((world.data / "processes").glob("*")) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.cancel")
async def test_a_caller_that_fails_leaves_nothing_and_gets_its_own_error(world: World):
    pids: list[int] = []

    async def caller() -> None:
        async with asyncio.timeout(BOUND), world.processes().start(world.python(DEAF)) as process:
            await heard(process, "ready")
            pids.append(process.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await caller()
    assert find_entry(pids[0]) is None


@pytest.mark.asyncio
async def test_leaving_early_goes_down_the_ladder(world: World):
    code = (
        "import signal, sys\n"
        "signal.signal(15, lambda *_: (print('bye'), sys.exit(4)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    async with asyncio.timeout(BOUND), world.processes().start(world.python(code)) as process:
        await heard(process, "ready")
    assert await process.wait() == Exit(exit_code=4, stopped="closed", rung="terminate")
    assert await process.read_log("stdout", 6, 100) == b"bye\n"


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.no-leaks")
async def test_five_hundred_programs_leave_no_file_no_zombie_and_no_task(world: World):
    processes = world.processes()
    spec = world.shell("echo out; echo err >&2")
    await run(processes, spec)
    gc.collect()
    before, files, ours = asyncio.all_tasks(), open_files(), children()
    for _ in range(500):
        ran = await run(processes, spec)
        assert (ran.text(), ran.text("stderr")) == ("out\n", "err\n")
    assert (asyncio.all_tasks(), open_files(), children()) == (before, files, ours)
    assert list((world.data / "processes").iterdir()) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.no-leaks")
async def test_many_programs_at_once_do_not_mix_their_words(world: World):
    processes = world.processes()

    async def one(number: int) -> str:
        return (
            await run(processes, world.shell('for i in 1 2 3; do echo "$1"; done', str(number)))
        ).text()

    assert await asyncio.gather(*map(one, range(30))) == [f"{n}\n" * 3 for n in range(30)]


@pytest.mark.asyncio
async def test_the_end_is_seen_where_the_system_has_no_handles_for_processes(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "pidfd_open")
    assert (await run(world.processes(), world.python("raise SystemExit(5)"))).exit.exit_code == 5
    async with asyncio.timeout(BOUND):
        await wait_until_ended(2**22 + 1)


@pytest.mark.asyncio
async def test_a_program_that_survives_sigkill_is_named_and_keeps_its_record(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Only the kernel can keep one; here, signals are lost instead."""
    ladder = StopEscalation(interrupt=0.05, terminate=0.05, kill=0.05, linger=0.05)
    started: list[RunningProcess] = []

    def lose(_group: int, _number: int) -> None:
        pass

    async def caller() -> None:
        processes = world.processes(ladder=ladder)
        async with asyncio.timeout(BOUND), processes.start(world.python(DEAF)) as process:
            started.append(process)
            await heard(process, "ready")
            monkeypatch.setattr(os, "killpg", lose)
            await process.stop()

    with pytest.raises(ProcessStuck):
        await caller()
    monkeypatch.undo()
    (process,) = started
    assert [path.stem for path in (world.data / "processes").iterdir()] == [process.process_id]
    os.killpg(process.pid, signal.SIGKILL)
    process._popen.wait()
