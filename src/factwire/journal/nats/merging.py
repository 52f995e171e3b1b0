"""Merging small chunks, so that a journal that was written fact by fact reads like one of batches.

A merged chunk keeps the hash of each commit in it, so that the chain needs no record. As in a
removal, what the catalogue knows is published first, then the merged chunk is written, and only
then are the small ones deleted. Killed in between, the journal is whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from factwire.journal.chunk import Chunk, merged
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.wire import Floors, Kept, Said

SMALL: Final = 64
"""A chunk of fewer facts is worth merging with its neighbours."""

ENOUGH: Final = 16
"""Small chunks in a row that are worth it."""

FACTS: Final = 1_024
"""Facts of a merged chunk, so that reading a part of it stays cheap."""

BYTES: Final = 256 * 1024
"""Bytes after which a merged chunk is closed."""


async def merge_small(mirror: Mirror) -> None:
    """Merge all there is to merge now."""
    runs = list(_runs(mirror))
    if not runs:
        return
    await _publish_threads(mirror, runs[-1][-1].last)
    gone: list[Segment] = []
    for run in runs:
        gone += await _merge(mirror, run)
    await _delete(mirror, gone)


def _runs(mirror: Mirror) -> Iterator[list[Segment]]:
    """Adjacent small segments, as many as make up a merged chunk."""
    run: list[Segment] = []
    facts = size = 0
    for segment in mirror.state.directory:
        small = bool(segment.at) and segment.facts == segment.last - segment.first + 1 < SMALL
        if not small or facts + segment.facts > FACTS or size >= BYTES:
            if len(run) >= ENOUGH:
                yield run
            run, facts, size = [], 0, 0
        if small:
            run.append(segment)
            facts, size = facts + segment.facts, size + segment.size
    if len(run) >= ENOUGH:
        yield run


async def _publish_threads(mirror: Mirror, extent: int) -> None:
    """Say of the threads what those cannot find out who will not see the small chunks any more."""
    state = mirror.state

    async def build() -> Sequence[Said]:
        threads = tuple(each for each in state.threads.values() if each.first_seq <= extent)
        return [Floors(floor=state.floor, threads=threads)]

    async with mirror.lock:
        await mirror.write(build)


async def _merge(mirror: Mirror, run: list[Segment]) -> list[Segment]:
    """Write one merged chunk; answers with the segments that it replaced."""

    async def build() -> Sequence[Said]:
        chunks = await _chunks(mirror, run)
        if not chunks:
            return ()
        whole = merged(chunks)
        return [Kept(first=whole.first, last=whole.last, chunk=whole, retired=())]

    async with mirror.lock:
        return run if await mirror.write(build) else []


async def _chunks(mirror: Mirror, run: list[Segment]) -> list[Chunk]:
    """The chunks of a run; none where another process has changed one of them."""
    if any(mirror.state.directory.holding(each.first) != each for each in run):
        return []
    pages = await mirror.pages_of(run, locked=True)
    chunks = [page.chunk for page in pages if page.chunk and page.chunk.seqs is None]
    return chunks if len(chunks) == len(run) else []


async def _delete(mirror: Mirror, gone: list[Segment]) -> None:
    """Delete what was replaced: at once what lies before all that is kept, the rest one by one."""
    kept = min((each.at for each in mirror.state.directory if each.at), default=0)
    if gone and gone[0].at < kept:
        await mirror.log.purge("chunk", kept)
    for each in gone:
        if each.at > kept:
            await mirror.log.delete(each.at, each.parts)
