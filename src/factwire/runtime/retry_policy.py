"""When a turn that failed is tried again by itself."""

from typing import Final

import msgspec

from factwire.facts import Fact
from factwire.runtime.limits import RETRY_SECONDS

CATEGORIES: Final = (
    "rate_limited",
    "provider_unavailable",
    "endpoint_unreachable",
    "endpoint_error",
    "endpoint_silent",
    "stream_interrupted",
)
"""Failures that pass by themselves, if nobody says otherwise."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a turn is tried in all, and how long is waited in between: `delay_seconds` first,
    then `factor` times as long each time. One attempt is no retry.
    """

    attempts: int = 1
    delay_seconds: float = 1.0
    factor: float = 2.0
    categories: tuple[str, ...] = CATEGORIES
    repeat_effects: bool = False

    def wants(self, terminal: Fact, attempt: int) -> bool:
        """Whether another attempt may follow one that ended so."""
        category = terminal.payload.get("failureCategory")
        failed = terminal.event_class == "turn.failed" and category in self.categories
        return failed and attempt < self.attempts

    def delay(self, attempt: int) -> float:
        """Seconds between this attempt and the next."""
        try:
            return min(self.delay_seconds * self.factor ** (attempt - 1), RETRY_SECONDS)
        except OverflowError:
            return RETRY_SECONDS
