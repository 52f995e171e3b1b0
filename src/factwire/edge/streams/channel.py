"""`Channel`: all readers of the same thing, who get the same bytes.

A buffer is made once and written once to each reader that keeps up. One that is full is left
behind with its place in the ring and goes on from there when it has room; one that is further
behind than the limit is closed and may resume from its cursor. Nobody waits for anybody.
"""

from collections.abc import Callable

from factwire.edge.limits import UNSENT_BYTES
from factwire.edge.streams.closing import SLOW, Closing
from factwire.edge.streams.ring import Ring
from factwire.edge.streams.sink import Sink


class Member:
    """One reader of a channel, live: it has been sent everything, or has a place to go on from."""

    __slots__ = ("_channel", "place", "sink")

    def __init__(self, channel: "Channel", sink: Sink, place: int) -> None:
        self._channel = channel
        self.sink = sink
        self.place = place

    def blocked(self) -> None:
        self._channel.leave_behind(self)

    def resumed(self) -> None:
        self._channel.go_on(self)

    def gone(self) -> None:
        self._channel.remove(self)


class Mark:
    """A place that a channel keeps for a reader that is still catching up; `lost` if it cannot."""

    __slots__ = ("lost", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self.lost = False


class Channel:
    """Readers of one stream; `limit` is how many bytes each of them may be behind.

    `deserted` is called when the last reader has left.
    """

    def __init__(self, deserted: Callable[[], None], *, limit: int = UNSENT_BYTES) -> None:
        self._deserted = deserted
        self._limit = limit
        self._ring = Ring()
        self._level: dict[Member, None] = {}
        self._behind: dict[Member, None] = {}
        self._marks: dict[Mark, None] = {}
        self.closed: Closing | None = None

    @property
    def members(self) -> int:
        return len(self._level) + len(self._behind)

    @property
    def is_idle(self) -> bool:
        """Nobody reads and nobody is about to."""
        return not (self._level or self._behind or self._marks)

    @property
    def held(self) -> int:
        """Bytes kept for those who are behind, once for all of them."""
        return self._ring.held

    def mark(self) -> Mark:
        """Keep what is sent from now on for a reader that will join."""
        mark = Mark(self._ring.end)
        self._marks[mark] = None
        return mark

    def renew(self, mark: Mark) -> None:
        """Keep what is sent from now on instead; a reader that catches up is never nobody."""
        mark.place = self._ring.end
        mark.lost = False
        self._tidy()

    def unmark(self, mark: Mark) -> None:
        """Keep nothing for a reader that does not need its mark any more."""
        if mark in self._marks:
            del self._marks[mark]
            self._tidy()

    def join(self, sink: Sink, mark: Mark) -> Member | None:
        """Become a live reader from a mark on; None where the mark was lost."""
        if mark.lost:
            return None
        del self._marks[mark]
        member = Member(self, sink, mark.place)
        sink.watch(member)
        if self.closed is not None:
            sink.close(self.closed)
        elif not sink.is_gone:
            self._behind[member] = None
            if not sink.is_blocked:
                self.go_on(member)
        self._tidy()
        return member

    def send(self, frames: bytes) -> None:
        """Write one buffer to everybody who keeps up; the others get it when they can."""
        if not frames or self.is_idle:
            return
        waited_for = bool(self._behind or self._marks)
        if waited_for:
            self._ring.append(frames)
        for member in tuple(self._level):
            member.sink.write(frames)
        if waited_for:
            self._drop_the_slow()
            self._tidy()

    def leave_behind(self, member: Member) -> None:
        """A reader is full: everything up to now has been written to it, the rest must wait."""
        if member in self._level:
            del self._level[member]
            self._behind[member] = None
            member.place = self._ring.end

    def go_on(self, member: Member) -> None:
        """Write to a reader that has room again what it lacks, until it is full or level."""
        while member in self._behind and not member.sink.is_blocked:
            if member.place == self._ring.end:
                del self._behind[member]
                self._level[member] = None
                break
            member.place += 1
            member.sink.write(self._ring.at(member.place - 1))
        self._tidy()

    def remove(self, member: Member) -> None:
        self._level.pop(member, None)
        self._behind.pop(member, None)
        self._tidy()

    def close(self, closing: Closing) -> None:
        """End the stream for everybody, after what they lack."""
        self.closed = closing
        for member in tuple(self._behind):
            for frames in self._ring.after(member.place):
                member.sink.write(frames)
        for member in (*self._level, *self._behind):
            member.sink.close(closing)

    def _drop_the_slow(self) -> None:
        for member in tuple(self._behind):
            if self._ring.behind(member.place) + member.sink.unsent > self._limit:
                member.sink.close(SLOW)
        for mark in self._marks:
            if not mark.lost and self._ring.behind(mark.place) > self._limit:
                mark.lost = True

    def _tidy(self) -> None:
        """Keep only what somebody has a place in."""
        places = [member.place for member in self._behind]
        places += [mark.place for mark in self._marks if not mark.lost]
        self._ring.let_go(min(places, default=self._ring.end))
        if self.is_idle:
            self._deserted()
