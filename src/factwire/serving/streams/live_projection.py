"""Projections of threads, live for those who watch.

A watched thread is projected once for all who watch it, opened by its first viewer and let go a
while after the last one left. A viewer gets a snapshot and then changes; the newest are kept, so
that a viewer who comes again goes on without a snapshot; where that cannot be exact, it gets a new
one.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from factwire.journal import Cursor, Filter
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.projection import Projection, fold_changes
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.limits import (
    PIECE_BYTES,
    PROJECTION_LINGER_SECONDS,
    PROJECTION_RING_BYTES,
)
from factwire.serving.streams.catch_up import PacedWriter
from factwire.serving.streams.channel import Channel
from factwire.serving.streams.frame_encoder import Wire, frame_message, text_fragments
from factwire.serving.streams.journal_feed import DecodedBatch, FeedStopped, JournalFeed
from factwire.serving.streams.stream_sinks import FAULT, RESTART, SLOW, StreamSink

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
        self._states = ThreadStates(feed.journal)
        self._filter = Filter(thread=thread_id)
        self._projection = Projection(thread_id)
        self._deltas: deque[EncodedDelta] = deque()
        self._bytes = 0
        self._ring = ring
        self._floor = 0
        self._early: deque[DecodedBatch] | None = deque()
        self._draining: asyncio.Task[None] | None = None
        self._snapshots: dict[Wire, asyncio.Task[list[bytes]]] = {}
        self._unsubscribe = feed.subscribe(self._take, self._close_channels)
        self.is_open = True

    @property
    def viewers(self) -> int:
        return sum(channel.members for channel in self.channels.values())

    @property
    def is_idle(self) -> bool:
        return all(channel.is_idle for channel in self.channels.values())

    async def load(self) -> None:
        """Read what the journal has; what the feed brought meanwhile comes after it."""
        # A projection of its own: what the feed brings is applied to it here.
        loaded = await self._states.load(self.thread_id)
        self._projection = loaded.projection
        self.cursor = max(loaded.cursor, self.cursor)
        self._floor = self.cursor.seq
        await self._take_early()

    async def settle(self) -> None:
        """Wait until the state is that of the last changes that were sent, or as good as: until the
        next wait of the caller it and the channels do not move apart.
        """
        while self._draining is not None:
            await asyncio.shield(self._draining)

    def snapshot(self, wire: Wire) -> "asyncio.Task[list[bytes]]":
        """The state in frames, made once for all who come at the same place. A long thread takes a
        while, so it is made beside the event loop, and what the feed brings meanwhile waits.
        """
        if wire not in self._snapshots:
            if self._early is None:
                self._early = deque()
            self._snapshots[wire] = asyncio.create_task(self._encode_snapshot(wire))
        return self._snapshots[wire]

    async def _encode_snapshot(self, wire: Wire) -> list[bytes]:
        try:
            return await run_disk_work(self._snapshot_frames, wire)
        except BaseException:
            del self._snapshots[wire]
            raise
        finally:
            if self._draining is None and all(
                task.done() or task is asyncio.current_task() for task in self._snapshots.values()
            ):
                self._draining = asyncio.create_task(self._take_early())

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

    async def _take_early(self) -> None:
        """Apply what waited, in its order; what comes meanwhile waits as well."""
        early = self._early or deque[DecodedBatch]()
        try:
            while early:
                self._apply(early.popleft())
                await asyncio.sleep(0)
        except Exception as error:
            self._unsubscribe()
            self._close_channels(error)
            raise
        finally:
            self._early = self._draining = None

    def _take(self, batch: DecodedBatch) -> None:
        if self._early is not None:
            self._early.append(batch)
        else:
            self._apply(batch)

    def _apply(self, batch: DecodedBatch) -> None:
        if batch.cursor.seq <= self.cursor.seq:
            return
        place, self.cursor = self.cursor.seq, batch.cursor
        self._snapshots.clear()
        seqs = batch.raw.seqs
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

    def _close_channels(self, error: Exception) -> None:
        self.is_open = False
        for channel in self.channels.values():
            channel.close(RESTART if isinstance(error, FeedStopped) else FAULT)


class LiveProjections:
    """Every live projection of a server, by thread."""

    def __init__(self, feed: JournalFeed, *, linger: float = PROJECTION_LINGER_SECONDS) -> None:
        self._feed = feed
        self._linger = linger
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._open: dict[str, LiveProjection] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def thread_count(self) -> int:
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
        await live.settle()
        flow, channel = PacedWriter(sink), live.channels[wire]
        mark = channel.mark()
        try:
            for frames in await _first_frames(live, wire, after):
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

    async def forget(self, thread_id: str) -> None:
        """Let go of a thread of which facts were removed; its viewers come again for a snapshot."""
        opening = self._opening.get(thread_id)
        if opening is not None:
            await asyncio.wait({opening})
        timer = self._timers.pop(thread_id, None)
        if timer is not None:
            timer.cancel()
        live = self._open.pop(thread_id, None)
        if live is not None:
            live.close()
            for channel in live.channels.values():
                channel.close(RESTART)

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


async def _first_frames(live: LiveProjection, wire: Wire, after: Cursor | None) -> list[bytes]:
    missing = None if after is None else live.deltas_since(after)
    if missing is None:
        # Shared with others: one who leaves does not end it.
        return await asyncio.shield(live.snapshot(wire))
    return [frame_message(wire, "projection.delta", delta.text, delta.cursor) for delta in missing]
