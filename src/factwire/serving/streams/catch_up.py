"""From a cursor through the journal to live: pages, the live side of a selection, the way there.

A channel keeps what it sends from a mark on. Everything up to the mark is read from the journal, as
fast as the reader takes it; then the reader goes on from the mark. Should the channel have sent
more than a reader may be behind meanwhile, there is a new mark and another round. Where facts were
passed over, a checkpoint says how far the readers have come; many in a row become one. A page is
a plain read of the same, with the bytes that its stream would have sent.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import msgspec

from factwire.journal import Cursor, FactBatch, Filter, Journal
from factwire.serving.limits import (
    CATCH_UP_FACTS,
    CATCH_UP_ROUNDS,
    CHECKPOINT_SECONDS,
    PASSED_OVER_FACTS,
    PIECE_BYTES,
    STALL_SECONDS,
    WINDOW_BYTES,
)
from factwire.serving.streams.channel import Channel
from factwire.serving.streams.frame_encoder import FrameEncoder, Wire, encode_checkpoint
from factwire.serving.streams.journal_feed import (
    DecodedBatch,
    FeedStopped,
    JournalFeed,
    split_batch,
)
from factwire.serving.streams.stream_sinks import FAULT, RESTART, SLOW, CloseReason, StreamSink


class MessagePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages; `cursor` is where they end, `more` whether there are others after it now."""

    texts: list[bytes]
    cursor: Cursor
    more: bool

    def to_json(self) -> bytes:
        """The page as JSON, its messages byte for byte."""
        cursor = str(self.cursor).encode()
        following = b',"next":"%s"' % cursor if self.more else b""
        return b'{"items":[%s],"asOf":"%s"%s}' % (b",".join(self.texts), cursor, following)


async def read_message_page(
    journal: Journal, encoder: FrameEncoder, after: Cursor | None, limit: int
) -> MessagePage:
    """At most `limit` messages after a cursor; raises `CursorError`, having read nothing."""
    head = await journal.head()
    texts: list[bytes] = []
    read = partial(journal.read, filter=encoder.build_replay_filter(), limit=CATCH_UP_FACTS)
    # At least once: only a read knows whether a cursor is one. It may be newer than the head was.
    reached = await _read_piece(read(after), encoder, texts, limit) or max(head, after or head)
    while reached.seq < head.seq and len(texts) < limit:
        reached = await _read_piece(read(reached), encoder, texts, limit) or head
    return MessagePage(texts=texts, cursor=reached, more=reached.seq < head.seq)


async def _read_piece(
    reading: AsyncIterator[FactBatch], encoder: FrameEncoder, texts: list[bytes], limit: int
) -> Cursor | None:
    """Add messages up to the limit; the place that was reached, None where nothing was left."""
    reached = None
    async with aclosing(cast("AsyncGenerator[FactBatch]", reading)) as batches:
        async for batch in batches:
            reached = batch.cursor
            decoded = DecodedBatch(encoder.narrow(batch))
            chosen = encoder.select(decoded, range(len(decoded.raw.seqs)))
            for message in encoder.encode_messages(decoded, chosen):
                texts.append(message.text)
                if len(texts) == limit:
                    return Cursor(batch.epoch, message.seq)
    return reached


