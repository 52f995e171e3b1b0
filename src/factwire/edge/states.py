"""States: the projection of a thread as of a cursor, for plain reads.

What was projected is kept for a while and brought along with the facts since. A moment of the past
is projected from the nearest checkpoint before it, or from the moment that was asked for last: a
walk through a thread costs each fact once. On a long way there an anchor is dropped a little before
the end, so that steps back begin there and not at the beginning.
"""

import asyncio
from collections import OrderedDict, defaultdict

import msgspec

from factwire.edge.limits import ANCHOR_FACTS, LIVE_STATES, PAST_STATES
from factwire.edge.streams.cursors import read_cursor
from factwire.journal import Cursor, Filter, Journal
from factwire.projection import Projection, UnreadableCheckpoint


class Seen(msgspec.Struct, frozen=True):
    """A projection, and the cursor that it is true as of."""

    projection: Projection
    cursor: Cursor


class Anchor(msgspec.Struct, frozen=True):
    """A place on the way to a moment, from which steps back are short."""

    cursor: Cursor
    data: bytes


class States:
    """Projections by thread, those asked for last kept."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._past: OrderedDict[str, Seen] = OrderedDict()
        self._anchors: dict[str, Anchor] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def now(self, thread_id: str) -> Seen:
        """A thread as it is now; its projection may move on once somebody else asks."""
        async with self._locks[thread_id]:
            known = self._seen.pop(thread_id, None)
            seen = await self._brought_along(thread_id, known or await self._start(thread_id))
            self._seen[thread_id] = seen
            if len(self._seen) > LIVE_STATES:
                forgotten, _ = self._seen.popitem(last=False)
                self._locks.pop(forgotten, None)
            return seen

    async def at(self, thread_id: str, cursor: str | Cursor | None) -> Seen:
        """A thread as it was at a cursor, an event or a fact; its projection may move on once
        somebody else asks. Raises `CursorError`.
        """
        if cursor is None:
            return await self.now(thread_id)
        until = await read_cursor(self._journal, cursor) if isinstance(cursor, str) else cursor
        await self._ensure_known(until)
        async with self._locks[thread_id]:
            known = self._past.pop(thread_id, None)
            if known is None or not _leads_to(known.cursor, until):
                known = self._anchored(thread_id, until) or await self._start(thread_id, until)
            known = await self._dropping_anchor(thread_id, known, until)
            seen = await self._brought_along(thread_id, known, until)
            self._past[thread_id] = seen
            if len(self._past) > PAST_STATES:
                forgotten, _ = self._past.popitem(last=False)
                self._anchors.pop(forgotten, None)
                if forgotten not in self._seen:
                    self._locks.pop(forgotten, None)
            return seen

    def _anchored(self, thread_id: str, until: Cursor) -> Seen | None:
        anchor = self._anchors.get(thread_id)
        if anchor is None or not _leads_to(anchor.cursor, until):
            return None
        return Seen(Projection.restore(anchor.data), anchor.cursor)

    async def _dropping_anchor(self, thread_id: str, known: Seen, until: Cursor) -> Seen:
        """A thread on its way to a moment; where that is far, an anchor lies near its end."""
        far = until.seq - known.cursor.seq
        if far <= ANCHOR_FACTS:
            return known
        place = Cursor(until.epoch, until.seq - max(ANCHOR_FACTS // 2, far // 16))
        near = await self._brought_along(thread_id, known, place)
        data = await asyncio.to_thread(near.projection.checkpoint)
        self._anchors[thread_id] = Anchor(near.cursor, data)
        return near

    async def _ensure_known(self, until: Cursor) -> None:
        """Raise what is wrong with a cursor, before anything is made of it."""
        async for _ in self._journal.read(until, limit=1):
            return

    async def _start(self, thread_id: str, at: Cursor | None = None) -> Seen:
        saved = await self._journal.snapshot(thread_id, at=at)
        if saved is not None:
            try:
                return Seen(Projection.restore(saved.data), saved.cursor)
            except UnreadableCheckpoint:
                # One of another version; the facts are what counts.
                pass
        head = await self._journal.head()
        return Seen(Projection(thread_id), Cursor(head.epoch, 0))

    async def _brought_along(self, thread_id: str, seen: Seen, until: Cursor | None = None) -> Seen:
        projection, cursor = seen.projection, seen.cursor
        after = cursor if cursor.seq else None
        head = until or await self._journal.head()
        if cursor.seq >= head.seq:
            return seen
        async for stretch in self._journal.read(after, filter=Filter(thread=thread_id)):
            for seq, fact in stretch.facts():
                if seq > head.seq:
                    return Seen(projection, head)
                projection.replay(fact)
            cursor = stretch.cursor
            if cursor.seq >= head.seq:
                break
        return Seen(projection, head if until else max(cursor, head, key=lambda each: each.seq))


def _leads_to(cursor: Cursor, until: Cursor) -> bool:
    return cursor.epoch == until.epoch and cursor.seq <= until.seq
