"""`Player`: a place in a recorded run, and the state there.

Going forward applies facts. Going back restores the nearest checkpoint before the place and applies
what lies between, so that it costs a bounded stretch of facts and not the whole run. Pure: no
clock, no terminal.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from factwire.cli.recording import Placed
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
        self, facts: Sequence[Placed], thread_id: str | None, *, kept: bool = False
    ) -> None:
        self._facts = sorted(facts, key=_order)
        self._places = [_order(placed) for placed in self._facts]
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
    def latest(self) -> Placed | None:
        """The newest fact that the state shows."""
        return self._facts[self.position - 1] if self.position else None

    @property
    def next(self) -> Placed | None:
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
        take = self._projection.replay if self._kept else self._projection.apply
        while self.position < wanted:
            take(self._facts[self.position].fact)
            self.applied += 1
            self.position += 1
            if self.position % self._spacing == 0 and self.position not in self._checkpoints:
                self._keep()

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

    def _keep(self) -> None:
        self._checkpoints[self.position] = self._projection.checkpoint()
        while len(self._checkpoints) > 1 and self._held() > CHECKPOINT_BYTES:
            self._spacing *= 2
            self._checkpoints = {
                place: data
                for place, data in self._checkpoints.items()
                if place % self._spacing == 0
            }

    def _held(self) -> int:
        return sum(map(len, self._checkpoints.values()))


def _order(placed: Placed) -> tuple[bool, int]:
    return placed.place is not None, placed.place or 0


def _turn_starts(facts: Sequence[Placed]) -> list[int]:
    """The positions at which the first fact of a turn is shown."""
    seen: set[str] = set()
    starts: list[int] = []
    for position, (_, fact) in enumerate(facts, 1):
        turn = _turn(fact)
        if turn is not None and turn not in seen:
            seen.add(turn)
            starts.append(position)
    return starts


def _turn(fact: Fact) -> str | None:
    return id_of(fact, "turnId")
