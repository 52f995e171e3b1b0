"""Where each seq of a journal is kept in its stream, and which segments hold a key.

Columns of numbers instead of objects: a segment costs some 35 bytes, a key in it 8 more.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

import msgspec

from factwire.journal.filter import CLASS_MARK, Filter


class Segment(msgspec.Struct, frozen=True, gc=False):
    """The seqs `first`–`last`, kept in the item at `at`; 0 where the stream has lost them."""

    first: int
    last: int
    at: int
    parts: int
    facts: int
    size: int


class Directory:
    """Segments that cover every seq from 1 to `head`, without a hole and without overlap."""

    def __init__(self) -> None:
        self.head = 0
        self.facts = 0
        self.size = 0
        self.missing = 0
        self._firsts = array("Q")
        self._columns = (array("Q"), array("I"), array("I"), array("Q"))

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[Segment]:
        return map(self._segment, range(len(self._firsts)))

    def add(self, segment: Segment) -> None:
        """Take in the next segment; what lies before it and was not seen counts as lost."""
        if segment.first > self.head + 1:
            self._insert(len(self), [Segment(self.head + 1, segment.first - 1, 0, 0, 0, 0)])
            self.head = segment.first - 1
        self._insert(len(self), [segment])
        self.head = segment.last

    def cover(self, segment: Segment) -> list[Segment]:
        """Put a segment in the place of what covers its range; answers what it replaced."""
        if segment.first > self.head:
            self.add(segment)
            return []
        start = self._index(segment.first)
        end = self._index(min(segment.last, self.head)) + 1
        old = [self._segment(at) for at in range(start, end)]
        rest = [segment]
        if old[0].first < segment.first:
            rest.insert(0, msgspec.structs.replace(old[0], last=segment.first - 1))
        if old[-1].last > segment.last:
            rest.append(msgspec.structs.replace(old[-1], first=segment.last + 1))
        self._delete(start, end, old)
        self._insert(start, rest)
        self.head = max(self.head, segment.last)
        return old

    def holding(self, seq: int) -> Segment:
        """The segment of a seq."""
        return self._segment(self._index(seq))

    def after(self, seq: int, upto: int, count: int) -> list[Segment]:
        """The next `count` segments that end past `seq` and begin at or before `upto`."""
        if seq >= self.head:
            return []
        start = self._index(seq + 1)
        stop = min(bisect_right(self._firsts, upto), start + count)
        return [self._segment(at) for at in range(start, stop)]

    def image(self) -> tuple[int, tuple[bytes, ...]]:
        """The directory as bytes, for a checkpoint."""
        return self.head, tuple(column.tobytes() for column in (self._firsts, *self._columns))

    def restore(self, head: int, columns: Iterable[bytes]) -> None:
        self.head = head
        for column, stored in zip((self._firsts, *self._columns), columns, strict=True):
            column.frombytes(stored)
        ats, _, facts, sizes = self._columns
        self.facts, self.size, self.missing = sum(facts), sum(sizes), ats.count(0)

    def _index(self, seq: int) -> int:
        return bisect_right(self._firsts, seq) - 1

    def _segment(self, at: int) -> Segment:
        firsts = self._firsts
        last = firsts[at + 1] - 1 if at + 1 < len(firsts) else self.head
        ats, parts, facts, sizes = self._columns
        return Segment(firsts[at], last, ats[at], parts[at], facts[at], sizes[at])

    def _insert(self, at: int, segments: list[Segment]) -> None:
        ats, parts, facts, sizes = self._columns
        self._firsts[at:at] = array("Q", [each.first for each in segments])
        ats[at:at] = array("Q", [each.at for each in segments])
        parts[at:at] = array("I", [each.parts for each in segments])
        facts[at:at] = array("I", [each.facts for each in segments])
        sizes[at:at] = array("Q", [each.size for each in segments])
        self._count(segments, 1)

    def _delete(self, start: int, end: int, old: list[Segment]) -> None:
        for column in (self._firsts, *self._columns):
            del column[start:end]
        self._count(old, -1)

    def _count(self, segments: list[Segment], sign: int) -> None:
        for each in segments:
            self.facts += sign * each.facts
            self.size += sign * each.size
            self.missing += sign * (each.at == 0)


class Keys:
    """Key → the first seqs of the segments that hold a fact with it."""

    def __init__(self) -> None:
        self._found: dict[str, array[int]] = {}
        self._classes: set[str] = set()

    def add(self, first: int, keys: Iterable[str]) -> None:
        for key in keys:
            places = self._found.get(key)
            if places is None:
                self._found[key] = array("Q", (first,))
                if key.startswith(CLASS_MARK):
                    self._classes.add(key)
            elif places[-1] < first:
                places.append(first)
            elif places[bisect_left(places, first)] != first:
                insort(places, first)

    def cover(self, first: int, last: int, keys: Iterable[str]) -> None:
        """Note the keys of a segment that stands in the place of those from `first` to `last`."""
        keys = tuple(keys)
        for key in keys:
            places = self._found.get(key)
            if places is not None:
                del places[bisect_right(places, first) : bisect_right(places, last)]
                if not places:
                    del self._found[key]
        self.add(first, keys)

    def forget(self, upto: int) -> None:
        """Drop what is known of segments that begin at or before a seq."""
        for key, places in list(self._found.items()):
            del places[: bisect_right(places, upto)]
            if not places:
                del self._found[key]
                self._classes.discard(key)

    def candidates(self, wanted: Filter, start: int, upto: int) -> list[int]:
        """First seqs, from `start` to `upto`, of segments in which a filter may find something."""
        rows = [self._between(key, start, upto) for key in wanted.keys()]  # noqa: SIM118
        if wanted.classes:
            of_class = wanted.class_keys(self._classes)
            found = {each for key in of_class for each in self._between(key, start, upto)}
            rows.append(array("Q", sorted(found)))
        rows.sort(key=len)
        others = [set(row) for row in rows[1:]]
        return [first for first in rows[0] if all(first in other for other in others)]

    def image(self) -> dict[str, bytes]:
        return {key: places.tobytes() for key, places in self._found.items()}

    def restore(self, image: dict[str, bytes]) -> None:
        for key, stored in image.items():
            places = self._found[key] = array("Q")
            places.frombytes(stored)
        self._classes = {key for key in self._found if key.startswith(CLASS_MARK)}

    def _between(self, key: str, start: int, upto: int) -> "array[int]":
        places = self._found.get(key)
        if places is None:
            return array("Q")
        return places[bisect_left(places, start) : bisect_right(places, upto)]
