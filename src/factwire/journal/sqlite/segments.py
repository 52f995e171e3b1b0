"""Which chunks hold which keys, for everything but the newest facts.

A segment covers some thousands of facts that are no longer merged. It is one row, checked as a
whole, because a key that is missing must be as trustworthy as one that is there.
"""

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from threading import Lock
from time import sleep
from typing import Final

import msgspec

from factwire.journal.chunk import Chunk
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter, Groups, Keys
from factwire.journal.sqlite.database import Database

CACHED: Final = 64
"""Decoded segments kept in memory, some hundred kilobytes each."""


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """Where its chunks begin, and groups of keys → which of them hold facts with these."""

    firsts: tuple[int, ...]
    rows: tuple[tuple[Keys, list[int]], ...]

    def groups(self) -> Groups:
        return dict(self.rows)


class Row(msgspec.Struct, frozen=True):
    """A segment as stored."""

    first: int
    last: int
    check: bytes
    keys: bytes


_RANGE: Final = (
    "SELECT first, last FROM segments WHERE first <= ?2 AND first >= "
    "coalesce((SELECT max(first) FROM segments WHERE first <= ?1), 0) ORDER BY first"
)
_decoder: Final = msgspec.msgpack.Decoder[Segment](Segment)


def new_segment(chunks: Iterable[tuple[int, Iterable[Keys]]], first: int, last: int) -> Row:
    """The segment of adjacent chunks, each with its first seq and the keys of its facts."""
    firsts: list[int] = []
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    for place, (start, groups) in enumerate(chunks):
        firsts.append(start)
        # Those who append and wait come first.
        sleep(0)
        for keys in groups:
            found[keys].append(place)
    blob = msgspec.msgpack.encode(Segment(tuple(firsts), tuple(found.items())))
    return Row(first, last, _sum(first, last, blob), blob)


def insert_segment(connection: Database, row: Row) -> None:
    connection.execute(
        "INSERT INTO segments VALUES(?, ?, ?, ?)", (row.first, row.last, row.check, row.keys)
    )


class Segments:
    """Segments by demand, with the latest ones kept decoded; used by several threads."""

    def __init__(self) -> None:
        self._cache: OrderedDict[int, Segment] = OrderedDict()
        self._lock = Lock()

    def candidates(
        self, connection: Database, wanted: Filter, after: int, upto: int
    ) -> Iterator[int]:
        """Where chunks begin that may hold what a filter wants, among sealed facts past `after`."""
        place: int | None = None
        for first, last in connection.execute(_RANGE, (after + 1, upto)):
            if place not in (None, first):
                raise JournalCorrupt("a segment of the index is missing", first=place)
            place = last + 1
            segment = self._get(connection, first)
            start = bisect_right(segment.firsts, after + 1) - 1
            for position in wanted.select(segment.groups()):
                if position >= start:
                    yield segment.firsts[position]
        if place is not None and place <= upto:
            raise JournalCorrupt("a segment of the index is missing", first=place)

    def _get(self, connection: Database, first: int) -> Segment:
        with self._lock:
            known = self._cache.get(first)
            if known is not None:
                self._cache.move_to_end(first)
                return known
        segment = load_segment(connection, first)
        with self._lock:
            self._cache[first] = segment
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return segment


def load_segment(connection: Database, first: int) -> Segment:
    """The segment that begins at a seq, checked."""
    sql = "SELECT last, sum, keys FROM segments WHERE first = ?"
    row: tuple[int, bytes, bytes] | None = connection.execute(sql, (first,)).get
    if row is None or _sum(first, row[0], row[2]) != row[1]:
        raise JournalCorrupt("a segment of the index is missing or was changed", first=first)
    return _decoder.decode(row[2])


def segment_covers(segment: Segment, outline: Chunk) -> bool:
    """Whether a segment leads to a chunk from each of the chunk's keys."""
    if outline.first not in segment.firsts:
        return False
    place = segment.firsts.index(outline.first)
    known = segment.groups()
    return all(place in known.get(keys, ()) for keys in outline.groups())


def _sum(first: int, last: int, blob: bytes) -> bytes:
    return sha256(b"%d %d\n" % (first, last) + blob).digest()
