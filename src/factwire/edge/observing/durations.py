"""Durations: how many were no longer than each of some bounds, in the form of a histogram."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Durations:
    """Counts seconds; nothing is kept of a single one."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound with the number of those within it, as Prometheus writes them."""
        names = [*map(str, self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))
