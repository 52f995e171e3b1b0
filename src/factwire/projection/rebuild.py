"""Going back: how a fact that came late is taken in its right place.

A projection that goes on past missing facts keeps the state from before them, as a point to go
back to. As long as it remembers every fact that it took since, a missing one that comes after all
is put among them, and the state is projected again from there. Nothing is kept for a stream
without holes but where it started, which costs nothing.
"""

from typing import Any

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.projection.changes import Operation
from factwire.projection.limits import REBUILD_POINTS, REBUILD_SPACING


class RebuildPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint, or None for a projection of nothing, and how far it had come: the facts that
    were taken, and the sequence that each thread expected (the main one is `""`).
    """

    data: bytes | None
    event_count: int
    expected: dict[str, int]

    def is_before(self, thread: str, sequence: int) -> bool:
        """Whether a fact at this place would have been new at the point."""
        return self.expected.get(thread, sequence) <= sequence


def add_point(points: list[RebuildPoint], point: RebuildPoint) -> list[RebuildPoint]:
    """The points with another one; past a bound the oldest goes, but never the newest."""
    return [*points, point][-REBUILD_POINTS:]


def needs_point(points: list[RebuildPoint], event_count: int) -> bool:
    """Whether the newest point is so far back that another one is worth a copy of the state."""
    return not points or event_count - points[-1].event_count >= REBUILD_SPACING


def insert_fact(taken: list[Fact], fact: Fact, place: int) -> list[Fact]:
    """The facts that were taken with another one at its place in the order of its own thread."""
    for index, other in enumerate(taken):
        if _same_thread(other, fact) and other.sequence is not None and other.sequence > place:
            return [*taken[:index], fact, *taken[index:]]
    return [*taken, fact]


def _same_thread(one: Fact, other: Fact) -> bool:
    return one.thread_id == other.thread_id


def root_operations(before: dict[str, Any], after: dict[str, Any]) -> list[Operation]:
    """The operations that replace every root of a state that is not the same as before."""
    found: list[Operation] = []
    for name in sorted({*before, *after}):
        path = f"/{escape_key(name)}"
        if name not in after:
            found.append(Operation("remove", path))
        elif name not in before:
            found.append(Operation("add", path, after[name]))
        elif _encode(before[name]) != _encode(after[name]):
            found.append(Operation("replace", path, after[name]))
    return found


def _encode(value: object) -> bytes:
    """Bytes that differ exactly where JSON does; Python takes 1 and true for equal."""
    return msgspec.json.encode(value)
