"""What an Edge is measured against: the least that can take in facts and pass them on.

    python -m bench.edge_path_servers FOLDER

Facts are decoded into their type, appended durably, and written to every reader once a tick. There
is no guard, no redaction, no lifecycle, no list, no projection and no resume. It prints the port
for facts and the port for readers.
"""

import asyncio
import socket
import sys
from typing import Any

import msgspec
import uvicorn
import uvloop

from factwire.facts import Fact
from factwire.facts.shapes import encode_fact
from factwire.journal import open_journal
from factwire.serving.limits import BACKLOG


class Body(msgspec.Struct):
    facts: list[Fact]


_decoder = msgspec.json.Decoder(Body)


class _Reader(asyncio.Protocol):
    """Somebody to fan out to; says hello by its request, and then only reads."""

    def __init__(self, readers: set[asyncio.Transport]) -> None:
        self._readers = readers

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            self._readers.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._readers.discard(self._transport)


class Bare:
    """An ASGI application with one address, and a port to read from."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: list[bytes] = []
        self.readers: set[asyncio.Transport] = set()

    async def serve(self) -> None:
        async with open_journal(self._url) as self._journal:
            loop = asyncio.get_running_loop()
            readers = await loop.create_server(lambda: _Reader(self.readers), "127.0.0.1", 0)
            listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
            app: Any = self._app
            config = uvicorn.Config(
                app,
                interface="asgi3",
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
            )
            ports = (each.getsockname()[1] for each in (listening, readers.sockets[0]))
            print(*ports, flush=True)
            await uvicorn.Server(config).serve([listening])

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        del scope
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            parts.append(message["body"])
            more = message["more_body"]
        facts: list[Fact] = _decoder.decode(b"".join(parts)).facts
        appended = await self._journal.append(facts)
        self._fan_out(facts)
        body = msgspec.json.encode({"cursor": str(appended.cursor), "seqs": appended.seqs})
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _fan_out(self, facts: list[Fact]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting += [b'{"fact":%s}' % encode_fact(fact) for fact in facts]

    def _flush(self) -> None:
        frames, self._waiting = self._waiting, []
        data = b"".join(b"\x81\x7e" + len(text).to_bytes(2, "big") + text for text in frames)
        for reader in self.readers:
            reader.write(data)


if __name__ == "__main__":
    uvloop.run(Bare(f"sqlite:{sys.argv[1]}/bare.db").serve())
