"""`Projections`: the threads that somebody watches.

A thread is opened by its first viewer, shared by all, and let go a while after the last one left.
"""

import asyncio
from functools import partial

from factwire.edge.limits import PROJECTION_LINGER_SECONDS
from factwire.edge.streams.catching_up import Flow
from factwire.edge.streams.channel import Channel
from factwire.edge.streams.closing import RESTART, SLOW
from factwire.edge.streams.feed import Feed
from factwire.edge.streams.live_projection import LiveProjection
from factwire.edge.streams.messages import framed
from factwire.edge.streams.selection import Wire
from factwire.edge.streams.sink import Sink
from factwire.journal import Cursor


class Projections:
    """Every live projection of an Edge, by thread."""

    def __init__(self, feed: Feed, *, linger: float = PROJECTION_LINGER_SECONDS) -> None:
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

    async def view(self, thread_id: str, sink: Sink, wire: Wire, after: Cursor | None) -> None:
        """Bring a viewer to the live changes of a thread: from a cursor if that can be exact,
        from a snapshot otherwise.
        """
        live = await self.open(thread_id)
        flow, channel = Flow(sink), live.channels[wire]
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

    def _left(self, thread_id: str) -> None:
        """A viewer went; the last one's thread is let go after a while."""
        live = self._open.get(thread_id)
        if live is not None and live.is_idle and thread_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[thread_id] = loop.call_later(
                self._linger, partial(self._let_go, thread_id)
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
        live = LiveProjection(self._feed, thread_id, partial(self._left, thread_id))
        try:
            await live.load()
        except BaseException:
            live.close()
            raise
        self._open[thread_id] = live

    def _let_go(self, thread_id: str) -> None:
        del self._timers[thread_id]
        live = self._open.get(thread_id)
        if live is not None and live.is_idle:
            live.close()
            del self._open[thread_id]


def _first_frames(live: LiveProjection, wire: Wire, after: Cursor | None) -> list[bytes]:
    missing = None if after is None else live.since(after)
    if missing is None:
        return live.snapshot(wire)
    return [framed(wire, "projection.delta", delta.text, delta.cursor) for delta in missing]
