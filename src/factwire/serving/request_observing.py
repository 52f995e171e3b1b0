"""How a server's requests are observed: counted, timed, logged and traced, each once.

A request is known by the template of its route: no address, query, header or body is looked at,
so nobody can make series, or put words into a log, by asking for them. Figures are plain numbers,
counted in the event loop without a lock and put into Prometheus' form when they are asked for.
Only OpenTelemetry's interface is used; without an SDK no span is made. A stream is done with as
soon as it is open.
"""

import asyncio
import logging
import re
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from time import perf_counter
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
)
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from factwire import __version__
from factwire.serving.asgi import (
    Application,
    Message,
    Receive,
    Scope,
    Send,
    Traceparent,
    new_trace_id,
    read_traceparent,
)
from factwire.serving.envelopes import derive_trace_id
from factwire.serving.limits import KEPT_SPANS, LAG_SECONDS
from factwire.serving.logs import logger


class DurationHistogram:
    """Counts seconds; nothing is kept of a single one."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound with the number of those within it, as Prometheus writes them."""
        names = [*map(str, self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))


_LAG_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class LoopLag:
    """Looks at the running loop again and again, between `start` and `stop`."""

    def __init__(self, every: float = LAG_SECONDS) -> None:
        self.durations = DurationHistogram(_LAG_BOUNDS)
        self._every = every
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._every
        self._timer = loop.call_at(self._due, self._measure)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def families(self, prefix: str) -> Iterator[Metric]:
        """The figures, under names that begin with `prefix`."""
        yield HistogramMetricFamily(
            f"{prefix}loop_lag_seconds",
            "How late the event loop ran a timer, in seconds.",
            buckets=self.durations.buckets(),
            sum_value=self.durations.sum,
        )

    def _measure(self) -> None:
        self.durations.observe(max(0.0, asyncio.get_running_loop().time() - self._due))
        self.start()


class FigureRegistry:
    """Figures in Prometheus' text form, with those of the process beside them. Each server has its
    own, so that two in a process never share a figure.
    """

    def __init__(self) -> None:
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def expose(self, families: Iterator[Metric]) -> bytes:
        own = CollectorRegistry()
        own.register(_Families(families))
        return generate_latest(own) + generate_latest(self._process)


