"""Loop lag: how late the event loop comes to what is due.

Everything in an Edge shares one loop; whatever holds it up holds up everybody, and shows here
first.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from factwire.edge.limits import LAG_SECONDS
from factwire.edge.observing.durations import Durations

_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class LoopLag:
    """Looks at the running loop again and again, between `start` and `stop`."""

    def __init__(self, every: float = LAG_SECONDS) -> None:
        self.durations = Durations(_BOUNDS)
        self._every = every
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._every
        self._timer = loop.call_at(self._due, self._look)

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

    def _look(self) -> None:
        self.durations.note(max(0.0, asyncio.get_running_loop().time() - self._due))
        self.start()
