"""A place in a recorded run, the state there, when the next fact is due, and what keys do.

Going forward applies facts. Going back restores the nearest checkpoint before the place and applies
what lies between, so that it costs a bounded number of facts and not the whole run. Pure: no
terminal, and whoever plays says what time it is.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from factwire.cli.recordings import PlacedRow
from factwire.facts import Fact, id_of
from factwire.projection import Projection, ProjectionState

CHECKPOINT_FACTS: Final = 256
"""Facts between two checkpoints in a run of ordinary length."""

CHECKPOINTS: Final = 64
"""Checkpoints that a run is meant to have; in a long one they lie further apart."""

CHECKPOINT_BYTES: Final = 256 * 1024 * 1024
"""Bytes of all checkpoints together; beyond that every other one is dropped."""


class Player:
    """Facts in order of their places, and how many of them the state now shows: `position`."""

    def __init__(
        self, facts: Sequence[PlacedRow], thread_id: str | None, *, kept: bool = False
    ) -> None:
        self._facts = sorted(facts, key=_place_order)
        self._places = [_place_order(placed) for placed in self._facts]
        self._turns = _turn_starts(self._facts)
        self._projection = Projection(thread_id)
        self._kept = kept
        self._checkpoints = {0: self._projection.checkpoint()}
        self._spacing = max(CHECKPOINT_FACTS, -(-len(facts) // CHECKPOINTS))
        self.position = 0
        self.applied = 0

    @property
    def total(self) -> int:
        return len(self._facts)

    @property
    def at_end(self) -> bool:
        return self.position == self.total

    @property
    def state(self) -> ProjectionState:
        return self._projection.state

    @property
    def latest(self) -> PlacedRow | None:
        """The newest fact that the state shows."""
        return self._facts[self.position - 1] if self.position else None

    @property
    def next(self) -> PlacedRow | None:
        """The fact that comes next."""
        return None if self.at_end else self._facts[self.position]

    def step(self, facts: int) -> None:
        """Go so many facts forward, or back where it is negative."""
        self.seek(self.position + facts)

    def seek(self, position: int) -> None:
        """Go to where so many facts are shown, as far as there are facts."""
        wanted = min(max(position, 0), self.total)
        nearest = max(place for place in self._checkpoints if place <= wanted)
        if wanted < self.position or nearest > self.position:
            self._projection = Projection.restore(self._checkpoints[nearest])
            self.position = nearest
        take = self._projection.replay if self._kept else self._projection.apply_ordered
        while self.position < wanted:
            take(self._facts[self.position].fact)
            self.applied += 1
            self.position += 1
            if self.position % self._spacing == 0 and self.position not in self._checkpoints:
                self._keep_checkpoint()
        if self.at_end:
            self._projection.close()

    def seek_place(self, place: int) -> None:
        """Go to a place: every fact up to it is shown, and none beyond."""
        self.seek(bisect_right(self._places, (True, place)))

    def seek_turn(self, turns: int) -> None:
        """Go to where the next turn begins, or with -1 the one before; else to the end."""
        if turns > 0:
            after = bisect_right(self._turns, self.position)
            self.seek(self._turns[after] if after < len(self._turns) else self.total)
        else:
            before = bisect_left(self._turns, self.position) - 1
            self.seek(self._turns[before] if before >= 0 else 0)

    def _keep_checkpoint(self) -> None:
        self._checkpoints[self.position] = self._projection.checkpoint()
        while len(self._checkpoints) > 1 and self._checkpoint_bytes() > CHECKPOINT_BYTES:
            self._spacing *= 2
            self._checkpoints = {
                place: data
                for place, data in self._checkpoints.items()
                if place % self._spacing == 0
            }

    def _checkpoint_bytes(self) -> int:
        return sum(map(len, self._checkpoints.values()))


def _place_order(placed: PlacedRow) -> tuple[bool, int]:
    return placed.place is not None, placed.place or 0


def _turn_starts(facts: Sequence[PlacedRow]) -> list[int]:
    """The positions at which the first fact of a turn is shown."""
    seen: set[str] = set()
    starts: list[int] = []
    for position, (_, fact) in enumerate(facts, 1):
        turn = _turn_id(fact)
        if turn is not None and turn not in seen:
            seen.add(turn)
            starts.append(position)
    return starts


def _turn_id(fact: Fact) -> str | None:
    return id_of(fact, "turnId")


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
    def is_playing(self) -> bool:
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
        if self.is_playing:
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
    first, second = _parse_time(before.created_at), _parse_time(after.created_at)
    if first is None or second is None:
        return UNTIMED_PAUSE
    return min(max((second - first).total_seconds(), 0.0), LONGEST_PAUSE)


def _parse_time(text: str) -> datetime | None:
    """The time that a text means; without a zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_speed(text: str | float) -> float:
    """A speed as a person writes it; 0 and `max` are as fast as possible. Raises `ValueError`."""
    speed = 0.0 if text == "max" else float(text)
    if math.isnan(speed) or speed < 0:
        raise ValueError(text)
    return speed or AS_FAST_AS_POSSIBLE


