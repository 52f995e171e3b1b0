"""Reading from a cursor on: exactly what comes after it, from the stream, page by page.

A reader is registered under the same lock under which floors are published, so that a removal
either knows of it or is known to it. A follower outlives the server's absence; a read does not.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from factwire.journal.admission import ExistingFact
from factwire.journal.chunks import FactBatch, empty_batch, join_batches, select_batch, widen_batch
from factwire.journal.cursor import MARK, Cursor, resolve_start
from factwire.journal.errors import CursorExpired, JournalCorrupt, JournalUnavailable
from factwire.journal.filter import Filter
from factwire.journal.followers import ReaderPosition, ReaderRegistry
from factwire.journal.nats.segments import SegmentPage, StreamSegment
from factwire.journal.nats.server_connection import log
from factwire.journal.nats.stream_view import StreamView

BATCH: Final = 64
"""Segments that are fetched at once."""

BATCH_BYTES: Final = 4 * 1024 * 1024


class NatsReader:
    """One read or follow."""

    def __init__(self, mirror: StreamView, readers: ReaderRegistry, wanted: Filter | None) -> None:
        self._mirror = mirror
        self._state = mirror.state
        self._readers = readers
        # A filter that names nothing lets everything through.
        self._wanted = wanted if wanted and wanted != Filter() else None
        self._floor = 0

    @asynccontextmanager
    async def start(
        self, after: Cursor | str | None, *, follows: bool
    ) -> AsyncGenerator[ReaderPosition]:
        """A reader at its start, which counts as open inside the block."""
        since = self._mirror.ticket()
        async with self._mirror.lock:
            await self._mirror.level(since)
            named = isinstance(after, str) and not after.startswith(MARK)
            known = await self._mirror.find_existing([str(after)], locked=True) if named else {}
            bounds = self._state.bounds(self._wanted)
            at = resolve_start(after, bounds, lambda fact_id: _find_seq(known.get(fact_id)))
            self._floor = bounds.floor
            registered = self._readers.open_reader(at, follows=follows)
            reader = registered.__enter__()
        try:
            yield reader
        finally:
            registered.__exit__(None, None, None)

    async def replay(self, reader: ReaderPosition, limit: int | None) -> AsyncIterator[FactBatch]:
        """What is there now."""
        head, covered, left = self._state.head, reader.position, limit
        for segments in self._plan_fetches(reader.position, head) if left != 0 else ():
            for page in await self._load_pages(reader, segments):
                batch = self._select_batch(page, reader.position, left)
                if batch is None or batch.last <= reader.position:
                    continue
                reader.position = batch.last
                left = left and left - len(batch.seqs)
                if batch.seqs:
                    yield widen_batch(batch, covered + 1)
                    covered = batch.last
                if left == 0:
                    return
        if left != 0:
            reader.position = max(reader.position, head)
        if covered < reader.position:
            yield empty_batch(self._state.epoch, covered + 1, reader.position)

    async def next_live(self, reader: ReaderPosition, covered: int) -> FactBatch | None:
        """What came since; None where nothing of it passes."""
        head = self._state.head
        segments = next(self._plan_fetches(reader.position, head), None)
        if segments is None:
            reader.position = max(reader.position, head)
            return None
        position = reader.position
        batches: list[FactBatch] = []
        for page in await self._load_pages(reader, segments):
            # Segments that were merged meanwhile are all on the same page.
            batch = self._select_batch(page, position, None)
            if batch is not None and batch.last > position:
                batches.append(batch)
                position = batch.last
        reader.position = max(position, segments[-1].last)
        if not any(batch.seqs for batch in batches):
            return None
        return widen_batch(join_batches(batches), covered + 1)

    def _select_batch(self, page: SegmentPage, after: int, limit: int | None) -> FactBatch | None:
        if page.chunk is None:
            return None
        wanted, epoch = self._wanted, self._state.epoch
        return select_batch(page.chunk, epoch, after=after, wanted=wanted, limit=limit)

    def _plan_fetches(self, after: int, upto: int) -> Iterator[list[StreamSegment]]:
        """Segments that may hold something, in the order of their seqs."""
        directory = self._state.directory
        if after >= upto:
            return
        if self._wanted is None:
            while segments := _limit_by_bytes(directory.list_after(after, upto, BATCH)):
                yield segments
                after = segments[-1].last
            return
        start = directory.find_holding(after + 1).first
        self._ensure_whole(start, upto)
        firsts = self._state.keys.candidates(self._wanted, start, upto)
        while firsts:
            segments = _limit_by_bytes([directory.find_holding(first) for first in firsts[:BATCH]])
            yield segments
            firsts = firsts[len(segments) :]

    async def _load_pages(
        self, reader: ReaderPosition, segments: list[StreamSegment]
    ) -> list[SegmentPage]:
        while True:
            try:
                pages = await self._mirror.load_pages(segments)
            except JournalUnavailable as error:
                if not reader.follows:
                    raise
                log.warning("%s waits: %s", reader.name, error)
            else:
                self._ensure_kept(reader)
                return pages

    def _ensure_kept(self, reader: ReaderPosition) -> None:
        """A removal by a process that did not hear of this reader must not leave it a hole."""
        bounds = self._state.bounds(self._wanted)
        if bounds.floor > self._floor and reader.position < bounds.floor:
            message = (
                f"{reader.name} is at {reader.position}, but facts up to {bounds.floor} have "
                "been removed"
            )
            raise bounds.error(CursorExpired, f"{message}; start from the nearest snapshot")

    def _ensure_whole(self, first: int, last: int) -> None:
        """What is lost has no keys, so that a filter would pass over it."""
        directory = self._state.directory
        lost = (each for each in directory if not each.at) if directory.missing else ()
        for each in lost:
            if each.last >= first and each.first <= last:
                raise JournalCorrupt("the stream lost facts", first=each.first, last=each.last)


def _limit_by_bytes(segments: list[StreamSegment]) -> list[StreamSegment]:
    """As many of the first segments as make up a batch; at least one."""
    size = 0
    for number, each in enumerate(segments):
        size += each.size
        if size > BATCH_BYTES and number:
            return segments[:number]
    return segments


def _find_seq(known: ExistingFact | None) -> int | None:
    return known and known.seq
