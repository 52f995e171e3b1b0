"""A server that answers what a test tells it to, in order, and keeps what it was asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.client.edge_processes import PATIENCE


class Reply(NamedTuple):
    """What to answer; without a status the connection is cut instead."""

    status: int | None
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class ReceivedRequest(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


CUT = Reply(None)


class ScriptedEdge:
    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[ReceivedRequest] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _read(reader)
                self.requests.append(request)
                reply = self.replies.pop(0)
                if reply.status is None:
                    return
                writer.write(_answer(reply))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    pairs = (each.partition(":") for each in rest)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(line, headers, body)


def _answer(reply: Reply) -> bytes:
    pairs = (("content-length", str(len(reply.body))), *reply.headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"HTTP/1.1 {reply.status} Some\r\n{head}\r\n".encode() + reply.body


@asynccontextmanager
async def scripted_edge(*replies: Reply) -> AsyncGenerator[ScriptedEdge]:
    edge = ScriptedEdge(*replies)
    server = await asyncio.start_server(edge.serve, "127.0.0.1", 0)
    edge.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(PATIENCE), server:
        yield edge
