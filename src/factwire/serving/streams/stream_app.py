"""`Streams`: the streams of a journal as one ASGI application.

It answers `/v1/events`, `/v1/facts` and the projection stream of a thread, over WebSocket and as
server-sent events. Whatever is wrong with a request is said before the stream begins; whatever goes
wrong later ends it with a code of the table in `stream_sinks`, and never reaches another reader. A
reader of these streams has nothing to say: on a socket any message of its ends the stream; on an
event stream only its leaving counts. `serve_socket` also serves sockets whose clients may speak.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import unquote

import msgspec

from factwire.journal import Cursor, CursorError, Filter, JournalError, JournalUnavailable
from factwire.serving.access_control import Caller
from factwire.serving.asgi import (
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    get_extension,
    get_header,
    refuse,
    scope_trace_id,
)
from factwire.serving.envelopes import PlaceOf, ThreadsOf, has_no_place, has_no_threads
from factwire.serving.envelopes import Scope as EventScope
from factwire.serving.limits import CLOSE_SECONDS, PING_SECONDS
from factwire.serving.logs import logger
from factwire.serving.streams import uvicorn_protocols
from factwire.serving.streams.catch_up import Broadcast, CatchUp
from factwire.serving.streams.frame_encoder import (
    COMMENT,
    EnvelopeBuilder,
    Face,
    FrameEncoder,
    FrameReader,
    Selection,
    Wire,
    frame_message,
)
from factwire.serving.streams.journal_feed import FeedStopped, JournalFeed
from factwire.serving.streams.live_projection import LiveProjections
from factwire.serving.streams.stream_query import (
    StreamQuery,
    StreamStart,
    TypesOfView,
    close_reason_of,
    encode_cursor_error,
    read_cursor,
    read_projection_start,
    read_query,
)
from factwire.serving.streams.stream_sinks import (
    CLOSE_NAMES,
    FAULT,
    RESTART,
    REVOKED,
    UNASKED,
    UNAVAILABLE,
    CloseReason,
    PumpedSink,
    StreamSink,
)

EnterSink = Callable[[StreamSink], Awaitable[None]]
"""Brings a reader to a live stream, or closes its sink."""

TakeMessage = Callable[[StreamSink, Message], Awaitable[None]]
"""Does what a message of a reader asks for, or closes its sink."""

_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_REFUSAL_HEADERS: Final = ((b"cache-control", b"no-store"),)


async def refuse_message(sink: StreamSink, _: Message) -> None:
    """Take a message where nobody may send any."""
    sink.close(UNASKED)


async def serve_socket(
    scope: Scope,
    receive: Receive,
    send: Send,
    enter: EnterSink,
    take: TakeMessage = refuse_message,
) -> None:
    """Accept a WebSocket and stay until its reader has gone."""
    await send({"type": "websocket.accept"})
    writer: StreamSink | None = get_extension(scope, uvicorn_protocols.SOCKET_EXTENSION)
    if writer is None:
        await _serve_messages(receive, send, enter, take)
        return
    try:
        await enter(writer)
        await _listen(receive, writer, take)
    finally:
        writer.mark_gone()


async def _serve_messages(
    receive: Receive, send: Send, enter: EnterSink, take: TakeMessage
) -> None:
    """The same over ordinary messages, for any server."""
    messages = FrameReader()

    async def deliver(frames: bytes) -> None:
        for message in messages.feed(frames):
            await send({"type": "websocket.send", "text": message.decode()})

    async def finish(closing: CloseReason) -> None:
        await send({"type": "websocket.close", "code": closing.code, "reason": closing.reason})

    await _pump(PumpedSink(deliver, finish), enter, receive, take)


async def serve_events(scope: Scope, receive: Receive, send: Send, enter: EnterSink) -> None:
    """Answer with server-sent events and stay until the reader has gone."""

    async def deliver(frames: bytes) -> None:
        await send({"type": "http.response.body", "body": frames, "more_body": True})

    async def finish(_: CloseReason) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def enter_and_beat(sink: StreamSink) -> None:
        await enter(sink)
        # Only now: a comment must not stand inside of a snapshot that goes out in pieces.
        beats.append(asyncio.create_task(_beat(sink), name="factwire-heartbeat"))

    beats: list[asyncio.Task[None]] = []
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    try:
        took_all = await _pump(PumpedSink(deliver, finish), enter_and_beat, receive)
    finally:
        for task in beats:
            task.cancel()
    cut = get_extension(scope, uvicorn_protocols.CUT_EXTENSION)
    if not took_all and cut is not None:
        cut()


async def _pump(
    sink: PumpedSink, enter: EnterSink, receive: Receive, take: TakeMessage = refuse_message
) -> bool:
    listening = asyncio.create_task(_listen(receive, sink, take), name="factwire-listen")
    try:
        await enter(sink)
        return await sink.wait_until_ended()
    finally:
        sink.mark_gone()
        listening.cancel()
        await asyncio.wait((listening,))


async def _listen(receive: Receive, sink: StreamSink, take: TakeMessage) -> None:
    """Return when the reader has left."""
    while True:
        message = await receive()
        if message["type"] in ("websocket.disconnect", "http.disconnect"):
            sink.mark_gone()
            return
        if message["type"] == "websocket.receive":
            await take(sink, message)


async def _beat(sink: StreamSink) -> None:
    while not sink.is_gone:
        await asyncio.sleep(PING_SECONDS)
        sink.write(COMMENT)


_Key = tuple[Selection, Wire]


class StreamStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures about the streams of a server; `held_bytes` is kept for readers that are behind.
    `opened` and `closed`, by why, are since the start.
    """

    readers: int
    catching_up: int
    broadcasts: int
    watched_threads: int
    held_bytes: int
    opened: int = 0
    closed: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class StreamReader(msgspec.Struct, frozen=True, eq=False):
    """One reader, and how to find it in the log."""

    sink: StreamSink
    wire: Wire
    trace_id: str


