"""The server killed and started again under load, and gone for longer than anyone waits."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from factwire.facts.fact import Fact
from factwire.journal import (
    FactBatch,
    Filter,
    Journal,
    JournalCorrupt,
    JournalError,
    JournalUnavailable,
)
from factwire.journal.nats import NatsJournal
from tests.journal.contract import WAIT, close_after, collect, ids, make_fact, take
from tests.journal.nats_server import NatsServer, running_cluster, running_server

ROUNDS = 20
PRODUCERS = 8

Acked = dict[int, str]


class Load:
    """Producers that append batches until told to stop, each batch again until it is acked."""

    def __init__(self, journal: Journal) -> None:
        self.acked: Acked = {}
        self.sizes: dict[str, int] = {}
        self.refused = 0
        self.failed: JournalError | None = None
        self._journal = journal
        self._stopped = False
        self._progress = asyncio.Event()

    async def produce(self, lane: int) -> None:
        number = 0
        while not self._stopped:
            number += 1
            name = f"{lane}-{number}"
            self.sizes[name] = number % 4 + 1
            thread = f"lane-{lane}"
            batch = [make_fact(f"{name}-{at}", thread) for at in range(self.sizes[name])]
            try:
                await self._append(name, batch)
            except JournalError as error:
                self.failed = error
                self._progress.set()
                return

    async def _append(self, name: str, batch: list[Fact]) -> None:
        while True:
            try:
                answer = await self._journal.append(batch)
            except JournalUnavailable:
                self.refused += 1
            else:
                places = zip(answer.seqs, range(len(batch)), strict=True)
                self.acked.update((seq, f"fact-{name}-{at}") for seq, at in places)
                self._progress.set()
                return

    def stop(self) -> None:
        self._stopped = True

    async def go_on(self, acks: int) -> None:
        """Wait for some more acknowledgements."""
        goal = len(self.acked) + acks
        async with asyncio.timeout(4 * WAIT):
            while len(self.acked) < goal:
                if self.failed is not None:
                    raise self.failed
                self._progress.clear()
                await self._progress.wait()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that rings no bell."""
    async with asyncio.timeout(WAIT):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def gather(batches: AsyncIterator[FactBatch], into: list[tuple[int, str]]) -> None:
    async for batch in batches:
        into += [(seq, fact.id) for seq, fact in batch.facts()]


async def kill_and_restart(
    server: NatsServer, load: Load, journal: NatsJournal, rounds: int
) -> None:
    rng = random.Random(20)
    for _ in range(rounds):
        await load.go_on(rng.randint(1, 40))
        await asyncio.to_thread(server.kill)
        await until(lambda: journal.outage is not None)
        await asyncio.to_thread(server.start)
    await load.go_on(40)
    assert journal.outage is None


async def survive(server: NatsServer, rounds: int) -> None:
    """Kill a server under load again and again; nothing that was acknowledged may be missing."""
    url = server.url(options="sync=always&patience=20")
    followed: list[tuple[int, str]] = []
    of_lane: list[tuple[int, str]] = []
    async with NatsJournal(url) as journal, NatsJournal(url) as beside:
        load = Load(journal)
        producing = [asyncio.create_task(load.produce(lane)) for lane in range(PRODUCERS)]
        async with (
            close_after(journal.follow()) as all_facts,
            close_after(beside.follow(filter=Filter(thread="lane-3"))) as lane_facts,
        ):
            following = [
                asyncio.create_task(gather(all_facts, followed)),
                asyncio.create_task(gather(lane_facts, of_lane)),
            ]
            try:
                await kill_and_restart(server, load, journal, rounds)
                load.stop()
                await asyncio.gather(*producing)
                assert load.failed is None
                stored = await collect(journal.read())
                check(stored, load)
                lane = [(seq, name) for seq, name in stored if name.startswith("fact-3-")]
                await until(lambda: len(followed) >= len(stored) and len(of_lane) >= len(lane))
                assert followed == stored
                assert of_lane == lane
            finally:
                load.stop()
                for task in (*producing, *following):
                    task.cancel()
                await asyncio.gather(*producing, *following, return_exceptions=True)
        assert (await beside.verify()).ok
    async with NatsJournal(url) as journal:
        assert await collect(journal.read()) == stored


@pytest.mark.asyncio
@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.nats.killed")
async def test_a_server_killed_and_restarted_under_load_loses_and_doubles_nothing():
    with running_server() as server:
        await survive(server, ROUNDS)


