"""Carrying out retention and compaction on a stream whose messages never change.

First the floors are published, so that no reader resumes into a hole. Then each range is written
anew, its record of the chain beside it in the same atomic batch, and only then is the old item
deleted. Killed in between, the journal is whole: either version of a range says the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import Record, RecordBody, Truncated, record_of
from factwire.journal.chunk import Chunk, decode_line, thinned
from factwire.journal.cursor import Cursor
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.merging import merge_small
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.pages import Page
from factwire.journal.nats.wire import Floors, Kept, Retired, Said
from factwire.journal.policy import Removal
from factwire.journal.removal import Holds, Plan
from factwire.journal.removed import removed_of

STEP: Final = 64
"""Segments that are rewritten in one atomic batch."""

STEP_BYTES: Final = 8 * 1024 * 1024

Facts = Iterator[tuple[int, Fact]]
MakePlan = Callable[[Facts, Holds, int, int], Plan]
"""(facts, holds, head, floor) → plan."""


class Remover:
    """Retention and compaction of one journal, one at a time."""

    def __init__(
        self,
        mirror: Mirror,
        positions: Callable[[], dict[str, int]],
        elsewhere: Callable[[], Awaitable[dict[str, int]]],
    ) -> None:
        self._mirror = mirror
        self._positions = positions
        self._elsewhere = elsewhere
        self._one = asyncio.Lock()

    async def run(self, make: MakePlan) -> Removal:
        """Remove what a plan says."""
        async with self._one:
            plan = await self._settle(make)
            truncated = await self._steps(plan, self._below(plan))
            thinned_out = await self._steps(plan, self._above(plan))
            return Removal(
                removed=truncated[0] + thinned_out[0],
                freed=truncated[1] + thinned_out[1],
                floor=Cursor(self._mirror.state.epoch, self._mirror.state.floor),
                held_by=plan.held_by,
            )

    async def merge(self) -> None:
        """Merge small chunks, of which nothing goes."""
        async with self._one:
            await self._mirror.refresh()
            await merge_small(self._mirror)

    async def _settle(self, make: MakePlan) -> Plan:
        """A plan whose floors are published; made again when a reader came in its way."""
        while True:
            elsewhere = await self._elsewhere()
            await self._mirror.refresh()
            here = self._positions()
            state = self._mirror.state
            head, floor = state.head, state.floor
            holds = state.holds({**elsewhere, **here})
            facts = _Facts(self._mirror, head)
            plan = await asyncio.to_thread(make, facts.walk(), holds, head, floor)
            extent = max((plan.floor, *plan.drop))
            async with self._mirror.lock:
                if self._unhindered(here, extent):
                    await self._publish_floors(plan, extent)
                    return plan

    def _unhindered(self, before: dict[str, int], extent: int) -> bool:
        """Whether no reader that was not asked yet needs what would go."""
        return all(
            at >= extent or before.get(name, extent) <= at for name, at in self._positions().items()
        )

    async def _publish_floors(self, plan: Plan, extent: int) -> None:
        state = self._mirror.state
        if plan.floor <= state.floor and not plan.drop and not plan.thread_floors:
            return

        async def build() -> Sequence[Said]:
            # What is rewritten goes on to the end of its segment, and so do the threads in it.
            reach = state.directory.holding(extent).last if extent else 0
            rows = (each for each in state.threads.values() if each.first_seq <= reach)
            threads = tuple(_with_floor(each, plan) for each in rows)
            return [Floors(floor=plan.floor, threads=threads)]

        await self._mirror.write(build)

    def _below(self, plan: Plan) -> Iterator[Segment]:
        """Segments that go as a whole, taken from the directory as it then is."""
        while found := self._mirror.state.directory.after(self._mirror.state.base, plan.floor, 1):
            if found[0].last > plan.floor:
                return
            yield found[0]

    def _above(self, plan: Plan) -> Iterator[Segment]:
        """Segments of which something goes."""
        directory, at = self._mirror.state.directory, self._mirror.state.base
        going = sorted({*plan.drop, plan.floor} if plan.floor > at else plan.drop)
        for seq in going:
            if seq > at:
                segment = directory.holding(seq)
                at = segment.last
                yield segment

    async def _steps(self, plan: Plan, segments: Iterator[Segment]) -> tuple[int, int]:
        removed = freed = 0
        while step := _next_step(segments, self._mirror, plan):
            counts = await self._step(plan, step)
            removed, freed = removed + counts[0], freed + counts[1]
        return removed, freed

    async def _step(self, plan: Plan, segments: list[Segment]) -> tuple[int, int]:
        step = _Step(plan, self._mirror, segments)
        async with self._mirror.lock:
            await self._mirror.write(step.build)
        await step.clean_up()
        return step.removed, step.freed


def _next_step(segments: Iterator[Segment], mirror: Mirror, plan: Plan) -> list[Segment]:
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
    found = mirror.state.directory.after(first.first - 1, plan.floor, STEP)
    return [each for each in found if each.last <= plan.floor]


class _Step:
    """Some segments on their way out."""

    def __init__(self, plan: Plan, mirror: Mirror, segments: list[Segment]) -> None:
        self.removed = 0
        self.freed = 0
        self._plan = plan
        self._mirror = mirror
        self._firsts = [each.first for each in segments]
        self._old: list[tuple[Segment, Page]] = []

    async def build(self) -> Sequence[Said]:
        """Records and what is left, on the state as it is now."""
        directory = self._mirror.state.directory
        segments = [directory.holding(first) for first in self._firsts]
        # What another process emptied meanwhile is a part of something larger now.
        segments = [each for each in segments if each.first in set(self._firsts)]
        pages = await self._mirror.pages_of(segments, locked=True)
        self._old = list(zip(segments, pages, strict=True))
        self.removed = self.freed = 0
        below = bool(segments) and segments[-1].last <= self._plan.floor
        contents = [self._empty()] if below else list(self._thin())
        return self._chained(contents)

    async def clean_up(self) -> None:
        """Delete the items that were replaced."""
        log = self._mirror.log
        whole = [segment for segment, page in self._old if _is_original(page)]
        if len(whole) == len(self._old) > 1 and self._old[-1][0].last <= self._plan.floor:
            # Chunks stand in the stream in their order, so all before these are replaced too.
            await log.purge("chunk", whole[-1].at + whole[-1].parts)
        else:
            for segment, _ in self._old:
                if self._mirror.state.directory.holding(segment.first).at != segment.at:
                    await log.delete(segment.at, segment.parts)

    def _empty(self) -> tuple[RecordBody, Kept]:
        retired: list[Retired] = []
        hash_there, present = b"", 0
        for _, page in self._old:
            retired += page.retired
            if page.chunk is not None:
                retired += self._retire(page.chunk)
                hash_there, present = page.chunk.hash, present + page.chunk.facts
        first, last = self._old[0][0].first, self._old[-1][0].last
        record = Truncated(floor=last, hash=hash_there, dropped=present)
        return record, Kept(first=first, last=last, chunk=None, retired=tuple(retired))

    def _thin(self) -> Iterator[tuple[RecordBody, Kept]]:
        for segment, page in self._old:
            if page.chunk is None:
                continue
            retired = self._retire(page.chunk)
            if retired:
                rest, record = thinned(page.chunk, self._plan.keeps)
                kept = (*page.retired, *retired)
                yield record, Kept(first=segment.first, last=segment.last, chunk=rest, retired=kept)

    def _retire(self, chunk: Chunk) -> list[Retired]:
        gone = removed_of(chunk, self._plan.keeps)
        lines = zip(chunk.places(), chunk.lines(), strict=True)
        self.freed += sum(len(line) + 1 for seq, line in lines if not self._plan.keeps(seq))
        self.removed += len(gone)
        return [Retired(each.id, each.seq, each.sequence, each.digest) for each in gone]

    def _chained(self, contents: list[tuple[RecordBody, Kept]]) -> list[Said]:
        state = self._mirror.state
        prev, said = state.hash, list[Said]()
        for content, kept in contents:
            record: Record = record_of(state.head, prev, content)
            prev = record.hash
            said += (record, kept)
        return said


class _Facts:
    """The facts of a journal for a planner in another thread, a few segments at a time."""

    def __init__(self, mirror: Mirror, head: int) -> None:
        self._mirror = mirror
        self._head = head
        self._loop = asyncio.get_running_loop()

    def walk(self) -> Facts:
        after = self._mirror.state.base
        while after < self._head:
            fetch = self._pages(after)
            last, pages = asyncio.run_coroutine_threadsafe(fetch, self._loop).result()
            for page in pages:
                if page.chunk is not None:
                    lines = map(decode_line, page.chunk.lines())
                    yield from zip(page.chunk.places(), lines, strict=True)
            after = last

    async def _pages(self, after: int) -> tuple[int, list[Page]]:
        segments = self._mirror.state.directory.after(after, self._head, STEP)
        return segments[-1].last, await self._mirror.pages_of(segments)


def _is_original(page: Page) -> bool:
    return page.chunk is not None and page.chunk.seqs is None


def _with_floor(record: ThreadRecord, plan: Plan) -> ThreadRecord:
    floor = plan.thread_floors.get(record.thread_id, record.floor)
    return msgspec.structs.replace(record, floor=max(floor, record.floor))
