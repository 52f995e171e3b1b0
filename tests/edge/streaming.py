"""A real server on loopback with the streams of a journal, and clients that know what they saw."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from factwire.edge.events import build_envelope
from factwire.edge.events.event_types import types_of_view
from factwire.journal import Journal
from factwire.serving.envelopes import Scope
from factwire.serving.streams import FactwireHttpProtocol, JournalFeed, Streams, socket_settings

WAIT = 60
"""Seconds after which a wait in these tests counts as lost."""

EDGE = "edge_test"


class Served:
    """A running server."""

    def __init__(
        self, feed: JournalFeed, streams: Streams, server: uvicorn.Server, port: int
    ) -> None:
        self.feed = feed
        self.streams = streams
        self.server = server
        self.port = port

    def url(self, path: str, query: Mapping[str, str] | None = None, scheme: str = "ws") -> str:
        text = f"?{urlencode(query)}" if query else ""
        return f"{scheme}://127.0.0.1:{self.port}{path}{text}"

    @asynccontextmanager
    async def socket(
        self, path: str = "/v1/facts", **query: str
    ) -> AsyncGenerator[ClientConnection]:
        async with connect(
            self.url(path, query), compression=None, ping_interval=None, max_size=None
        ) as client:
            yield client


class _Server(uvicorn.Server):
    """Stops when it is told to, not at the next tenth of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        self.ready.set()
        await self.stop.wait()


@asynccontextmanager
async def serve_streams(
    journal: Journal, *, settings: Mapping[str, Any] | None = None, **words: Any
) -> AsyncGenerator[Served]:
    """The streams of an open journal on a free port."""
    async with JournalFeed(journal) as feed:
        envelope_of = partial(words.pop("envelope_of", build_envelope), edge_id=EDGE)
        streams = Streams(
            feed,
            server_name="Edge",
            log_name="factwire.edge.streams",
            scope=Scope(edge_id=EDGE),
            types_of=types_of_view,
            envelope_of=envelope_of,
            **words,
        )
        listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        values: dict[str, Any] = {
            "http": FactwireHttpProtocol,
            "log_level": "critical",
            **socket_settings(),
        }
        config = uvicorn.Config(
            streams,  # pyright: ignore[reportArgumentType]
            **(values | dict(settings or {})),
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve([listener]))
        try:
            await asyncio.wait_for(server.ready.wait(), WAIT)
            yield Served(feed, streams, server, listener.getsockname()[1])
        finally:
            server.stop.set()
            await asyncio.wait_for(running, WAIT)


async def until(condition: Callable[[], bool]) -> None:
    """Wait, but not for ever."""
    async with asyncio.timeout(WAIT):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)


async def message(client: ClientConnection) -> dict[str, Any]:
    """The next message."""
    async with asyncio.timeout(WAIT):
        return json.loads(await client.recv())


async def messages(client: ClientConnection, count: int) -> list[dict[str, Any]]:
    """The next messages but for checkpoints."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        frame = await message(client)
        if frame.get("type") != "checkpoint":
            found.append(frame)
    return found


async def read_close(client: ClientConnection) -> tuple[int, str]:
    """How a stream ended, having read it to its end."""
    async with asyncio.timeout(WAIT):
        try:
            while True:
                await client.recv()
        except ConnectionClosed:
            return client.close_code or 0, client.close_reason or ""


async def refusal(served: Served, over: str, target: str) -> tuple[int, dict[str, Any]]:
    """Status and document of a request that is refused."""
    if over == "socket":
        with pytest.raises(InvalidStatus) as refused:
            await connect(served.url(target)).__aenter__()
        response = refused.value.response
        assert response.headers["content-type"] == "application/problem+json"
        return response.status_code, json.loads(response.body or b"")
    async with httpx.AsyncClient() as client:
        accept = {"accept": "text/event-stream"}
        answer = await client.get(served.url(target, scheme="http"), headers=accept)
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()
