"""Retention, compaction and restore on a stream whose messages never change.

What the catalogue knows is published first, then what stays of a range is written, and only then
is the rest deleted. Killed in between, the journal is whole, and the next removal deletes what was
left: what others took the place of follows from the stream. Small chunks are merged, so that a
journal that was written fact by fact reads like one of batches; a merged chunk keeps the hash of
each commit in it, so that the chain needs no record.
"""

import asyncio
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chunks import (
    Chunk,
    Record,
    RecordBody,
    Truncated,
    build_record,
    decode_line,
    merge_chunks,
    thin_chunk,
)
from factwire.journal.cursor import Cursor
from factwire.journal.nats.segments import SegmentPage, StreamSegment
from factwire.journal.nats.stream_log import ItemBody, KeptRange, RaisedFloors, RetiredFact
from factwire.journal.nats.stream_view import StreamView
from factwire.journal.retention import (
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RestorePiece,
    cut_pieces,
    ensure_empty,
    ensure_new,
    list_removed,
)
from factwire.journal.thread_catalogue import CatalogueRecord

SMALL: Final = 64
"""A chunk of fewer facts is worth merging with its neighbours."""

ENOUGH: Final = 16
"""Small chunks in a row that are worth it."""

FACTS: Final = 1_024
"""Facts of a merged chunk, so that reading a part of it stays cheap."""

BYTES: Final = 256 * 1024
"""Bytes after which a merged chunk is closed."""


async def merge_small(mirror: StreamView) -> None:
    """Merge all there is to merge now."""
    runs = list(_find_runs(mirror))
    if not runs:
        return
    await _publish_threads(mirror, runs[-1][-1].last)
    for run in runs:
        await _merge(mirror, run)
    await _delete_replaced(mirror)


def _find_runs(mirror: StreamView) -> Iterator[list[StreamSegment]]:
    """Adjacent small segments, as many as make up a merged chunk."""
    run: list[StreamSegment] = []
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


async def _publish_threads(mirror: StreamView, extent: int) -> None:
    """Say of the threads what those cannot find out who will not see the small chunks any more."""
    state = mirror.state

    async def build() -> Sequence[ItemBody]:
        threads = tuple(each for each in state.threads.values() if each.first_seq <= extent)
        return [RaisedFloors(floor=state.floor, threads=threads)]

    async with mirror.lock:
        await mirror.write(build)


async def _merge(mirror: StreamView, run: list[StreamSegment]) -> None:
    """Write one merged chunk."""

    async def build() -> Sequence[ItemBody]:
        chunks = await _load_chunks(mirror, run)
        if not chunks:
            return ()
        whole = merge_chunks(chunks)
        return [KeptRange(first=whole.first, last=whole.last, chunk=whole, retired=())]

    async with mirror.lock:
        await mirror.write(build)


async def _load_chunks(mirror: StreamView, run: list[StreamSegment]) -> list[Chunk]:
    """The chunks of a run; none where another process has changed one of them."""
    if any(mirror.state.directory.find_holding(each.first) != each for each in run):
        return []
    pages = await mirror.load_pages(run, locked=True)
    chunks = [page.chunk for page in pages if page.chunk and page.chunk.seqs is None]
    return chunks if len(chunks) == len(run) else []


async def _delete_replaced(mirror: StreamView) -> None:
    """Delete what others took the place of: at once what lies before all that is kept, the rest one
    by one.
    """
    chunks = mirror.state.replaced_chunks
    if chunks:
        kept = mirror.state.directory.places()
        first = min(kept, default=0)
        if min(chunks[::2]) < first:
            for kind in ("chunk", "kept"):
                await mirror.log.purge(kind, first)
        await _delete_places(mirror, chunks, lambda at: at > first and at not in kept)
    await _delete_places(mirror, mirror.state.replaced_snapshots, lambda _: True)