class StreamReaders:
    """Brings readers to their streams and ends them all."""

    def __init__(
        self,
        feed: JournalFeed,
        *,
        scope: EventScope,
        build_encoder: Callable[[Selection], FrameEncoder],
    ) -> None:
        self.projections = LiveProjections(feed)
        self._feed = feed
        self._scope = scope
        self._build_encoder = build_encoder
        self._broadcasts: dict[_Key, Broadcast] = {}
        self._entering: dict[StreamReader, None] = {}

    def stats(self) -> StreamStats:
        broadcasts = [broadcast.channel for broadcast in self._broadcasts.values()]
        channels = [*broadcasts, *self.projections.channels()]
        return StreamStats(
            readers=sum(channel.members for channel in channels),
            catching_up=len(self._entering),
            broadcasts=len(broadcasts),
            watched_threads=self.projections.thread_count,
            held_bytes=sum(channel.held_bytes for channel in channels),
        )

    async def enter(self, reader: StreamReader, query: StreamQuery) -> None:
        """Bring a reader to the live facts of a selection, or close it."""
        with self._admit(reader, query.selection.filter):
            after = await self._resolve_cursor(query.start)
            broadcast = self._broadcast(query.selection, reader.wire)
            catching_up = CatchUp(self._feed, broadcast, reader.sink)
            if query.start.now:
                catching_up.join_now()
            else:
                await catching_up.join(after)

    async def enter_thread(self, reader: StreamReader, thread_id: str, start: StreamStart) -> None:
        """Bring a viewer to the live state of a thread, or close it."""
        with self._admit(reader, Filter(thread=thread_id)):
            after = await self._resolve_cursor(start)
            await self.projections.view(thread_id, reader.sink, reader.wire, after)

    async def flush(self) -> None:
        """Return when everything that is durable now has been handed to the readers."""
        head = await self._feed.journal.head()
        await self._feed.wait_for(head.seq)

    def close(self) -> None:
        """End every stream."""
        for broadcast in tuple(self._broadcasts.values()):
            broadcast.end(RESTART)
        self.projections.close()
        for reader in tuple(self._entering):
            reader.sink.close(RESTART)

    async def _resolve_cursor(self, start: StreamStart) -> Cursor | None:
        if start.cursor is None:
            return None
        return await read_cursor(self._feed.journal, start.cursor)

    def _broadcast(self, selection: Selection, wire: Wire) -> Broadcast:
        key = selection, wire
        broadcast = self._broadcasts.get(key)
        if broadcast is None:
            encoder = self._build_encoder(selection)
            broadcast = Broadcast(self._feed, encoder, wire, partial(self._close_broadcast, key))
            self._broadcasts[key] = broadcast
        return broadcast

    def _close_broadcast(self, key: _Key) -> None:
        broadcast = self._broadcasts.pop(key, None)
        if broadcast is not None:
            broadcast.close()

    @contextmanager
    def _admit(self, reader: StreamReader, wanted: Filter | None) -> Generator[None]:
        """What goes wrong on the way to a stream ends that stream alone."""
        self._entering[reader] = None
        try:
            yield
        except CursorError as error:
            self._refuse(reader, error, wanted)
        except FeedStopped:
            reader.sink.close(RESTART)
        except JournalUnavailable:
            reader.sink.close(UNAVAILABLE)
        except Exception:
            reader.sink.close(FAULT)
            raise
        finally:
            del self._entering[reader]

    def _refuse(self, reader: StreamReader, error: CursorError, wanted: Filter | None) -> None:
        head = error.head or self._feed.cursor
        text = encode_cursor_error(error, wanted, head, scope=self._scope, trace_id=reader.trace_id)
        reader.sink.write(frame_message(reader.wire, "error", text, None))
        reader.sink.close(close_reason_of(error))


FACES: Final[dict[str, Face]] = {"/v1/events": "events", "/v1/facts": "facts"}
"""Path → the face that is streamed there."""

PROJECTION: Final = re.compile(r"/v1/threads/([^/]+)/projection/stream")

EnterStream = Callable[[StreamReader], Awaitable[None]]


