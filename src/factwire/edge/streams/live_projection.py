"""`LiveProjection`: one watched thread, projected once for all who watch it.

A viewer gets a snapshot and then changes; both name the cursor they are true as of. The changes of
one arrival are folded and encoded once. The newest are kept, so that a viewer who comes again goes
on without a snapshot; where that cannot be exact, it gets a new one.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, cast

import msgspec

from factwire.edge.limits import PIECE_BYTES, PROJECTION_RING_BYTES
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.channel import Channel
from factwire.edge.streams.closing import FAULT, RESTART
from factwire.edge.streams.feed import Feed, FeedStopped
from factwire.edge.streams.frames import text_fragments
from factwire.edge.streams.messages import framed
from factwire.edge.streams.selection import Wire
from factwire.journal import Cursor, Filter, Stretch
from factwire.projection import Projection, UnreadableCheckpoint, folded

_encode: Final = msgspec.json.Encoder().encode


class Delta(msgspec.Struct, frozen=True, gc=False):
    """Changes by facts from `first` on; with them a state is true as of `cursor`."""

    first: int
    cursor: Cursor
    text: bytes


class LiveProjection:
    """The projection of one thread, fed by a feed. `load` comes first."""

    def __init__(
        self,
        feed: Feed,
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
        self._deltas: deque[Delta] = deque()
        self._bytes = 0
        self._ring = ring
        self._floor = 0
        self._early: list[Arrival] | None = []
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
        async with aclosing(cast("AsyncGenerator[Stretch]", reading)) as stretches:
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
        event = framed(wire, "projection.snapshot", text, self.cursor)
        return [event[at : at + PIECE_BYTES] for at in range(0, len(event), PIECE_BYTES)]

    def since(self, cursor: Cursor) -> list[Delta] | None:
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
        for arrival in early:
            self._take(arrival)

    def _take(self, arrival: Arrival) -> None:
        if self._early is not None:
            self._early.append(arrival)
            return
        if arrival.cursor.seq <= self.cursor.seq:
            return
        place, self.cursor = self.cursor.seq, arrival.cursor
        seqs = arrival.stretch.seqs
        chosen = [at for at in arrival.selected(self._filter) if seqs[at] > place]
        if chosen:
            operations = folded([self._projection.replay(arrival.facts[at]) for at in chosen])
            if operations:
                self._send(seqs[chosen[0]], _encode(operations))

    def _send(self, first: int, operations: bytes) -> None:
        text = b'{"type":"projection.delta","threadId":%s,"cursor":"%s","operations":%s}' % (
            _encode(self.thread_id),
            str(self.cursor).encode(),
            operations,
        )
        self._snapshots = (None, {})
        self._keep(Delta(first, self.cursor, text))
        for wire, channel in self.channels.items():
            if not channel.is_idle:
                channel.send(framed(wire, "projection.delta", text, self.cursor))

    def _keep(self, delta: Delta) -> None:
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