class Broadcast:
    """Tells new facts to the readers of a channel, for as long as it is open."""

    def __init__(
        self, feed: JournalFeed, encoder: FrameEncoder, wire: Wire, deserted: Callable[[], None]
    ) -> None:
        self.channel = Channel(deserted)
        self.encoder = encoder
        self.wire: Wire = wire
        self.cursor = feed.cursor
        self._sent_seq = self.cursor.seq
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe = feed.subscribe(self._take, self._close_channel)

    def close(self) -> None:
        """Take nothing more."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self, closing: CloseReason) -> None:
        """Tell the readers how far they have come, and close them."""
        self._send_checkpoint()
        self.channel.close(closing)

    def _take(self, batch: DecodedBatch) -> None:
        chosen = self.encoder.select(batch, batch.select(self.encoder.stored_filter))
        self.cursor = batch.cursor
        if chosen:
            frames = self.encoder.encode_frames(self.wire, batch, chosen)
            self._sent_seq = frames.last or self._sent_seq
            self.channel.send(frames.data)
        if self._sent_seq < self.cursor.seq and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(CHECKPOINT_SECONDS, self._send_checkpoint)

    def _send_checkpoint(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sent_seq < self.cursor.seq:
            self._sent_seq = self.cursor.seq
            self.channel.send(encode_checkpoint(self.wire, self.cursor))

    def _close_channel(self, error: Exception) -> None:
        self.channel.close(RESTART if isinstance(error, FeedStopped) else FAULT)


class PacedWriter:
    """Writes to a sink piece by piece, as the reader takes them."""

    def __init__(self, sink: StreamSink, *, stall: float = STALL_SECONDS) -> None:
        self._sink = sink
        self._stall = stall
        self._change = asyncio.Event()
        sink.watch(self)

    def on_blocked(self) -> None:
        """The next write waits."""

    def on_resumed(self) -> None:
        self._change.set()

    def on_gone(self) -> None:
        self._change.set()

    async def write(self, frames: bytes) -> bool:
        """Pass on frames and wait for room; False once the reader is gone."""
        self._sink.write(frames)
        return await self.wait_for_room()

    async def wait_for_room(self) -> bool:
        """Wait until a reader takes more; False once it is gone."""
        while self._sink.is_blocked and not self._sink.is_gone:
            self._change.clear()
            unsent = self._sink.unsent
            try:
                await asyncio.wait_for(self._change.wait(), self._stall)
            except TimeoutError:
                if self._sink.unsent >= unsent:
                    self._sink.close(SLOW)
        return not self._sink.is_gone

    async def wait_for(self, something: Coroutine[Any, Any, None]) -> None:
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


class CatchUp:
    """Brings one reader from a cursor to a live channel."""

    def __init__(self, feed: JournalFeed, broadcast: Broadcast, sink: StreamSink) -> None:
        self._feed = feed
        self._broadcast = broadcast
        self._sink = sink
        self._flow = PacedWriter(sink)
        self._sent_seq = 0

    def join_now(self) -> None:
        """Be live at once; a checkpoint tells the reader where that is."""
        channel = self._broadcast.channel
        self._sink.write(encode_checkpoint(self._broadcast.wire, self._broadcast.cursor))
        channel.join(self._sink, channel.mark())

    async def join(self, after: Cursor | None) -> None:
        """Send everything after a cursor, then be live; None is the oldest fact that is kept.

        Raises `CursorError` before anything was sent where the cursor cannot be resumed from.
        """
        self._sent_seq = after.seq if after else 0
        reached, channel = after, self._broadcast.channel
        mark = channel.mark()
        try:
            for _ in range(CATCH_UP_ROUNDS):
                target = self._broadcast.cursor
                reached = await self._replay(reached, target, is_named=reached is after)
                if self._sink.is_gone:
                    return
                if reached.seq > target.seq:
                    await self._flow.wait_for(self._feed.wait_for(reached.seq))
                elif channel.join(self._sink, mark):
                    return
                channel.renew(mark)
            self._sink.close(SLOW)
        finally:
            channel.unmark(mark)

    async def _replay(self, after: Cursor | None, target: Cursor, *, is_named: bool) -> Cursor:
        """Send what lies between two places; a cursor that a reader named is always read from,
        because only the journal knows whether it is one.
        """
        wanted = self._broadcast.encoder.build_replay_filter()
        while is_named or after is None or after.seq < target.seq:
            reached = await self._read_piece(after, target, wanted)
            if self._sink.is_gone:
                return target
            floor = after.seq if after else 0
            after, is_named = Cursor(target.epoch, max(floor, min(reached, target.seq))), False
            self._send_checkpoint(after, PASSED_OVER_FACTS)
            # A journal in memory would otherwise be read to its end in one go.
            await asyncio.sleep(0)
        self._send_checkpoint(after, 1)
        return after

    def _send_checkpoint(self, cursor: Cursor, most: int) -> None:
        """Say how far a reader has come, once so many facts were not for it."""
        if cursor.seq - self._sent_seq >= most:
            self._sent_seq = cursor.seq
            self._sink.write(encode_checkpoint(self._broadcast.wire, cursor))

    async def _read_piece(self, after: Cursor | None, target: Cursor, wanted: Filter | None) -> int:
        """Send at most one read's worth of facts; the seq that was reached. A reader that is full
        costs what it has not taken and no more: the rest is read again when it has room.
        """
        reached = await self._send_read(after, target, wanted)
        await self._flow.wait_for_room()
        return reached

    async def _send_read(self, after: Cursor | None, target: Cursor, wanted: Filter | None) -> int:
        reached, size = target.seq, 0
        reading = self._feed.journal.read(after, filter=wanted, limit=CATCH_UP_FACTS)
        async with aclosing(cast("AsyncGenerator[FactBatch]", reading)) as batches:
            async for batch in batches:
                for part in split_batch(batch, WINDOW_BYTES):
                    frames = self._encode_frames(part, target.seq)
                    reached, size = part.last, size + len(frames)
                    if frames:
                        self._sink.write(frames)
                    if self._sink.is_blocked:
                        # A sink that is pumped has had no chance yet to pass anything on.
                        await asyncio.sleep(0)
                    if reached >= target.seq or size >= PIECE_BYTES or self._sink.is_blocked:
                        return reached
        return reached

    def _encode_frames(self, batch: FactBatch, upto: int) -> bytes:
        encoder, wire = self._broadcast.encoder, self._broadcast.wire
        decoded = DecodedBatch(encoder.narrow(batch))
        positions = encoder.select(decoded, range(bisect_right(decoded.raw.seqs, upto)))
        frames = encoder.encode_frames(wire, decoded, positions)
        self._sent_seq = frames.last or self._sent_seq
        return frames.data