async def _delete_places(
    mirror: StreamView, places: "array[int]", is_wanted: Callable[[int], bool]
) -> None:
    """Delete those of (at, parts) that are wanted, and forget all that there were at the call."""
    done, count = 0, len(places)
    try:
        while done < count:
            if is_wanted(places[done]):
                await mirror.log.delete(places[done], places[done + 1])
            done += 2
    finally:
        del places[:done]


STEP: Final = 64
"""Segments that are rewritten in one atomic batch."""

STEP_BYTES: Final = 8 * 1024 * 1024

Facts = Iterator[tuple[int, Fact]]
MakePlan = Callable[[Facts, Holds, int, int], RemovalPlan]
"""(facts, holds, head, floor) → plan."""


class NatsRemover:
    """Retention and compaction of one journal, one at a time."""

    def __init__(
        self,
        mirror: StreamView,
        positions: Callable[[], dict[str, int]],
        elsewhere: Callable[[], Awaitable[dict[str, int]]],
    ) -> None:
        self._mirror = mirror
        self._positions = positions
        self._elsewhere = elsewhere
        self._one = asyncio.Lock()

    async def run(self, make: MakePlan) -> RemovalResult:
        """Remove what a plan says."""
        async with self._one:
            plan = await self._settle(make)
            await _delete_replaced(self._mirror)
            truncated = await self._run_steps(plan, self._list_below(plan))
            thinned_out = await self._run_steps(plan, self._list_above(plan))
            return RemovalResult(
                removed=truncated[0] + thinned_out[0],
                freed=truncated[1] + thinned_out[1],
                floor=Cursor(self._mirror.state.epoch, self._mirror.state.floor),
                held_by=plan.held_by,
            )

    async def merge(self) -> None:
        """Merge small chunks, of which nothing goes."""
        async with self._one:
            await self._mirror.refresh()
            await _delete_replaced(self._mirror)
            await merge_small(self._mirror)

    async def _settle(self, make: MakePlan) -> RemovalPlan:
        """A plan whose floors are published; made again when a reader came in its way."""
        while True:
            elsewhere = await self._elsewhere()
            await self._mirror.refresh()
            here = self._positions()
            state = self._mirror.state
            head, floor = state.head, state.floor
            holds = state.holds({**elsewhere, **here})
            facts = _Facts(self._mirror, head)
            plan = await asyncio.to_thread(make, facts.iterate_facts(), holds, head, floor)
            extent = max((plan.floor, *plan.drop))
            async with self._mirror.lock:
                if self._is_unhindered(here, extent):
                    await self._publish_floors(plan, extent)
                    return plan

    def _is_unhindered(self, before: dict[str, int], extent: int) -> bool:
        """Whether no reader that was not asked yet needs what would go."""
        return all(
            at >= extent or before.get(name, extent) <= at for name, at in self._positions().items()
        )

    async def _publish_floors(self, plan: RemovalPlan, extent: int) -> None:
        state = self._mirror.state
        if plan.floor <= state.floor and not plan.drop and not plan.thread_floors:
            return

        async def build() -> Sequence[ItemBody]:
            # What is rewritten goes on to the end of its segment, and so do the threads in it.
            reach = state.directory.find_holding(extent).last if extent else 0
            rows = (each for each in state.threads.values() if each.first_seq <= reach)
            threads = tuple(_raise_floor(each, plan) for each in rows)
            return [RaisedFloors(floor=plan.floor, threads=threads)]

        await self._mirror.write(build)

    def _list_below(self, plan: RemovalPlan) -> Iterator[StreamSegment]:
        """Segments that go as a whole, taken from the directory as it then is."""
        while found := self._mirror.state.directory.list_after(
            self._mirror.state.base, plan.floor, 1
        ):
            if found[0].last > plan.floor:
                return
            yield found[0]

    def _list_above(self, plan: RemovalPlan) -> Iterator[StreamSegment]:
        """Segments of which something goes."""
        directory, at = self._mirror.state.directory, self._mirror.state.base
        going = sorted({*plan.drop, plan.floor} if plan.floor > at else plan.drop)
        for seq in going:
            if seq > at:
                segment = directory.find_holding(seq)
                at = segment.last
                yield segment

    async def _run_steps(
        self, plan: RemovalPlan, segments: Iterator[StreamSegment]
    ) -> tuple[int, int]:
        removed = freed = 0
        while step := _take_next_step(segments, self._mirror, plan):
            counts = await self._run_step(plan, step)
            removed, freed = removed + counts[0], freed + counts[1]
        return removed, freed

    async def _run_step(self, plan: RemovalPlan, segments: list[StreamSegment]) -> tuple[int, int]:
        step = _Step(plan, self._mirror, segments)
        async with self._mirror.lock:
            await self._mirror.write(step.build)
        await _delete_replaced(self._mirror)
        return step.removed, step.freed


