"""`Observed`: the outermost layer of an Edge, which sees every request and its answer once.

Here a request gets its trace id. When it is answered it is counted, logged and its span ended, by
the template of its route: no address, query, header or body is looked at for that. A stream is done
with as soon as it is open; what flows through it afterwards is nobody's business here.
"""

import logging
from time import perf_counter
from typing import Final

from opentelemetry.trace import Span, Status, StatusCode

from factwire.edge.logs import logger
from factwire.edge.observing.observing import Observing
from factwire.edge.observing.request_figures import METHODS, OTHER, SOCKET
from factwire.edge.observing.templates import UNMATCHED, Templates
from factwire.edge.security.guard import Application, Message, Receive, Scope, Send
from factwire.edge.tracing import read_traceparent

_NAME: Final = "factwire.edge.access"
_log: Final = logger(_NAME)
_heard: Final = logging.getLogger(_NAME)

_QUIET: Final = frozenset({"/v1/health", "/v1/metrics"})
"""Routes that machines ask all day; a good answer of theirs is told only to who wants it all."""

_STARTS: Final = ("http.response.start", "websocket.http.response.start")
_OPENED: Final = 101
_WRONG: Final = 400
_REFUSED: Final = 403
_FAILED: Final = 500
_EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")


class Observed:
    """An ASGI application around another."""

    def __init__(
        self, application: Application, observing: Observing, templates: Templates
    ) -> None:
        self._application = application
        self._observing = observing
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        seen = self._seen(scope, send)
        try:
            with self._observing.tracing.current(seen.span):
                await self._application(scope, receive, seen.send)
        finally:
            seen.finish(_FAILED)

    def _seen(self, scope: Scope, send: Send) -> "_Seen":
        method, route = _method(scope), self._route(scope)
        given = read_traceparent(dict(scope["headers"]).get(b"traceparent"))
        span, trace_id = self._observing.tracing.request(
            f"{method} {route}",
            given,
            {
                "http.request.method": method if method != OTHER else "_OTHER",
                "http.route": route,
                "url.scheme": scope["scheme"],
                "network.protocol.version": scope.get("http_version", "1.1"),
            },
        )
        scope.setdefault("state", {}).update(trace_id=trace_id, route=route)
        return _Seen(
            self._observing, send, method=method, route=route, span=span, trace_id=trace_id
        )

    def _route(self, scope: Scope) -> str:
        route = self._templates.of(scope["path"])
        raw = scope.get("raw_path")
        if route is not UNMATCHED or raw is None:
            return route
        # A stream's id may have a slash in it, which only the path as it was sent tells apart.
        return self._templates.of(raw.decode("ascii", "replace"))


class _Seen:
    """One request until it is answered."""

    __slots__ = (
        "_began",
        "_method",
        "_observing",
        "_route",
        "_send",
        "_status",
        "_trace_id",
        "span",
    )

    def __init__(
        self,
        observing: Observing,
        send: Send,
        *,
        method: str,
        route: str,
        span: Span,
        trace_id: str,
    ) -> None:
        self.span = span
        self._observing: Observing | None = observing
        self._method = method
        self._route = route
        self._trace_id = trace_id
        self._send = send
        self._status: int | None = None
        self._began = perf_counter()

    async def send(self, message: Message) -> None:
        await self._send(message)
        if self._observing is not None:
            self._note(message)

    def _note(self, message: Message) -> None:
        kind = message["type"]
        if kind in _STARTS:
            self._status = message["status"]
            if _EVENTS in message.get("headers", ()):
                self._done(message["status"], None)
        elif kind == "websocket.accept":
            self._done(_OPENED, None)
        elif kind == "websocket.close":
            self.finish(_REFUSED)

    def finish(self, otherwise: int) -> None:
        """The answer is over; a request without one ended as `otherwise`."""
        self._done(self._status or otherwise, perf_counter() - self._began)

    def _done(self, status: int, seconds: float | None) -> None:
        observing, self._observing = self._observing, None
        if observing is None:
            return
        observing.requests.note(self._method, self._route, status, seconds)
        if observing.tracing.is_on:
            _end(self.span, status)
        if seconds is not None:
            self._tell(status, seconds)

    def _tell(self, status: int, seconds: float) -> None:
        quiet = self._route in _QUIET and status < _WRONG
        level = logging.DEBUG if quiet else logging.INFO if status < _FAILED else logging.WARNING
        if not _heard.isEnabledFor(level):
            return
        _log.log(
            level,
            "request",
            method=self._method,
            route=self._route,
            status=status,
            ms=round(seconds * 1_000, 3),
            trace_id=self._trace_id,
        )


def _method(scope: Scope) -> str:
    if scope["type"] == "websocket":
        return SOCKET
    method: str = scope["method"]
    return method if method in METHODS else OTHER


def _end(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= _FAILED:
        span.set_attribute("error.type", str(status))
        span.set_status(Status(StatusCode.ERROR))
    span.end()
