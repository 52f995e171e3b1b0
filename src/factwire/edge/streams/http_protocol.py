"""uvicorn's HTTP protocol with bounds on what comes before a request, and a way to cut it.

Whoever opens a connection must send a request soon, and one of a fair size: headers that trickle,
that never end, or that hide behind the body hold no place here. What is no HTTP is told so in the
one form of all refusals. An event stream whose reader stopped would otherwise keep what was written
for it until the reader's machine gives up; an application finds the knife under `extensions` and
`factwire.cut`.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from factwire.edge.limits import (
    ADDRESS_BYTES,
    FRAMING_BYTES,
    HEADER_BYTES,
    HEADER_SECONDS,
    OPEN_CONNECTIONS,
)
from factwire.edge.problems import MEDIA_TYPE, Problem, encoded
from factwire.edge.tracing import new_trace_id

EXTENSION: Final = "factwire.cut"
"""Where a scope holds a function without arguments that ends the connection at once."""

_OF_A_BODY: Final = (b"content-length", b"transfer-encoding")
_NOT_HTTP: Final = Problem(400, "invalid_http", "what came is not HTTP/1.1 as RFC 9112 has it")


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
            detail = f"{self.open_connections} connections are open, as many as may be"
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
            self._refuse(_too_long(self.header_bytes))

    def on_message_begin(self) -> None:
        self._has_headers = False
        self._head = 0
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)["extensions"] = {EXTENSION: self.transport.abort}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.address_bytes:
            detail = f"an address has at most {self.address_bytes} bytes"
            self._give_up(Problem(414, "address_too_long", detail))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_headers:
            # What comes behind a body was judged by nobody.
            return
        self._head += len(name) + len(value)
        if self._head > self.header_bytes:
            self._give_up(_too_long(self.header_bytes))
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
        detail = f"the headers of a request arrive in {self.header_seconds:g} s"
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
            self.transport.write(_answer(problem))
        self.transport.close()


def _cut_unless_open(transport: asyncio.Transport) -> None:
    """End a handshake that came to nothing, of which a socket's own protocol may say nothing."""
    if transport.is_closing():
        return
    protocol = cast("WebSocketsSansIOProtocol", transport.get_protocol())
    if protocol.conn.state is State.CONNECTING:
        transport.abort()


def _too_long(most: int) -> Problem:
    return Problem(431, "headers_too_long", f"headers have at most {most} bytes together")


def _answer(problem: Problem) -> bytes:
    body = encoded(problem, new_trace_id())
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "connection": "close",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        **problem.headers,
    }
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    phrase = HTTPStatus(problem.status).phrase
    return f"HTTP/1.1 {problem.status} {phrase}\r\n{told}\r\n".encode() + body
