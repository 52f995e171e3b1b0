"""PostgreSQL killed, cut off, taken back and shared, while facts are appended and followed."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from factwire.journal import CursorUnknownEpoch, JournalUnavailable
from factwire.journal.postgres import PostgresJournal, writer
from factwire.journal.postgres.server_connection import PostgresConnection, connect
from tests.journal import postgres_server
from tests.journal.contract import collect
from tests.journal.contract import make_fact as fact
from tests.journal.postgres_facts import follow_until, ids
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = [pytest.mark.asyncio, pytest.mark.fault]

WAIT = 60


async def until(condition: Callable[[], bool]) -> None:
    """Wait, but not for ever."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


class Load:
    """Producers that append for as long as they are let, and what they were promised."""

    def __init__(self, journals: list[PostgresJournal]) -> None:
        self.journals = journals
        self.batches: list[list[tuple[int, str]]] = []
        self.going = True
        self.name = uuid4().hex[:6]

    async def produce(self, lane: int) -> None:
        journal = self.journals[lane % len(self.journals)]
        number = 0
        while self.going:
            number += 1
            names = [f"{self.name}-{lane}-{number}-{part}" for part in range(1 + number % 3)]
            batch = [fact(name, f"lane-{lane % 3}") for name in names]
            answer = await journal.append(batch)
            assert not any(answer.repeated)
            found = zip(answer.seqs, (each.id for each in batch), strict=True)
            self.batches.append(list(found))

    @property
    def promised(self) -> dict[int, str]:
        return {seq: name for batch in self.batches for seq, name in batch}

    @asynccontextmanager
    async def keep_running(self, lanes: int = 8) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self.produce(lane)) for lane in range(lanes)]
        try:
            yield
        finally:
            self.going = False
            await asyncio.wait_for(asyncio.gather(*tasks), WAIT)


class Follower:
    """Someone who follows through every crash."""

    def __init__(self, journal: PostgresJournal) -> None:
        self.found: list[tuple[int, str]] = []
        self.task = asyncio.create_task(self._follow(journal))

    async def _follow(self, journal: PostgresJournal) -> None:
        async for batch in journal.follow():
            self.found += [(seq, each.id) for seq, each in batch.facts()]

    async def end(self, head: int) -> list[tuple[int, str]]:
        await until(lambda: self.task.done() or (bool(self.found) and self.found[-1][0] >= head))
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task
        return self.found


@asynccontextmanager
async def follow_journals(journals: list[PostgresJournal]) -> AsyncGenerator[list[Follower]]:
    """A follower of each journal, none of which outlives the block."""
    followers = [Follower(journal) for journal in journals]
    try:
        yield followers
    finally:
        for follower in followers:
            follower.task.cancel()
        await asyncio.gather(*(each.task for each in followers), return_exceptions=True)


async def crash(server: PostgresServer, load: Load) -> None:
    """Kill the server amid the load, see that it is missed, and bring it back."""
    seen = len(load.batches)
    await until(lambda: len(load.batches) >= seen + 16)
    await asyncio.to_thread(server.kill)
    for journal in load.journals:
        await until(lambda journal=journal: journal.outage is not None)
    await asyncio.to_thread(server.start)
    for journal in load.journals:
        await journal.head()


async def checkpoint(server: PostgresServer) -> None:
    """Have on disk what is there by now, however hasty the server is."""
    connection = await connect(server.dsn, within=WAIT, settings={})
    await connection.execute("CHECKPOINT")
    await connection.close(timeout=WAIT)


async def survive(server: PostgresServer, rounds: int, **options: str) -> None:
    """Kill a server under load again and again; nothing that was acknowledged may be missing."""
    url = server.url(poll="0.2", **options)
    async with PostgresJournal(url) as one, PostgresJournal(url) as other:
        await checkpoint(server)
        load = Load([one, other])
        async with follow_journals([one, other]) as followers:
            async with load.keep_running():
                for _ in range(rounds):
                    await crash(server, load)
            await until(lambda: one.outage is None and other.outage is None)
            stored = await collect(one.read())
            head = (await one.head()).seq
            assert load.promised == dict(stored)
            for follower in followers:
                assert await follower.end(head) == stored
        assert (await one.verify()).ok
    assert [seq for seq, _ in stored] == list(range(1, head + 1))
    assert len({name for _, name in stored}) == len(stored)
    for batch in load.batches:
        assert [seq for seq, _ in batch] == list(range(batch[0][0], batch[0][0] + len(batch)))


@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.postgres.crash")
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(writer, "_HALVED", 1)
    with PostgresServer() as server:
        await survive(server, 20)


