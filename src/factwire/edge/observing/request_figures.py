"""Figures of requests: how many, how they ended, how long they took.

Plain numbers, counted in the event loop without a lock and put into Prometheus' form when they are
asked for. Every label has few values: known methods, templates of routes, statuses.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from factwire.edge.observing.durations import Durations

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
"""Methods that are told by name."""

OTHER: Final = "other"
"""Any method that is not; a client may send every word as one."""

SOCKET: Final = "websocket"
"""Stands where a method would, for a request that is to become a socket."""

_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestFigures:
    """What has been asked since the start; a stream counts when it opens and has no duration."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._took: dict[tuple[str, str], Durations] = {}

    def note(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """One answer; `seconds` is None for one that goes on."""
        self._answers[method, route, status] += 1
        if seconds is None:
            return
        took = self._took.get((method, route))
        if took is None:
            took = self._took[method, route] = Durations(_BOUNDS)
        took.note(seconds)

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
