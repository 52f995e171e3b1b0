"""Lanes: the order of one thread's facts, whatever order they arrive in.

Order is `sequence`. What comes after a hole is held back, in a bounded window, until the hole is
filled or a snapshot covers it. Past the window the hole is given up as lost: what was held is
shown, and the lane remembers what is missing.
"""

from collections.abc import Iterator
from typing import Final

from factwire.facts.fact import Fact
from factwire.facts.limits import SEQUENCE_MAX
from factwire.projection.hydration import Gap
from factwire.projection.limits import GAPS_KEPT, HELD_FACTS

NOTHING: Final = -SEQUENCE_MAX - 1
"""Before any sequence."""


class Lane:
    """One thread's place in its own order."""

    __slots__ = ("covered", "expected", "held", "lost", "start", "thread_id")

    def __init__(self, thread_id: str | None, start: int | None = None) -> None:
        self.thread_id = thread_id
        self.start = start
        self.expected = start
        self.held: dict[int, Fact] = {}
        self.lost: list[tuple[int, int]] = []
        self.covered = NOTHING

    def begin(self, sequence: int) -> None:
        """The first fact of a lane that starts wherever it starts."""
        self.start = self.expected = sequence

    def hold(self, fact: Fact, sequence: int) -> None:
        self.held[sequence] = fact

    @property
    def is_full(self) -> bool:
        return len(self.held) > HELD_FACTS

    def ready(self) -> Iterator[tuple[int, Fact]]:
        """Take out what was held and is next now, passing over holes that are covered."""
        while self.held and self.expected is not None:
            sequence = self.expected
            if sequence not in self.held:
                following = min(self.held)
                if following - 1 > self.covered:
                    return
                sequence = following
            yield sequence, self.held.pop(sequence)

    def give_up(self) -> Iterator[tuple[int, Fact]]:
        """Take out all that was held; the holes in between are lost."""
        for sequence in sorted(self.held):
            if self.expected is not None and sequence > self.expected:
                self._lose(self.expected, sequence - 1)
            yield sequence, self.held.pop(sequence)

    def _lose(self, first: int, last: int) -> None:
        self.lost.append((first, last))
        if len(self.lost) > GAPS_KEPT:
            (first, _), (_, last), *rest = self.lost
            self.lost = [(first, last), *rest]

    def cover(self, covered: int) -> None:
        """A snapshot stands in for what is missing up to `covered`."""
        self.covered = max(self.covered, covered)
        self.lost = [(first, last) for first, last in self.lost if last > covered]

    def skip_to(self, cursor: int) -> None:
        """A read model knows of everything up to `cursor`: go on behind it."""
        self.cover(cursor)
        if self.start is None:
            self.start = cursor + 1
        if self.expected is None or self.expected <= cursor:
            self.expected = cursor + 1
        self.held = {place: fact for place, fact in self.held.items() if place > cursor}

    def misses(self, cursor: int) -> bool:
        """Whether facts up to `cursor` have not been taken."""
        return bool(self.lost) or (self.expected is not None and self.expected <= cursor)

    def pass_over(self, sequence: int) -> None:
        """What is missing before `sequence` was removed on purpose, and is no hole."""
        if self.expected is not None and sequence > self.expected:
            self.covered = max(self.covered, sequence - 1)
            self.expected = sequence

    def is_lost(self, sequence: int) -> bool:
        return any(first <= sequence <= last for first, last in self.lost)

    def gaps(self) -> list[Gap]:
        """What is missing, lost or waited for."""
        holes = [*self.lost, *self._holes()]
        return [
            Gap(from_sequence=first, to_sequence=last, thread_id=self.thread_id)
            for first, last in holes
        ]

    def _holes(self) -> Iterator[tuple[int, int]]:
        expected = self.expected
        for sequence in sorted(self.held):
            if expected is not None and sequence > expected:
                yield expected, sequence - 1
            expected = sequence + 1
