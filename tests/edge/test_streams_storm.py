"""A thousand readers cut at once, and an Edge that stops: everybody ends up whole."""

import asyncio
import socket
from typing import Any, cast

import pytest

from factwire.edge.events import build_envelope
from factwire.facts import Fact
from factwire.journal import Cursor, Journal, JournalUnavailable, open_journal
from factwire.serving.envelopes import Envelope, View
from factwire.serving.streams import uvicorn_protocols
from factwire.serving.streams.catch_up import CatchUp
from tests.edge.streaming import WAIT, Served, refusal, serve_streams, until
from tests.edge.streaming_clients import Raw
from tests.edge.streaming_loops import on_both_loops, on_the_edges_loop
from tests.journal.contract import make_fact

pytestmark = pytest.mark.fault

CLIENTS = 1_000
TOGETHER = 50


async def connect_readers(journal: Journal, served: Served, places: list[str]) -> list[Raw]:
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
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        first = await connect_readers(journal, served, [""] * CLIENTS)
        for each in tuple(served.server.server_state.connections):
            cast("Any", each).transport.abort()
        await asyncio.gather(*(reader.until(reader.ended.is_set) for reader in first))
        again = await connect_readers(journal, served, [reader.cursor for reader in first])
        last = (await journal.append([make_fact("last")])).cursor.seq
        await asyncio.gather(*(reader.wait_for_seq(last) for reader in again))
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
        async with open_journal("memory:") as journal, serve_streams(journal) as served:
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
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_SECONDS", 0.05)
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        stuck = await Raw.connect(served.port, "/v1/facts", room=4_096)
        stuck.transport.pause_reading()
        for number in range(20):
            await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
        async with asyncio.timeout(WAIT):
            await served.streams.close()
        await until(lambda: not served.server.server_state.connections)
        stuck.transport.abort()


@pytest.mark.requirement("edge.stream.stop")
@on_both_loops
async def test_a_reader_that_is_behind_gets_the_rest_before_the_close(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_SECONDS", 2 * WAIT)
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        for listener in served.server.servers[0].sockets:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        behind = await Raw.connect(served.port, "/v1/facts", room=4_096)
        await until(lambda: served.streams.stats().readers == 1)
        behind.transport.pause_reading()
        for number in range(20):
            appended = await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
            await served.feed.wait_for(appended.cursor.seq)
        assert served.streams.stats().held_bytes > 0
        await served.streams.close()
        behind.transport.resume_reading()
        await behind.until(behind.ended.is_set)
        assert (behind.code, behind.seqs) == (1012, list(range(1, 21)))


@pytest.mark.requirement("edge.stream.stop")
@on_both_loops
async def test_viewers_of_threads_and_readers_that_catch_up_are_closed_too(
    monkeypatch: pytest.MonkeyPatch,
):
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        await journal.append([make_fact(number) for number in range(10)])
        viewer = await Raw.connect(served.port, "/v1/threads/t/projection/stream")
        await until(lambda: served.streams.stats().readers == 1)
        stuck = asyncio.Event()

        async def never(*_: object, **__: object) -> Cursor:
            await stuck.wait()
            return await journal.head()

        monkeypatch.setattr(CatchUp, "_replay", never)
        late = await Raw.connect(served.port, "/v1/facts")
        await until(lambda: served.streams.stats().catching_up == 1)
        closing = asyncio.create_task(served.streams.close())
        for reader in (viewer, late):
            await reader.until(reader.ended.is_set)
            assert reader.code == 1012
        stuck.set()
        await closing
        assert served.streams.stats().watched_threads == 0


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_a_fault_in_one_stream_ends_that_stream_alone():
    def broken(
        seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str
    ) -> Envelope:
        if fact.id == "fact-poison":
            raise ZeroDivisionError
        return build_envelope(seq, fact, view, epoch=epoch, edge_id=edge_id)

    async with (
        open_journal("memory:") as journal,
        serve_streams(journal, envelope_of=broken) as served,
    ):
        events = await Raw.connect(served.port, "/v1/events")
        facts = await Raw.connect(served.port, "/v1/facts")
        await until(lambda: served.streams.stats().readers == 2)
        await journal.append([make_fact(1)])
        await served.feed.wait_for(1)
        await journal.append([make_fact("poison"), make_fact(3)])
        await events.until(events.ended.is_set)
        await facts.wait_for_seq(3)
        again = await Raw.connect(served.port, "/v1/events?cursor=fact-1")
        await again.until(again.ended.is_set)
        assert (events.code, events.seqs) == (1011, [1])
        assert (again.code, again.seqs) == (1011, [])
        assert facts.seqs == [1, 2, 3]
        facts.transport.abort()


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_a_journal_that_cannot_be_reached_asks_the_reader_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
):
    async with open_journal("memory:") as journal, serve_streams(journal) as served:

        async def away(*_: object, **__: object) -> None:
            raise JournalUnavailable("gone fishing")

        monkeypatch.setattr(journal, "position", away)
        monkeypatch.setattr(journal, "thread", away)
        reader = await Raw.connect(served.port, "/v1/facts?cursor=fact-1")
        await reader.until(reader.ended.is_set)
        assert reader.code == 1013
        status, problem = await refusal(served, "events", "/v1/threads/t/projection/stream")
        assert (status, problem["code"]) == (503, "journal_unavailable")
