"""Loop lag: how late the event loop comes to what is due.

Everything in an Edge shares one loop; whatever holds it up holds up everybody, and shows here
first.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from factwire.edge.limits import LAG_SECONDS

_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class LoopLag:
    """Looks at the running loop again and again, between `start` and `stop`."""

    def __init__(self, every: float = LAG_SECONDS) -> None:
        self._every = every
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._every
        self._timer = loop.call_at(self._due, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, seconds: float) -> None:
        """One look that came so late."""
        self._buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._sum += seconds

    def families(self) -> Iterator[Metric]:
        counts = map(float, accumulate(self._buckets))
        names = [*map(str, _BOUNDS), "+Inf"]
        yield HistogramMetricFamily(
            "factwire_edge_loop_lag_seconds",
            "Seconds by which the event loop was late for a timer.",
            buckets=list(zip(names, counts, strict=True)),
            sum_value=self._sum,
        )

    def _look(self) -> None:
        self.note(max(0.0, asyncio.get_running_loop().time() - self._due))
        self.start()
