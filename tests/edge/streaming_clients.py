"""Clients that cost almost nothing: a socket, a parser of unmasked frames, and a list of seqs."""

import asyncio
import re
import socket
from collections.abc import Callable
from typing import Self, cast

from tests.edge.streaming import WAIT

_SEQ = re.compile(rb'"seq":(\d+)')
_CURSOR = re.compile(rb'"cursor":"(fw1\.[0-9a-f]{16}\.\d{16})"')


class Raw(asyncio.Protocol):
    """One WebSocket reader; `seqs` are those of the messages that it got but for checkpoints."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.head = b""
        self.seqs: list[int] = []
        self.cursor = ""
        self.code: int | None = None
        self.pings = 0
        self.answers_pings = False
        self.is_silent = False
        self.stop_after: int | None = None
        self.ended = asyncio.Event()
        self._buffer = bytearray()
        self._changed = asyncio.Event()

    @classmethod
    async def connect(
        cls, port: int, path: str, *, room: int | None = None, stop_after: int | None = None
    ) -> Self:
        """A reader that has shaken hands; `room` bounds what the kernel takes in for it, and
        whatever comes after `stop_after` messages never reached it.
        """
        raw = socket.socket()
        raw.setblocking(False)
        if room is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, ("127.0.0.1", port))
        _, made = await loop.create_connection(cls, sock=raw)
        made.stop_after = stop_after
        made.transport.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        await made.until(lambda: bool(made.head) or made.ended.is_set())
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.head:
            head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            if not found:
                return
            self.head, self._buffer = head, bytearray(rest)
        self._parse()
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set()
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait, but not for ever."""
        async with asyncio.timeout(WAIT):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def fall_silent(self) -> None:
        """Send nothing more, and let the other side know."""
        self.is_silent = True
        self.transport.write_eof()

    async def wait_for_seq(self, seq: int) -> None:
        """Wait for a seq, or for the end."""
        await self.until(lambda: bool(self.seqs and self.seqs[-1] >= seq) or self.ended.is_set())

    def _parse(self) -> None:
        at, buffer = 0, self._buffer
        while len(buffer) >= at + 2:
            kind, size, start = buffer[at] & 0x0F, buffer[at + 1], at + 2
            if size >= 126:
                width = 2 if size == 126 else 8
                size, start = int.from_bytes(buffer[start : start + width], "big"), start + width
            if len(buffer) < start + size:
                break
            self._take(kind, bytes(buffer[start : start + size]))
            at = start + size
        del buffer[:at]

    def _take(self, kind: int, content: bytes) -> None:
        if kind == 8:
            self.code = int.from_bytes(content[:2], "big")
            if not self.is_silent:
                self.transport.write(mask_frame(8, content[:2]))
        elif kind == 9:
            self.pings += 1
            if self.answers_pings:
                self.transport.write(mask_frame(10, content))
        elif kind == 1 and len(self.seqs) != self.stop_after:
            self.cursor = found[1].decode() if (found := _CURSOR.search(content)) else ""
            if not content.startswith(b'{"type":"checkpoint"'):
                self.seqs.append(int(found[1]) if (found := _SEQ.search(content)) else 0)


def mask_frame(kind: int, content: bytes) -> bytes:
    """A frame as a client sends it, with a mask of zeros."""
    assert len(content) < 126
    return bytes((0x80 | kind, 0x80 | len(content))) + bytes(4) + content
