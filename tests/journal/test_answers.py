"""Answers may wait until the next commit was sent, but not for a server that is gone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from factwire.journal.admission import prepare
from factwire.journal.chain import GENESIS
from factwire.journal.chunk import Chunk
from factwire.journal.nats import writer as nats
from factwire.journal.nats.log import Item
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.state import Contents, State
from factwire.journal.nats.wire import Said
from factwire.journal.postgres import writer as postgres
from factwire.journal.postgres.commit import Attempt, Committer
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.rows import Place
from factwire.journal.postgres.session import Session
from factwire.journal.postgres.stage import Stage
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
    place = Place(epoch="e", head=0, hash=GENESIS, floor=0)

    async def write(self: Committer, _: Connection, attempt: Attempt) -> Stage:
        stage = attempt.staged_on(Stage(place, Keys(1), {"t": None}))
        stage.finish()

        async def fly() -> None:
            self._threads.update(stage.touched)
            self._on_flight(stage)

        await server.commit(fly)
        return stage

    async def run(work: Callable[[Any], Awaitable[Stage]], **_: float) -> Stage:
        return await work(None)

    monkeypatch.setattr(Committer, "write", write)
    session = cast("Session", SimpleNamespace(run=run))
    writer = postgres.Writer(session, 1, patience=WAIT, on_commit=ignore)
    await answered_though_the_next_is_not(server, writer)
    writer._task.cancel()


async def test_nats_answers_a_durable_commit_while_the_next_cannot_be_sent():
    server = Server()
    mirror = FakeMirror(server)
    writer = nats.Writer(cast("Mirror", mirror), lambda: None)
    await answered_though_the_next_is_not(server, writer)
    writer._task.cancel()


class FakeMirror:
    """What the writer uses of a mirror, in front of a server that goes away."""

    def __init__(self, server: Server) -> None:
        self.state = State()
        self.state.epoch = "e"
        self.lock = asyncio.Lock()
        self.turns = SimpleNamespace(wait=self.nobody_waits)
        self._server = server

    async def nobody_waits(self) -> None:
        return

    async def known(self, *_: object, **__: object) -> dict[str, object]:
        return {}

    async def write(
        self,
        build: Callable[[], Awaitable[Sequence[Said]]],
        contents: Callable[[], Contents],
        meanwhile: Callable[[], Awaitable[None]],
    ) -> bool:
        (said,) = await build()
        await self._server.commit(meanwhile)
        assert isinstance(said, Chunk)
        self.state.take(said, Item(1, 1, "chunk", "", b""), contents())
        return True


def ignore(*_: object) -> None:
    """What is done on a commit is not what these are about."""


async def answered_though_the_next_is_not(
    server: Server, writer: postgres.Writer | nats.Writer
) -> None:
    async with asyncio.timeout(WAIT):
        first = writer.append(prepare([make_fact(1)]), None)
        await server.sent.wait()
        second = writer.append(prepare([make_fact(2)]), None)
        server.durable.set()
        await server.asked_again.wait()
        assert (await first).seqs == (1,)
        assert not second.done()
