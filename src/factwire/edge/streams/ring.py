"""`Ring`: what was sent of late, kept only as long as somebody still needs it.

Every reader that is behind has a place in it. Places are numbers that only rise, so that a reader
at a place knows exactly what it lacks, and how many bytes that is.
"""

from collections import deque
from itertools import islice

import msgspec


class _Entry(msgspec.Struct, frozen=True, gc=False):
    frames: bytes
    before: int


class Ring:
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
    def held(self) -> int:
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

    def let_go(self, place: int) -> None:
        """Keep nothing from before a place."""
        while self._start < place and self._entries:
            self._entries.popleft()
            self._start += 1
        self._start = max(self._start, place)
