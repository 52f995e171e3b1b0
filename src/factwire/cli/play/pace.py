"""`Pace`: when the next fact is due. Pure: whoever plays says what time it is.

Facts follow each other as they did when they were recorded, with three exceptions: a pause longer
than two seconds is shortened to that, a fact from before the one it follows comes at once, and one
whose time cannot be read comes a moment later. The speed then divides what remains.
"""

import math
from datetime import UTC, datetime
from typing import Final

from factwire.cli.play.player import Player
from factwire.facts import Fact

LONGEST_PAUSE: Final = 2.0
"""Seconds of a recorded pause that are kept."""

UNTIMED_PAUSE: Final = 0.1
"""Seconds before a fact whose time cannot be read."""

AS_FAST_AS_POSSIBLE: Final = math.inf

_SPEEDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, AS_FAST_AS_POSSIBLE)
_BATCH: Final = 64
_LATE: Final = 0.5
"""Seconds behind which what was missed is not caught up with."""


class Pace:
    """Plays a player's facts, or does not; `speed` is how many recorded seconds go by in one."""

    def __init__(self, player: Player, speed: float) -> None:
        self._player = player
        self.speed = speed
        self._due: float | None = None

    @property
    def playing(self) -> bool:
        return self._due is not None

    def play(self, now: float) -> None:
        """Go on from here; at the end, from the beginning."""
        if self._player.at_end:
            self._player.seek(0)
        self._due = now + self._pause()

    def pause(self) -> None:
        self._due = None

    def change_speed(self, steps: int, now: float) -> None:
        """The next speed up, or down where `steps` is negative."""
        slower = [speed for speed in _SPEEDS if speed < self.speed]
        faster = [speed for speed in _SPEEDS if speed > self.speed]
        if steps > 0:
            self.speed = faster[0] if faster else self.speed
        else:
            self.speed = slower[-1] if slower else self.speed
        if self.playing:
            self._due = now + self._pause()

    def wait(self, now: float) -> float | None:
        """Seconds until the next fact is due; None while nothing plays."""
        return None if self._due is None else max(0.0, self._due - now)

    def advance(self, now: float) -> bool:
        """Show facts that are due by now, not too many at once; whether there were any."""
        shown = 0
        while self._due is not None and self._due <= now and shown < _BATCH:
            self._player.step(1)
            shown += 1
            due = max(self._due, now - _LATE) + self._pause()
            self._due = None if self._player.at_end else due
        return shown > 0

    def _pause(self) -> float:
        latest, following = self._player.latest, self._player.next
        if latest is None or following is None:
            return 0.0
        return recorded_pause(latest.fact, following.fact) / self.speed


def recorded_pause(before: Fact, after: Fact) -> float:
    """Seconds between two facts, as far as they are kept."""
    first, second = _moment(before.created_at), _moment(after.created_at)
    if first is None or second is None:
        return UNTIMED_PAUSE
    return min(max((second - first).total_seconds(), 0.0), LONGEST_PAUSE)


def _moment(text: str) -> datetime | None:
    """The time that a text means; without a zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parsed_speed(text: str | float) -> float:
    """A speed as a person writes it; 0 and `max` are as fast as possible. Raises `ValueError`."""
    speed = 0.0 if text == "max" else float(text)
    if math.isnan(speed) or speed < 0:
        raise ValueError(text)
    return speed or AS_FAST_AS_POSSIBLE


def speed_text(speed: float) -> str:
    return "max" if speed == AS_FAST_AS_POSSIBLE else f"{speed:g}×"