@pytest.mark.asyncio
@pytest.mark.fault
async def test_the_same_crashes_lose_facts_when_the_server_does_not_sync(
    monkeypatch: pytest.MonkeyPatch,
):
    """What a server wrote in its last life is not on its disk when it starts again."""
    kill, start = NatsServer.kill, NatsServer.start
    lives: list[int] = []

    def start_and_note(server: NatsServer) -> None:
        kept = server.folder / f"kept-{len(lives)}"
        if lives:
            shutil.copytree(server.folder / "data", kept)
        lives.append(len(lives))
        start(server)

    def kill_and_forget(server: NatsServer) -> None:
        kill(server)
        kept = server.folder / f"kept-{len(lives) - 1}"
        if kept.exists():
            shutil.rmtree(server.folder / "data")
            shutil.copytree(kept, server.folder / "data")

    monkeypatch.setattr(NatsServer, "start", start_and_note)
    monkeypatch.setattr(NatsServer, "kill", kill_and_forget)
    lost = pytest.raises(
        JournalCorrupt, match="was acknowledged; the server was restored from an older copy"
    )
    with running_server() as server, lost:
        await survive(server, 3)


@pytest.mark.asyncio
@pytest.mark.fault
@pytest.mark.requirement("journal.nats.replicas")
async def test_a_journal_with_three_replicas_goes_on_without_one_of_its_servers():
    with running_cluster() as servers:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        url = f"nats://{hosts}/three?replicas=3&sync=always&patience=60"
        async with NatsJournal(url) as journal, NatsJournal(url) as beside:
            assert "2 of 3 replicas" in str(journal.promise)
            load, other = Load(journal), Load(beside)
            producing = [
                *(asyncio.create_task(load.produce(lane)) for lane in range(2)),
                *(asyncio.create_task(other.produce(lane)) for lane in range(2, 4)),
            ]
            await load.go_on(20)
            await asyncio.to_thread(servers[0].kill)
            await load.go_on(20)
            await other.go_on(20)
            await asyncio.to_thread(servers[0].start)
            load.stop()
            other.stop()
            await asyncio.gather(*producing)
            stored = await collect(journal.read())
            load.acked.update(other.acked)
            load.sizes.update(other.sizes)
            check(stored, load)
            assert await collect(beside.read()) == stored
            assert (await beside.verify()).ok


def check(stored: list[tuple[int, str]], load: Load) -> None:
    """Nothing acknowledged is missing, seqs are contiguous, batches whole, no id is there twice."""
    places = dict(stored)
    assert {seq: places.get(seq) for seq in load.acked} == load.acked
    assert [seq for seq, _ in stored] == list(range(1, len(stored) + 1))
    assert max(Counter(name for _, name in stored).values()) == 1
    batches = [name.removeprefix("fact-").rpartition("-")[0] for _, name in stored]
    starts = [name for at, name in enumerate(batches) if at == 0 or batches[at - 1] != name]
    assert len(starts) == len(set(starts))
    assert Counter(batches) == {name: load.sizes[name] for name in starts}


async def _append_when_reached(journal: NatsJournal, fact: Fact) -> tuple[int, ...]:
    async with asyncio.timeout(60):
        while True:
            try:
                return (await journal.append([fact])).seqs
            except JournalUnavailable:
                await asyncio.sleep(0)


@pytest.mark.asyncio
@pytest.mark.fault
@pytest.mark.requirement("journal.nats.unavailable")
async def test_a_server_that_stays_away_is_reported_in_bounded_time_and_recovered_from():
    with running_server() as server:
        async with NatsJournal(server.url(options="sync=always&patience=0.3")) as journal:
            async with close_after(journal.follow()) as batches:
                await journal.append([make_fact(1)])
                assert await take(batches, 1) == ids(1)
                server.kill()
                with pytest.raises(JournalUnavailable, match="append it again with the same ids"):
                    await journal.append([make_fact(2)])
                assert journal.outage is not None
                with pytest.raises(JournalUnavailable):
                    await journal.head()
                with pytest.raises(JournalUnavailable):
                    await collect(journal.read())
                server.start()
                await until(lambda: journal.outage is None)
                # On a busy machine one answer may take longer than the patience; the same fact
                # again is written once.
                assert await _append_when_reached(journal, make_fact(2)) == (2,)
                assert await take(batches, 1) == ids(2, start=2)
            assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.fault
@pytest.mark.requirement("journal.nats.unavailable")
async def test_closing_while_the_server_is_gone_ends():
    with running_server() as server:
        url = server.url(options="sync=always&patience=0.3")
        async with asyncio.timeout(WAIT), NatsJournal(url) as journal:
            await journal.append([make_fact(1)])
            server.kill()
