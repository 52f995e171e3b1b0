"""`Streams`: the streaming faces of an Edge as one ASGI application.

It answers `/v1/events`, `/v1/facts` and the projection stream of a thread, over WebSocket and as
server-sent events. Whatever is wrong with a request is said before the stream begins; whatever goes
wrong later ends it with a code of the table in `closing`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import unquote

import msgspec

from factwire.edge.events import envelope_of
from factwire.edge.limits import CLOSE_SECONDS
from factwire.edge.logs import logger
from factwire.edge.problems import Problem
from factwire.edge.streams.asgi import Receive, Scope, Send, header, refuse, trace_id_of
from factwire.edge.streams.closing import WORDS
from factwire.edge.streams.connections import serve_events, serve_socket
from factwire.edge.streams.feed import Feed, FeedStopped
from factwire.edge.streams.messages import EnvelopeOf
from factwire.edge.streams.query import projection_start, read_query
from factwire.edge.streams.readers import Reader, Readers, StreamStats
from factwire.edge.streams.selection import Face, Wire
from factwire.edge.streams.sink import Sink
from factwire.journal import JournalError, JournalUnavailable

FACES: Final[dict[str, Face]] = {"/v1/events": "events", "/v1/facts": "facts"}
"""Path → the face that is streamed there."""

PROJECTION: Final = re.compile(r"/v1/threads/([^/]+)/projection/stream")

Enter = Callable[[Reader], Awaitable[None]]
_log: Final = logger("factwire.edge.streams")


class Streams:
    """An ASGI application; `owns` says which requests are for it."""

    def __init__(self, feed: Feed, *, edge_id: str, envelope_of: EnvelopeOf = envelope_of) -> None:
        self.feed = feed
        self.readers = Readers(feed, edge_id=edge_id, envelope_of=envelope_of)
        self._stopping = False
        self._served = 0
        self._opened = 0
        self._closed = dict.fromkeys(WORDS.values(), 0)
        self._nobody = asyncio.Event()
        self._nobody.set()

    def owns(self, scope: Scope) -> bool:
        """Whether a request is for a stream; a plain read of a face is not."""
        if scope["type"] not in ("http", "websocket"):
            return False
        if PROJECTION.fullmatch(_path(scope)):
            return True
        if scope["path"] not in FACES:
            return False
        return scope["type"] == "websocket" or (scope["method"] == "GET" and _wants_events(scope))

    def stats(self) -> StreamStats:
        """Figures about the streams now."""
        now = self.readers.stats()
        return msgspec.structs.replace(now, opened=self._opened, closed=dict(self._closed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        if is_socket:
            await receive()
        try:
            enter = await self._enter(scope)
        except Problem as problem:
            await refuse(scope, send, problem)
            return
        wire: Wire = "socket" if is_socket else "sse"
        trace_id = trace_id_of(scope)

        sinks: list[Sink] = []

        async def admit(sink: Sink) -> None:
            sinks.append(sink)
            await enter(Reader(sink, wire, trace_id))

        serve = serve_socket if is_socket else serve_events
        with self._counted(), self._told(FACES.get(scope["path"], "projection"), trace_id, sinks):
            await serve(scope, receive, send, admit)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Tell every reader what is durable, then close it; nobody is admitted from now on.

        Returns when all have gone, or after `seconds`.
        """
        self._stopping = True
        end = asyncio.get_running_loop().time() + seconds
        # Whom the deadline or an absent journal leaves behind resumes from its cursor.
        with suppress(TimeoutError, JournalError, FeedStopped):
            async with asyncio.timeout(seconds / 2):
                await self.readers.level()
        self.readers.close()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await self._nobody.wait()

    @contextmanager
    def _counted(self) -> Generator[None]:
        self._served += 1
        self._nobody.clear()
        try:
            yield
        finally:
            self._served -= 1
            if not self._served:
                self._nobody.set()

    @contextmanager
    def _told(self, face: str, trace_id: str, sinks: list[Sink]) -> Generator[None]:
        """Say that a stream was begun, and in the end by whom and why it was ended."""
        self._opened += 1
        _log.info("stream_opened", stream=face, trace_id=trace_id)
        try:
            yield
        finally:
            reason = WORDS[sinks[0].ended_by if sinks else None]
            self._closed[reason] += 1
            _log.info("stream_closed", stream=face, reason=reason, trace_id=trace_id)

    async def _enter(self, scope: Scope) -> Enter:
        """What a reader of this request is brought to; raises `Problem`."""
        if scope["type"] == "http":
            _ensure_get(scope)
        if self._stopping or self.feed.failure is not None:
            detail = "the streams of this Edge are stopping; come again in a moment"
            raise Problem(503, "streams_stopping", detail, headers={"retry-after": "1"})
        thread = PROJECTION.fullmatch(_path(scope))
        last = header(scope, b"last-event-id")
        if thread is not None:
            return await self._enter_thread(unquote(thread[1]), scope["query_string"], last)
        face = FACES.get(scope["path"])
        if face is None:
            raise Problem(404, "not_found", "no stream is at this address")
        query = read_query(face, scope["query_string"], last)
        return lambda reader: self.readers.enter(reader, query)

    async def _enter_thread(self, thread_id: str, query: bytes, last: str | None) -> Enter:
        start = projection_start(query, last)
        try:
            known = await self.feed.journal.thread(thread_id)
        except JournalUnavailable as error:
            raise Problem(503, "journal_unavailable", str(error)) from error
        if known is None:
            raise Problem(404, "unknown_thread", "no thread has this id")
        return lambda reader: self.readers.enter_thread(reader, thread_id, start)


def _ensure_get(scope: Scope) -> None:
    if scope["method"] != "GET":
        detail = f"expected GET, got {scope['method']}"
        raise Problem(405, "method_not_allowed", detail, headers={"allow": "GET"})
    if not _wants_events(scope):
        detail = "a stream is read as text/event-stream or over a WebSocket; say so in Accept"
        raise Problem(406, "stream_not_acceptable", detail)


def _wants_events(scope: Scope) -> bool:
    accepted = header(scope, b"accept") or ""
    return "text/event-stream" in accepted or b"stream=sse" in scope["query_string"].split(b"&")


def _path(scope: Scope) -> str:
    """The path as it was sent, so that an id may have a slash in it."""
    raw = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("ascii", "replace")
