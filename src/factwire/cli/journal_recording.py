"""A recording in a journal, read by filter: a thread and its children, and nothing of the others.

The catalogue says which threads there are and the first fact of each says whose child it is, so
that finding a family costs a look at each thread that was active since the family began.
"""

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Final, cast

from factwire.cli.recording import LISTED, Placed
from factwire.cli.threads import TEAMMATE_CLASSES, Family, Kin, Kinship, named_children
from factwire.facts import Fact
from factwire.journal import Cursor, Filter, Journal, Stretch, Thread

_PAGE: Final = 100

Row = tuple[int, Fact]
"""A seq and its fact."""


class JournalRecording:
    """The facts of one journal, up to the head that it had at first."""

    name = "the journal"
    unit = "seq"
    kept = True

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._head: Cursor | None = None

    async def kinship(self, thread: str | None) -> Kinship:
        await self._bound()
        found = Kinship()
        began = 0
        if thread is not None:
            row = await self._journal.thread(thread)
            if row is None:
                return found
            found.add(await self._kin(row))
            began = row.first_seq
        async for page in self._pages():
            for kin in await asyncio.gather(*map(self._kin, page)):
                found.add(kin)
            enough = thread is None and len(found.roots()) > LISTED
            if enough or page[-1].last_seq < began:
                break
        return found

    async def family(self, kinship: Kinship, thread: str | None) -> Family:
        family = kinship.family(thread)
        threads = (await self._journal.stats()).threads
        alone = len(family.members) == threads
        return Family(thread_id=thread, members=family.members, alone=alone)

    async def facts(self, family: Family, at: int | None = None) -> AsyncIterator[Placed]:
        head = await self._bound()
        last = head.seq if at is None else min(at, head.seq)
        if family.alone:
            filters: list[Filter | None] = [None]
        else:
            filters = [Filter(thread=thread) for thread in sorted(family.members)]
        async with AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context(aclosing(self._read(wanted, last)))
                for wanted in filters
            ]
            async with aclosing(_merged(streams)) as merged:
                async for seq, fact in merged:
                    yield Placed(seq, fact)

    async def _bound(self) -> Cursor:
        if self._head is None:
            self._head = await self._journal.head()
        return self._head

    async def _pages(self) -> AsyncIterator[tuple[Thread, ...]]:
        page = await self._journal.threads(limit=_PAGE)
        while page.threads:
            yield page.threads
            if page.after is None:
                return
            page = await self._journal.threads(after=page.after, limit=_PAGE)

    async def _kin(self, row: Thread) -> Kin:
        kin = Kin(thread_id=row.thread_id, title=row.title, facts=row.fact_count)
        own = Filter(thread=row.thread_id)
        async for stretch in self._journal.read(filter=own, limit=1):
            for _, fact in stretch.facts():
                kin.parent = fact.parent_thread_id
        teammates = Filter(thread=row.thread_id, classes=TEAMMATE_CLASSES)
        async for stretch in self._journal.read(filter=teammates):
            for _, fact in stretch.facts():
                kin.named.update(named_children(fact))
        return kin

    async def _read(self, wanted: Filter | None, last: int) -> AsyncGenerator[Row]:
        # It may be left before its end, and shall not outlive the journal.
        found = cast("AsyncGenerator[Stretch]", self._journal.read(filter=wanted))
        async with aclosing(found) as stretches:
            async for stretch in stretches:
                for seq, fact in stretch.facts():
                    if seq > last:
                        return
                    yield seq, fact
                if stretch.last >= last:
                    return


async def _merged(streams: list[AsyncGenerator[Row]]) -> AsyncGenerator[Row]:
    """Facts of several streams in the order of their seqs, one of each stream held at a time."""
    waiting: list[tuple[int, int, Fact]] = []
    for index, stream in enumerate(streams):
        await _hold(waiting, index, stream)
    while waiting:
        seq, index, fact = heapq.heappop(waiting)
        yield seq, fact
        await _hold(waiting, index, streams[index])


async def _hold(
    waiting: list[tuple[int, int, Fact]], index: int, stream: AsyncGenerator[Row]
) -> None:
    found = await anext(stream, None)
    if found is not None:
        # A seq stands once in a journal, so facts themselves are never compared.
        heapq.heappush(waiting, (found[0], index, found[1]))
