"""Answers may wait until the next commit was sent, but not for a server that is gone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from factwire.journal.admission import prepare_facts
from factwire.journal.chunks import GENESIS, Chunk
from factwire.journal.nats import writer as nats
from factwire.journal.nats.journal_state import ChunkContents, StreamState
from factwire.journal.nats.stream_log import ItemBody, StreamItem
from factwire.journal.nats.stream_view import StreamView
from factwire.journal.postgres import writer as postgres
from factwire.journal.postgres.schema import JournalTip, KeyEncoder
from factwire.journal.postgres.server_connection import PostgresConnection, PostgresSession
from factwire.journal.postgres.writer import CommitAttempt, Committer, StagedCommit
from tests.journal.contract import WAIT, make_fact

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.requirement("journal.append.answered"),
]


class Server:
    """Takes one commit, and is gone when the next is to be sent."""

    def __init__(self) -> None:
        self.sent = asyncio.Event()
        self.durable = asyncio.Event()
        self.asked_again = asyncio.Event()

    async def commit(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        if self.sent.is_set():
            self.asked_again.set()
            await asyncio.get_running_loop().create_future()
        self.sent.set()
        await meanwhile()
        await self.durable.wait()


async def test_postgres_answers_a_durable_commit_while_the_next_cannot_be_sent(
    monkeypatch: pytest.MonkeyPatch,
):
    server = Server()
    place = JournalTip(epoch="e", head=0, hash=GENESIS, floor=0)

    async def write(self: Committer, _: PostgresConnection, attempt: CommitAttempt) -> StagedCommit:
        stage = attempt.stage_on(StagedCommit(place, KeyEncoder(1), {"t": None}))
        stage.finish()

        async def fly() -> None:
            self._threads.update(stage.touched)
            self._on_flight(stage)

        await server.commit(fly)
        return stage

    async def run(work: Callable[[Any], Awaitable[StagedCommit]], **_: float) -> StagedCommit:
        return await work(None)

    monkeypatch.setattr(Committer, "write", write)
    session = cast("PostgresSession", SimpleNamespace(run=run))
    writer = postgres.PostgresWriter(session, 1, patience=WAIT, on_commit=ignore)
    await answered_though_the_next_is_not(server, writer)
    writer._task.cancel()


async def test_nats_answers_a_durable_commit_while_the_next_cannot_be_sent():
    server = Server()
    mirror = FakeStreamView(server)
    writer = nats.NatsWriter(cast("StreamView", mirror), lambda: None)
    await answered_though_the_next_is_not(server, writer)
    writer._task.cancel()


class FakeStreamView:
    """What the writer uses of a mirror, in front of a server that goes away."""

    def __init__(self, server: Server) -> None:
        self.state = StreamState()
        self.state.epoch = "e"
        self.lock = asyncio.Lock()
        self.turns = SimpleNamespace(wait=self.nobody_waits)
        self._server = server

    async def nobody_waits(self) -> None:
        return

    async def find_existing(self, *_: object, **__: object) -> dict[str, object]:
        return {}

    async def write(
        self,
        build: Callable[[], Awaitable[Sequence[ItemBody]]],
        contents: Callable[[], ChunkContents],
        meanwhile: Callable[[], Awaitable[None]],
    ) -> bool:
        (item_bodies,) = await build()
        await self._server.commit(meanwhile)
        assert isinstance(item_bodies, Chunk)
        self.state.take(item_bodies, StreamItem(1, 1, "chunk", "", b""), contents())
        return True


def ignore(*_: object) -> None:
    """What is done on a commit is not what these are about."""


async def answered_though_the_next_is_not(
    server: Server, writer: postgres.PostgresWriter | nats.NatsWriter
) -> None:
    async with asyncio.timeout(WAIT):
        first = writer.append(prepare_facts([make_fact(1)]), None)
        await server.sent.wait()
        second = writer.append(prepare_facts([make_fact(2)]), None)
        server.durable.set()
        await server.asked_again.wait()
        assert (await first).seqs == (1,)
        assert not second.done()
