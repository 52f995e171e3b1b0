"""A server on loopback that answers each request with what a script says, and hangs up."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec


class Heard(NamedTuple):
    """A request as it came."""

    headers: dict[str, str]
    body: Any


class Refusal(NamedTuple):
    """An answer that is none."""

    status: int
    text: str


Answer = AsyncIterator[bytes] | Refusal
Script = Callable[[Heard], Answer]


class Server:
    """`heard` are the requests so far, `asked` is set with the first, and `hung_up` when a client
    leaves a stream.
    """

    def __init__(self, script: Script) -> None:
        self.heard: list[Heard] = []
        self.request_seen = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.url = ""
        self._script = script

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await self._answer(await _request(reader), reader, writer)
        writer.close()

    async def _answer(
        self, heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.heard.append(heard)
        self.request_seen.set()
        answer = self._script(heard)
        if isinstance(answer, Refusal):
            writer.write(_head(answer.status, "text/plain") + answer.text.encode())
            return
        writer.write(_head(200, "text/event-stream; charset=utf-8"))
        leaving = asyncio.create_task(reader.read())
        leaving.add_done_callback(lambda _: self.hung_up.set())
        sending = asyncio.create_task(_send_answer(answer, writer))
        await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (leaving, sending):
            task.cancel()
        await asyncio.gather(leaving, sending, return_exceptions=True)


async def _send_answer(answer: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for piece in answer:
        writer.write(piece)
        await writer.drain()


async def _request(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Heard(headers, json.loads(body))


def _head(status: int, kind: str) -> bytes:
    return f"HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()


async def events(*items: dict[str, Any] | asyncio.Event | bytes) -> AsyncIterator[bytes]:
    """Items as events; at an `asyncio.Event` the stream waits."""
    for item in items:
        if isinstance(item, asyncio.Event):
            await item.wait()
        elif isinstance(item, bytes):
            yield item
        else:
            yield b"data: " + msgspec.json.encode(item) + b"\n\n"


@asynccontextmanager
async def serve_script(script: Script) -> AsyncGenerator[Server]:
    server = Server(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}/agent"
    async with listening:
        yield server
