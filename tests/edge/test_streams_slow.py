"""Slow and stopped readers, storms, silence and stops: what one reader does touches no other."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from factwire.journal import Journal, open_journal
from factwire.serving.limits import MISSED_PINGS, PIECE_BYTES, UNSENT_BYTES, WINDOW_BYTES
from factwire.serving.streams import DecodedBatch, uvicorn_protocols
from factwire.serving.streams.catch_up import PacedWriter
from factwire.serving.streams.channel import Channel
from tests.edge.streaming import WAIT, Served, serve_streams, until
from tests.edge.streaming_clients import Raw, mask_frame
from tests.edge.streaming_loops import on_both_loops
from tests.journal.contract import make_fact

pytestmark = pytest.mark.fault

READERS = 200
LAZY = 10
FACTS = 480
ROOM = 4_096
"""Bytes that the kernel keeps on either side, so that what a reader does not take shows here."""


@asynccontextmanager
async def memory_streams(**settings: Any) -> AsyncGenerator[tuple[Journal, Served]]:
    async with (
        open_journal("memory:") as journal,
        serve_streams(journal, settings=settings) as served,
    ):
        yield journal, served


def nobody_is_slow(_: Channel) -> None:
    """The rule, off."""


class Watch:
    """The most that was ever held for one reader, and for all that are behind."""

    def __init__(self, served: Served) -> None:
        self.unsent = 0
        self.held = 0
        self._served = served
        served.feed.subscribe(self._look, lambda _: None)

    def _look(self, _: DecodedBatch) -> None:
        connected = self._served.server.server_state.connections
        sizes = [cast("Any", each).transport.get_write_buffer_size() for each in connected]
        self.unsent = max(self.unsent, *sizes)
        self.held = max(self.held, self._served.streams.stats().held_bytes)


class Lazy(Raw):
    """A reader that stops as soon as it has shaken hands."""

    def data_received(self, data: bytes) -> None:
        begun = not self.head
        super().data_received(data)
        if begun and self.head:
            self.transport.pause_reading()

    async def read_on(self) -> None:
        """Take what is left, to the end."""
        self.transport.resume_reading()
        await self.until(self.ended.is_set)


async def lazy_among_many(journal: Journal, served: Served) -> tuple[list[Raw], list[Lazy], Watch]:
    """Readers of a burst, some of which stopped reading, and what was held meanwhile."""
    made = [Raw.connect(served.port, "/v1/facts?since=now") for _ in range(READERS - LAZY)]
    busy = await asyncio.gather(*made)
    lazy = [await Lazy.connect(served.port, "/v1/facts?since=now", room=ROOM) for _ in range(LAZY)]
    await until(lambda: served.streams.stats().readers == READERS)
    watch = Watch(served)
    for number in range(0, FACTS, 8):
        batch = [make_fact(n, payload={"delta": "x" * 4_000}) for n in range(number, number + 8)]
        await journal.append(batch)
        await asyncio.gather(*(reader.wait_for_seq(number + 8) for reader in busy))
    return busy, lazy, watch


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_stopped_readers_are_closed_at_their_limit_and_slow_no_other(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_SECONDS", 2 * WAIT)
    async with memory_streams() as (journal, served):
        shrink(served)
        busy, lazy, watch = await lazy_among_many(journal, served)
        assert all(reader.seqs == list(range(1, FACTS + 1)) for reader in busy)
        assert not any(reader.ended.is_set() for reader in busy)
        await until(lambda: served.streams.stats().readers == READERS - LAZY)
        assert 0 < watch.held <= UNSENT_BYTES + PIECE_BYTES
        assert 0 < watch.unsent <= UNSENT_BYTES
        for reader in lazy:
            await reader.read_on()
            assert reader.code == 1013
            assert reader.seqs == list(range(1, len(reader.seqs) + 1))
        assert served.streams.stats().held_bytes == 0


@on_both_loops
async def test_without_the_rule_what_is_held_grows_past_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Channel, "_drop_the_slow", nobody_is_slow)
    async with memory_streams() as (journal, served):
        shrink(served)
        _, lazy, watch = await lazy_among_many(journal, served)
        assert watch.held > UNSENT_BYTES + PIECE_BYTES
        for reader in lazy:
            reader.transport.abort()


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_a_closed_reader_that_takes_nothing_is_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_SECONDS", 0.05)
    async with memory_streams() as (journal, served):
        shrink(served)
        lazy = await Lazy.connect(served.port, "/v1/facts?since=now", room=ROOM)
        await until(lambda: served.streams.stats().readers == 1)
        for number in range(50):
            await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
        await until(lambda: not served.server.server_state.connections)
        await lazy.read_on()
        assert lazy.code is None


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_a_reader_that_stalls_while_it_catches_up_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(PacedWriter.__init__, "__kwdefaults__", {"stall": 0.05})
    async with memory_streams() as (journal, served):
        shrink(served)
        await journal.append([make_fact(n, payload={"delta": "x" * 40_000}) for n in range(50)])
        lazy = await Lazy.connect(served.port, "/v1/facts", room=ROOM)
        await until(lambda: served.streams.stats().catching_up == 1)
        await until(lambda: served.streams.stats().catching_up == 0)
        assert served.streams.stats().readers == 0
        await lazy.read_on()
        assert lazy.code == 1013
        assert lazy.seqs == list(range(1, len(lazy.seqs) + 1))


@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_someone_who_only_pings_and_never_reads_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_SECONDS", 2 * WAIT)
    monkeypatch.setattr(uvicorn_protocols, "UNSENT_BYTES", 16_384)
    async with memory_streams() as (_, served):
        shrink(served)
        lazy = await Lazy.connect(served.port, "/v1/facts", room=ROOM)
        await until(lambda: served.streams.stats().readers == 1)
        for _ in range(100):
            lazy.transport.write(mask_frame(9, b"p" * 125) * 20)
        await until(lambda: served.streams.stats().readers == 0)
        await lazy.read_on()
        assert lazy.code == 1013


@pytest.mark.requirement("edge.stream.keepalive")
@on_both_loops
async def test_a_socket_is_dead_after_two_pings_without_an_answer():
    async with memory_streams(ws_ping_interval=0.05) as (_, served):
        silent = await Raw.connect(served.port, "/v1/facts")
        alive = await Raw.connect(served.port, "/v1/facts")
        alive.answers_pings = True
        await silent.until(silent.ended.is_set)
        assert (silent.code, silent.pings) == (1011, MISSED_PINGS)
        await alive.until(lambda: alive.pings > 2 * MISSED_PINGS)
        assert not alive.ended.is_set()
        alive.transport.abort()


def shrink(served: Served) -> None:
    """Let the kernel hold little for those who connect from now on."""
    for listener in served.server.servers[0].sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)


@pytest.mark.requirement("edge.stream.catch-up-memory")
@on_both_loops
async def test_readers_that_catch_up_without_reading_hold_one_window_each():
    async with memory_streams() as (journal, served):
        shrink(served)
        for first in range(0, 2_000, 500):
            batch = [
                make_fact(n, payload={"delta": "x" * 1_000}) for n in range(first, first + 500)
            ]
            await journal.append(batch)
        await served.feed.wait_for(2_000)
        lazy = [await Lazy.connect(served.port, "/v1/facts", room=ROOM) for _ in range(LAZY)]

        def sizes() -> list[int]:
            connected = served.server.server_state.connections
            return [cast("Any", each).transport.get_write_buffer_size() for each in connected]

        await until(lambda: len([size for size in sizes() if size > ROOM]) == LAZY)
        assert max(sizes()) <= 2 * WINDOW_BYTES
        for reader in lazy:
            reader.transport.resume_reading()
        for reader in lazy:
            await reader.wait_for_seq(2_000)
            assert reader.seqs == list(range(1, 2_001))
