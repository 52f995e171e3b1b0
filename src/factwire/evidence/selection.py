"""Which facts of a journal go into a pack, and reading them in the order of their seqs."""

import heapq
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Final, NamedTuple, cast

from factwire.facts import Fact
from factwire.journal import Filter, Journal, Stretch
from factwire.journal.chunk import decode_line
from factwire.journal.filter import thread_of

_STREAMS: Final = 16
"""Threads that are read each by its own filter; of more, the whole journal is read once."""

_PAGE: Final = 500


class Stored(NamedTuple):
    """A fact, its place and its bytes."""

    seq: int
    line: bytes
    fact: Fact


async def threads_of_project(journal: Journal, project: str) -> list[str]:
    """The threads of a project."""
    found: list[str] = []
    page = await journal.threads(project=project, limit=_PAGE)
    while page.threads:
        found += [row.thread_id for row in page.threads]
        if page.after is None:
            break
        page = await journal.threads(project=project, after=page.after, limit=_PAGE)
    return sorted(found)


async def selected(
    journal: Journal, threads: Sequence[str] | None, last: int
) -> AsyncGenerator[Stored]:
    """The facts of some threads, or of all, up to a seq."""
    if threads is None or len(threads) > _STREAMS:
        wanted = None if threads is None else frozenset(threads)
        async with aclosing(_read(journal, None, last)) as rows:
            async for stored in rows:
                if wanted is None or thread_of(stored.fact) in wanted:
                    yield stored
        return
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(aclosing(_read(journal, Filter(thread=name), last)))
            for name in sorted(set(threads))
        ]
        async with aclosing(_merged(streams)) as rows:
            async for stored in rows:
                yield stored


async def _read(journal: Journal, wanted: Filter | None, last: int) -> AsyncGenerator[Stored]:
    if not last:
        return
    # It may be left before its end, and shall not outlive the journal.
    found = cast("AsyncGenerator[Stretch]", journal.read(filter=wanted))
    async with aclosing(found) as stretches:
        async for stretch in stretches:
            for seq, line in zip(stretch.seqs, stretch.lines(), strict=True):
                if seq > last:
                    return
                yield Stored(seq, line, decode_line(line))
            if stretch.last >= last:
                return


async def _merged(streams: list[AsyncGenerator[Stored]]) -> AsyncGenerator[Stored]:
    """Several streams as one, of each of which one fact is held."""
    waiting: list[tuple[int, int, Stored]] = []
    for index, stream in enumerate(streams):
        await _hold(waiting, index, stream)
    while waiting:
        _, index, stored = heapq.heappop(waiting)
        yield stored
        await _hold(waiting, index, streams[index])


async def _hold(
    waiting: list[tuple[int, int, Stored]], index: int, stream: AsyncGenerator[Stored]
) -> None:
    found = await anext(stream, None)
    if found is not None:
        # A seq stands once in a journal, so nothing behind it is ever compared.
        heapq.heappush(waiting, (found.seq, index, found))