async def test_the_same_crashes_lose_facts_when_commits_do_not_wait_for_the_disk(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(writer, "_HALVED", 1)
    hasty = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_buffers": "64MB"}
    hasty["wal_writer_flush_after"] = "1GB"
    # Facts are missing, or a reader is told that the journal is an older copy of itself.
    lost = pytest.raises((AssertionError, CursorUnknownEpoch))
    with PostgresServer(hasty) as server, lost:
        await survive(server, 3, durable="no")


@pytest.mark.requirement("journal.postgres.unavailable")
async def test_an_append_that_waits_too_long_is_refused_and_may_be_repeated():
    with PostgresServer() as server:
        async with PostgresJournal(server.url(patience="0.5")) as journal:
            await journal.append([fact(1)])
            server.kill()
            with pytest.raises(JournalUnavailable):
                await journal.append([fact(2)])
            with pytest.raises(JournalUnavailable):
                await collect(journal.read())
            assert journal.outage is not None
            server.start()
            assert (await journal.append([fact(2)])).seqs == (2,)
            await until(lambda: journal.outage is None)
            assert await ids(journal) == ["fact-1", "fact-2"]
        server.kill()
        with pytest.raises(JournalUnavailable):
            await PostgresJournal(server.url(patience="0.2")).__aenter__()


@pytest.mark.requirement("journal.postgres.doubt")
async def test_a_commit_whose_answer_was_lost_is_found_and_not_written_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    async with PostgresJournal(postgres.url(uuid4().hex)) as journal:
        await journal.append([fact(1)])
        handle = journal._handle
        assert handle is not None
        commit = handle.writer._committer._commit
        cuts = iter([True])

        async def commit_without_answer(connection: PostgresConnection, *rest: Any) -> bool:
            written = await commit(connection, *rest)
            if next(cuts, False):
                raise ConnectionResetError("the answer was lost")
            return written

        monkeypatch.setattr(handle.writer._committer, "_commit", commit_without_answer)
        answer = await journal.append([fact(2), fact(3)])
        assert (answer.seqs, answer.repeated) == ((2, 3), (False, False))
        assert await ids(journal) == ["fact-1", "fact-2", "fact-3"]
        assert (await journal.append([fact(4)])).seqs == (4,)


@pytest.mark.requirement("journal.postgres.shared")
async def test_two_processes_append_at_once_without_gap_or_loss(postgres: PostgresServer):
    url, count = postgres.url(uuid4().hex), 120
    command = [sys.executable, "-m", "tests.journal.postgres_writer", url]
    pipe = asyncio.subprocess.PIPE
    async with PostgresJournal(url) as journal:
        following = asyncio.create_task(follow_until(journal, 2 * count * 3))
        writers = [
            await asyncio.create_subprocess_exec(*command, name, str(count), stdout=pipe)
            for name in ("one", "two")
        ]
        outputs = await asyncio.wait_for(
            asyncio.gather(*(each.communicate() for each in writers)), WAIT
        )
        assert [each.returncode for each in writers] == [0, 0]
        lines = [line.split() for output, _ in outputs for line in output.decode().splitlines()]
        stored = await collect(journal.read())
        assert sorted((int(seq), name) for seq, name in lines) == stored
        assert [seq for seq, _ in stored] == list(range(1, 2 * count * 3 + 1))
        assert await asyncio.wait_for(following, WAIT) == [name for _, name in stored]
        found = [each async for part in journal.read() for _, each in part.facts()]
        assert [each.sequence for each in found] == list(range(1, len(found) + 1))
        assert (await journal.verify()).ok


@pytest.mark.requirement("journal.postgres.taken_back")
async def test_an_older_copy_put_back_gets_a_new_epoch():
    with PostgresServer() as server:
        async with PostgresJournal(server.url(poll="0.05")) as journal:
            await journal.append([fact(1)])
            server.kill()
            data, copy = server.folder / "data", server.folder / "copy"
            server.copy(data, copy)
            server.start()
            cursor = (await journal.append([fact(2)])).cursor
            following = asyncio.create_task(follow_until(journal, 1, str(cursor)))
            await until(lambda: bool(journal._handle and journal._handle.reader.readers.stats(2)))
            server.kill()
            data.rename(server.folder / "newer")
            copy.rename(data)
            server.start()
            with pytest.raises(CursorUnknownEpoch):
                await asyncio.wait_for(following, WAIT)
            assert (await journal.append([fact(3)])).seqs == (2,)
            with pytest.raises(CursorUnknownEpoch):
                await collect(journal.read(cursor))
            assert await ids(journal) == ["fact-1", "fact-3"]
