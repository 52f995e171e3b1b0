"""What only the SQLite journal has: its lock, its read-only handle, its epochs, its upkeep."""

import asyncio
import shutil
import stat
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import apsw
import pytest

from factwire.journal import (
    ConflictingFact,
    Cursor,
    CursorUnknownEpoch,
    Damage,
    Filter,
    Journal,
    JournalBusy,
    JournalCorrupt,
    JournalError,
    JournalReadOnly,
    JournalUnavailable,
    JournalUrlError,
    open_journal,
)
from factwire.journal.sqlite import SqliteJournal, handle, schema, snapshots, writer
from tests.journal.contract import WAIT, close_after, collect, ids, make_fact, take
from tests.journal.killed_writer import start

pytestmark = pytest.mark.asyncio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def at(path: Path, query: str = "") -> Journal:
    return open_journal(f"sqlite:{path}{query}")


def exists(path: Path) -> bool:
    return path.exists()


def modes_in(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, content: bytes) -> None:
    """Put other content into the same file."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


@pytest.mark.requirement("journal.sqlite.busy")
async def test_a_second_process_is_told_who_writes(path: Path):
    process, message = start(f"sqlite:{path}", 0, eager=False)
    message.recv_bytes()
    with pytest.raises(JournalBusy) as refused:
        async with at(path):
            pass
    assert (refused.value.code, refused.value.pid) == ("journal_busy", process.pid)
    process.kill()
    process.join()
    async with at(path) as journal:
        assert (await journal.head()).seq > 0


@pytest.mark.requirement("journal.sqlite.read_only")
async def test_a_read_only_handle_reads_and_follows_beside_the_writer(path: Path):
    async with at(path) as journal:
        await journal.append([make_fact(1, "a"), make_fact(2, "b")])
        async with at(path, "?mode=ro") as beside:
            assert await beside.head() == await journal.head()
            assert await collect(beside.read(filter=Filter(thread="b"))) == ids(2, start=2)
            assert await beside.threads() == await journal.threads()
            assert await beside.position("fact-2") == await journal.head()
            async with close_after(beside.follow()) as batches:
                assert await take(batches, 2) == ids(1, 2)
                await journal.append([make_fact(3, "a")])
                assert await take(batches, 1) == ids(3, start=3)
            assert (await beside.verify()).ok
            assert (await beside.stats()).threads == 2
            row = await beside.thread("a")
            assert row is not None
            assert row.last_seq == 3
            with pytest.raises(JournalReadOnly) as refused:
                await beside.append([make_fact(4)])
            assert refused.value.code == "journal_read_only"


async def test_a_read_only_handle_needs_a_journal(path: Path):
    with pytest.raises(JournalError):
        async with at(path, "?mode=ro"):
            pass
    assert not exists(path)


@pytest.mark.parametrize(
    "url",
    [
        *("sqlite:", "sqlite:x?mode=rx", "sqlite:x?y=1", "memory:x", "x:y"),
        *("sqlite::memory:", "sqlite::memory:?mode=ro", "sqlite:file::memory:", "sqlite:a\0b"),
    ],
)
async def test_a_url_that_names_no_journal_is_refused(url: str):
    with pytest.raises(JournalUrlError) as refused:
        open_journal(url)
    assert refused.value.code == "journal_url"


@pytest.mark.requirement("journal.epoch")
async def test_a_restart_keeps_the_epoch_and_a_copy_gets_a_new_one(path: Path):
    async with at(path) as journal:
        await journal.append([make_fact(1)])
        head = await journal.head()
    async with at(path) as journal:
        assert await journal.head() == head
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    shutil.copy(f"{path}-mark", f"{copy}-mark")
    async with at(copy) as journal:
        assert (await journal.head()).seq == 1
        with pytest.raises(CursorUnknownEpoch):
            await collect(journal.read(head))
        renewed = await journal.head()
    async with at(copy) as journal:
        assert await journal.head() == renewed


@pytest.mark.requirement("journal.epoch")
async def test_an_older_state_in_the_same_file_gets_a_new_epoch(path: Path):
    async with at(path) as journal:
        await journal.append([make_fact(1)])
    older = content_of(path)
    async with at(path) as journal:
        await journal.append([make_fact(2)])
        head = await journal.head()
    overwrite(path, older)
    async with at(path) as journal:
        now = await journal.head()
        assert (now.seq, now.epoch == head.epoch) == (1, False)
        await journal.append([make_fact("other")])
        with pytest.raises(CursorUnknownEpoch):
            await collect(journal.read(head))


async def test_a_mark_that_a_power_cut_took_back_changes_no_epoch(path: Path):
    async with at(path) as journal:
        await journal.append([make_fact(1)])
        epoch = (await journal.head()).epoch
    mark = Path(f"{path}-mark")
    lagging = content_of(mark)
    async with at(path) as journal:
        await journal.append([make_fact(2)])
    for content in (lagging, b"", lagging[:20]):
        overwrite(mark, content)
        async with at(path) as journal:
            assert await journal.head() == Cursor(epoch, 2)


@pytest.mark.requirement("journal.sqlite.upkeep")
async def test_sealed_and_merged_facts_read_as_they_were_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(handle, "RUN_IDS", 32)
    monkeypatch.setattr(writer, "LOOSE_CHUNKS", 8)
    monkeypatch.setattr(writer, "LOOSE_ENOUGH", 2)
    random = Random(6)
    facts = [make_fact(f"{random.getrandbits(64):x}", f"t{n % 7}") for n in range(1_200)]
    async with at(path) as journal:
        for fact in facts[:200]:
            await journal.append([fact])
        for start_at in range(200, 1_200, 25):
            await journal.append(facts[start_at : start_at + 25])
    async with at(path) as journal:
        whole = [(n + 1, fact.id) for n, fact in enumerate(facts)]
        assert await collect(journal.read()) == whole
        for thread in range(7):
            found = await collect(journal.read(filter=Filter(thread=f"t{thread}")))
            assert found == whole[thread::7]
        for n in random.sample(range(1_200), 60):
            again = await journal.append([facts[n]])
            assert (again.seqs, again.repeated) == ((n + 1,), (True,))
            with pytest.raises(ConflictingFact):
                await journal.append([make_fact(facts[n].id.removeprefix("fact-"), "other")])
        report = await journal.verify()
        assert (report.ok, report.facts) == (True, 1_200)
        assert report.chunks < 120


@pytest.mark.requirement("journal.sqlite.upkeep")
async def test_a_merge_that_fails_leaves_what_is_sealed_next_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    merging, next_began, merge_pieces = Event(), Event(), handle.merge_pieces

    def fail_once(*args: Any) -> Any:
        if merging.is_set():
            return merge_pieces(*args)
        merging.set()
        assert next_began.wait(WAIT)
        raise apsw.FullError

    monkeypatch.setattr(handle, "RUN_IDS", 4)
    monkeypatch.setattr(handle, "merge_pieces", fail_once)
    facts = [make_fact(n, f"t{n % 3}") for n in range(40)]
    async with at(path) as journal, asyncio.timeout(WAIT):
        for start_at in range(0, 16, 4):
            await journal.append(facts[start_at : start_at + 4])
            await journal.compact()
        assert await asyncio.to_thread(merging.wait, WAIT)
        await journal.append(facts[16:20])
        next_began.set()
        for start_at in range(20, 40, 4):
            await journal.append(facts[start_at : start_at + 4])
            await journal.compact()
        whole = [(n + 1, fact.id) for n, fact in enumerate(facts)]
        for thread in range(3):
            found = await collect(journal.read(filter=Filter(thread=f"t{thread}")))
            assert found == whole[thread::3]
        report = await journal.verify()
        assert (report.ok, report.facts) == (True, 40)


@pytest.mark.requirement("journal.sqlite.cancelled")
async def test_a_call_that_is_cancelled_in_the_queue_leaves_the_writer_at_work(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    writing, cancelled, insert_chunk = Event(), Event(), writer.insert_chunk

    def insert_later(*args: Any) -> None:
        writing.set()
        assert cancelled.wait(WAIT)
        insert_chunk(*args)

    monkeypatch.setattr(writer, "insert_chunk", insert_later)
    async with at(path) as journal, asyncio.timeout(WAIT):
        append = asyncio.create_task(journal.append([make_fact(1)]))
        assert await asyncio.to_thread(writing.wait, WAIT)
        position = asyncio.create_task(journal.position("fact-1"))
        await asyncio.sleep(0)
        position.cancel()
        await asyncio.wait([position])
        cancelled.set()
        assert (await append).seqs == (1,)
        assert (await journal.append([make_fact(2)])).seqs == (2,)
    assert position.cancelled()


@pytest.mark.requirement("journal.sqlite.cancelled")
async def test_upkeep_goes_on_when_one_who_waits_for_it_gives_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    sealing, cancelled, build_segment = Event(), Event(), handle.build_segment

    def build_later(*args: Any) -> Any:
        sealing.set()
        assert cancelled.wait(WAIT)
        return build_segment(*args)

    monkeypatch.setattr(handle, "RUN_IDS", 2)
    monkeypatch.setattr(handle, "build_segment", build_later)
    async with at(path) as journal, asyncio.timeout(WAIT):
        await journal.append([make_fact(1), make_fact(2)])
        assert await asyncio.to_thread(sealing.wait, WAIT)
        compaction = asyncio.create_task(journal.compact())
        await asyncio.sleep(0)
        # Answered after the compaction was told which seal to wait for.
        await journal.position("fact-2")
        compaction.cancel()
        await asyncio.wait([compaction])
        cancelled.set()
        await journal.append([make_fact(3)])
        await journal.compact()
        assert await collect(journal.read()) == ids(1, 2, 3)
    assert compaction.cancelled()


async def test_a_missing_end_is_noticed_on_opening(path: Path):
    async with at(path) as journal:
        for number in range(1, 5):
            await journal.append([make_fact(number)])
    connection = schema.connect(str(path), vfs=None)
    connection.execute("DELETE FROM chunks WHERE first = 4")
    connection.close()
    with pytest.raises(JournalCorrupt) as refused:
        async with at(path):
            pass
    assert (refused.value.first, refused.value.last) == (4, 4)
    async with at(path, "?mode=ro") as journal:
        report = await journal.verify()
        assert report.damage is not None
        assert (report.damage.first, report.intact) == (4, 3)


@pytest.mark.requirement("journal.sqlite.migrations")
async def test_a_migration_that_is_cut_short_leaves_the_step_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with at(path) as journal:
        await journal.append([make_fact(1)])
    broken = "CREATE TABLE added(x); INSERT INTO added VALUES(1); SELECT * FROM nowhere;"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
        with pytest.raises(JournalUnavailable):
            async with at(path):
                pass
    async with at(path) as journal:
        assert await collect(journal.read()) == ids(1)
    added = "CREATE TABLE added(x);"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, added))
        async with at(path) as journal:
            assert await collect(journal.read()) == ids(1)
    with pytest.raises(JournalError):
        async with at(path):
            pass


async def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "SQLITE_FLOOR", 9_000_000)
    with pytest.raises(JournalError):
        async with SqliteJournal(str(path)):
            pass


async def test_one_journal_serves_two_event_loops(path: Path):
    async with at(path) as journal:

        def elsewhere() -> tuple[int, ...]:
            return asyncio.run(journal.append([make_fact("far")])).seqs

        async with close_after(journal.follow()) as batches:
            waiting = asyncio.create_task(take(batches, 1))
            assert await asyncio.to_thread(elsewhere) == (1,)
            assert await waiting == ids("far")


@pytest.mark.parametrize("place", [".", "missing/folder/runs.db"])
async def test_a_path_that_cannot_be_opened_says_so(tmp_path: Path, place: str):
    with pytest.raises(JournalUnavailable):
        async with open_journal(f"sqlite:{tmp_path / place}"):
            pytest.fail("it was opened")


@pytest.mark.requirement("journal.verify.snapshots")
async def test_a_snapshot_that_stands_on_another_chain_is_named(path: Path):
    async with at(path) as journal:
        appended = await journal.append([make_fact(1), make_fact(2)])
        saved = await journal.save_snapshot("thread-1", appended.cursor, b"state")
        assert (await journal.verify()).ok
    foreign = bytes(32)
    forged = snapshots.sum_snapshot("thread-1", saved.kind, saved.cursor.seq, foreign, b"state")
    connection: Any = apsw.Connection(str(path))
    connection.execute("UPDATE snapshots SET anchor = ?, sum = ?", (foreign, forged))
    connection.close()
    async with at(path) as journal:
        report = await journal.verify()
    reason = "the projection snapshot of 'thread-1' at 2 does not belong to this chain"
    assert report.damage == Damage(first=2, last=2, reason=reason)


@pytest.mark.requirement("journal.sqlite.private")
async def test_a_new_journal_is_its_owners_alone(path: Path):
    async with open_journal(f"sqlite:{path}") as journal:
        await journal.append([make_fact("private")])
        modes = modes_in(path.parent)
    assert set(modes.values()) == {0o600}, modes
