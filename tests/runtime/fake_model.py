"""A model server on loopback: speaks OpenAI's streaming chat API, and says what a test scripts.

One reply a request, in order. What it was asked is kept, headers included.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

End = Literal["whole", "cut", "closed", "hang"]
"""How a reply ends: as it should, in the middle of a chunk, cleanly but early, or never."""

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class Reply(NamedTuple):
    """What is sent for one request."""

    pieces: tuple[bytes, ...]
    status: int = 200
    media_type: str = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()
    end: End = "whole"


class Asked(NamedTuple):
    """What one request said."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    def contents_of(self, role: str) -> list[Any]:
        """What messages of a role hold."""
        return [message.get("content") for message in self.messages if message["role"] == role]


def chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"choices": [choice], **fields})


def event(fields: dict[str, Any]) -> bytes:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny-1"}
    return b"data: " + json.dumps({**base, **fields}).encode() + b"\n\n"


def end_stream(finish: str, usage: dict[str, Any] | None) -> tuple[bytes, ...]:
    usage_events = (event({"choices": [], "usage": usage}),) if usage else ()
    return (chunk({}, finish), *usage_events, b"data: [DONE]\n\n")


def text(
    *pieces: str,
    reasoning: Iterable[str] = (),
    usage: dict[str, Any] | None = USAGE,
    finish: str = "stop",
) -> Reply:
    """An answer, by these pieces."""
    thoughts = [chunk({"reasoning_content": piece}) for piece in reasoning]
    words = [chunk({"content": piece}) for piece in pieces]
    return Reply((chunk({"role": "assistant"}), *thoughts, *words, *end_stream(finish, usage)))


def calls(*wanted: tuple[str, Any], say: str = "", ids: Iterable[str] = ()) -> Reply:
    """Calls of tools, their arguments in fragments; those that are text are sent as they are."""
    names = list(ids) or [f"call_{number}" for number in range(len(wanted))]
    pieces = [chunk({"content": say})] if say else []
    for index, (tool, args) in enumerate(wanted):
        written = args if isinstance(args, str) else json.dumps(args)
        function = {"name": tool, "arguments": ""}
        opened = {"index": index, "id": names[index], "type": "function", "function": function}
        pieces.append(chunk({"tool_calls": [opened]}))
        for at in range(0, len(written), 9):
            part = {"index": index, "function": {"arguments": written[at : at + 9]}}
            pieces.append(chunk({"tool_calls": [part]}))
    return Reply((*pieces, *end_stream("tool_calls", USAGE)))


def refusal(status: int, message: str, *, code: str | None = None, **headers: str) -> Reply:
    """An error, as OpenAI words it."""
    error = {"message": message, "type": "error", "code": code, "param": None}
    names = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    body = json.dumps({"error": error}).encode()
    return Reply((body,), status, "application/json", names)


class FakeModel:
    """The server; `gone` is set once a client has left a reply that hangs."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = deque(replies)
        self.requests: list[Asked] = []
        self.hanging = asyncio.Event()
        self.gone = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                await self._reply(self._next(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, _Closed):
            pass
        finally:
            writer.close()

    def _next(self) -> Reply:
        if self.replies:
            return self.replies.popleft()
        return refusal(500, "the test scripts no more replies", x_should_retry="false")

    async def _reply(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        framed = reply.end != "closed"
        framing = ("transfer-encoding", "chunked") if framed else ("connection", "close")
        headers = (("content-type", reply.media_type), framing, *reply.headers)
        lines = [f"HTTP/1.1 {reply.status} Whatever", *(f"{name}: {at}" for name, at in headers)]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in reply.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if framed else piece)
            await writer.drain()
        await self._finish(reply.end, reader, writer)

    async def _finish(
        self, end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if end == "whole":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return
        if end == "hang":
            self.hanging.set()
            await reader.read(1)
            self.gone.set()
        raise _Closed


class _Closed(Exception):
    """The connection ends here."""


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *rows = head.decode().strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rows)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(first.split()[1], headers, json.loads(body or b"{}"))
