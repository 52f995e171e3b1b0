"""`Broadcast`: the live side of one selection on one wire.

What the feed hands out is told once and sent to every reader as one buffer. Where facts were passed
over, a checkpoint says how far the readers have come; many in a row become one.
"""

import asyncio
from collections.abc import Callable

from factwire.edge.limits import CHECKPOINT_SECONDS
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.channel import Channel
from factwire.edge.streams.closing import FAULT, RESTART, Closing
from factwire.edge.streams.feed import Feed, FeedStopped
from factwire.edge.streams.messages import Teller, checkpoint
from factwire.edge.streams.selection import Wire


class Broadcast:
    """Tells new facts to the readers of a channel, for as long as it is open."""

    def __init__(
        self, feed: Feed, teller: Teller, wire: Wire, deserted: Callable[[], None]
    ) -> None:
        self.channel = Channel(deserted)
        self.teller = teller
        self.wire: Wire = wire
        self.cursor = feed.cursor
        self._told = self.cursor.seq
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe = feed.subscribe(self._take, self._lost)

    def close(self) -> None:
        """Take nothing more."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self, closing: Closing) -> None:
        """Tell the readers how far they have come, and close them."""
        self._tell_checkpoint()
        self.channel.close(closing)

    def _take(self, arrival: Arrival) -> None:
        chosen = arrival.selected(self.teller.selection.filter)
        self.cursor = arrival.cursor
        if chosen:
            frames = self.teller.frames(self.wire, arrival, chosen)
            self._told = frames.last or self._told
            self.channel.send(frames.data)
        if self._told < self.cursor.seq and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(CHECKPOINT_SECONDS, self._tell_checkpoint)

    def _tell_checkpoint(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._told < self.cursor.seq:
            self._told = self.cursor.seq
            self.channel.send(checkpoint(self.wire, self.cursor))

    def _lost(self, error: Exception) -> None:
        self.channel.close(RESTART if isinstance(error, FeedStopped) else FAULT)
