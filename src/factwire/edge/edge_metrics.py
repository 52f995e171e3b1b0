"""The figures of an Edge at one moment, for Prometheus and for its own health.

They are read off what the Edge keeps anyway; between two looks they cost nothing. One table says
what each figure is called and what it means. Labels have fixed sets of values, so the number of
series does not depend on what is asked or on how much is kept. Each Edge has a registry of its own,
so that two in a process never share a figure.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from time import monotonic, perf_counter
from typing import Final, Self, get_args

import msgspec
from opentelemetry.trace import Span, Status, StatusCode
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from factwire import __version__
from factwire.edge.edge_context import EdgeContext
from factwire.edge.records import Records
from factwire.edge.records.edge_rows import RunStatus
from factwire.serving.asgi import read_traceparent
from factwire.serving.guard import Application, Message, Receive, Scope, Send
from factwire.serving.logs import logger
from factwire.serving.request_observing import (
    METHODS,
    OTHER,
    SOCKET,
    UNMATCHED,
    LoopLag,
    RequestMetrics,
    RouteTemplates,
    Tracing,
)
from factwire.serving.streams import FeedHealth, Streams, StreamStats

RUN_STATUSES: Final[tuple[str, ...]] = get_args(RunStatus)
UNFINISHED: Final = frozenset({"queued", "running", "waiting"})
"""Statuses of a run that has not ended."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """`head` and `feed.lag` are None while the journal cannot be asked; `runs` has every status."""

    feed: FeedHealth
    head: int | None
    runs: dict[str, int]
    active: int
    active_most: int
    pending: int
    oldest_pending: float | None
    previews: int
    streams: StreamStats


async def read_vitals(edge: EdgeContext, streams: Streams) -> Vitals:
    """The figures of an Edge now."""
    feed = await edge.feed.health()
    counted = Counter(run.status for run in edge.records.runs.rows.values())
    waiting = _pending_since(edge.records)
    ages = [age for since in waiting if (age := _age(since, edge.mint.clock())) is not None]
    return Vitals(
        feed=feed,
        head=None if feed.lag is None else feed.cursor.seq + feed.lag,
        runs={status: counted[status] for status in RUN_STATUSES},
        active=sum(thread.turn is not None for thread in edge.runtime.live),
        active_most=edge.runtime.settings.active_turns,
        pending=len(waiting),
        oldest_pending=max(ages, default=None),
        previews=len(edge.previews.served),
        streams=streams.stats(),
    )


def unfinished_runs(records: Records) -> frozenset[str]:
    """The runs that have not ended."""
    return frozenset(key for key, run in records.runs.rows.items() if run.status in UNFINISHED)


def count_recovered(records: Records, before: frozenset[str]) -> dict[str, int]:
    """What became of runs that a former process left: closed, or going on as what they are."""
    after = Counter(run.status for key in before if (run := records.runs.get(key)) is not None)
    going_on = {status: after[status] for status in sorted(UNFINISHED)}
    return {"closed": sum(after.values()) - sum(going_on.values()), **going_on}


def _pending_since(records: Records) -> list[str]:
    rows = records.approvals.rows.values()
    return [row.created_at for row in rows if row.status == "pending"]


def _age(since: str, now: str) -> float | None:
    """Seconds from one time to another; None where the first is none, as in facts of others."""
    try:
        return max(
            0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
        )
    except (ValueError, TypeError, OverflowError):
        return None


_STATES: Final = ("live", "degraded", "stopped")

Read = Callable[[Vitals], "float | None"]

_GAUGES: Final[dict[str, tuple[str, Read]]] = {
    "journal_head": ("Place of the newest fact in the journal.", lambda v: v.head),
    "feed_lag_facts": ("Facts that are durable and not handed out yet.", lambda v: v.feed.lag),
    "runs_active": ("Runs that this Edge works on, or is about to.", lambda v: v.active),
    "runs_active_most": ("Runs that may be active at once.", lambda v: v.active_most),
    "approvals_pending": ("Approvals that wait for a person.", lambda v: v.pending),
    "approvals_oldest_pending_seconds": (
        "Age of the approval that has waited longest; 0 where none waits.",
        lambda v: v.oldest_pending or 0.0,
    ),
    "previews": ("Previews that are served.", lambda v: v.previews),
    "streams": ("Readers of live streams.", lambda v: v.streams.readers),
    "streams_catching_up": ("Readers on their way there.", lambda v: v.streams.catching_up),
    "stream_channels": (
        "Different streams that readers share.",
        lambda v: v.streams.broadcasts + v.streams.watched_threads,
    ),
    "stream_held_bytes": (
        "Bytes kept for readers that are behind.",
        lambda v: v.streams.held_bytes,
    ),
}
"""Name without its prefix → what it means, and where it is read; None is left out."""


def build_gauges(vitals: Vitals) -> Iterator[Metric]:
    for name, (meaning, read) in _GAUGES.items():
        value = read(vitals)
        if value is not None:
            yield GaugeMetricFamily(f"factwire_edge_{name}", meaning, value=value)


def build_labelled(vitals: Vitals) -> Iterator[Metric]:
    """Figures by status, state or reason; every value of the label is told, even at zero."""
    states = {state: float(state == vitals.feed.state) for state in _STATES}
    yield _add_labels(
        GaugeMetricFamily(
            "factwire_edge_feed_state", "1 for the state of the feed.", labels=("state",)
        ),
        states,
    )
    yield _add_labels(
        GaugeMetricFamily(
            "factwire_edge_runs", "Runs in the lists, by status.", labels=("status",)
        ),
        vitals.runs,
    )
    yield _add_labels(
        CounterMetricFamily(
            "factwire_edge_streams_closed", "Streams that have ended, by why.", labels=("reason",)
        ),
        vitals.streams.closed,
    )
    yield CounterMetricFamily(
        "factwire_edge_streams_opened",
        "Streams that were begun.",
        value=vitals.streams.opened,
    )


def build_fact_counter(first: int, vitals: Vitals) -> Metric:
    """Facts since the start, by places in the journal: nothing is counted as they pass."""
    return CounterMetricFamily(
        "factwire_edge_facts",
        "Facts that became durable, by whomever, and were handed out since the start.",
        value=max(0, vitals.feed.cursor.seq - first),
    )


def build_info(version: str, edge_id: str) -> Metric:
    """Which Edge this is."""
    info = GaugeMetricFamily("factwire_edge_build_info", "Always 1.", labels=("version", "edge_id"))
    info.add_metric((version, edge_id), 1)
    return info


def _add_labels(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]
) -> Metric:
    for label, value in values.items():
        family.add_metric((label,), value)
    return family


class EdgeObserver:
    """Figures and traces of one Edge."""

    def __init__(self, edge: EdgeContext, streams: Streams, tracing: Tracing) -> None:
        self.requests = RequestMetrics()
        self.tracing = tracing
        self.lag = LoopLag()
        self._machine = edge
        self._streams = streams
        self._since = monotonic()
        self._first = edge.feed.cursor.seq
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def __enter__(self) -> Self:
        self.lag.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lag.stop()

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._since

    async def vitals(self) -> Vitals:
        """The figures now."""
        return await read_vitals(self._machine, self._streams)

    async def exposition(self) -> bytes:
        """Everything that is counted, in Prometheus' text form."""
        own = CollectorRegistry()
        own.register(_Families(self._families(await self.vitals())))
        return generate_latest(own) + generate_latest(self._registry)

    def _families(self, vitals: Vitals) -> Iterator[Metric]:
        yield build_info(__version__, self._machine.edge_id)
        yield build_fact_counter(self._first, vitals)
        yield from build_gauges(vitals)
        yield from build_labelled(vitals)
        yield from self.requests.families()
        yield from self.lag.families()


