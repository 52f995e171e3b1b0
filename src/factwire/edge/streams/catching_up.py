"""Catching up: from a cursor through the journal to the exact place where a live channel goes on.

The channel keeps what it sends from a mark on. Everything up to the mark is read from the journal,
as fast as the reader takes it; then the reader goes on from the mark. Should the channel have sent
more than a reader may be behind meanwhile, there is a new mark and another round.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, cast

from factwire.edge.limits import (
    CATCH_UP_FACTS,
    CATCH_UP_ROUNDS,
    PASSED_OVER_FACTS,
    PIECE_BYTES,
    STALL_SECONDS,
)
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.broadcast import Broadcast
from factwire.edge.streams.closing import SLOW
from factwire.edge.streams.feed import Feed
from factwire.edge.streams.messages import checkpoint
from factwire.edge.streams.sink import Sink
from factwire.journal import Cursor, Stretch


class Flow:
    """Writes to a sink piece by piece, as the reader takes them."""

    def __init__(self, sink: Sink, *, stall: float = STALL_SECONDS) -> None:
        self._sink = sink
        self._stall = stall
        self._change = asyncio.Event()
        sink.watch(self)

    def blocked(self) -> None:
        """The next write waits."""

    def resumed(self) -> None:
        self._change.set()

    def gone(self) -> None:
        self._change.set()

    async def write(self, frames: bytes) -> bool:
        """Pass on frames and wait for room; False once the reader is gone."""
        self._sink.write(frames)
        while self._sink.is_blocked and not self._sink.is_gone:
            self._change.clear()
            unsent = self._sink.unsent
            try:
                await asyncio.wait_for(self._change.wait(), self._stall)
            except TimeoutError:
                if self._sink.unsent >= unsent:
                    self._sink.close(SLOW)
        return not self._sink.is_gone

    async def until(self, something: Coroutine[Any, Any, None]) -> None:
        """Wait for something, but not for longer than the reader is there."""
        task = asyncio.create_task(something)
        while not (task.done() or self._sink.is_gone):
            self._change.clear()
            change = asyncio.create_task(self._change.wait())
            await asyncio.wait((task, change), return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
        if task.done():
            task.result()
        else:
            task.cancel()


class CatchingUp:
    """Brings one reader from a cursor to a live channel."""

    def __init__(self, feed: Feed, broadcast: Broadcast, sink: Sink) -> None:
        self._feed = feed
        self._broadcast = broadcast
        self._sink = sink
        self._flow = Flow(sink)
        self._told = 0

    def join_now(self) -> None:
        """Be live at once; a checkpoint tells the reader where that is."""
        channel = self._broadcast.channel
        self._sink.write(checkpoint(self._broadcast.wire, self._broadcast.cursor))
        channel.join(self._sink, channel.mark())

    async def join(self, after: Cursor | None) -> None:
        """Send everything after a cursor, then be live; None is the oldest fact that is kept.

        Raises `CursorError` before anything was sent where the cursor cannot be resumed from.
        """
        self._told = after.seq if after else 0
        reached, channel = after, self._broadcast.channel
        mark = channel.mark()
        try:
            for _ in range(CATCH_UP_ROUNDS):
                target = self._broadcast.cursor
                reached = await self._replay(reached, target, asked=reached is after)
                if self._sink.is_gone:
                    return
                if reached.seq > target.seq:
                    await self._flow.until(self._feed.reached(reached.seq))
                elif channel.join(self._sink, mark):
                    return
                channel.renew(mark)
            self._sink.close(SLOW)
        finally:
            channel.unmark(mark)

    async def _replay(self, after: Cursor | None, target: Cursor, *, asked: bool) -> Cursor:
        """Send what lies between two places; a cursor that a reader `asked` for is always read
        from, because only the journal knows whether it is one.
        """
        while asked or after is None or after.seq < target.seq:
            reached = await self._read_piece(after, target)
            if self._sink.is_gone:
                return target
            floor = after.seq if after else 0
            after, asked = Cursor(target.epoch, max(floor, min(reached, target.seq))), False
            self._tell_checkpoint(after, PASSED_OVER_FACTS)
            # A journal in memory would otherwise be read to its end in one go.
            await asyncio.sleep(0)
        self._tell_checkpoint(after, 1)
        return after

    def _tell_checkpoint(self, cursor: Cursor, most: int) -> None:
        """Say how far a reader has come, once so many facts were not for it."""
        if cursor.seq - self._told >= most:
            self._told = cursor.seq
            self._sink.write(checkpoint(self._broadcast.wire, cursor))

    async def _read_piece(self, after: Cursor | None, target: Cursor) -> int:
        """Send at most one read's worth of facts; the seq that was reached."""
        reached, wanted = target.seq, self._broadcast.teller.selection.filter
        reading = self._feed.journal.read(after, filter=wanted, limit=CATCH_UP_FACTS)
        gathered, size = list[bytes](), 0
        async with aclosing(cast("AsyncGenerator[Stretch]", reading)) as stretches:
            async for stretch in stretches:
                reached = stretch.last
                gathered.append(self._frames(stretch, target.seq))
                size += len(gathered[-1])
                if reached >= target.seq or size >= PIECE_BYTES:
                    break
        if size:
            await self._flow.write(b"".join(gathered))
        return reached

    def _frames(self, stretch: Stretch, upto: int) -> bytes:
        positions = range(bisect_right(stretch.seqs, upto))
        teller, wire = self._broadcast.teller, self._broadcast.wire
        frames = teller.frames(wire, Arrival(stretch), positions)
        self._told = frames.last or self._told
        return frames.data