def speed_text(speed: float) -> str:
    return "max" if speed == AS_FAST_AS_POSSIBLE else f"{speed:g}×"


_LONGEST_NUMBER: Final = 16


class PlaybackControls:
    """A player and its pace in the hands of a person. `prompt` is a number that is being typed,
    `ended` is whether there was enough.
    """

    def __init__(self, player: Player, pace: Pace) -> None:
        self.player = player
        self.pace = pace
        self.prompt: str | None = None
        self.helping = False
        self.ended = False

    def press(self, key: str, now: float) -> None:
        """Do what a key means; a key without a meaning does nothing."""
        if self.prompt is not None:
            self._type(key)
        elif self.helping:
            self.helping = False
            self.ended = key == "q"
        elif key in MOVES:
            self.pace.pause()
            MOVES[key](self.player)
        elif key in _ACTIONS:
            _ACTIONS[key](self, now)

    def _type(self, key: str) -> None:
        typed = self.prompt or ""
        if key == "enter":
            self.prompt = None
            if typed.lstrip("-"):
                self.pace.pause()
                self.player.seek_place(int(typed))
        elif key == "backspace":
            self.prompt = typed[:-1]
        elif key in ("escape", "q", "g"):
            self.prompt = None
        elif (key in _DIGITS or (key == "-" and not typed)) and len(typed) < _LONGEST_NUMBER:
            self.prompt = typed + key


_DIGITS: Final = frozenset("0123456789")

MOVES: Final[dict[str, Callable[[Player], None]]] = {
    "right": lambda player: player.step(1),
    "left": lambda player: player.step(-1),
    "down": lambda player: player.step(10),
    "up": lambda player: player.step(-10),
    "pagedown": lambda player: player.seek_turn(1),
    "pageup": lambda player: player.seek_turn(-1),
    "home": lambda player: player.seek(0),
    "end": lambda player: player.seek(player.total),
}
"""Key → where it goes; whoever goes somewhere wants to look, so all of them pause."""


def _toggle_playing(controls: PlaybackControls, now: float) -> None:
    if controls.pace.is_playing:
        controls.pace.pause()
    else:
        controls.pace.play(now)


def _ask_place(controls: PlaybackControls, _: float) -> None:
    controls.prompt = ""


def _toggle_help(controls: PlaybackControls, _: float) -> None:
    controls.helping = True


def _end_playback(controls: PlaybackControls, _: float) -> None:
    controls.ended = True


_ACTIONS: Final[dict[str, Callable[[PlaybackControls, float], None]]] = {
    "space": _toggle_playing,
    "+": lambda controls, now: controls.pace.change_speed(1, now),
    "=": lambda controls, now: controls.pace.change_speed(1, now),
    "-": lambda controls, now: controls.pace.change_speed(-1, now),
    "g": _ask_place,
    "?": _toggle_help,
    "q": _end_playback,
}

HELP: Final = (
    ("space", "pause or resume; at the end, start over"),
    ("→ ←", "next, previous fact"),
    ("↓ ↑", "ten facts forward, back"),
    ("PgDn PgUp", "next, previous turn"),
    ("Home End", "beginning, end"),
    ("+ -", "faster, slower"),
    ("g NUMBER ⏎", "go to a position: a sequence, or a seq of a journal"),
    ("?", "this help"),
    ("q", "quit"),
)
"""Keys and what they do, for people."""
