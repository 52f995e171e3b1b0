"""The newest chunks in memory, shared by all followers.

A follower is only a position: it takes what lies past it, or learns that the ring has moved on and
reads from disk. What a slow follower costs is therefore nothing, and what the ring costs a number.
"""

from collections import deque
from threading import Lock
from typing import Final

from factwire.journal.chunk import Chunk, Stretch, stretch_of
from factwire.journal.filter import Filter, Groups

RING_BYTES: Final = 4 * 1024 * 1024
"""Bytes of lines that the ring holds on to."""


class Held:
    """A chunk in the ring; its index is decoded for the first who filters."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._groups: Groups | None = None

    def stretch(self, epoch: str, after: int, wanted: Filter | None) -> Stretch:
        if wanted is not None and self._groups is None:
            self._groups = self.chunk.groups()
        return stretch_of(self.chunk, epoch, after=after, wanted=wanted, groups=self._groups)


class Ring:
    """Filled by the writer, read by followers of any thread."""

    def __init__(self) -> None:
        self._held: deque[Held] = deque()
        self._bytes = 0
        self._lock = Lock()

    def add(self, chunk: Chunk) -> None:
        with self._lock:
            self._held.append(Held(chunk))
            self._bytes += len(chunk.data)
            while self._bytes > RING_BYTES and len(self._held) > 1:
                self._bytes -= len(self._held.popleft().chunk.data)

    def since(self, position: int) -> list[Held] | None:
        """Everything past a position, or None where the ring no longer has all of it."""
        with self._lock:
            if not self._held or self._held[0].chunk.first > position + 1:
                return None
            newer: list[Held] = []
            for held in reversed(self._held):
                if held.chunk.last <= position:
                    break
                newer.append(held)
        return newer[::-1]
