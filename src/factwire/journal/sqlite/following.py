"""Replay, then live: one loop over positions, whatever the source of the next chunk is.

The position only moves over what has been handed out or filtered out, and the next chunk is always
the one past it. Whether it comes from the ring or from disk makes no difference to what is read.
"""

from collections.abc import AsyncGenerator, AsyncIterator

from factwire.journal.chunk import Stretch, joined, nothing, spanning
from factwire.journal.errors import JournalClosed
from factwire.journal.filter import Filter
from factwire.journal.live import Reader
from factwire.journal.sqlite.reader import Fetched
from factwire.journal.sqlite.store import Store
from factwire.journal.sqlite.trips import Trips, begin


async def replay(
    store: Store, reader: Reader, upto: int, wanted: Filter | None, limit: int | None
) -> AsyncGenerator[Stretch]:
    """Everything from the reader's position up to `upto`, at most `limit` facts."""
    covered, left = reader.position, limit
    trips = Trips(store, upto, wanted)
    try:
        while reader.position < upto and left != 0:
            fetched = await trips.next(reader.position, left)
            for stretch in fetched.stretches:
                reader.position = stretch.last
                left = None if left is None else left - len(stretch.seqs)
                yield spanning(stretch, covered + 1)
                covered = stretch.last
            reader.position = fetched.reached
    finally:
        trips.abandon()
    if covered < reader.position:
        yield nothing(store.epoch, covered + 1, reader.position)


async def live(store: Store, reader: Reader, wanted: Filter | None) -> AsyncIterator[Stretch]:
    """Everything past the reader's position, for ever; what has gathered comes as one stretch."""
    covered = reader.position
    while True:
        seen = store.bell.count
        if store.closing:
            raise JournalClosed("the journal was closed")
        fetched = await _next(store, reader.position, wanted)
        if fetched is None:
            await store.bell.wait(seen, store.poll)
            continue
        reader.position = fetched.reached
        if fetched.stretches:
            stretch = joined(fetched.stretches)
            yield spanning(stretch, covered + 1)
            covered = stretch.last


async def _next(store: Store, position: int, wanted: Filter | None) -> Fetched | None:
    held = store.ring.since(position)
    if held is None:
        head = (await store.place()).head
        return await begin(store, position, head, wanted) if head > position else None
    if not held:
        return None
    stretches = [each.stretch(store.epoch, position, wanted) for each in held]
    return Fetched([each for each in stretches if each.seqs], held[-1].chunk.last)
