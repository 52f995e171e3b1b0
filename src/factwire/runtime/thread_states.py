"""Threads as the journal has them: the last checkpoint, else the first fact, then the facts since.

This is the one place that restores and replays a thread from a journal. `load` gives a projection
of its own to a caller who will change it. `now` and `at` give shared ones, kept for a while and
brought along with the facts since. A moment of the past is projected from the nearest checkpoint
before it, or from the moment that was asked for last: a walk through a thread costs each fact once.

A `JournalFold` does the same for the few facts of a class in the whole journal: what was folded is
saved from time to time, so that whoever needs it next reads only what came since.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Final, Protocol, TypeVar, cast

import msgspec

from factwire.facts import Fact
from factwire.journal import Cursor, CursorError, FactBatch, Filter, Journal, JournalError
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.projection import Projection, UnreadableCheckpoint
from factwire.runtime.limits import (
    ANCHOR_FACTS,
    FOLD_SAVE_FACTS,
    LIVE_STATES,
    PAST_STATES,
    REPLAY_FACTS,
    REPLAY_SECONDS,
)

Derived = TypeVar("Derived")


class ProjectedThread(msgspec.Struct, frozen=True):
    """A projection, and the cursor that it is true as of."""

    projection: Projection
    cursor: Cursor


class StateAnchor(msgspec.Struct, frozen=True):
    """A place on the way to a moment, from which steps back are short."""

    cursor: Cursor
    data: bytes


class ThreadStates:
    """Projections of a journal's threads, those asked for last kept."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._live: OrderedDict[str, ProjectedThread] = OrderedDict()
        self._past: OrderedDict[str, ProjectedThread] = OrderedDict()
        self._anchors: dict[str, StateAnchor] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self, thread_id: str) -> ProjectedThread:
        """A thread with all that the journal has of it; the projection is the caller's own."""
        return await self._catch_up(thread_id, await self._restore(thread_id))

    async def now(self, thread_id: str) -> ProjectedThread:
        """A thread as it is now; its projection may move on once somebody else asks."""
        async with self._locks[thread_id]:
            return await self._advance_to_now(thread_id)

    async def derive(
        self, thread_id: str, cursor: Cursor | None, work: Callable[[Projection], Derived]
    ) -> tuple[Cursor, Derived]:
        """What `work` makes of a thread as it is now or was at a cursor. It runs beside the event
        loop, because a long thread takes a while, and the projection does not move on meanwhile.
        Raises `CursorError`.
        """
        if cursor is not None:
            await self._ensure_valid(thread_id, cursor)
        async with self._locks[thread_id]:
            if cursor is None:
                seen = await self._advance_to_now(thread_id)
            else:
                seen = await self._go_to(thread_id, cursor)
            return seen.cursor, await run_disk_work(work, seen.projection)

    async def _advance_to_now(self, thread_id: str) -> ProjectedThread:
        known = self._live.pop(thread_id, None) or await self._restore(thread_id)
        latest = await self._catch_up(thread_id, known, await self._journal.head())
        self._live[thread_id] = latest
        if len(self._live) > LIVE_STATES:
            forgotten, _ = self._live.popitem(last=False)
            self._locks.pop(forgotten, None)
        return latest

    async def at(self, thread_id: str, cursor: Cursor | None) -> ProjectedThread:
        """A thread as it was at a cursor; its projection may move on once somebody else asks.
        Raises `CursorError`.
        """
        if cursor is None:
            return await self.now(thread_id)
        await self._ensure_valid(thread_id, cursor)
        async with self._locks[thread_id]:
            return await self._go_to(thread_id, cursor)

    async def _go_to(self, thread_id: str, cursor: Cursor) -> ProjectedThread:
        known = self._past.pop(thread_id, None)
        if known is None or not _leads_to(known.cursor, cursor):
            known = await self._restore_anchor(thread_id, cursor)
        if known is None or cursor.seq - known.cursor.seq > REPLAY_FACTS:
            saved = await self._restore(thread_id, cursor)
            known = saved if known is None else max(known, saved, key=_position)
        known = await self._advance_to_anchor(thread_id, known, cursor)
        moment = await self._catch_up(thread_id, known, cursor)
        self._past[thread_id] = moment
        if len(self._past) > PAST_STATES:
            forgotten, _ = self._past.popitem(last=False)
            self._anchors.pop(forgotten, None)
            if forgotten not in self._live:
                self._locks.pop(forgotten, None)
        return moment

    async def _restore_anchor(self, thread_id: str, until: Cursor) -> ProjectedThread | None:
        anchor = self._anchors.get(thread_id)
        if anchor is None or not _leads_to(anchor.cursor, until):
            return None
        projection = await run_disk_work(Projection.restore, anchor.data)
        return ProjectedThread(projection, anchor.cursor)

    async def _advance_to_anchor(
        self, thread_id: str, known: ProjectedThread, until: Cursor
    ) -> ProjectedThread:
        """A thread on its way to a moment; where that is far, an anchor lies near its end."""
        far = until.seq - known.cursor.seq
        if far <= ANCHOR_FACTS:
            return known
        place = Cursor(until.epoch, until.seq - max(ANCHOR_FACTS // 2, far // 16))
        near = await self._catch_up(thread_id, known, place)
        data = await run_disk_work(near.projection.checkpoint)
        self._anchors[thread_id] = StateAnchor(near.cursor, data)
        return near

    async def forget(self, thread_id: str) -> None:
        """Keep nothing of a thread of which facts were removed."""
        async with self._locks[thread_id]:
            self._live.pop(thread_id, None)
            self._past.pop(thread_id, None)
            self._anchors.pop(thread_id, None)

    async def _ensure_valid(self, thread_id: str, cursor: Cursor) -> None:
        """Raise what is wrong with a cursor for this thread, before anything is made of it."""
        async for _ in self._journal.read(cursor, filter=Filter(thread=thread_id), limit=1):
            return

    async def _restore(self, thread_id: str, at: Cursor | None = None) -> ProjectedThread:
        """The last checkpoint of a thread, up to a cursor if one is named; else nothing yet."""
        saved = await self._journal.snapshot(thread_id, at=at)
        if saved is not None:
            try:
                projection = await run_disk_work(Projection.restore, saved.data)
                return ProjectedThread(projection, saved.cursor)
            except UnreadableCheckpoint:
                # One of another version; the facts are what counts.
                pass
        head = await self._journal.head()
        return ProjectedThread(Projection(thread_id), Cursor(head.epoch, 0))

    async def _catch_up(
        self, thread_id: str, known: ProjectedThread, until: Cursor | None = None
    ) -> ProjectedThread:
        """Replay the facts since, up to a cursor or all that there are. All means what the journal
        has when it is read, not when it was asked for its head: whoever goes on writing the thread
        would number the facts between the two again.
        """
        projection, reached = known.projection, known.cursor
        saved = projection.state.hydration.event_count
        if until is not None and reached.seq >= until.seq:
            return known
        reading = self._journal.read(
            reached if reached.seq else None, filter=Filter(thread=thread_id)
        )
        async with aclosing(cast("AsyncGenerator[FactBatch]", reading)) as batches:
            pause_at = time.monotonic() + REPLAY_SECONDS
            async for batch in batches:
                for seq, fact in batch.facts():
                    if until is not None and seq > until.seq:
                        return ProjectedThread(projection, until)
                    projection.replay(fact)
                    if time.monotonic() >= pause_at:
                        # A long thread must not keep the loop from the others.
                        await asyncio.sleep(0)
                        pause_at = time.monotonic() + REPLAY_SECONDS
                reached = batch.cursor
                count = projection.state.hydration.event_count
                if count - saved >= max(REPLAY_FACTS, count // 4):
                    await self._save(thread_id, ProjectedThread(projection, reached))
                    saved = count
                if until is not None and reached.seq >= until.seq:
                    break
        return ProjectedThread(projection, until or reached)

    async def _save(self, thread_id: str, reached: ProjectedThread) -> None:
        """Save a checkpoint on a long way, so that nobody goes it twice; a journal that cannot be
        written to now is no reason not to read it.
        """
        data = await run_disk_work(reached.projection.checkpoint)
        with suppress(JournalError):
            await self._journal.save_snapshot(thread_id, reached.cursor, data)


def _position(state: ProjectedThread) -> int:
    return state.cursor.seq


def _leads_to(cursor: Cursor, until: Cursor) -> bool:
    return cursor.epoch == until.epoch and cursor.seq <= until.seq


_OWNER: Final = "factwire.runtime"
"""What the snapshots are kept under, where those of a thread have its id."""


class Fold(Protocol):
    """What is folded; `restore` raises `ValueError` for what another version saved."""

    def note(self, fact: Fact) -> None: ...

    def save(self) -> bytes: ...

    def restore(self, data: bytes) -> None: ...

    def clear(self) -> None: ...


class JournalFold:
    """Keeps a fold up to date with the facts of some classes."""

    def __init__(self, journal: Journal, kind: str, classes: tuple[str, ...], fold: Fold) -> None:
        self._journal = journal
        self._kind = kind
        self._filter = Filter(classes=classes)
        self._fold = fold
        self._read_to: Cursor | None = None
        self._saved_at = 0
        self._is_restored = False

    async def refresh(self) -> None:
        """Take in what was written since."""
        if not self._is_restored:
            await self._restore()
        try:
            await self._read()
        except CursorError:
            # What was read last has been taken out since; from the oldest on, nothing is missed.
            self._fold.clear()
            self._read_to = None
            await self._read()
        await self._save()

    async def _restore(self) -> None:
        saved = await self._journal.snapshot(_OWNER, kind=self._kind)
        self._is_restored = True
        if saved is None:
            return
        try:
            self._fold.restore(saved.data)
        except ValueError:
            self._fold.clear()
            return
        self._read_to = saved.cursor
        self._saved_at = saved.cursor.seq

    async def _read(self) -> None:
        async for batch in self._journal.read(self._read_to, filter=self._filter):
            for _, fact in batch.facts():
                self._fold.note(fact)
            self._read_to = batch.cursor
            # A long read that is cut short goes on from here.
            await self._save()

    async def _save(self) -> None:
        reached = self._read_to
        if reached is None or reached.seq - self._saved_at < FOLD_SAVE_FACTS:
            return
        # It only spares work later; a journal that takes nothing now is written to by others.
        with suppress(JournalError):
            await self._journal.save_snapshot(_OWNER, reached, self._fold.save(), kind=self._kind)
            self._saved_at = reached.seq
