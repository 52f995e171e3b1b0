"""What a Factwire that was killed left behind is found and ended, and nobody else is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from factwire.runtime.processes import InvalidSpec, NotStarted, Reaped
from factwire.runtime.processes.process_host import Processes
from factwire.runtime.processes.process_reaper import (
    ProcessRecord,
    RecordFolder,
    build_record,
    entries,
    find_entry,
    this_boot,
)
from tests.runtime.programs import Watched, World, open_files

pytestmark = [pytest.mark.asyncio]

LEFT_BEHIND = Path(__file__).with_name("left_behind.py")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def killed_factwire(world: World) -> list[Watched]:
    """Processes of a Factwire that was killed: a leader, a child, and one that left the group."""
    with subprocess.Popen(
        [sys.executable, str(LEFT_BEHIND), str(world.folder)], stdout=subprocess.PIPE, text=True
    ) as factwire:
        assert factwire.stdout is not None
        left = [Watched(int(pid)) for pid in factwire.stdout.readline().split()]
        factwire.send_signal(signal.SIGKILL)
    return left


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def end(left: list[Watched]) -> None:
    for process in left:
        if process.is_alive:
            os.kill(process.pid, signal.SIGKILL)
        process.close()


def write(world: World, record: ProcessRecord) -> None:
    RecordFolder(world.data / "processes").write(record)


@pytest.mark.fault
@pytest.mark.requirement("runtime.process.reaper")
async def test_after_a_kill_the_next_start_ends_what_was_left_behind(world: World):
    left = killed_factwire(world)
    try:
        # Bites: without the reaper they all live on.
        assert all(process.is_alive for process in left)
        reaped = await world.processes().reap()
        assert all(process.ends() for process in left)
        assert [(r.process_id, r.outcome) for r in reaped] == [("proc_left", "killed")]
        assert set(reaped[0].pids) == {process.pid for process in left}
        assert await world.processes().reap() == []
    finally:
        end(left)


@pytest.mark.fault
@pytest.mark.requirement("runtime.process.reaper")
async def test_a_family_whose_leader_is_gone_is_found_by_its_marker(world: World):
    left = killed_factwire(world)
    try:
        (record,) = RecordFolder(world.data / "processes").records()
        os.kill(record.pid, signal.SIGKILL)
        leader = next(process for process in left if process.pid == record.pid)
        assert leader.ends()
        await world.processes().reap()
        assert all(process.ends() for process in left)
    finally:
        end(left)


@pytest.mark.requirement("runtime.process.reaper.recycled")
async def test_a_pid_that_is_somebody_else_s_by_now_is_left_alone(world: World):
    """Bites: with the right start time, the same record is the end of it."""
    with sleeper() as other:
        watched = Watched(other.pid)
        mine = build_record("proc_1", other.pid)
        assert mine.started is not None
        gone = msgspec.structs.replace(mine, owner=2**22 + 1)
        write(world, msgspec.structs.replace(gone, started=mine.started - 1))
        assert await world.processes().reap() == [Reaped(process_id="proc_1", outcome="gone")]
        assert watched.is_alive
        write(world, gone)
        reaped = await world.processes().reap()
        assert reaped == [Reaped(process_id="proc_1", outcome="killed", pids=(other.pid,))]
        assert watched.ends()
        watched.close()


@pytest.mark.requirement("runtime.process.reaper.recycled")
@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "owned"),
        ({"owner": 2**22 + 1, "boot": "of-yesterday"}, "gone"),
        ({"owner": 2**22 + 1, "namespace": 1}, "unknown"),
        ({"owner": 2**22 + 1, "started": None}, "unknown"),
    ],
)
async def test_nothing_is_killed_without_proof(
    world: World, changes: dict[str, object], outcome: str
):
    with sleeper() as other:
        write(world, msgspec.structs.replace(build_record("proc_1", other.pid), **changes))
        reaped = await world.processes().reap()
        assert [each.outcome for each in reaped] == [outcome]
        assert other.poll() is None
        other.kill()
    kept = list(RecordFolder(world.data / "processes").records())
    assert bool(kept) == (outcome != "gone")


async def test_a_torn_record_is_passed_over(world: World):
    (world.data / "processes").mkdir()
    (world.data / "processes" / "proc_1.json").write_text('{"processId": "pr')
    assert await world.processes().reap() == []


@pytest.mark.requirement("runtime.process.gate")
async def test_a_program_does_not_run_before_its_record_is_on_disk(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Every sync happens while the program has not begun, and the record names it exactly."""
    synced: list[bool] = []
    fsync = os.fsync

    def watched_fsync(file: int) -> None:
        synced.append((world.workspace / "ran").exists())
        fsync(file)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    spec = world.python("open('ran', 'w').close(); input()", stdin="pipe")
    async with world.processes().start(spec, process_id="proc_1") as process:
        assert synced == [False, False]
        (record,) = RecordFolder(world.data / "processes").records()
        entry = find_entry(process.pid)
        assert entry is not None
        assert (record.pid, record.started, record.boot) == (
            process.pid,
            entry.started,
            this_boot(),
        )
        assert record.owner == os.getpid()


@pytest.mark.requirement("runtime.process.gate")
async def test_a_program_whose_record_cannot_be_written_never_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def full(_folder: RecordFolder, _record: ProcessRecord) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordFolder, "write", full)
    with pytest.raises(NotStarted, match="No space"):
        async with world.processes().start(world.python("open('ran', 'w').close()")):
            pass
    assert list(world.workspace.iterdir()) == []


@pytest.mark.requirement("runtime.process.gate")
async def test_a_gate_that_is_gone_is_told_and_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.processes.process_launch._SHELL", "/bin/false")
    before = open_files()
    spec = world.python("")

    async def until_it_is_gone() -> None:
        for number in range(1000):
            async with world.processes().start(spec, process_id=f"proc_{number}") as process:
                assert (await process.wait()).exit_code == 1

    with pytest.raises(NotStarted):
        # Whether the pipe is closed by the time we write is a race; it is lost sooner or later.
        await until_it_is_gone()
    assert open_files() == before


@pytest.mark.parametrize("name", ["../x", "a b", "x" * 200])
async def test_an_id_that_is_no_name_of_a_file_is_refused(world: World, name: str):
    with pytest.raises(InvalidSpec):
        world.processes().start(world.python(""), process_id=name)


async def test_where_there_is_no_table_of_processes_nothing_is_known_and_nothing_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.processes.process_reaper._PROC", world.folder / "none")
    assert list(entries()) == []
    record = build_record("proc_1", 1)
    assert (record.started, record.boot, record.namespace) == (None, None, None)
    write(world, record)
    assert [each.outcome for each in await Processes(world.data, workspaces=[]).reap()] == [
        "unknown"
    ]
