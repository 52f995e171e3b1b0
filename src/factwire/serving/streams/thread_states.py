"""Projections of threads: as of a cursor for plain reads, and live for those who watch.

What was projected is kept for a while and brought along with the facts since. A moment of the past
is projected from the nearest checkpoint before it, or from the moment that was asked for last: a
walk through a thread costs each fact once. A watched thread is projected once for all who watch
it, opened by its first viewer and let go a while after the last one left. A viewer gets a snapshot
and then changes; the newest are kept, so that a viewer who comes again goes on without a snapshot;
where that cannot be exact, it gets a new one.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Final, cast

import msgspec

from factwire.journal import Cursor, FactBatch, Filter, Journal
from factwire.projection import Projection, UnreadableCheckpoint, fold_changes
from factwire.serving.limits import (
    ANCHOR_FACTS,
    LIVE_STATES,
    PAST_STATES,
    PIECE_BYTES,
    PROJECTION_LINGER_SECONDS,
    PROJECTION_RING_BYTES,
)
from factwire.serving.streams.catch_up import PacedWriter
from factwire.serving.streams.channel import Channel
from factwire.serving.streams.frame_encoder import Wire, frame_message, text_fragments
from factwire.serving.streams.journal_feed import DecodedBatch, FeedStopped, JournalFeed
from factwire.serving.streams.stream_query import read_cursor
from factwire.serving.streams.stream_sinks import FAULT, RESTART, SLOW, StreamSink


class ProjectedThread(msgspec.Struct, frozen=True):
    """A projection, and the cursor that it is true as of."""

    projection: Projection
    cursor: Cursor


class StateAnchor(msgspec.Struct, frozen=True):
    """A place on the way to a moment, from which steps back are short."""

    cursor: Cursor
    data: bytes


class ThreadStates:
    """Projections by thread, those asked for last kept."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: OrderedDict[str, ProjectedThread] = OrderedDict()
        self._past: OrderedDict[str, ProjectedThread] = OrderedDict()
        self._anchors: dict[str, StateAnchor] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def now(self, thread_id: str) -> ProjectedThread:
        """A thread as it is now; its projection may move on once somebody else asks."""
        async with self._locks[thread_id]:
            known = self._seen.pop(thread_id, None)
            seen = await self._catch_up(thread_id, known or await self._start(thread_id))
            self._seen[thread_id] = seen
            if len(self._seen) > LIVE_STATES:
                forgotten, _ = self._seen.popitem(last=False)
                self._locks.pop(forgotten, None)
            return seen

    async def at(self, thread_id: str, cursor: str | Cursor | None) -> ProjectedThread:
        """A thread as it was at a cursor, an event or a fact; its projection may move on once
        somebody else asks. Raises `CursorError`.
        """
        if cursor is None:
            return await self.now(thread_id)
        until = await read_cursor(self._journal, cursor) if isinstance(cursor, str) else cursor
        await self._ensure_valid(until)
        async with self._locks[thread_id]:
            known = self._past.pop(thread_id, None)
            if known is None or not _leads_to(known.cursor, until):
                known = self._restore_anchor(thread_id, until) or await self._start(
                    thread_id, until
                )
            known = await self._advance_to_anchor(thread_id, known, until)
            seen = await self._catch_up(thread_id, known, until)
            self._past[thread_id] = seen
            if len(self._past) > PAST_STATES:
                forgotten, _ = self._past.popitem(last=False)
                self._anchors.pop(forgotten, None)
                if forgotten not in self._seen:
                    self._locks.pop(forgotten, None)
            return seen

    def _restore_anchor(self, thread_id: str, until: Cursor) -> ProjectedThread | None:
        anchor = self._anchors.get(thread_id)
        if anchor is None or not _leads_to(anchor.cursor, until):
            return None
        return ProjectedThread(Projection.restore(anchor.data), anchor.cursor)

    async def _advance_to_anchor(
        self, thread_id: str, known: ProjectedThread, until: Cursor
    ) -> ProjectedThread:
        """A thread on its way to a moment; where that is far, an anchor lies near its end."""
        far = until.seq - known.cursor.seq
        if far <= ANCHOR_FACTS:
            return known
        place = Cursor(until.epoch, until.seq - max(ANCHOR_FACTS // 2, far // 16))
        near = await self._catch_up(thread_id, known, place)
        data = await asyncio.to_thread(near.projection.checkpoint)
        self._anchors[thread_id] = StateAnchor(near.cursor, data)
        return near

    async def _ensure_valid(self, until: Cursor) -> None:
        """Raise what is wrong with a cursor, before anything is made of it."""
        async for _ in self._journal.read(until, limit=1):
            return

    async def _start(self, thread_id: str, at: Cursor | None = None) -> ProjectedThread:
        saved = await self._journal.snapshot(thread_id, at=at)
        if saved is not None:
            try:
                return ProjectedThread(Projection.restore(saved.data), saved.cursor)
            except UnreadableCheckpoint:
                # One of another version; the facts are what counts.
                pass
        head = await self._journal.head()
        return ProjectedThread(Projection(thread_id), Cursor(head.epoch, 0))

    async def _catch_up(
        self, thread_id: str, seen: ProjectedThread, until: Cursor | None = None
    ) -> ProjectedThread:
        projection, cursor = seen.projection, seen.cursor
        after = cursor if cursor.seq else None
        head = until or await self._journal.head()
        if cursor.seq >= head.seq:
            return seen
        async for stretch in self._journal.read(after, filter=Filter(thread=thread_id)):
            for seq, fact in stretch.facts():
                if seq > head.seq:
                    return ProjectedThread(projection, head)
                projection.replay(fact)
            cursor = stretch.cursor
            if cursor.seq >= head.seq:
                break
        return ProjectedThread(
            projection, head if until else max(cursor, head, key=lambda each: each.seq)
        )


def _leads_to(cursor: Cursor, until: Cursor) -> bool:
    return cursor.epoch == until.epoch and cursor.seq <= until.seq


_encode: Final = msgspec.json.Encoder().encode


class EncodedDelta(msgspec.Struct, frozen=True, gc=False):
    """Changes by facts from `first` on; with them a state is true as of `cursor`."""

    first: int
    cursor: Cursor
    text: bytes


class LiveProjection:
    """The projection of one thread, fed by a feed. `load` comes first."""

    def __init__(
        self,
        feed: JournalFeed,
        thread_id: str,
        deserted: Callable[[], None],
        *,
        ring: int = PROJECTION_RING_BYTES,
    ) -> None:
        self.thread_id = thread_id
        self.channels: dict[Wire, Channel] = {
            "socket": Channel(deserted),
            "sse": Channel(deserted),
        }
        self.cursor = feed.cursor
        self._feed = feed
        self._filter = Filter(thread=thread_id)
        self._projection = Projection(thread_id)
        self._deltas: deque[EncodedDelta] = deque()
        self._bytes = 0
        self._ring = ring
        self._floor = 0
        self._early: list[DecodedBatch] | None = []
        self._snapshots: tuple[Cursor | None, dict[Wire, list[bytes]]] = (None, {})
        self._unsubscribe = feed.subscribe(self._take, self._lost)
        self.is_open = True

    @property
    def viewers(self) -> int:
        return sum(channel.members for channel in self.channels.values())

    @property
    def is_idle(self) -> bool:
        return all(channel.is_idle for channel in self.channels.values())

    async def load(self) -> None:
        """Read what the journal has; what the feed brought meanwhile comes after it."""
        saved = await self._feed.journal.snapshot(self.thread_id)
        after = None
        if saved is not None:
            try:
                self._projection, after = Projection.restore(saved.data), saved.cursor
            except UnreadableCheckpoint:
                # One of another version; the facts are what counts.
                after = None
        reading = self._feed.journal.read(after, filter=self._filter)
        reached = after or Cursor(self.cursor.epoch, 0)
        async with aclosing(cast("AsyncGenerator[FactBatch]", reading)) as stretches:
            async for stretch in stretches:
                for _, fact in stretch.facts():
                    self._projection.replay(fact)
                reached = stretch.cursor
                # A long thread must not keep the loop from the others.
                await asyncio.sleep(0)
        self._begin(reached)

    def snapshot(self, wire: Wire) -> list[bytes]:
        """The state in frames, made once for all who come at the same place."""
        cursor, known = self._snapshots
        if cursor != self.cursor:
            known = dict[Wire, list[bytes]]()
            self._snapshots = (self.cursor, known)
        if wire not in known:
            known[wire] = self._snapshot_frames(wire)
        return known[wire]

    def _snapshot_frames(self, wire: Wire) -> list[bytes]:
        text = b'{"type":"projection.snapshot","threadId":%s,"cursor":"%s","state":%s}' % (
            _encode(self.thread_id),
            str(self.cursor).encode(),
            self._projection.snapshot(),
        )
        if wire == "socket":
            return text_fragments(text, PIECE_BYTES)
        event = frame_message(wire, "projection.snapshot", text, self.cursor)
        return [event[at : at + PIECE_BYTES] for at in range(0, len(event), PIECE_BYTES)]

    def deltas_since(self, cursor: Cursor) -> list[EncodedDelta] | None:
        """The changes that a viewer at a cursor lacks; None where they are not all there."""
        if cursor.epoch != self.cursor.epoch or not self._floor <= cursor.seq <= self.cursor.seq:
            return None
        at = bisect_right(self._deltas, cursor.seq, key=lambda delta: delta.cursor.seq)
        missing = list(self._deltas)[at:]
        return None if missing and missing[0].first <= cursor.seq else missing

    def close(self) -> None:
        """Take nothing more."""
        self.is_open = False
        self._unsubscribe()

    def _begin(self, reached: Cursor) -> None:
        early, self._early = self._early or [], None
        self.cursor = max(reached, self.cursor)
        self._floor = self.cursor.seq
        for batch in early:
            self._take(batch)

    def _take(self, batch: DecodedBatch) -> None:
        if self._early is not None:
            self._early.append(batch)
            return
        if batch.cursor.seq <= self.cursor.seq:
            return
        place, self.cursor = self.cursor.seq, batch.cursor
        seqs = batch.stretch.seqs
        chosen = [at for at in batch.select(self._filter) if seqs[at] > place]
        if chosen:
            operations = fold_changes([self._projection.replay(batch.facts[at]) for at in chosen])
            if operations:
                self._send(seqs[chosen[0]], _encode(operations))

    def _send(self, first: int, operations: bytes) -> None:
        text = b'{"type":"projection.delta","threadId":%s,"cursor":"%s","operations":%s}' % (
            _encode(self.thread_id),
            str(self.cursor).encode(),
            operations,
        )
        self._snapshots = (None, {})
        self._keep(EncodedDelta(first, self.cursor, text))
        for wire, channel in self.channels.items():
            if not channel.is_idle:
                channel.send(frame_message(wire, "projection.delta", text, self.cursor))

    def _keep(self, delta: EncodedDelta) -> None:
        self._deltas.append(delta)
        self._bytes += len(delta.text)
        while self._bytes > self._ring:
            gone = self._deltas.popleft()
            self._bytes -= len(gone.text)
            self._floor = gone.cursor.seq

    def _lost(self, error: Exception) -> None:
        self.is_open = False
        for channel in self.channels.values():
            channel.close(RESTART if isinstance(error, FeedStopped) else FAULT)


class LiveProjections:
    """Every live projection of an Edge, by thread."""

    def __init__(self, feed: JournalFeed, *, linger: float = PROJECTION_LINGER_SECONDS) -> None:
        self._feed = feed
        self._linger = linger
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._open: dict[str, LiveProjection] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def watched(self) -> int:
        """Threads that are held in memory."""
        return len(self._open)

    def channels(self) -> list[Channel]:
        return [channel for live in self._open.values() for channel in live.channels.values()]

    async def view(
        self, thread_id: str, sink: StreamSink, wire: Wire, after: Cursor | None
    ) -> None:
        """Bring a viewer to the live changes of a thread: from a cursor if that can be exact,
        from a snapshot otherwise.
        """
        live = await self.open(thread_id)
        flow, channel = PacedWriter(sink), live.channels[wire]
        mark = channel.mark()
        try:
            for frames in _first_frames(live, wire, after):
                if not await flow.write(frames):
                    return
            # Where more came meanwhile than a viewer may be behind, there is nothing to go on from.
            if channel.join(sink, mark) is None:
                sink.close(SLOW)
        finally:
            channel.unmark(mark)

    async def open(self, thread_id: str) -> LiveProjection:
        """The live projection of a thread; those who ask while it is read wait for the same one."""
        while True:
            live = self._open.get(thread_id)
            if live is not None and live.is_open:
                return live
            await asyncio.shield(self._opening.get(thread_id) or self._begin(thread_id))

    def _release_later(self, thread_id: str) -> None:
        """A viewer went; the last one's thread is let go after a while."""
        live = self._open.get(thread_id)
        if live is not None and live.is_idle and thread_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[thread_id] = loop.call_later(
                self._linger, partial(self._close_idle, thread_id)
            )

    def close(self) -> None:
        """End every view."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for live in self._open.values():
            live.close()
            for channel in live.channels.values():
                channel.close(RESTART)
        self._open.clear()

    def _begin(self, thread_id: str) -> asyncio.Task[None]:
        task = self._opening[thread_id] = asyncio.create_task(self._load(thread_id))
        task.add_done_callback(lambda _: self._opening.pop(thread_id, None))
        return task

    async def _load(self, thread_id: str) -> None:
        live = LiveProjection(self._feed, thread_id, partial(self._release_later, thread_id))
        try:
            await live.load()
        except BaseException:
            live.close()
            raise
        self._open[thread_id] = live

    def _close_idle(self, thread_id: str) -> None:
        del self._timers[thread_id]
        live = self._open.get(thread_id)
        if live is not None and live.is_idle:
            live.close()
            del self._open[thread_id]


def _first_frames(live: LiveProjection, wire: Wire, after: Cursor | None) -> list[bytes]:
    missing = None if after is None else live.deltas_since(after)
    if missing is None:
        return live.snapshot(wire)
    return [frame_message(wire, "projection.delta", delta.text, delta.cursor) for delta in missing]
