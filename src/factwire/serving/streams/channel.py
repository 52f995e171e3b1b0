"""`Channel`: all readers of the same thing, who get the same bytes.

A buffer is made once and written once to each reader that keeps up. One that is full is left
behind with its place in the ring and goes on from there when it has room; one that is further
behind than the limit is closed and may resume from its cursor. Nobody waits for anybody. The ring
keeps what was sent only as long as somebody still needs it.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice

import msgspec

from factwire.serving.limits import UNSENT_BYTES
from factwire.serving.streams.stream_sinks import SLOW, CloseReason, StreamSink


class _Entry(msgspec.Struct, frozen=True, gc=False):
    frames: bytes
    before: int


class FrameRing:
    """Buffers in the order in which they were sent; each is one write for every reader."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._start = 0
        self._bytes = 0

    @property
    def end(self) -> int:
        """The place after everything."""
        return self._start + len(self._entries)

    @property
    def held_bytes(self) -> int:
        """Bytes that are kept."""
        return self._bytes - self._entries[0].before if self._entries else 0

    def append(self, frames: bytes) -> None:
        self._entries.append(_Entry(frames, self._bytes))
        self._bytes += len(frames)

    def at(self, place: int) -> bytes:
        """What was sent at a place that has not been let go."""
        return self._entries[place - self._start].frames

    def after(self, place: int) -> list[bytes]:
        """Everything from a place on."""
        return [entry.frames for entry in islice(self._entries, place - self._start, None)]

    def behind(self, place: int) -> int:
        """Bytes from a place on."""
        if place >= self.end:
            return 0
        return self._bytes - self._entries[place - self._start].before

    def discard_before(self, place: int) -> None:
        """Keep nothing from before a place."""
        while self._start < place and self._entries:
            self._entries.popleft()
            self._start += 1
        self._start = max(self._start, place)


class ChannelReader:
    """One reader of a channel, live: it has been sent everything, or has a place to go on from."""

    __slots__ = ("_channel", "place", "sink")

    def __init__(self, channel: "Channel", sink: StreamSink, place: int) -> None:
        self._channel = channel
        self.sink = sink
        self.place = place

    def on_blocked(self) -> None:
        self._channel.leave_behind(self)

    def on_resumed(self) -> None:
        self._channel.go_on(self)

    def on_gone(self) -> None:
        self._channel.remove(self)


class ChannelMark:
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
        self._ring = FrameRing()
        self._level: dict[ChannelReader, None] = {}
        self._behind: dict[ChannelReader, None] = {}
        self._marks: dict[ChannelMark, None] = {}
        self.closed: CloseReason | None = None

    @property
    def members(self) -> int:
        return len(self._level) + len(self._behind)

    @property
    def is_idle(self) -> bool:
        """Nobody reads and nobody is about to."""
        return not (self._level or self._behind or self._marks)

    @property
    def held_bytes(self) -> int:
        """Bytes kept for those who are behind, once for all of them."""
        return self._ring.held_bytes

    def mark(self) -> ChannelMark:
        """Keep what is sent from now on for a reader that will join."""
        mark = ChannelMark(self._ring.end)
        self._marks[mark] = None
        return mark

    def renew(self, mark: ChannelMark) -> None:
        """Keep what is sent from now on instead; a reader that catches up is never nobody."""
        mark.place = self._ring.end
        mark.lost = False
        self._tidy()

    def unmark(self, mark: ChannelMark) -> None:
        """Keep nothing for a reader that does not need its mark any more."""
        if mark in self._marks:
            del self._marks[mark]
            self._tidy()

    def join(self, sink: StreamSink, mark: ChannelMark) -> ChannelReader | None:
        """Become a live reader from a mark on; None where the mark was lost."""
        if mark.lost:
            return None
        del self._marks[mark]
        member = ChannelReader(self, sink, mark.place)
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

    def leave_behind(self, member: ChannelReader) -> None:
        """A reader is full: everything up to now has been written to it, the rest must wait."""
        if member in self._level:
            del self._level[member]
            self._behind[member] = None
            member.place = self._ring.end

    def go_on(self, member: ChannelReader) -> None:
        """Write to a reader that has room again what it lacks, until it is full or level."""
        while member in self._behind and not member.sink.is_blocked:
            if member.place == self._ring.end:
                del self._behind[member]
                self._level[member] = None
                break
            member.place += 1
            member.sink.write(self._ring.at(member.place - 1))
        self._tidy()

    def remove(self, member: ChannelReader) -> None:
        self._level.pop(member, None)
        self._behind.pop(member, None)
        self._tidy()

    def close(self, closing: CloseReason) -> None:
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
        host_policy = [member.place for member in self._behind]
        host_policy += [mark.place for mark in self._marks if not mark.lost]
        self._ring.discard_before(min(host_policy, default=self._ring.end))
        if self.is_idle:
            self._deserted()
