"""The facts of segments, fetched from the server and kept for a while in memory.

What is live is read by every follower of the process, so the newest pages stay in a cache of fixed
size. A page that does not match its hash is never handed out.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable
from typing import Final

import msgspec

from factwire.journal.admission import Known
from factwire.journal.chunk import Chunk, ensure_sound
from factwire.journal.errors import JournalCorrupt
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.log import Item, Log
from factwire.journal.nats.wire import Kept, Retired, Said, decode

CACHE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of pages that stay in memory."""


class Page(msgspec.Struct, frozen=True, gc=False):
    """What a segment holds: its facts, and what is left of those that were removed."""

    chunk: Chunk | None
    retired: tuple[Retired, ...] = ()

    @property
    def size(self) -> int:
        data = 0 if self.chunk is None else len(self.chunk.data) + len(self.chunk.index)
        return data + 200 * len(self.retired)


class _Head(msgspec.Struct, frozen=True, gc=False):
    id: str
    sequence: int | None = None


_heads: Final = msgspec.json.Decoder(_Head)


class Pages:
    """Pages by the stream sequence of their item."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._cache: OrderedDict[int, Page] = OrderedDict()
        self._size = 0

    def put(self, at: int, said: Said | None) -> None:
        """Keep what was just written or read, if it holds facts."""
        if isinstance(said, Chunk):
            self._put(at, Page(said))
        elif isinstance(said, Kept):
            self._put(at, Page(said.chunk, said.retired))

    async def get(self, segments: Iterable[Segment], *, fresh: bool = False) -> dict[int, Page]:
        """The pages of segments by `at`, without those that are no longer in the stream."""
        wanted = {each.at: each for each in segments if each.at}
        found: dict[int, Page] = {}
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

    def _read(self, item: Item, segment: Segment) -> Page:
        said = decode(item.kind, item.body)
        if isinstance(said, Chunk):
            return Page(_sound(said, segment))
        if isinstance(said, Kept):
            return Page(said.chunk and _sound(said.chunk, segment), said.retired)
        place = {"first": segment.first, "last": segment.last}
        raise JournalCorrupt(f"an item of kind {item.kind} stands in the place of facts", **place)

    def _put(self, at: int, page: Page) -> None:
        old = self._cache.pop(at, None)
        self._size += page.size - (old.size if old else 0)
        self._cache[at] = page
        while self._size > CACHE_BYTES and len(self._cache) > 1:
            _, gone = self._cache.popitem(last=False)
            self._size -= gone.size


def known_in(page: Page, seqs: Container[int], ids: Container[str]) -> dict[str, Known]:
    """Those of the facts at `seqs`, or of what is left of them, that have one of the ids."""
    found = {
        each.id: Known(each.seq, each.sequence, digest=each.digest)
        for each in page.retired
        if each.seq in seqs and each.id in ids
    }
    if page.chunk is not None:
        for seq, line in zip(page.chunk.places(), page.chunk.lines(), strict=True):
            head = _heads.decode(line) if seq in seqs else None
            if head is not None and head.id in ids:
                found[head.id] = Known(seq, head.sequence, line)
    return found


def _sound(chunk: Chunk, segment: Segment) -> Chunk:
    if (chunk.first, chunk.last) != (segment.first, segment.last):
        place = {"first": segment.first, "last": segment.last}
        raise JournalCorrupt(f"facts {chunk.first}–{chunk.last} stand in their place", **place)
    return ensure_sound(chunk)
