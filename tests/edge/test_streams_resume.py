"""Streams that are cut, joined late, or caught up under writers: nothing missing, nothing twice."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from factwire.journal import Cursor, Journal, open_journal
from factwire.serving.limits import CATCH_UP_ROUNDS
from factwire.serving.streams import catch_up
from factwire.serving.streams.channel import Channel, ChannelMark, ChannelReader
from factwire.serving.streams.stream_sinks import StreamSink
from tests.edge.streaming import WAIT, Served, serve_streams, until
from tests.edge.streaming_clients import Raw
from tests.edge.streaming_loops import on_both_loops, on_the_edges_loop
from tests.journal.contract import make_fact

pytestmark = pytest.mark.fault

CUTS = 500


@asynccontextmanager
async def sqlite_streams(folder: Path) -> AsyncGenerator[tuple[Journal, Served]]:
    async with (
        open_journal(f"sqlite:{folder / 'journal.db'}") as journal,
        serve_streams(journal) as served,
    ):
        yield journal, served


@asynccontextmanager
async def keep_writing(journal: Journal, count: int, first: int = 1) -> AsyncGenerator[None]:
    """Writers that append `count` facts in batches of any size while the block runs."""

    async def write() -> None:
        dice, number = random.Random(count), first
        while number < first + count:
            size = min(dice.choice((1, 1, 2, 5, 40)), first + count - number)
            await journal.append([make_fact(n, "abc"[n % 3]) for n in range(number, number + size)])
            number += size
            await asyncio.sleep(0)

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        await asyncio.wait_for(task, WAIT)


@pytest.mark.requirement("edge.stream.resume")
@on_the_edges_loop
async def test_a_stream_cut_after_every_frame_resumes_after_it(tmp_path: Path):
    ways = [
        "/v1/facts?",
        "/v1/events?",
        "/v1/events?view=conversation&",
        "/v1/facts?classes=model&",
    ]
    async with sqlite_streams(tmp_path) as (journal, served), keep_writing(journal, CUTS):
        seen: list[int] = []
        cursor = ""
        for cut in range(CUTS):
            place = f"cursor={cursor}" if cursor else ""
            reader = await Raw.connect(served.port, ways[cut % len(ways)] + place, stop_after=1)
            await reader.wait_for_seq(cut + 1)
            reader.transport.abort()
            seen += reader.seqs
            cursor = reader.cursor
    assert seen == list(range(1, CUTS + 1))


def outrun(monkeypatch: pytest.MonkeyPatch, journal: Journal, served: Served) -> list[str]:
    """Have a fact arrive between every replay and its join; the list names them."""
    replay, names = catch_up.CatchUp._replay, list[str]()

    async def replay_outrun(self: catch_up.CatchUp, *values: Any, **named: Any) -> Cursor:
        reached = await replay(self, *values, **named)
        names.append(f"between-{len(names)}")
        head = await journal.append([make_fact(names[-1])])
        await served.feed.wait_for(head.cursor.seq)
        return reached

    monkeypatch.setattr(catch_up.CatchUp, "_replay", replay_outrun)
    return names


async def joined_under_writers(journal: Journal, served: Served, joiners: int) -> list[list[int]]:
    """What readers saw who came one after another while facts were written, up to the last one."""
    async with keep_writing(journal, joiners * 25):
        readers = [await Raw.connect(served.port, "/v1/facts") for _ in range(joiners)]
        await until(lambda: served.streams.stats().readers == joiners)
    last = (await journal.append([make_fact("last")])).cursor.seq
    for reader in readers:
        await reader.wait_for_seq(last)
        reader.transport.abort()
    return [reader.seqs for reader in readers]


@pytest.mark.requirement("edge.stream.joining")
@on_both_loops
async def test_whoever_joins_under_writers_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with sqlite_streams(tmp_path) as (journal, served):
        between = outrun(monkeypatch, journal, served)
        for seqs in await joined_under_writers(journal, served, 40):
            assert seqs == list(range(1, 1002 + len(between)))


@on_both_loops
async def test_joining_at_the_end_instead_of_the_mark_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    join = Channel.join

    def join_too_late(self: Channel, sink: StreamSink, mark: ChannelMark) -> ChannelReader | None:
        mark.place = self._ring.end
        return join(self, sink, mark)

    monkeypatch.setattr(Channel, "join", join_too_late)
    async with sqlite_streams(tmp_path) as (journal, served):
        between = outrun(monkeypatch, journal, served)
        for seqs in await joined_under_writers(journal, served, 10):
            assert seqs != list(range(1, 252 + len(between)))


@pytest.fixture
def small_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels whose readers may be behind by next to nothing, so that marks are lost."""
    monkeypatch.setattr(Channel, "__init__", partialmethod(Channel.__init__, limit=1))


@pytest.mark.requirement("edge.stream.converging")
@pytest.mark.usefixtures("small_marks")
@on_both_loops
async def test_a_reader_that_lost_its_mark_catches_up_in_another_round(tmp_path: Path):
    async with sqlite_streams(tmp_path) as (journal, served):
        await journal.append([make_fact(f"kept-{n}") for n in range(3_000)])
        async with keep_writing(journal, 300):
            reader = await Raw.connect(served.port, "/v1/facts")
        await journal.append([make_fact("last")])
        await reader.wait_for_seq(3_301)
        reader.transport.abort()
    assert reader.seqs == list(range(1, 3_302))


@pytest.mark.requirement("edge.stream.converging")
@pytest.mark.usefixtures("small_marks")
@on_both_loops
async def test_a_reader_that_never_catches_up_is_closed_as_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with sqlite_streams(tmp_path) as (journal, served):
        rounds = outrun(monkeypatch, journal, served)
        reader = await Raw.connect(served.port, "/v1/facts")
        await reader.until(reader.ended.is_set)
    assert (reader.code, len(rounds)) == (1013, CATCH_UP_ROUNDS)
    assert reader.seqs == list(range(1, len(reader.seqs) + 1))
