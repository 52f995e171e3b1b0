"""HTTP by hand: what no well-behaved client would send, and what comes back."""

import asyncio
import json
from typing import Any

import msgspec

from tests.edge.edges import TOKEN, WAIT_SECONDS


class RawAnswer(msgspec.Struct, frozen=True):
    """One answer of a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> Any:
        """The stable code of a problem; fails for anything else."""
        assert self.headers["content-type"] == "application/problem+json", self
        return json.loads(self.body)["code"]


def head(method: str, path: str, *headers: str, token: str = TOKEN) -> bytes:
    """A request up to its body."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: Bearer {token}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def exchange(port: int, *pieces: bytes) -> RawAnswer:
    """Send pieces on a connection of their own; the first answer, once it is hung up."""
    answers = await send_and_collect(port, *pieces)
    assert answers, "the connection was closed without an answer"
    return answers[0]


async def send_and_collect(port: int, *pieces: bytes) -> list[RawAnswer]:
    """Send pieces; all answers until the server hangs up."""
    async with asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return answers_in(await _all_of(reader))
        except ConnectionError:
            return answers_in(await _all_of(reader))
        finally:
            writer.close()


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    received = bytearray()
    try:
        while piece := await reader.read(65536):
            received += piece
    except ConnectionError:
        pass
    return bytes(received)


def answers_in(received: bytes) -> list[RawAnswer]:
    """The answers in some bytes; a last one that was cut off is left out."""
    answers: list[RawAnswer] = []
    while received:
        start, found, rest = received.partition(b"\r\n\r\n")
        if not found:
            break
        status_line, *lines = start.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body, received = _body(headers, rest)
        answers.append(RawAnswer(int(status_line.split(" ")[1]), headers, body))
    return answers


def _body(headers: dict[str, str], rest: bytes) -> tuple[bytes, bytes]:
    if headers.get("transfer-encoding") != "chunked":
        length = int(headers.get("content-length", 0))
        return rest[:length], rest[length:]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size or b"0", 16)
        body, rest = body + rest[:count], rest[count + 2 :]
        if not count:
            break
    return body, rest