class _Families(Collector):
    """Families that were made for one answer."""

    def __init__(self, families: Iterator[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        return self._families


_NAME: Final = "factwire.edge.access"
_log: Final = logger(_NAME)
_access_logger: Final = logging.getLogger(_NAME)

_QUIET: Final = frozenset({"/v1/health", "/v1/metrics"})
"""Routes that machines ask all day; a good answer of theirs is told only to who wants it all."""

_STARTS: Final = ("http.response.start", "websocket.http.response.start")
_OPENED: Final = 101
_WRONG: Final = 400
_REFUSED: Final = 403
_FAILED: Final = 500
_EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")


class ObserverMiddleware:
    """An ASGI application around another."""

    def __init__(
        self, application: Application, observer: EdgeObserver, templates: RouteTemplates
    ) -> None:
        self._application = application
        self._observer = observer
        self._templates = templates

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
            self._observer, send, method=method, route=route, span=span, trace_id=trace_id
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
        observer: EdgeObserver,
        send: Send,
        *,
        method: str,
        route: str,
        span: Span,
        trace_id: str,
    ) -> None:
        self.span = span
        self._observing: EdgeObserver | None = observer
        self._method = method
        self._route = route
        self._trace_id = trace_id
        self._send = send
        self._status: int | None = None
        self._began = perf_counter()

    async def send(self, message: Message) -> None:
        await self._send(message)
        if self._observing is not None:
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
        observer, self._observing = self._observing, None
        if observer is None:
            return
        observer.requests.observe(self._method, self._route, status, seconds)
        if observer.tracing.is_on:
            _end_span(self.span, status)
        if seconds is not None:
            self._log_request(status, seconds)

    def _log_request(self, status: int, seconds: float) -> None:
        quiet = self._route in _QUIET and status < _WRONG
        level = logging.DEBUG if quiet else logging.INFO if status < _FAILED else logging.WARNING
        if not _access_logger.isEnabledFor(level):
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
