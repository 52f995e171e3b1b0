"""A full or broken disk: a clear error, reads go on, and the next append needs no restart."""

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import apsw
import pytest

from factwire.journal import Journal, JournalError, JournalUnwritable, open_journal
from factwire.journal.chunks import Chunk
from factwire.journal.sqlite import SqliteJournal, writer
from tests.journal.contract import collect, make_fact
from tests.journal.disks import FaultyDisk

VFS_ROUNDS = 80
TMPFS_ROUNDS = 20
FAULTS = [
    {"fault": apsw.FullError},
    {"fault": apsw.IOError},
    {"sync_fault": apsw.IOError},
    {"fault": apsw.FullError, "sync_fault": apsw.IOError},
]


class Ledger:
    """What was acknowledged, to be compared with what is read."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.acknowledged: list[tuple[int, str]] = []
        self._number = 0

    async def append(self, size: int = 10) -> None:
        self._number += 1
        batch = [make_fact(f"{self._number}-{part}", f"t{part % 3}") for part in range(3)]
        batch.append(make_fact(f"{self._number}-big", payload={"text": "x" * size}))
        answer = await self.journal.append(batch)
        ids = (fact.id for fact in batch)
        self.acknowledged += list(zip(answer.seqs, ids, strict=True))

    async def fill(self, size: int) -> None:
        for _ in range(1_000):
            await self.append(size)

    async def check(self) -> None:
        found = await collect(self.journal.read())
        assert [pair for pair in found if pair in self.acknowledged] == self.acknowledged
        assert [seq for seq, _ in found] == list(range(1, len(found) + 1))


def empty(folder: Path) -> None:
    for left in folder.iterdir():
        left.unlink()


@pytest.fixture
def faulty() -> Generator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.unregister()


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A real file system of one mebibyte, where mounting one is permitted."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs is not permitted here; the faulty disk covers this")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.disk")
async def test_a_disk_that_refuses_is_told_and_forgiven(faulty: FaultyDisk, tmp_path: Path):
    random = Random(3)
    async with SqliteJournal(str(tmp_path / "journal.db"), vfs=faulty.name) as journal:
        ledger = Ledger(journal)
        for number in range(VFS_ROUNDS):
            await ledger.append()
            for name, fault in FAULTS[number % len(FAULTS)].items():
                setattr(faulty, name, fault)
            for _ in range(random.randrange(1, 4)):
                with pytest.raises(JournalUnwritable) as refused:
                    await ledger.append(random.randrange(20_000))
                assert refused.value.code == "journal_unwritable"
                assert refused.value.reason
            await ledger.check()
            faulty.fault = faulty.sync_fault = None
            await ledger.append()
        await ledger.check()
        assert (await journal.verify()).ok
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        assert await collect(journal.read()) == ledger.acknowledged


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.disk")
async def test_a_full_disk_is_told_and_forgiven_once_there_is_room(small_disk: Path):
    ballast = small_disk / "ballast"
    for number in range(TMPFS_ROUNDS):
        path = small_disk / "journal.db"
        async with open_journal(f"sqlite:{path}") as journal:
            ledger = Ledger(journal)
            await ledger.append()
            ballast.write_bytes(bytes(300_000))
            with pytest.raises(JournalUnwritable):
                await ledger.fill(2_000 + 100 * number)
            await ledger.check()
            ballast.unlink()
            await ledger.append()
            await ledger.check()
            assert (await journal.verify()).ok
        empty(small_disk)


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.disk")
async def test_a_disk_without_inodes_is_told_and_leaves_no_lock_behind(small_disk: Path):
    def limit(inodes: int) -> None:
        options = f"remount,size=1m,nr_inodes={inodes}"
        subprocess.run(["mount", "-o", options, str(small_disk)], check=True)

    codes: set[str] = set()
    for inodes in range(1, 12):
        limit(inodes)
        try:
            async with open_journal(f"sqlite:{small_disk / 'journal.db'}") as journal:
                await Ledger(journal).append()
                await journal.stats()
        except JournalError as error:
            codes.add(error.code)
        limit(100)
        async with open_journal(f"sqlite:{small_disk / 'journal.db'}") as journal:
            assert (await journal.verify()).ok
        empty(small_disk)
    assert codes <= {"journal_unavailable", "journal_unwritable"}
    assert "journal_unavailable" in codes


@pytest.mark.asyncio
@pytest.mark.requirement("journal.disk")
@pytest.mark.parametrize("name", ["lock", "mark"])
async def test_a_pipe_beside_a_journal_is_refused_and_not_waited_for(tmp_path: Path, name: str):
    path = tmp_path / "journal.db"
    async with open_journal(f"sqlite:{path}") as journal:
        await Ledger(journal).append()
    beside = tmp_path / f"journal.db-{name}"
    beside.unlink()
    os.mkfifo(beside)
    with pytest.raises(JournalError) as refused:
        async with open_journal(f"sqlite:{path}"):
            pass
    assert refused.value.code == "journal_unavailable"
    beside.unlink()
    async with open_journal(f"sqlite:{path}") as journal:
        assert (await journal.verify()).ok


@pytest.mark.fault
@pytest.mark.asyncio
async def test_an_answer_in_spite_of_a_full_disk_would_lose_facts(
    faulty: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The check above bites: a writer that does not heed the disk fails it."""
    heedful = writer.SqliteWriter._store

    def heedless(self: writer.SqliteWriter, chunks: Sequence[Chunk]) -> None:
        with suppress(JournalUnwritable):
            heedful(self, chunks)

    async with SqliteJournal(str(tmp_path / "journal.db"), vfs=faulty.name) as journal:
        ledger = Ledger(journal)
        await ledger.append()
        with monkeypatch.context() as patch:
            patch.setattr(writer.SqliteWriter, "_store", heedless)
            faulty.fault = apsw.FullError
            await ledger.append()
            faulty.fault = None
        with pytest.raises((AssertionError, JournalError)):
            await ledger.check()
