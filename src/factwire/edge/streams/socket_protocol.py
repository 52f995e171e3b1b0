"""uvicorn's WebSocket protocol with a direct, counted way to the transport.

An application finds a `SocketWriter` in its scope, under `extensions` and `factwire.socket`. It
writes frames that were made once for all sockets, tells how much of them is unsent, and closes with
a deadline, so that a reader that stopped cannot keep what was written for it. Ordinary `send` works
as before. The writer is offered only where nothing, such as compression, changes frames on the way.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from factwire.edge.limits import (
    CLIENT_FRAME_BYTES,
    CLOSE_SECONDS,
    MISSED_PINGS,
    PING_SECONDS,
    UNSENT_BYTES,
)
from factwire.edge.streams.closing import (
    DEAD,
    MALFORMED,
    NOT_TEXT,
    RESTART,
    SLOW,
    Closing,
)
from factwire.edge.streams.sink import Unwatched, Watcher

_KEY: Final = "Sec-WebSocket-Key"

EXTENSION: Final = "factwire.socket"
"""Where a scope holds the `SocketWriter`."""


class SocketWriter:
    """A `Sink` straight onto the transport of one socket."""

    __slots__ = ("_protocol", "_watcher", "ended_by", "is_blocked", "is_gone", "write")

    def __init__(self, protocol: "FactwireSocketProtocol") -> None:
        self._protocol = protocol
        self._watcher: Watcher = Unwatched()
        self.ended_by: Closing | None = None
        self.is_blocked = False
        self.is_gone = False
        self.write: Callable[[bytes], None] = protocol.transport.write

    @property
    def unsent(self) -> int:
        return self._protocol.transport.get_write_buffer_size()

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def close(self, closing: Closing) -> None:
        if not self.is_gone:
            self._protocol.end(closing)

    def blocked(self) -> None:
        if not self.is_gone:
            self.is_blocked = True
            self._watcher.blocked()

    def resumed(self) -> None:
        if self.is_blocked and not self.is_gone:
            self.is_blocked = False
            self._watcher.resumed()

    def lost(self) -> None:
        """Nothing written from now on would arrive."""
        if not self.is_gone:
            self.is_gone = True
            self.write = _nowhere
            self._watcher.gone()
            self._watcher = Unwatched()


def _nowhere(_: bytes) -> None:
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
        if not all(map(str.isascii, event.headers.get_all(_KEY))):
            # Older releases of the library stumble over it; without a key it is a bad request.
            del event.headers[_KEY]
        super().handle_connect(event)
        if not self.close_sent and not self.conn.extensions:
            self._writer = SocketWriter(self)
            extensions = cast("dict[str, Any]", self.scope.setdefault("extensions", {}))
            extensions[EXTENSION] = self._writer

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # Refused before the upgrade, which is an answer too: the base class logs an error.
            self.handshake_complete = True

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writer is not None:
            self._writer.blocked()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writer is not None:
            self._writer.resumed()

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

    def end(self, closing: Closing) -> None:
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

    def _lose(self, closing: Closing | None = None) -> None:
        if self._writer is not None:
            if not self._writer.is_gone:
                self._writer.ended_by = closing
            self._writer.lost()

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