class Streams:
    """An ASGI application; `owns` says which requests are for it.

    `types_of` are the types that `envelope_of` can make, `scope` is where errors of a stream come
    from, `server_name` what refusals call the server, `log_name` the logger of what begins and
    ends, `place_of` the project and the conversation of a thread, by which streams can be filtered,
    and `threads_of` the threads of a project.
    """

    def __init__(
        self,
        feed: JournalFeed,
        *,
        server_name: str,
        log_name: str,
        scope: EventScope,
        envelope_of: EnvelopeBuilder,
        types_of: TypesOfView,
        place_of: PlaceOf = has_no_place,
        threads_of: ThreadsOf = has_no_threads,
    ) -> None:
        self.feed = feed
        self._types_of = types_of
        build_encoder = partial(
            FrameEncoder, envelope_of=envelope_of, place_of=place_of, threads_of=threads_of
        )
        self.readers = StreamReaders(feed, scope=scope, build_encoder=build_encoder)
        self._server_name = server_name
        self._log = logger(log_name)
        self._stopping = False
        self._served = 0
        self._opened = 0
        self._closed = dict.fromkeys(CLOSE_NAMES.values(), 0)
        self._open: dict[StreamSink, str | None] = {}
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
        try:
            enter = await self._enter(scope)
        except Problem as problem:
            await refuse(scope, receive, send, problem, headers=_REFUSAL_HEADERS)
            return
        if is_socket:
            await receive()
        wire: Wire = "socket" if is_socket else "sse"
        trace_id = scope_trace_id(scope)
        caller: Caller | None = scope["state"].get("caller")
        token_id = None if caller is None else caller.token_id
        sinks: list[StreamSink] = []

        async def admit(sink: StreamSink) -> None:
            sinks.append(sink)
            self._open[sink] = token_id
            await enter(StreamReader(sink, wire, trace_id))

        serve = serve_socket if is_socket else serve_events
        with (
            self._count_stream(),
            self._log_stream(FACES.get(scope["path"], "projection"), trace_id, sinks),
        ):
            await serve(scope, receive, send, admit)

    def close_token(self, token_id: str) -> None:
        """End every stream that was opened with a token."""
        for sink, owner in tuple(self._open.items()):
            if owner == token_id:
                sink.close(REVOKED)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Tell every reader what is durable, then close it; nobody is admitted from now on.

        Returns when all have gone, or after `seconds`.
        """
        self._stopping = True
        end = asyncio.get_running_loop().time() + seconds
        # Whom the deadline or an absent journal leaves behind resumes from its cursor.
        with suppress(TimeoutError, JournalError, FeedStopped):
            async with asyncio.timeout(seconds / 2):
                await self.readers.flush()
        self.readers.close()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await self._nobody.wait()

    @contextmanager
    def _count_stream(self) -> Generator[None]:
        self._served += 1
        self._nobody.clear()
        try:
            yield
        finally:
            self._served -= 1
            if not self._served:
                self._nobody.set()

    @contextmanager
    def _log_stream(self, face: str, trace_id: str, sinks: list[StreamSink]) -> Generator[None]:
        """Say that a stream was begun, and in the end by whom and why it was ended."""
        self._opened += 1
        self._log.info("stream_opened", stream=face, trace_id=trace_id)
        try:
            yield
        finally:
            reason = CLOSE_NAMES[sinks[0].ended_by if sinks else None]
            for sink in sinks:
                self._open.pop(sink, None)
            self._closed[reason] += 1
            self._log.info("stream_closed", stream=face, reason=reason, trace_id=trace_id)

    async def _enter(self, scope: Scope) -> EnterStream:
        """What a reader of this request is brought to; raises `Problem`."""
        if scope["type"] == "http":
            _ensure_get(scope)
        if self._stopping or self.feed.failure is not None:
            detail = f"this {self._server_name}'s streams are stopping; try again in a moment"
            raise Problem(503, "streams_stopping", detail, headers={"retry-after": "1"})
        thread = PROJECTION.fullmatch(_path(scope))
        last = get_header(scope, b"last-event-id")
        if thread is not None:
            return await self._enter_thread(unquote(thread[1]), scope["query_string"], last)
        face = FACES.get(scope["path"])
        if face is None:
            raise Problem(404, "not_found", "no stream at this address")
        query = read_query(face, scope["query_string"], last, types_of=self._types_of)
        return lambda reader: self.readers.enter(reader, query)

    async def _enter_thread(self, thread_id: str, query: bytes, last: str | None) -> EnterStream:
        start = read_projection_start(query, last)
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
        detail = "a stream needs 'Accept: text/event-stream' or a WebSocket"
        raise Problem(406, "stream_not_acceptable", detail)


def _wants_events(scope: Scope) -> bool:
    accepted = get_header(scope, b"accept") or ""
    return "text/event-stream" in accepted or b"stream=sse" in scope["query_string"].split(b"&")


def _path(scope: Scope) -> str:
    """The path as it was sent, so that an id may have a slash in it."""
    raw = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("ascii", "replace")
