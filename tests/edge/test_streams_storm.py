"""A thousand readers cut at once, and an Edge that stops: everybody ends up whole."""

import asyncio
from typing import Any, cast

import pytest

from factwire.edge.limits import CLOSE_SECONDS
from factwire.edge.streams import socket_protocol
from factwire.journal import Journal, open_journal
from tests.edge.streaming import Served, refusal, serving, until
from tests.edge.streaming_clients import Raw
from tests.edge.streaming_loops import on_both_loops, on_the_edges_loop
from tests.journal.contract import make_fact

pytestmark = pytest.mark.fault

CLIENTS = 1_000
TOGETHER = 50


async def connected(journal: Journal, served: Served, places: list[str]) -> list[Raw]:
    """One reader for each place, some at a time, while facts go on being written."""
    readers: list[Raw] = []
    queries = [f"/v1/facts?cursor={place}" if place else "/v1/facts" for place in places]
    for start in range(0, len(queries), TOGETHER):
        some = queries[start : start + TOGETHER]
        made = asyncio.gather(*(Raw.connect(served.port, query) for query in some))
        await journal.append([make_fact(f"{start}-{len(places)}-{bool(places[0])}")])
        readers += await made
    await until(lambda: served.streams.stats().readers == len(places))
    return readers


@pytest.mark.requirement("edge.stream.storm")
@on_the_edges_loop
async def test_a_thousand_readers_cut_at_once_all_come_back_whole():
    async with open_journal("memory:") as journal, serving(journal) as served:
        first = await connected(journal, served, [""] * CLIENTS)
        for each in tuple(served.server.server_state.connections):
            cast("Any", each).transport.abort()
        await asyncio.gather(*(reader.until(reader.ended.is_set) for reader in first))
        again = await connected(journal, served, [reader.cursor for reader in first])
        last = (await journal.append([make_fact("last")])).cursor.seq
        await asyncio.gather(*(reader.reached(last) for reader in again))
        assert all(
            before.seqs + after.seqs == list(range(1, last + 1))
            for before, after in zip(first, again, strict=True)
        )
        for reader in again:
            reader.transport.abort()
        await until(lambda: served.streams.stats().readers == 0)
        assert served.streams.stats().broadcasts == 0


@pytest.mark.requirement("edge.stream.stop")
@on_the_edges_loop
async def test_a_stop_tells_what_is_durable_and_closes_with_1012():
    for _ in range(10):
        async with open_journal("memory:") as journal, serving(journal) as served:
            paths = [
                "/v1/facts",
                "/v1/events",
                "/v1/facts?threadId=other",
                "/v1/facts?classes=model",
            ]
            readers = [await Raw.connect(served.port, path) for path in paths * 5]
            await until(lambda: served.streams.stats().readers == 20)
            writers = [
                asyncio.create_task(journal.append([make_fact(f"{lane}-{n}") for n in range(20)]))
                for lane in range(8)
            ]
            await asyncio.gather(*writers)
            head = (await journal.head()).seq
            await served.streams.close()
            for reader in readers:
                await reader.until(reader.ended.is_set)
                assert reader.code == 1012
                assert reader.cursor.endswith(f".{head:016d}")
                assert reader.seqs in (list(range(1, head + 1)), [])
            late = await refusal(served, "socket", "/v1/facts")
            assert (late[0], late[1]["code"]) == (503, "streams_stopping")


@pytest.mark.requirement("edge.stream.stop")
@on_both_loops
async def test_a_stop_does_not_wait_for_a_reader_that_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(socket_protocol, "CLOSE_SECONDS", 0.05)
    async with open_journal("memory:") as journal, serving(journal) as served:
        stuck = await Raw.connect(served.port, "/v1/facts", room=4_096)
        stuck.transport.pause_reading()
        for number in range(20):
            await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
        async with asyncio.timeout(CLOSE_SECONDS):
            await served.streams.close()
        await until(lambda: not served.server.server_state.connections)
        stuck.transport.abort()