def _take_next_step(
    segments: Iterator[StreamSegment], mirror: StreamView, plan: RemovalPlan
) -> list[StreamSegment]:
    """The next segments, all above the floor or all below it, as many as fit into a step."""
    first = next(segments, None)
    if first is None:
        return []
    if first.last > plan.floor:
        found = [first]
        for each in segments:
            found.append(each)
            if len(found) == STEP or sum(one.size for one in found) > STEP_BYTES:
                break
        return found
    found = mirror.state.directory.list_after(first.first - 1, plan.floor, STEP)
    return [each for each in found if each.last <= plan.floor]


class _Step:
    """Some segments on their way out."""

    def __init__(
        self, plan: RemovalPlan, mirror: StreamView, segments: list[StreamSegment]
    ) -> None:
        self.removed = 0
        self.freed = 0
        self._plan = plan
        self._mirror = mirror
        self._firsts = [each.first for each in segments]
        self._old: list[tuple[StreamSegment, SegmentPage]] = []

    async def build(self) -> Sequence[ItemBody]:
        """Records and what is left, on the state as it is now."""
        directory = self._mirror.state.directory
        segments = [directory.find_holding(first) for first in self._firsts]
        # What another process emptied meanwhile is a part of something larger now.
        segments = [each for each in segments if each.first in set(self._firsts)]
        pages = await self._mirror.load_pages(segments, locked=True)
        self._old = list(zip(segments, pages, strict=True))
        self.removed = self.freed = 0
        below = bool(segments) and segments[-1].last <= self._plan.floor
        contents = [self._empty()] if below else list(self._thin())
        return self._chain_records(contents)

    def _empty(self) -> tuple[RecordBody, KeptRange]:
        retired: list[RetiredFact] = []
        hash_there, present = b"", 0
        for _, page in self._old:
            retired += page.retired
            if page.chunk is not None:
                retired += self._retire(page.chunk)
                hash_there, present = page.chunk.hash, present + page.chunk.facts
        first, last = self._old[0][0].first, self._old[-1][0].last
        record = Truncated(floor=last, hash=hash_there, dropped=present)
        return record, KeptRange(first=first, last=last, chunk=None, retired=tuple(retired))

    def _thin(self) -> Iterator[tuple[RecordBody, KeptRange]]:
        for segment, page in self._old:
            if page.chunk is None:
                continue
            retired = self._retire(page.chunk)
            if retired:
                rest, record = thin_chunk(page.chunk, self._plan.keeps)
                kept = (*page.retired, *retired)
                yield (
                    record,
                    KeptRange(first=segment.first, last=segment.last, chunk=rest, retired=kept),
                )

    def _retire(self, chunk: Chunk) -> list[RetiredFact]:
        gone = list_removed(chunk, self._plan.keeps)
        lines = zip(chunk.places(), chunk.lines(), strict=True)
        self.freed += sum(len(line) + 1 for seq, line in lines if not self._plan.keeps(seq))
        self.removed += len(gone)
        return [RetiredFact(each.id, each.seq, each.sequence, each.digest) for each in gone]

    def _chain_records(self, contents: list[tuple[RecordBody, KeptRange]]) -> list[ItemBody]:
        state = self._mirror.state
        prev, item_bodies = state.hash, list[ItemBody]()
        for content, kept in contents:
            record: Record = build_record(state.head, prev, content)
            prev = record.hash
            item_bodies += (record, kept)
        return item_bodies


