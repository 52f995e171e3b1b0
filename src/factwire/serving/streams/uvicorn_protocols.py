"""uvicorn's HTTP and WebSocket protocols, with bounds, and with a counted way to the transport.

Whoever opens a connection must send a request soon, and one of a fair size: headers that trickle,
that never end, or that hide behind the body hold no place here. What is no HTTP is told so in the
one form of all refusals. A socket's application finds a `SocketWriter` under `extensions` and
`factwire.socket`: it writes frames that were made once for all sockets, tells how much of them is
unsent, and closes with a deadline. An event stream's application finds a way to cut a reader that
stopped under `factwire.cut`.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from factwire.serving.asgi import PROBLEM_MEDIA_TYPE, Problem, encode_problem, new_trace_id
from factwire.serving.limits import (
    ADDRESS_BYTES,
    CLIENT_FRAME_BYTES,
    CLOSE_SECONDS,
    FRAMING_BYTES,
    HEADER_BYTES,
    HEADER_SECONDS,
    MISSED_PINGS,
    OPEN_CONNECTIONS,
    PING_SECONDS,
    UNSENT_BYTES,
)
from factwire.serving.streams.stream_sinks import (
    DEAD,
    MALFORMED,
    NOT_TEXT,
    RESTART,
    SLOW,
    CloseReason,
    NullWatcher,
    SinkWatcher,
)

CUT_EXTENSION: Final = "factwire.cut"
"""Where a scope holds a function without arguments that ends the connection at once."""

_OF_A_BODY: Final = (b"content-length", b"transfer-encoding")
_NOT_HTTP: Final = Problem(400, "invalid_http", "not a valid HTTP/1.1 request (RFC 9112)")


class FactwireHttpProtocol(HttpToolsProtocol):
    """Give it to uvicorn as `http`. The bounds are attributes, so that a test can lower them."""

    header_seconds: float = HEADER_SECONDS
    header_bytes: int = HEADER_BYTES
    address_bytes: int = ADDRESS_BYTES
    open_connections: int = OPEN_CONNECTIONS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._has_headers = False
        self._head = 0
        self._around = 0
        self._refusal = _NOT_HTTP

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.open_connections:
            headers = {"retry-after": "1"}
            detail = f"too many open connections ({self.open_connections})"
            self._refuse(Problem(503, "too_many_connections", detail, headers=headers))
            return
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self._has_headers and self._deadline is None:
            self._expect_headers()
        self._around += len(data)
        super().data_received(data)
        if not self.transport.is_closing() and self._around > self.header_bytes:
            self._refuse(_headers_too_long(self.header_bytes))

    def on_message_begin(self) -> None:
        self._has_headers = False
        self._head = 0
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)["extensions"] = {CUT_EXTENSION: self.transport.abort}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.address_bytes:
            detail = f"the URL is longer than {self.address_bytes} bytes"
            self._give_up(Problem(414, "address_too_long", detail))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_headers:
            # What comes behind a body was judged by nobody.
            return
        self._head += len(name) + len(value)
        if self._head > self.header_bytes:
            self._give_up(_headers_too_long(self.header_bytes))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._has_headers = True
        self._around = 0
        self._forget_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._around = max(0, self._around - FRAMING_BYTES * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_headers = False
        self._around = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._has_headers and not self.pipeline:
            # Answered before it had come whole: nobody waits for the rest.
            self.transport.close()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        if self.pipeline or self._is_answering():
            # Its answer would end up between the frames of the socket.
            self.transport.close()
            return
        if any(name in _OF_A_BODY for name, _ in self.headers):
            self._refuse(_NOT_HTTP)
            return
        super().handle_websocket_upgrade()
        self.loop.call_later(self.header_seconds, _cut_unless_open, self.transport)

    def send_400_response(self, msg: str) -> None:
        del msg
        self._refuse(self._refusal)

    def _expect_headers(self) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(self.header_seconds, self._too_slow)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._is_answering():
            # An earlier request is being answered, and this side reads nothing meanwhile.
            self._expect_headers()
            return
        detail = f"the headers did not arrive within {self.header_seconds:g} s"
        self._refuse(Problem(408, "headers_too_slow", detail))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _give_up(self, problem: Problem) -> None:
        """Leave the parser, which has no other way out than an error."""
        self._refusal = problem
        raise problem

    def _refuse(self, problem: Problem) -> None:
        """Say why, once nobody else is speaking, and hang up."""
        self._forget_deadline()
        speaking = self.cycle is not None and self.cycle.response_started  # pyright: ignore[reportUnnecessaryComparison]
        if not speaking or self.cycle.response_complete:
            self.transport.write(_encode_answer(problem))
        self.transport.close()


def _cut_unless_open(transport: asyncio.Transport) -> None:
    """End a handshake that came to nothing, of which a socket's own protocol may say nothing."""
    if transport.is_closing():
        return
    protocol = cast("WebSocketsSansIOProtocol", transport.get_protocol())
    if protocol.conn.state is State.CONNECTING:
        transport.abort()


def _headers_too_long(most: int) -> Problem:
    return Problem(431, "headers_too_long", f"the headers are larger than {most} bytes in total")


