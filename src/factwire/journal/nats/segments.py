"""Where each seq of a journal is kept in its stream, which segments hold a key, and their facts.

Columns of numbers instead of objects: a segment costs some 35 bytes, a key in it 8 more. The newest
pages stay in a cache of fixed size; one that does not match its hash is never handed out.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator
from typing import Final

import msgspec

from factwire.journal.admission import ExistingFact
from factwire.journal.chunks import Chunk, ensure_sound
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import CLASS_MARK, Filter
from factwire.journal.nats.stream_log import (
    ItemBody,
    KeptRange,
    RetiredFact,
    StreamItem,
    StreamLog,
    decode_item,
)


class StreamSegment(msgspec.Struct, frozen=True, gc=False):
    """The seqs `first`–`last`, kept in the item at `at`; 0 where the stream has lost them."""

    first: int
    last: int
    at: int
    parts: int
    facts: int
    size: int


class SegmentDirectory:
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

    def __iter__(self) -> Iterator[StreamSegment]:
        return map(self._segment, range(len(self._firsts)))

    def add(self, segment: StreamSegment) -> None:
        """Take in the next segment; what lies before it and was not seen counts as lost."""
        if segment.first > self.head + 1:
            self._insert(len(self), [StreamSegment(self.head + 1, segment.first - 1, 0, 0, 0, 0)])
            self.head = segment.first - 1
        self._insert(len(self), [segment])
        self.head = segment.last

    def cover(self, segment: StreamSegment) -> list[StreamSegment]:
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

    def find_holding(self, seq: int) -> StreamSegment:
        """The segment of a seq."""
        return self._segment(self._index(seq))

    def list_after(self, seq: int, upto: int, count: int) -> list[StreamSegment]:
        """The next `count` segments that end past `seq` and begin at or before `upto`."""
        if seq >= self.head:
            return []
        start = self._index(seq + 1)
        stop = min(bisect_right(self._firsts, upto), start + count)
        return [self._segment(at) for at in range(start, stop)]

    def places(self) -> set[int]:
        """Where in the stream the items of all segments are."""
        return set(self._columns[0]) - {0}

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

    def _segment(self, at: int) -> StreamSegment:
        firsts = self._firsts
        last = firsts[at + 1] - 1 if at + 1 < len(firsts) else self.head
        ats, parts, facts, sizes = self._columns
        return StreamSegment(firsts[at], last, ats[at], parts[at], facts[at], sizes[at])

    def _insert(self, at: int, segments: list[StreamSegment]) -> None:
        ats, parts, facts, sizes = self._columns
        self._firsts[at:at] = array("Q", [each.first for each in segments])
        ats[at:at] = array("Q", [each.at for each in segments])
        parts[at:at] = array("I", [each.parts for each in segments])
        facts[at:at] = array("I", [each.facts for each in segments])
        sizes[at:at] = array("Q", [each.size for each in segments])
        self._count(segments, 1)

    def _delete(self, start: int, end: int, old: list[StreamSegment]) -> None:
        for column in (self._firsts, *self._columns):
            del column[start:end]
        self._count(old, -1)

    def _count(self, segments: list[StreamSegment], sign: int) -> None:
        for each in segments:
            self.facts += sign * each.facts
            self.size += sign * each.size
            self.missing += sign * (each.at == 0)


class SegmentKeys:
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
        rows = [self._find_between(key, start, upto) for key in wanted.keys()]  # noqa: SIM118
        unions: list[Iterable[str]] = [wanted.any_keys] if wanted.any_keys else []
        if wanted.classes:
            unions.append(wanted.class_keys(self._classes))
        for keys in unions:
            found = {each for key in keys for each in self._find_between(key, start, upto)}
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

    def _find_between(self, key: str, start: int, upto: int) -> "array[int]":
        places = self._found.get(key)
        if places is None:
            return array("Q")
        return places[bisect_left(places, start) : bisect_right(places, upto)]


CACHE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of pages that stay in memory."""


class SegmentPage(msgspec.Struct, frozen=True, gc=False):
    """What a segment holds: its facts, and what is left of those that were removed."""

    chunk: Chunk | None
    retired: tuple[RetiredFact, ...] = ()

    @property
    def size(self) -> int:
        data = 0 if self.chunk is None else len(self.chunk.data) + len(self.chunk.index)
        return data + 200 * len(self.retired)


class _Head(msgspec.Struct, frozen=True, gc=False):
    id: str
    sequence: int | None = None


_heads: Final = msgspec.json.Decoder(_Head)


class PageCache:
    """Pages by the stream sequence of their item."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        self._cache: OrderedDict[int, SegmentPage] = OrderedDict()
        self._size = 0

    def put(self, at: int, item_body: ItemBody | None) -> None:
        """Keep what was just written or read, if it holds facts."""
        if isinstance(item_body, Chunk):
            self._put(at, SegmentPage(item_body))
        elif isinstance(item_body, KeptRange):
            self._put(at, SegmentPage(item_body.chunk, item_body.retired))

    async def get(
        self, segments: Iterable[StreamSegment], *, fresh: bool = False
    ) -> dict[int, SegmentPage]:
        """The pages of segments by `at`, without those that are no longer in the stream."""
        wanted = {each.at: each for each in segments if each.at}
        found: dict[int, SegmentPage] = {}
        for at in wanted:
            page = None if fresh else self._cache.get(at)
            if page is not None:
                found[at] = page
        places = [(at, each.parts) for at, each in wanted.items() if at not in found]
        items = await self._log.fetch(places) if places else {}
        for at, item in items.items():
            found[at] = self._read(item, wanted[at])
            if not fresh:
                self._put(at, found[at])
        return found

    def _read(self, item: StreamItem, segment: StreamSegment) -> SegmentPage:
        item_body = decode_item(item.kind, item.body)
        if isinstance(item_body, Chunk):
            return SegmentPage(_ensure_sound_segment(item_body, segment))
        if isinstance(item_body, KeptRange):
            return SegmentPage(
                item_body.chunk and _ensure_sound_segment(item_body.chunk, segment),
                item_body.retired,
            )
        place = {"first": segment.first, "last": segment.last}
        raise JournalCorrupt(f"expected facts, found an item of kind {item.kind}", **place)

    def _put(self, at: int, page: SegmentPage) -> None:
        old = self._cache.pop(at, None)
        self._size += page.size - (old.size if old else 0)
        self._cache[at] = page
        while self._size > CACHE_BYTES and len(self._cache) > 1:
            _, gone = self._cache.popitem(last=False)
            self._size -= gone.size


def find_existing_in(
    page: SegmentPage, seqs: Container[int], ids: Container[str]
) -> dict[str, ExistingFact]:
    """Those of the facts at `seqs`, or of what is left of them, that have one of the ids."""
    found = {
        each.id: ExistingFact(each.seq, each.sequence, digest=each.digest)
        for each in page.retired
        if each.seq in seqs and each.id in ids
    }
    if page.chunk is not None:
        for seq, line in zip(page.chunk.places(), page.chunk.lines(), strict=True):
            head = _heads.decode(line) if seq in seqs else None
            if head is not None and head.id in ids:
                found[head.id] = ExistingFact(seq, head.sequence, line)
    return found


def _ensure_sound_segment(chunk: Chunk, segment: StreamSegment) -> Chunk:
    if (chunk.first, chunk.last) != (segment.first, segment.last):
        place = {"first": segment.first, "last": segment.last}
        raise JournalCorrupt(f"found facts {chunk.first}–{chunk.last} in their place", **place)
    return ensure_sound(chunk)
