"""How a server's requests are observed: counted, timed, logged and traced, each once.

A request is known by the template of its route: no address, query, header or body is looked at,
so nobody can make series, or put words into a log, by asking for them. Figures are plain numbers,
counted in the event loop without a lock and put into Prometheus' form when they are asked for.
Only OpenTelemetry's interface is used; without an SDK no span is made. A stream is done with as
soon as it is open.
"""

import asyncio
import re
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TracerProvider,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from factwire import __version__
from factwire.serving.asgi import Traceparent, new_trace_id
from factwire.serving.envelopes import derive_trace_id
from factwire.serving.limits import KEPT_SPANS, LAG_SECONDS


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

    def families(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(
            "factwire_edge_loop_lag_seconds",
            "Seconds by which the event loop was late for a timer.",
            buckets=self.durations.buckets(),
            sum_value=self.durations.sum,
        )

    def _measure(self) -> None:
        self.durations.observe(max(0.0, asyncio.get_running_loop().time() - self._due))
        self.start()


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

    def families(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "factwire_edge_requests",
            "Requests that were answered, and streams that were opened.",
            labels=("method", "route", "status"),
        )
        for (method, route, status), count in self._answers.items():
            answers.add_metric((method, route, str(status)), count)
        yield answers
        took = HistogramMetricFamily(
            "factwire_edge_request_seconds",
            "Seconds from a request to the end of its answer; streams are not in it.",
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
    """The templates of all paths that an Edge serves, as a tree of their parts."""

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
    """Makes spans by a provider, or by the one that is set up for the whole process."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        found = provider or trace.get_tracer_provider()
        nobody = isinstance(found, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
        self.is_on = not nobody
        self.tracer: Tracer = found.get_tracer("factwire.edge", __version__)
        self._requests: OrderedDict[str, SpanContext] = OrderedDict()

    def start_request(
        self, name: str, caller: Traceparent | None, attributes: dict[str, str]
    ) -> tuple[Span, str]:
        """The span of a request, and the trace id that both have; `given` is the caller's."""
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