def _encode_answer(problem: Problem) -> bytes:
    body = encode_problem(problem, new_trace_id())
    headers = {
        "content-type": PROBLEM_MEDIA_TYPE,
        "content-length": str(len(body)),
        "connection": "close",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        **problem.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    phrase = HTTPStatus(problem.status).phrase
    return f"HTTP/1.1 {problem.status} {phrase}\r\n{lines}\r\n".encode() + body


_HANDSHAKE: Final = (
    *("connection", "upgrade", "sec-websocket-key", "sec-websocket-version"),
    *("sec-websocket-extensions", "sec-websocket-protocol"),
)
"""What the library reads of a handshake, and repeats where it refuses one."""

SOCKET_EXTENSION: Final = "factwire.socket"
"""Where a scope holds the `SocketWriter`."""


class SocketWriter:
    """A `StreamSink` straight onto the transport of one socket."""

    __slots__ = ("_protocol", "_watcher", "ended_by", "is_blocked", "is_gone", "write")

    def __init__(self, protocol: "FactwireSocketProtocol") -> None:
        self._protocol = protocol
        self._watcher: SinkWatcher = NullWatcher()
        self.ended_by: CloseReason | None = None
        self.is_blocked = False
        self.is_gone = False
        self.write: Callable[[bytes], None] = protocol.transport.write

    @property
    def unsent(self) -> int:
        return self._protocol.transport.get_write_buffer_size()

    def watch(self, watcher: SinkWatcher) -> None:
        self._watcher = watcher

    def limit_unsent(self, size: int) -> None:
        self._protocol.transport.set_write_buffer_limits(high=size)

    def close(self, closing: CloseReason) -> None:
        if not self.is_gone:
            self._protocol.end(closing)

    def mark_blocked(self) -> None:
        if not self.is_gone:
            self.is_blocked = True
            self._watcher.on_blocked()

    def mark_resumed(self) -> None:
        if self.is_blocked and not self.is_gone:
            self.is_blocked = False
            self._watcher.on_resumed()

    def mark_gone(self) -> None:
        """Nothing written from now on would arrive."""
        if not self.is_gone:
            self.is_gone = True
            self.write = _discard_frames
            self._watcher.on_gone()
            self._watcher = NullWatcher()


def _discard_frames(_: bytes) -> None:
    """Where frames for a reader go that is gone."""


class FactwireSocketProtocol(WebSocketsSansIOProtocol):
    """Give it to uvicorn as `ws`, with `socket_settings`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._writer: SocketWriter | None = None
        self._unanswered = 0
        # Two pings may go unanswered; the base class knows a deadline for one.
        self.ping_timeout = None

    def handle_connect(self, event: Request) -> None:
        values = (value for name in _HANDSHAKE for value in event.headers.get_all(name))
        if not all(map(str.isascii, values)):
            # The library cannot repeat it; without any of them it is a bad request.
            for name in {*_HANDSHAKE} & {*event.headers}:
                del event.headers[name]
        super().handle_connect(event)
        if not self.close_sent and not self.conn.extensions:
            self._writer = SocketWriter(self)
            extensions = cast("dict[str, Any]", self.scope.setdefault("extensions", {}))
            extensions[SOCKET_EXTENSION] = self._writer

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # Refused before the upgrade, which is an answer too: the base class logs an error.
            self.handshake_complete = True

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writer is not None:
            self._writer.mark_blocked()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writer is not None:
            self._writer.mark_resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()
        super().connection_lost(exc)

    def handle_close(self, event: Frame) -> None:
        self._lose()
        super().handle_close(event)
        self._cut_later()

    def handle_ping(self) -> None:
        if self.close_sent:
            # Answers to someone who does not read would pile up.
            self.conn.data_to_send()
            return
        super().handle_ping()
        if self.transport.get_write_buffer_size() > UNSENT_BYTES:
            self.end(SLOW)

    def handle_parser_exception(self) -> None:
        self._lose(MALFORMED)
        super().handle_parser_exception()
        self._cut_later()

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not _is_text(self.frames):
            self.frames = []
            self.end(NOT_TEXT)
            return
        super().send_receive_event_to_app()

    def shutdown(self) -> None:
        self._lose(RESTART)
        super().shutdown()
        self._cut_later()

    def handle_pong(self, event: Frame) -> None:
        self._unanswered = 0
        super().handle_pong(event)

    def send_keepalive_ping(self) -> None:
        if self._unanswered >= MISSED_PINGS:
            self.ping_timer = None
            self._lose(DEAD)
            self.keepalive_timeout()
            self._cut_later()
            return
        self._unanswered += 1
        super().send_keepalive_ping()

    def end(self, closing: CloseReason) -> None:
        """Close with a code; the connection is cut if the reader does not take it in time."""
        self._lose(closing)
        if self.close_sent or self.conn.state is not State.OPEN:
            return
        self.conn.send_close(closing.code, closing.reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait(
            {"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason}
        )
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def _lose(self, closing: CloseReason | None = None) -> None:
        if self._writer is not None:
            if not self._writer.is_gone:
                self._writer.ended_by = closing
            self._writer.mark_gone()

    def _cut_later(self) -> None:
        """Closing waits for the reader to take what is left, which it may never do."""
        if self.transport.get_write_buffer_size():
            self.loop.call_later(CLOSE_SECONDS, self.transport.abort)


def _is_text(parts: list[bytes]) -> bool:
    try:
        b"".join(parts).decode()
    except UnicodeDecodeError:
        return False
    return True


def socket_settings() -> dict[str, Any]:
    """What uvicorn's configuration needs for these sockets."""
    return {
        "ws": FactwireSocketProtocol,
        "ws_max_size": CLIENT_FRAME_BYTES,
        "ws_per_message_deflate": False,
        "ws_ping_interval": PING_SECONDS,
        "ws_ping_timeout": None,
    }
