"""The one follower: everybody gets everything once, whatever happens to the journal meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from factwire.journal import (
    FactBatch,
    Filter,
    Journal,
    JournalCorrupt,
    JournalUnavailable,
    open_journal,
)
from factwire.serving.limits import PIECE_BYTES
from factwire.serving.streams import DecodedBatch, FeedStopped, JournalFeed
from tests.edge.streaming import WAIT, message, read_close, serve_streams, until
from tests.edge.streaming_loops import on_both_loops
from tests.journal.contract import make_fact
from tests.journal.nats_server import running_server
from tests.journal.postgres_server import PostgresServer


class Heard:
    """A subscriber that keeps what it is handed."""

    def __init__(self, feed: JournalFeed) -> None:
        self.arrivals: list[DecodedBatch] = []
        self.lost: list[Exception] = []
        self.stop = feed.subscribe(self.arrivals.append, self.lost.append)

    @property
    def seqs(self) -> list[int]:
        return [seq for arrival in self.arrivals for seq in arrival.raw.seqs]


@asynccontextmanager
async def memory_feed() -> AsyncGenerator[tuple[Journal, JournalFeed]]:
    async with open_journal("memory:") as journal, JournalFeed(journal) as feed:
        yield journal, feed


@pytest.mark.requirement("edge.feed.order")
@on_both_loops
async def test_every_subscriber_is_handed_each_fact_once_in_order_and_uncopied():
    async with memory_feed() as (journal, feed):
        one, other = Heard(feed), Heard(feed)
        for number in range(20):
            appended = await journal.append([make_fact(f"{number}-{part}") for part in range(3)])
            await feed.wait_for(appended.cursor.seq)
        assert one.seqs == other.seqs == list(range(1, 61))
        pairs = zip(one.arrivals, other.arrivals, strict=True)
        assert all(mine is theirs for mine, theirs in pairs)
        first = one.arrivals[0]
        assert first.facts is first.facts
        assert first.facts[0].id == "fact-0-0"
        other.stop()
        await feed.wait_for((await journal.append([make_fact("last")])).cursor.seq)
        assert (len(one.seqs), len(other.seqs)) == (61, 60)


@pytest.mark.requirement("edge.feed.order")
@on_both_loops
async def test_a_burst_is_handed_out_in_pieces_that_join_up():
    async with memory_feed() as (journal, feed):
        heard = Heard(feed)
        batch = [make_fact(n, payload={"delta": "x" * 5_000}) for n in range(300)]
        await feed.wait_for((await journal.append(batch)).cursor.seq)
        assert heard.seqs == list(range(1, 301))
        batches = [arrival.raw for arrival in heard.arrivals]
        assert all(len(fact_batch.data) <= PIECE_BYTES for fact_batch in batches)
        assert [each.first for each in batches[1:]] == [each.last + 1 for each in batches[:-1]]
        lines = [line for arrival in heard.arrivals for line in arrival.lines]
        assert lines == [line async for each in journal.read() for line in each.lines()]


@pytest.mark.requirement("edge.feed.order")
@on_both_loops
async def test_a_filter_chooses_the_facts_that_the_journal_would():
    async with memory_feed() as (journal, feed):
        heard = Heard(feed)
        await journal.append([make_fact(n, "abc"[n % 3], project_id="p") for n in range(9)])
        await feed.wait_for(9)
        (arrival,) = heard.arrivals
        wanted = Filter(thread="b", project="p")
        read = [seq async for each in journal.read(filter=wanted) for seq in each.seqs]
        assert [arrival.raw.seqs[at] for at in arrival.select(wanted)] == read
        assert arrival.select(Filter(thread="nobody")) == []
        assert list(arrival.select(None)) == list(range(9))


@pytest.mark.requirement("edge.feed.reached")
@on_both_loops
async def test_whoever_waits_for_a_seq_goes_on_once_it_was_handed_out():
    async with memory_feed() as (journal, feed):
        heard = Heard(feed)
        waiting = asyncio.create_task(feed.wait_for(2))
        await journal.append([make_fact(1)])
        await feed.wait_for(1)
        assert not waiting.done()
        await journal.append([make_fact(2)])
        await asyncio.wait_for(waiting, WAIT)
        assert heard.seqs == [1, 2]
        await feed.wait_for(2)
        never = asyncio.create_task(feed.wait_for(99))
        await asyncio.sleep(0)
        await feed.close()
        with pytest.raises(FeedStopped):
            await never
        assert isinstance(heard.lost[0], FeedStopped)
        with pytest.raises(FeedStopped):
            feed.subscribe(lambda _: None, lambda _: None)
        assert (await feed.health()).state == "stopped"


@pytest.mark.requirement("edge.feed.isolated")
@on_both_loops
async def test_a_subscriber_that_fails_is_told_and_is_the_only_one_to_lose():
    async with memory_feed() as (journal, feed):
        before, lost = Heard(feed), list[Exception]()

        def fail(_: DecodedBatch) -> None:
            raise ZeroDivisionError

        feed.subscribe(fail, lost.append)
        after = Heard(feed)
        for number in range(3):
            await feed.wait_for((await journal.append([make_fact(number)])).cursor.seq)
        assert before.seqs == after.seqs == [1, 2, 3]
        assert [type(error) for error in lost] == [ZeroDivisionError]


def fail_followers(journal: Journal, errors: list[Exception]) -> None:
    """Let a follower of the journal fail after each stretch, as often as there are errors."""
    follow = journal.follow

    async def flaky(*values: Any, **named: Any) -> AsyncGenerator[FactBatch]:
        async for batch in follow(*values, **named):
            yield batch
            if errors:
                raise errors.pop()

    journal.follow = flaky  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.requirement("edge.feed.degraded")
@on_both_loops
async def test_an_absent_journal_is_told_and_followed_on_where_it_was():
    async with open_journal("memory:") as journal:
        errors: list[Exception] = [JournalUnavailable("gone fishing") for _ in range(3)]
        fail_followers(journal, errors)
        async with JournalFeed(journal) as feed:
            heard = Heard(feed)
            for number in range(1, 6):
                await journal.append([make_fact(number)])
                await feed.wait_for(number)
                if number < 4:
                    await until(lambda: feed.trouble is not None)
                    health = await feed.health()
                    assert (health.state, health.reason) == ("degraded", "gone fishing")
            assert heard.seqs == [1, 2, 3, 4, 5]
            assert heard.lost == []
            assert (await feed.health()).state == "live"
            assert (await feed.health()).lag == 0


@pytest.mark.requirement("edge.feed.degraded")
@on_both_loops
async def test_a_journal_that_is_damaged_ends_the_feed_and_its_streams():
    async with open_journal("memory:") as journal:
        fail_followers(journal, [JournalCorrupt("the bytes do not match their checksum")])
        async with serve_streams(journal) as served, served.socket("/v1/facts") as client:
            await until(lambda: served.streams.stats().readers == 1)
            await journal.append([make_fact(1)])
            assert (await message(client))["seq"] == 1
            assert (await read_close(client))[0] == 1012
            assert isinstance(served.feed.failure, FeedStopped)
            assert isinstance(served.feed.failure.__cause__, JournalCorrupt)


@pytest.mark.fault
@pytest.mark.requirement("edge.feed.degraded")
@pytest.mark.parametrize("kind", ["nats", "postgres"])
def test_a_server_killed_under_a_feed_is_followed_on_when_it_is_back(kind: str):
    if kind == "nats":
        with running_server() as server:
            asyncio.run(killed_under(server, server.url(), kills=3))
    else:
        with PostgresServer() as server:
            asyncio.run(killed_under(server, server.url(), kills=1))


async def killed_under(server: Any, url: str, kills: int) -> None:
    async with open_journal(url) as journal, serve_streams(journal) as served:
        heard = Heard(served.feed)
        async with served.socket("/v1/facts") as client:
            for number in range(1, kills + 1):
                appended = await journal.append([make_fact(number)])
                await asyncio.wait_for(served.feed.wait_for(appended.cursor.seq), WAIT)
                assert (await message(client))["seq"] == number
                server.kill()
                await until(lambda: served.feed.trouble is not None)
                assert (await served.feed.health()).state == "degraded"
                server.start()
                await until(lambda: served.feed.trouble is None)
            head = (await journal.append([make_fact("last")])).cursor.seq
            await asyncio.wait_for(served.feed.wait_for(head), WAIT)
            assert (await message(client))["seq"] == head
        assert heard.seqs == list(range(1, head + 1))
