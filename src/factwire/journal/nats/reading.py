"""Reading from a cursor on: exactly what comes after it, from the stream, page by page.

A reader is registered under the same lock under which floors are published, so that a removal
either knows of it or is known to it. A follower outlives the server's absence; a read does not.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from factwire.journal.admission import Known
from factwire.journal.chunk import Stretch, joined, nothing, spanning, stretch_of
from factwire.journal.cursor import MARK, Cursor
from factwire.journal.errors import CursorExpired, JournalCorrupt, JournalUnavailable
from factwire.journal.filter import Filter
from factwire.journal.live import Reader, Readers
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.link import log
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.pages import Page
from factwire.journal.resume import resume_after

BATCH: Final = 64
"""Segments that are fetched at once."""

BATCH_BYTES: Final = 4 * 1024 * 1024


class Reading:
    """One read or follow."""

    def __init__(self, mirror: Mirror, readers: Readers, wanted: Filter | None) -> None:
        self._mirror = mirror
        self._state = mirror.state
        self._readers = readers
        # A filter that names nothing lets everything through.
        self._wanted = wanted if wanted and (wanted.keys() or wanted.classes) else None
        self._floor = 0

    @asynccontextmanager
    async def start(self, after: Cursor | str | None, *, follows: bool) -> AsyncGenerator[Reader]:
        """A reader at its start, which counts as open inside the block."""
        since = self._mirror.ticket()
        async with self._mirror.lock:
            await self._mirror.level(since)
            named = isinstance(after, str) and not after.startswith(MARK)
            known = await self._mirror.known([str(after)], locked=True) if named else {}
            bounds = self._state.bounds(self._wanted)
            at = resume_after(after, bounds, lambda fact_id: _seq(known.get(fact_id)))
            self._floor = bounds.floor
            registered = self._readers.reading(at, follows=follows)
            reader = registered.__enter__()
        try:
            yield reader
        finally:
            registered.__exit__(None, None, None)

    async def replay(self, reader: Reader, limit: int | None) -> AsyncIterator[Stretch]:
        """What is there now."""
        head, covered, left = self._state.head, reader.position, limit
        for segments in self._batches(reader.position, head) if left != 0 else ():
            for page in await self._pages(reader, segments):
                stretch = self._stretch(page, reader.position, left)
                if stretch is None or stretch.last <= reader.position:
                    continue
                reader.position = stretch.last
                left = left and left - len(stretch.seqs)
                if stretch.seqs:
                    yield spanning(stretch, covered + 1)
                    covered = stretch.last
                if left == 0:
                    return
        if left != 0:
            reader.position = max(reader.position, head)
        if covered < reader.position:
            yield nothing(self._state.epoch, covered + 1, reader.position)

    async def live(self, reader: Reader, covered: int) -> Stretch | None:
        """What came since; None where nothing of it passes."""
        head = self._state.head
        segments = next(self._batches(reader.position, head), None)
        if segments is None:
            reader.position = max(reader.position, head)
            return None
        position = reader.position
        stretches: list[Stretch] = []
        for page in await self._pages(reader, segments):
            # Segments that were merged meanwhile are all on the same page.
            stretch = self._stretch(page, position, None)
            if stretch is not None and stretch.last > position:
                stretches.append(stretch)
                position = stretch.last
        reader.position = max(position, segments[-1].last)
        if not any(stretch.seqs for stretch in stretches):
            return None
        return spanning(joined(stretches), covered + 1)

    def _stretch(self, page: Page, after: int, limit: int | None) -> Stretch | None:
        if page.chunk is None:
            return None
        wanted, epoch = self._wanted, self._state.epoch
        return stretch_of(page.chunk, epoch, after=after, wanted=wanted, limit=limit)

    def _batches(self, after: int, upto: int) -> Iterator[list[Segment]]:
        """Segments that may hold something, in the order of their seqs."""
        directory = self._state.directory
        if after >= upto:
            return
        if self._wanted is None:
            while segments := _measured(directory.after(after, upto, BATCH)):
                yield segments
                after = segments[-1].last
            return
        start = directory.holding(after + 1).first
        self._ensure_whole(start, upto)
        firsts = self._state.keys.candidates(self._wanted, start, upto)
        while firsts:
            segments = _measured([directory.holding(first) for first in firsts[:BATCH]])
            yield segments
            firsts = firsts[len(segments) :]

    async def _pages(self, reader: Reader, segments: list[Segment]) -> list[Page]:
        while True:
            try:
                pages = await self._mirror.pages_of(segments)
            except JournalUnavailable as error:
                if not reader.follows:
                    raise
                log.warning("%s waits: %s", reader.name, error)
            else:
                self._ensure_kept(reader)
                return pages

    def _ensure_kept(self, reader: Reader) -> None:
        """A removal by a process that did not hear of this reader must not leave it a hole."""
        bounds = self._state.bounds(self._wanted)
        if bounds.floor > self._floor and reader.position < bounds.floor:
            message = f"{reader.name} is at {reader.position}, facts up to {bounds.floor} are gone"
            raise bounds.error(CursorExpired, f"{message}; start from the nearest snapshot")

    def _ensure_whole(self, first: int, last: int) -> None:
        """What is lost has no keys, so that a filter would pass over it."""
        directory = self._state.directory
        lost = (each for each in directory if not each.at) if directory.missing else ()
        for each in lost:
            if each.last >= first and each.first <= last:
                raise JournalCorrupt("the stream lost facts", first=each.first, last=each.last)


def _measured(segments: list[Segment]) -> list[Segment]:
    """As many of the first segments as make up a batch; at least one."""
    size = 0
    for number, each in enumerate(segments):
        size += each.size
        if size > BATCH_BYTES and number:
            return segments[:number]
    return segments


def _seq(known: Known | None) -> int | None:
    return known and known.seq
