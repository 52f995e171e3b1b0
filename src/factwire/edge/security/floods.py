"""Floods: how many streams may be open, how fast they may come, how often one may guess.

Counters of fixed size, so that counting an attack costs no more than the attack.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from time import monotonic

from factwire.edge.limits import (
    CONNECTS_PER_SECOND,
    OPEN_STREAMS,
    REFUSALS_PER_MINUTE,
    REFUSED_ADDRESSES,
)
from factwire.edge.problems import Problem

_MINUTE = 60.0


class Floods:
    """Counts what comes in."""

    def __init__(
        self,
        *,
        open_streams: int = OPEN_STREAMS,
        connects_per_second: int = CONNECTS_PER_SECOND,
        refusals_per_minute: int = REFUSALS_PER_MINUTE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.streams = 0
        self._open_streams = open_streams
        self._refusals_per_minute = refusals_per_minute
        self._clock = clock
        self._connects: deque[float] = deque(maxlen=connects_per_second)
        self._refused: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def enter_stream(self) -> None:
        """Take a place for a stream, or raise `Problem`; `leave_stream` gives it back."""
        now = self._clock()
        if self.streams >= self._open_streams:
            raise _busy("too_many_streams", f"{self.streams} streams are open", 5)
        full = len(self._connects) == self._connects.maxlen
        if full and now - self._connects[0] < 1.0:
            raise _busy("connecting_too_fast", "too many streams were opened in one second", 1)
        self._connects.append(now)
        self.streams += 1

    def leave_stream(self) -> None:
        self.streams -= 1

    def ensure_may_try(self, address: str) -> None:
        """Raise `Problem` for an address that guessed too often in this minute."""
        since, count = self._refused.get(address, (0.0, 0))
        if count >= self._refusals_per_minute and self._clock() - since < _MINUTE:
            raise _busy("too_many_refusals", "too many wrong credentials came from here", 60)

    def note_refusal(self, address: str) -> None:
        now = self._clock()
        since, count = self._refused.pop(address, (now, 0))
        self._refused[address] = (now, 1) if now - since >= _MINUTE else (since, count + 1)
        if len(self._refused) > REFUSED_ADDRESSES:
            self._refused.popitem(last=False)


def _busy(code: str, what: str, seconds: int) -> Problem:
    headers = {"retry-after": str(seconds)}
    return Problem(429, code, f"{what}; try again in {seconds} s", headers=headers)