class _Facts:
    """The facts of a journal for a planner in another thread, a few segments at a time."""

    def __init__(self, mirror: StreamView, head: int) -> None:
        self._mirror = mirror
        self._head = head
        self._loop = asyncio.get_running_loop()

    def iterate_facts(self) -> Facts:
        after = self._mirror.state.base
        while after < self._head:
            fetch = self._load_pages(after)
            last, pages = asyncio.run_coroutine_threadsafe(fetch, self._loop).result()
            for page in pages:
                if page.chunk is not None:
                    lines = map(decode_line, page.chunk.lines())
                    yield from zip(page.chunk.places(), lines, strict=True)
            after = last

    async def _load_pages(self, after: int) -> tuple[int, list[SegmentPage]]:
        segments = self._mirror.state.directory.list_after(after, self._head, STEP)
        return segments[-1].last, await self._mirror.load_pages(segments)


def _raise_floor(record: CatalogueRecord, plan: RemovalPlan) -> CatalogueRecord:
    floor = plan.thread_floors.get(record.thread_id, record.floor)
    return msgspec.structs.replace(record, floor=max(floor, record.floor))


"""Segments that are fetched at once."""

THREADS: Final = 1_000
"""Threads of one item."""


async def restore(mirror: StreamView, restoration: Restoration) -> Cursor:
    """Write what is given; the journal must be empty until then."""
    async with mirror.lock:
        await mirror.catch_up()
        ensure_empty(mirror.state.head)
        for piece in cut_pieces(restoration):
            await _write(mirror, piece)
        threads = iter(restoration.threads)
        records = tuple(islice(threads, THREADS))
        while records or restoration.floor > mirror.state.floor:
            await _write_items(
                mirror, mirror.state.head, [RaisedFloors(floor=restoration.floor, threads=records)]
            )
            records = tuple(islice(threads, THREADS))
    return Cursor(mirror.state.epoch, mirror.state.head)


async def stream_removed(mirror: StreamView) -> AsyncIterator[RemovedFact]:
    """What is kept of each removed fact, in order."""
    after, head = 0, mirror.state.head
    while after < head:
        segments = mirror.state.directory.list_after(after, head, STEP)
        for page in await mirror.load_pages(segments):
            for each in sorted(page.retired, key=lambda each: each.seq):
                yield RemovedFact(each.seq, each.id, each.sequence, each.digest)
        after = segments[-1].last


async def _write(mirror: StreamView, piece: RestorePiece) -> None:
    ids = list(piece.ids())
    ensure_new(await mirror.find_existing(ids, locked=True))
    chunk = piece.chunk
    if chunk is not None and chunk.seqs is None and not piece.removed:
        await _write_items(mirror, piece.first - 1, [chunk, *piece.records])
        return
    retired = tuple(
        RetiredFact(each.id, each.seq, each.sequence, each.digest) for each in piece.removed
    )
    kept = KeptRange(first=piece.first, last=piece.last, chunk=chunk, retired=retired)
    await _write_items(mirror, piece.first - 1, [kept, *piece.records])


async def _write_items(mirror: StreamView, head: int, item_bodies: Sequence[ItemBody]) -> None:
    """Write items on a journal that ends at `head`; another writer must not have come between."""

    async def build() -> Sequence[ItemBody]:
        if mirror.state.head != head:
            ensure_empty(mirror.state.head)
        return item_bodies

    await mirror.write(build)
