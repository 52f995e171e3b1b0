"""Servers for the fan-out benchmark, each in a process of its own: `python -m bench.edge_servers`.

`edge` is the Edge's streams with everything on. `plain` is what a Litestar application does without
them: a send for every socket and fact. `bare` is the least that can be done: frames joined once a
tick and written to every transport, with no rule, no filter and no resume. A server prints its port
and then answers one line on standard output for each command on standard input.
"""

import asyncio
import gc
import json
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec
import uvicorn
import uvloop
from litestar import Litestar, WebSocket, websocket

from bench.workload import facts
from factwire.edge.events import build_envelope
from factwire.edge.events.event_types import types_of_view
from factwire.facts import Fact
from factwire.journal import Cursor, FactBatch, Journal, open_journal
from factwire.journal.chunks import decode_line
from factwire.serving.envelopes import Scope
from factwire.serving.streams import FactwireHttpProtocol, JournalFeed, Streams, socket_settings
from factwire.serving.streams.frame_encoder import text_frame

TICK = 16
"""Facts of one tick; the last of them is of another thread, which the filter passes over."""

FULL = 128 * 1024
"""Bytes unsent on some socket at which the publisher waits, so that readers set the pace."""

_NAMES: Any = {
    "server_name": "Edge",
    "log_name": "bench",
    "scope": Scope(edge_id="bench"),
    "types_of": types_of_view,
}
_envelope = partial(build_envelope, edge_id="bench")

Answer = Callable[[list[str]], Awaitable[dict[str, Any]]]


class Ticks:
    """A journal that has a tick of facts whenever one is asked for; only what a feed needs."""

    def __init__(self) -> None:
        lines = facts(TICK)
        other = msgspec.json.decode(lines[-1])
        other |= {"threadId": "thr_other", "id": "evt_other"}
        self.lines = [*lines[:-1], msgspec.json.encode(other)]
        self.data = b"\n".join((*self.lines, b""))
        self.requests: asyncio.Queue[None] = asyncio.Queue()
        self.seq = 0

    async def head(self) -> Cursor:
        return Cursor("0" * 16, self.seq)

    async def read(self, *_: Any, **__: Any) -> AsyncIterator[FactBatch]:
        return
        yield

    async def follow(self, *_: Any, **__: Any) -> AsyncIterator[FactBatch]:
        while True:
            await self.requests.get()
            first, self.seq = self.seq + 1, self.seq + TICK
            yield FactBatch(
                epoch="0" * 16,
                first=first,
                last=self.seq,
                seqs=range(first, self.seq + 1),
                data=self.data,
            )


class Publisher:
    """Asks for ticks as long as no socket is too far behind."""

    def __init__(self, transports: Callable[[], Iterable[asyncio.Transport]]) -> None:
        self._transports = transports

    async def run(self, ticks: int, publish: Callable[[], Awaitable[None]]) -> None:
        for _ in range(ticks):
            await publish()
            while self._unsent() > FULL:  # noqa: ASYNC110 - transports tell only their protocols
                await asyncio.sleep(0.0005)
        while self._unsent() > 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    def _unsent(self) -> int:
        return max((each.get_write_buffer_size() for each in self._transports()), default=0)


async def serve_application(application: Any, **settings: Any) -> tuple[uvicorn.Server, int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    # The readers here answer no pings, and a busy machine takes its time between two rounds.
    settings = {**settings, "ws_ping_interval": 3_600}
    config = uvicorn.Config(
        application, lifespan="off", log_level="critical", access_log=False, **settings
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listener]))
    task.add_done_callback(lambda done: done.cancelled() or done.result())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.01)
    return server, listener.getsockname()[1]


def list_transports(server: uvicorn.Server) -> list[asyncio.Transport]:
    return [cast("Any", each).transport for each in server.server_state.connections]


async def edge(stack: AsyncExitStack) -> tuple[int, Answer]:
    """The streams of an Edge over ticks, or over a journal on disk for the latency of one fact."""
    ticks = Ticks()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    journal = await stack.enter_async_context(open_journal(f"sqlite:{folder / 'journal.db'}"))
    feed = await stack.enter_async_context(JournalFeed(cast("Journal", ticks)))
    whole = await stack.enter_async_context(JournalFeed(journal))
    streams, other = (
        Streams(feed, **_NAMES, envelope_of=_envelope),
        Streams(whole, **_NAMES, envelope_of=_envelope),
    )

    async def application(scope: Any, receive: Any, send: Any) -> None:
        chosen = streams if b"threadId" in scope["query_string"] else other
        await chosen(scope, receive, send)

    server, port = await serve_application(
        application, http=FactwireHttpProtocol, **socket_settings()
    )
    publisher = Publisher(lambda: list_transports(server))

    async def publish() -> None:
        ticks.requests.put_nowait(None)
        await feed.wait_for(ticks.seq + TICK)

    async def answer(words: list[str]) -> dict[str, Any]:
        if words[0] == "publish":
            await publisher.run(int(words[1]), publish)
        elif words[0] == "stamp":
            await _append_stamped(journal, int(words[1]), float(words[2]))
        elif words[0] == "message":
            await journal.append([_stamp(decode_line(facts(1)[0]), int(words[1]))])
        elif words[0] == "append":
            return {"rate": await _measure_appends(journal, float(words[1]))}
        return {"readers": streams.stats().readers}

    return port, answer