class _Families(Collector):
    """Families that were made for one answer."""

    def __init__(self, families: Iterator[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        return self._families


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
"""Methods that are told by name."""

OTHER: Final = "other"
"""Any method that is not; a client may send every word as one."""

SOCKET: Final = "websocket"
"""Stands where a method would, for a request that is to become a socket."""

_DURATION_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestMetrics:
    """What has been asked since the start; a stream counts when it opens and has no duration."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._took: dict[tuple[str, str], DurationHistogram] = {}

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """One answer; `seconds` is None for one that goes on."""
        self._answers[method, route, status] += 1
        if seconds is None:
            return
        took = self._took.get((method, route))
        if took is None:
            took = self._took[method, route] = DurationHistogram(_DURATION_BOUNDS)
        took.observe(seconds)

    def families(self, prefix: str) -> Iterator[Metric]:
        """The figures, under names that begin with `prefix`."""
        answers = CounterMetricFamily(
            f"{prefix}requests",
            "Requests answered and streams opened.",
            labels=("method", "route", "status"),
        )
        for (method, route, status), count in self._answers.items():
            answers.add_metric((method, route, str(status)), count)
        yield answers
        took = HistogramMetricFamily(
            f"{prefix}request_seconds",
            "Seconds from a request to the end of its response, without streams.",
            labels=("method", "route"),
        )
        for labels, durations in self._took.items():
            took.add_metric(labels, durations.buckets(), durations.sum)
        yield took


UNMATCHED: Final = "unmatched"
"""The template of every address that is not served."""

_ANY: Final = "{}"
_END: Final = ""


class RouteTemplates:
    """The templates of all paths that a server answers, as a tree of their parts."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tree: dict[str, Any] = {}
        self._verbs: set[str] = set()
        for path in paths:
            self._add(path)

    def match(self, path: str) -> str:
        """The template of a path; a verb stands behind a colon in its last part."""
        # Empty parts are what the router does not see either.
        parts = [part for part in path.split("/") if part]
        name, colon, verb = parts[-1].rpartition(":") if parts else ("", "", "")
        if colon and name and verb in self._verbs:
            parts[-1:] = [name, f":{verb}"]
        return self.match_parts(parts)

    def match_parts(self, parts: Iterable[str]) -> str:
        """The template of a path whose verb is a part of its own, as in a path that routes."""
        place: dict[str, Any] | None = self._tree
        for part in parts:
            place = place.get(part) or place.get(_ANY)
            if place is None:
                return UNMATCHED
        return place.get(_END, UNMATCHED)

    def _add(self, path: str) -> None:
        place = self._tree
        # The page's own path is the root: an empty part would stand where a template's end does.
        for part in filter(None, path.split("/")):
            if part.startswith(":"):
                self._verbs.add(part[1:])
            place = place.setdefault(_ANY if part.startswith("{") else part, {})
        place[_END] = path.replace("/:", ":")


_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_DIGITS: Final = 16


class Tracing:
    """Makes spans under a tracer's name, by a provider or by the one that is set up for the whole
    process.
    """

    def __init__(self, name: str, provider: TracerProvider | None = None) -> None:
        found = provider or trace.get_tracer_provider()
        nobody = isinstance(found, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
        self.is_on = not nobody
        self.tracer: Tracer = found.get_tracer(name, __version__)
        self._requests: OrderedDict[str, SpanContext] = OrderedDict()

    def start_request(
        self, name: str, caller: Traceparent | None, attributes: dict[str, str]
    ) -> tuple[Span, str]:
        """The span of a request, and the trace id that both have; `caller` is whose it is."""
        if not self.is_on:
            return trace.INVALID_SPAN, new_trace_id() if caller is None else caller.trace_id
        parent = Context() if caller is None else _in_context(_to_span_context(caller))
        span = self.tracer.start_span(name, parent, SpanKind.SERVER, attributes=attributes)
        context = span.get_span_context()
        trace_id = f"{context.trace_id:032x}"
        if attributes.get("http.request.method") == "POST":
            self._remember(trace_id, context)
        return span, trace_id

    def _remember(self, trace_id: str, context: SpanContext) -> None:
        """Whatever starts a run is a POST; its span is what the run's lies below."""
        self._requests[trace_id] = context
        self._requests.move_to_end(trace_id)
        if len(self._requests) > KEPT_SPANS:
            self._requests.popitem(last=False)

    def use_span(self, span: Span) -> AbstractContextManager[object]:
        """Let what happens inside belong to a span."""
        if not self.is_on:
            return nullcontext()
        return trace.use_span(span, record_exception=False, set_status_on_exception=False)

    def parent_context(self, trace_id: str, name: str) -> Context:
        """Where a span in a trace begins: at the request that led to it, if that was of this
        process, else under an id that follows from a name.
        """
        digits = trace_id_digits(trace_id)
        known = self._requests.get(digits)
        if known is None:
            span_id = int(derive_trace_id(name)[:_SPAN_DIGITS], 16) or 1
            known = SpanContext(
                int(digits, 16), span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
            )
        return _in_context(known)


def trace_id_digits(trace_id: str) -> str:
    """A trace id as OpenTelemetry has them; of any other text, what follows from it."""
    digits = trace_id.replace("-", "").lower()
    return (
        digits if _HEXADECIMAL.fullmatch(digits) and int(digits, 16) else derive_trace_id(trace_id)
    )


def _to_span_context(caller: Traceparent) -> SpanContext:
    return SpanContext(
        int(caller.trace_id, 16),
        int(caller.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(caller.flags, 16)),
    )


def _in_context(context: SpanContext) -> Context:
    return trace.set_span_in_context(NonRecordingSpan(context), Context())


_QUIET: Final = frozenset({"/v1/health", "/v1/metrics"})
"""Routes that machines ask all day; a good answer of theirs is told only to who wants it all."""

_STARTS: Final = ("http.response.start", "websocket.http.response.start")
_OPENED: Final = 101
_WRONG: Final = 400
_REFUSED: Final = 403
_FAILED: Final = 500
_EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")


class RequestObserver(Protocol):
    """Whom requests are told to."""

    @property
    def requests(self) -> RequestMetrics: ...

    @property
    def tracing(self) -> Tracing: ...


class AccessLog:
    """One line a request, under the name of a logger."""

    def __init__(self, name: str) -> None:
        self._log = logger(name)
        self._plain = logging.getLogger(name)

    def write(self, method: str, route: str, status: int, seconds: float, trace_id: str) -> None:
        quiet = route in _QUIET and status < _WRONG
        level = logging.DEBUG if quiet else logging.INFO if status < _FAILED else logging.WARNING
        if not self._plain.isEnabledFor(level):
            return
        self._log.log(
            level,
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1_000, 3),
            trace_id=trace_id,
        )


class ObserverMiddleware:
    """An ASGI application around another; `log_name` is the logger of what was asked."""

    def __init__(
        self,
        application: Application,
        observer: RequestObserver,
        templates: RouteTemplates,
        *,
        log_name: str,
    ) -> None:
        self._application = application
        self._observer = observer
        self._templates = templates
        self._access_log = AccessLog(log_name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        seen = self._observe(scope, send)
        try:
            with self._observer.tracing.use_span(seen.span):
                await self._application(scope, receive, seen.send)
        finally:
            seen.finish(_FAILED)

    def _observe(self, scope: Scope, send: Send) -> "_ObservedRequest":
        method, route = _method_label(scope), self._route(scope)
        parent = read_traceparent(dict(scope["headers"]).get(b"traceparent"))
        span, trace_id = self._observer.tracing.start_request(
            f"{method} {route}",
            parent,
            {
                "http.request.method": method if method != OTHER else "_OTHER",
                "http.route": route,
                "url.scheme": scope["scheme"],
                "network.protocol.version": scope.get("http_version", "1.1"),
            },
        )
        scope.setdefault("state", {}).update(trace_id=trace_id, route=route)
        return _ObservedRequest(
            self._observer,
            self._access_log,
            send,
            method=method,
            route=route,
            span=span,
            trace_id=trace_id,
        )

    def _route(self, scope: Scope) -> str:
        route = self._templates.match(scope["path"])
        raw = scope.get("raw_path")
        if route is not UNMATCHED or raw is None:
            return route
        # A stream's id may have a slash in it, which only the path as it was sent tells apart.
        return self._templates.match(raw.decode("ascii", "replace"))


class _ObservedRequest:
    """One request until it is answered."""

    __slots__ = (
        "_access_log",
        "_began",
        "_method",
        "_observer",
        "_route",
        "_send",
        "_status",
        "_trace_id",
        "span",
    )

    def __init__(
        self,
        observer: RequestObserver,
        access_log: AccessLog,
        send: Send,
        *,
        method: str,
        route: str,
        span: Span,
        trace_id: str,
    ) -> None:
        self.span = span
        self._observer: RequestObserver | None = observer
        self._access_log = access_log
        self._method = method
        self._route = route
        self._trace_id = trace_id
        self._send = send
        self._status: int | None = None
        self._began = perf_counter()

    async def send(self, message: Message) -> None:
        await self._send(message)
        if self._observer is not None:
            self._observe_message(message)

    def _observe_message(self, message: Message) -> None:
        kind = message["type"]
        if kind in _STARTS:
            self._status = message["status"]
            if _EVENTS in message.get("headers", ()):
                self._finish_once(message["status"], None)
        elif kind == "websocket.accept":
            self._finish_once(_OPENED, None)
        elif kind == "websocket.close":
            self.finish(_REFUSED)

    def finish(self, otherwise: int) -> None:
        """The answer is over; a request without one ended as `otherwise`."""
        self._finish_once(self._status or otherwise, perf_counter() - self._began)

    def _finish_once(self, status: int, seconds: float | None) -> None:
        observer, self._observer = self._observer, None
        if observer is None:
            return
        observer.requests.observe(self._method, self._route, status, seconds)
        if observer.tracing.is_on:
            _end_span(self.span, status)
        if seconds is not None:
            self._access_log.write(self._method, self._route, status, seconds, self._trace_id)


def _method_label(scope: Scope) -> str:
    if scope["type"] == "websocket":
        return SOCKET
    method: str = scope["method"]
    return method if method in METHODS else OTHER


def _end_span(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= _FAILED:
        span.set_attribute("error.type", str(status))
        span.set_status(Status(StatusCode.ERROR))
    span.end()
