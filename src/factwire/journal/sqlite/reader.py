"""Replay, then live: one loop over positions, whatever the source of the next chunk is.

The position only moves over what has been handed out or filtered out, and the next chunk is always
the one past it. Of a long read several fetches are under way at once and come back in order; one
that began where the one before it did not end, as after a merge, is dropped. All readers together
may only be so far ahead: a slow one must not fill the memory.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Final

from factwire.journal.chunks import FactBatch, empty_batch, join_batches, widen_batch
from factwire.journal.errors import JournalClosed
from factwire.journal.filter import Filter
from factwire.journal.followers import ReaderPosition
from factwire.journal.sqlite.handle import SqliteHandle
from factwire.journal.sqlite.reader_pool import FetchResult, fetch

AHEAD: Final = 2
"""Trips of one read that may be under way while what came before them is handed out."""

_PendingFetch = asyncio.Future[FetchResult]


class Prefetcher:
    """The trips of one read up to `upto`."""

    def __init__(self, store: SqliteHandle, upto: int, wanted: Filter | None) -> None:
        self._store = store
        self._upto = upto
        self._wanted = wanted
        self._cuts: deque[int] = deque()
        self._begun: deque[tuple[int, _PendingFetch]] = deque()

    async def next(self, after: int, limit: int | None) -> FetchResult:
        """What lies past `after`, at most `limit` facts, as much as one trip brings."""
        if self._begun and self._begun[0][0] != after:
            self.abandon()
        if self._begun:
            fetched = await self._begun[0][1]
            self._drop_first()
        else:
            fetched = await start_fetch(self._store, after, self._upto, self._wanted, limit)
            self._cuts = deque((fetched.reached, *fetched.cuts))
        if limit is None:
            self._look_ahead()
        return fetched

    def abandon(self) -> None:
        """Let go of what is under way; what becomes of it is of no interest."""
        self._cuts.clear()
        while self._begun:
            pending = self._begun[0][1]
            if not pending.cancel() and not pending.cancelled():
                pending.exception()
            self._drop_first()

    def _look_ahead(self) -> None:
        pool = self._store.pool
        while len(self._cuts) > 1 and len(self._begun) < AHEAD and pool.may_look_ahead():
            after = self._cuts.popleft()
            pool.ahead += 1
            self._begun.append(
                (after, start_fetch(self._store, after, self._cuts[0], self._wanted))
            )

    def _drop_first(self) -> None:
        self._begun.popleft()
        self._store.pool.ahead -= 1


def start_fetch(
    store: SqliteHandle, after: int, upto: int, wanted: Filter | None, limit: int | None = None
) -> _PendingFetch:
    """Begin a trip."""
    return store.pool.run(
        partial(
            fetch,
            epoch=store.epoch,
            after=after,
            upto=upto,
            wanted=wanted,
            limit=limit,
            segments=store.segments,
        )
    )


async def replay(
    store: SqliteHandle, reader: ReaderPosition, upto: int, wanted: Filter | None, limit: int | None
) -> AsyncGenerator[FactBatch]:
    """Everything from the reader's position up to `upto`, at most `limit` facts."""
    covered, left = reader.position, limit
    prefetcher = Prefetcher(store, upto, wanted)
    try:
        while reader.position < upto and left != 0:
            fetched = await prefetcher.next(reader.position, left)
            for batch in fetched.batches:
                reader.position = batch.last
                left = None if left is None else left - len(batch.seqs)
                yield widen_batch(batch, covered + 1)
                covered = batch.last
            reader.position = fetched.reached
    finally:
        prefetcher.abandon()
    if covered < reader.position:
        yield empty_batch(store.epoch, covered + 1, reader.position)


async def follow_live(
    store: SqliteHandle, reader: ReaderPosition, wanted: Filter | None
) -> AsyncIterator[FactBatch]:
    """Everything past the reader's position, for ever; what has gathered comes as one batch."""
    covered = reader.position
    while True:
        seen = store.bell.count
        if store.closing:
            raise JournalClosed("the journal was closed")
        fetched = await _fetch_next(store, reader.position, wanted)
        if fetched is None:
            await store.bell.wait(seen, store.poll)
            continue
        reader.position = fetched.reached
        if fetched.batches:
            batch = join_batches(fetched.batches)
            yield widen_batch(batch, covered + 1)
            covered = batch.last


async def _fetch_next(
    store: SqliteHandle, position: int, wanted: Filter | None
) -> FetchResult | None:
    held = store.ring.since(position)
    if held is None:
        head = (await store.load_ends()).head
        return await start_fetch(store, position, head, wanted) if head > position else None
    if not held:
        return None
    batches = [each.to_batch(store.epoch, position, wanted) for each in held]
    return FetchResult([each for each in batches if each.seqs], held[-1].chunk.last)