async def _append_stamped(journal: Journal, facts_each: int, seconds: float) -> None:
    """Append facts that say when, at a steady pace."""
    template, numbers = decode_line(facts(1)[0]), count(1)
    begin = time.monotonic()
    for tick in range(int(seconds * 200)):
        await asyncio.sleep(max(0.0, begin + tick / 200 - time.monotonic()))
        await journal.append([_stamp(template, next(numbers)) for _ in range(facts_each // 200)])


async def _measure_appends(journal: Journal, seconds: float) -> float:
    """Facts a second that four writers append as fast as they can."""
    template, end, done = decode_line(facts(1)[0]), time.monotonic() + seconds, 0

    async def write(lane: int) -> None:
        nonlocal done
        while time.monotonic() < end:
            done += 1
            name = f"appended-{lane}-{end}-{done}"
            await journal.append([msgspec.structs.replace(template, id=name, sequence=None)])

    await asyncio.gather(*map(write, range(4)))
    return done / seconds


def _stamp(template: Fact, number: int) -> Fact:
    payload = {"messageId": "m", "delta": "word " * 20, "at": time.monotonic_ns()}
    return msgspec.structs.replace(
        template,
        id=f"stamped-{payload['at']}-{number}",
        sequence=None,
        event_class="model.delta",
        payload=payload,
    )


async def plain(stack: AsyncExitStack) -> tuple[int, Answer]:
    """A Litestar application that sends every fact to every socket."""
    del stack
    sockets: dict[WebSocket[Any, Any, Any], asyncio.Event] = {}

    @websocket("/v1/facts")
    async def handler(socket: WebSocket[Any, Any, Any]) -> None:
        await socket.accept()
        ended = sockets[socket] = asyncio.Event()
        await ended.wait()

    _, port = await serve_application(
        Litestar([handler]), ws="websockets-sansio", ws_per_message_deflate=False
    )
    texts = [text.decode() for text in _messages()]

    async def answer(words: list[str]) -> dict[str, Any]:
        if words[0] == "publish":
            for _ in range(int(words[1])):
                for text in texts:
                    for each in sockets:
                        await each.send_text(text)
        return {"readers": len(sockets)}

    return port, answer


class _Bare(asyncio.Protocol):
    """Says yes to any handshake and is written to ever after."""

    def __init__(self, known: dict["_Bare", None]) -> None:
        self._known = known
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self.transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            self._known[self] = None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._known.pop(self, None)


async def bare(stack: AsyncExitStack) -> tuple[int, Answer]:
    """A loop over transports."""
    known: dict[_Bare, None] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Bare(known), "127.0.0.1", 0, backlog=1024)
    stack.callback(server.close)
    publisher = Publisher(lambda: [each.transport for each in known])
    texts = _messages()

    async def publish() -> None:
        data = b"".join(map(text_frame, texts))
        for each in known:
            each.transport.write(data)
        await asyncio.sleep(0)

    async def answer(words: list[str]) -> dict[str, Any]:
        if words[0] == "publish":
            await publisher.run(int(words[1]), publish)
        return {"readers": len(known)}

    return server.sockets[0].getsockname()[1], answer


def _messages() -> list[bytes]:
    """What a reader gets of one tick."""
    lines = Ticks().lines[:-1]
    return [
        b'{"cursor":"fw1.%s.%016d","seq":%d,"fact":%s}' % (b"0" * 16, n, n, line)
        for n, line in enumerate(lines, 1)
    ]


def _memory() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _find_server(kind: str) -> Callable[[AsyncExitStack], Awaitable[tuple[int, Answer]]]:
    if kind == "hub":
        from bench.hub_server import hub  # noqa: PLC0415 - it imports this module

        return hub
    return {"edge": edge, "plain": plain, "bare": bare}[kind]


async def _main(kind: str) -> None:
    async with AsyncExitStack() as stack:
        port, answer = await _find_server(kind)(stack)
        _say({"port": port})
        loop = asyncio.get_running_loop()
        while words := (await loop.run_in_executor(None, sys.stdin.readline)).split():
            start = time.thread_time()
            found = {**await answer(words), "processor": time.thread_time() - start}
            _say({**found, "memory": _memory() if words[0] == "memory" else 0})


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1]))
