"""How messages travel to an MCP server: a program's standard streams, one message a line, or
HTTP. Both are bounded.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from factwire.facts import Fact
from factwire.runtime.processes import (
    InputClosed,
    Processes,
    ProcessSpec,
    RunningProcess,
    stream_process_facts,
)
from factwire.runtime.provider import Host
from factwire.runtime.toolbox.limits import (
    CONNECT_SECONDS,
    GRACE_SECONDS,
    MESSAGE_BYTES,
    STDERR_CHARACTERS,
)
from factwire.runtime.toolbox.mcp_servers import is_near

Incoming = SessionMessage | Exception
"""What a session of the library takes."""

Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class McpServerProgram:
    """One server program. `gone` is set when it has ended, or could not be started."""

    def __init__(
        self, processes: Processes, spec: ProcessSpec, host: Host, warn: Callable[[str, str], None]
    ) -> None:
        self.gone = asyncio.Event()
        self.problem: str | None = None
        self._processes = processes
        self._spec = spec
        self._host = host
        self._warn = warn
        self._process: RunningProcess | None = None
        self._running = asyncio.Event()
        self._pieces: list[str] = []
        self._size = 0
        self._complaint = ""
        self._is_clean = True
        self._cutting: asyncio.Task[None] | None = None

    @property
    def last_words(self) -> str:
        """What is known of why it ended: its own problem, and what it wrote to stderr."""
        return ": ".join(filter(None, (self.problem, self._complaint.strip())))

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        """The streams of a session, as long as the program is wanted."""
        heard, incoming = anyio.create_memory_object_stream[Incoming](0)
        outgoing, outgoing_stream = anyio.create_memory_object_stream[SessionMessage](0)
        with heard, incoming, outgoing, outgoing_stream:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read(heard))
                writing = tasks.create_task(self._write(outgoing_stream))
                try:
                    yield incoming, outgoing
                    incoming.close()
                    await self._end(reading)
                finally:
                    reading.cancel()
                    writing.cancel()

    async def _read(self, heard: MemoryObjectSendStream[Incoming]) -> None:
        process_facts_stream: Any = stream_process_facts(
            self._processes,
            self._spec,
            mint=self._host.mint,
            scope=self._host.scope,
            on_start=self._begin,
        )
        try:
            async with aclosing(process_facts_stream) as facts:
                async for fact in facts:
                    await self._take(fact, heard)
        except asyncio.CancelledError:
            self._record_kill()
            raise
        finally:
            self.gone.set()
            self._running.set()
            heard.close()

    async def _take(self, fact: Fact, heard: MemoryObjectSendStream[Incoming]) -> None:
        if fact.event_class == "process.input":
            return
        if fact.event_class != "process.output":
            self._host.emit(fact)
            self._note(fact)
        elif fact.payload.get("stream") == "stderr":
            self._complaint = (self._complaint + fact.payload["text"])[-STDERR_CHARACTERS:]
        else:
            for line in self._lines(fact.payload["text"]):
                await self._pass_on(line, heard)

    def _begin(self, process: RunningProcess) -> None:
        self._process = process
        self._running.set()

    def _note(self, fact: Fact) -> None:
        payload = fact.payload
        if fact.event_class in ("process.failed", "sandbox.blocked") and "message" in payload:
            self.problem = self.problem or str(payload["message"])
        elif fact.event_class in ("process.failed", "process.completed"):
            end = payload.get("signal") or f"exit code {payload.get('exitCode')}"
            self.problem = self.problem or f"the server ended with {end}"

    def _lines(self, text: str) -> list[str]:
        *whole, rest = text.split("\n")
        lines: list[str] = []
        for line in whole:
            lines.append("".join((*self._pieces, line)))
            self._pieces, self._size = [], 0
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size > MESSAGE_BYTES:
            self.problem = f"the server sent a message of more than {MESSAGE_BYTES} bytes"
            self._pieces, self._size = [], 0
            self._cutting = asyncio.create_task(self._stop())
        return lines

    async def _pass_on(self, line: str, heard: MemoryObjectSendStream[Incoming]) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if self._is_clean:
                self._is_clean = False
                self._warn(
                    "mcp_not_protocol",
                    f"wrote something to stdout that is not a message: {line[:200]}",
                )
            return
        with suppress(*_GONE):
            await heard.send(SessionMessage(message))

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        await self._running.wait()
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            if self._process is None:
                return
            try:
                await self._process.write(f"{text}\n".encode())
            except InputClosed:
                return

    async def _end(self, reading: "asyncio.Task[None]") -> None:
        """Its input is closed first, which a server takes for the end."""
        if self._process is not None and not reading.done():
            await self._process.close_input()
            await asyncio.wait({reading}, timeout=GRACE_SECONDS)
            await self._stop()
        await asyncio.wait({reading})

    async def _stop(self) -> None:
        if self._process is not None and not self._process.has_ended:
            await self._process.stop("closed")

    def _record_kill(self) -> None:
        if self._process is not None:
            killed = {"status": "cancelled", "stoppedBy": "kill"}
            ids = {"process_id": self._process.process_id}
            self._host.emit(
                self._host.mint.fact(self._host.scope, "process.terminated", killed, **ids)
            )


_PACKED: Final = frozenset({"gzip", "deflate", "br", "zstd"})
_STREAM: Final = "text/event-stream"


class TooBig(httpx2.TransportError):
    """An answer that is not read to its end."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MESSAGE_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise TooBig(f"the server sent an answer of more than {MESSAGE_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Any]:
    """The streams of a session. How long an answer takes is for the call to bound."""
    async with (
        httpx2.AsyncClient(
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            trust_env=not is_near(url),
            event_hooks={"response": [_bound_response]},
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


async def _bound_response(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "").lower() in _PACKED:
        raise TooBig("the server compresses its responses although it was asked not to")
    stream = response.stream
    is_stream = response.headers.get("content-type", "").startswith(_STREAM)
    if isinstance(stream, httpx2.AsyncByteStream) and not is_stream:
        response.stream = _Bounded(stream)
