"""A whole journal written into an empty stream, piece by piece, and removed facts read out of one.

A piece with gaps is written as a removal writes what it leaves, with its record of the chain beside
it in one atomic batch; a piece without is a commit like any other.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

from factwire.journal.cursor import Cursor
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.wire import Floors, Kept, Retired, Said
from factwire.journal.removed import Removed
from factwire.journal.restore import Piece, Restoration, ensure_empty, ensure_new, pieces_of

STEP: Final = 64
"""Segments that are fetched at once."""

THREADS: Final = 1_000
"""Threads of one item."""


async def restore(mirror: Mirror, given: Restoration) -> Cursor:
    """Write what is given; the journal must be empty until then."""
    async with mirror.lock:
        await mirror.catch_up()
        ensure_empty(mirror.state.head)
        for piece in pieces_of(given):
            await _write(mirror, piece)
        threads = iter(given.threads)
        records = tuple(islice(threads, THREADS))
        while records or given.floor > mirror.state.floor:
            await _say(mirror, mirror.state.head, [Floors(floor=given.floor, threads=records)])
            records = tuple(islice(threads, THREADS))
    return Cursor(mirror.state.epoch, mirror.state.head)


async def removed(mirror: Mirror) -> AsyncIterator[Removed]:
    """What is kept of each removed fact, in order."""
    after, head = 0, mirror.state.head
    while after < head:
        segments = mirror.state.directory.after(after, head, STEP)
        for page in await mirror.pages_of(segments):
            for each in sorted(page.retired, key=lambda each: each.seq):
                yield Removed(each.seq, each.id, each.sequence, each.digest)
        after = segments[-1].last


async def _write(mirror: Mirror, piece: Piece) -> None:
    ids = list(piece.ids())
    ensure_new(await mirror.known(ids, locked=True))
    chunk = piece.chunk
    if chunk is not None and chunk.seqs is None and not piece.removed:
        await _say(mirror, piece.first - 1, [chunk, *piece.records])
        return
    retired = tuple(
        Retired(each.id, each.seq, each.sequence, each.digest) for each in piece.removed
    )
    kept = Kept(first=piece.first, last=piece.last, chunk=chunk, retired=retired)
    await _say(mirror, piece.first - 1, [kept, *piece.records])


async def _say(mirror: Mirror, head: int, said: Sequence[Said]) -> None:
    """Write items on a journal that ends at `head`; another writer must not have come between."""

    async def build() -> Sequence[Said]:
        if mirror.state.head != head:
            ensure_empty(mirror.state.head)
        return said

    await mirror.write(build)
