"""When to try again: what failed for want of an answer, not for what was asked; no I/O, no sleep.

Pauses grow and are of random length, so that many who lost the same Edge do not return as one.
"""

from collections.abc import Mapping
from random import random
from time import monotonic
from typing import Final

from factwire.client.limits import FIRST_PAUSE, LONGEST_PAUSE

BUSY: Final = (429, 503)
"""Statuses by which an Edge asks to be tried again."""

_DOUBLINGS: Final = 16


class Tries:
    """The tries of one request, or of one stream. They end `seconds` after the first that failed,
    and begin anew when one did not.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._failed = 0

    def pause(self, asked: float | None = None) -> float | None:
        """Seconds to wait before the next try; None where there is no time for one.

        `asked` is how long the Edge wants to be left alone.
        """
        now = monotonic()
        self._ends = now + self._seconds if self._ends is None else self._ends
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failed, _DOUBLINGS))
        self._failed += 1
        # Not a secret: it only spreads those who come again.
        pause = longest * (0.5 + random() / 2) if asked is None else asked  # noqa: S311
        return pause if now + pause <= self._ends else None

    def connected(self, seconds: float) -> None:
        """A connection stands; once it is cut, there are so many seconds for the next one."""
        self._seconds = seconds
        self._ends = None

    def served(self) -> None:
        """Something came, so that the next pause is a short one again."""
        self._failed = 0


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks to wait, where it says so in seconds."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
