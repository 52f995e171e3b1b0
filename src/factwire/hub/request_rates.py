"""How often something may be tried in a minute: by address, by person or by code.

A sliding window of whole seconds: what was allowed in the current second and the sixty before it is
at most the limit, so no minute, wherever it begins, has more. Each key has one count for each
second in which something was allowed, at most 61 of them, and the number of keys is bounded.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

import msgspec

from factwire.hub.limits import COUNTED_ADDRESSES
from factwire.serving.asgi import Problem

_WINDOW_SECONDS: Final = 61
"""The whole seconds that any minute can touch."""


class Rate(msgspec.Struct, frozen=True):
    """So many requests of a kind in a minute, from one address."""

    kind: str
    per_minute: int


class _Window:
    """What was allowed in the last minute: a second and a count, oldest first, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: deque[tuple[int, int]] = deque()
        self.total = 0

    def drop_before(self, second: int) -> None:
        while self.counts and self.counts[0][0] < second:
            self.total -= self.counts.popleft()[1]

    def add(self, second: int) -> None:
        count = self.counts.pop()[1] if self.counts and self.counts[-1][0] == second else 0
        self.counts.append((second, count + 1))
        self.total += 1


class RequestRates:
    """The windows of a fixed number of addresses, people or codes. `clock` never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def spend(self, rate: Rate, counted: str) -> None:
        """Count a request; raises `Problem` where the last minute has no room for it."""
        second, key = math.floor(self._clock()), (rate.kind, counted)
        window = self._windows.setdefault(key, _Window())
        self._windows.move_to_end(key)
        if len(self._windows) > COUNTED_ADDRESSES:
            self._windows.popitem(last=False)
        window.drop_before(second - _WINDOW_SECONDS + 1)
        if window.total < rate.per_minute:
            window.add(second)
            return
        seconds = window.counts[0][0] + _WINDOW_SECONDS - second
        raise Problem(
            429,
            "too_many_requests",
            f"more than {rate.per_minute} requests of this kind came from your address in a "
            f"minute; try again in {seconds} s",
            headers={"retry-after": str(seconds)},
        )
