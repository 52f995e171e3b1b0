"""The newest chunks in memory, shared by all followers of this process.

A follower is a position; it takes what lies past it, or learns that the tail does not reach back so
far and asks the server. A slow follower therefore costs nothing, and the tail at most `TAIL_BYTES`.
"""

from collections import deque

from factwire.journal.chunk import Chunk
from factwire.journal.postgres.settings import TAIL_BYTES


class Tail:
    """Adjacent chunks up to the last seq that this process has heard of."""

    def __init__(self, head: int) -> None:
        self.head = head
        self._chunks: deque[Chunk] = deque()
        self._bytes = 0

    def add(self, chunk: Chunk) -> None:
        """Take a new chunk; one that does not follow the last begins the tail anew."""
        if chunk.last <= self.head:
            return
        if chunk.first != self.head + 1:
            self.restart(chunk.first - 1)
        self._chunks.append(chunk)
        self._bytes += len(chunk.data)
        self.head = chunk.last
        while self._bytes > TAIL_BYTES and len(self._chunks) > 1:
            self._bytes -= len(self._chunks.popleft().data)

    def restart(self, head: int) -> None:
        """Hold nothing, and know of nothing past `head`."""
        self._chunks.clear()
        self._bytes = 0
        self.head = head

    def since(self, position: int) -> list[Chunk] | None:
        """Everything past a position; None where the tail does not have all of it."""
        if position >= self.head:
            return []
        if not self._chunks or self._chunks[0].first > position + 1:
            return None
        newer: list[Chunk] = []
        for chunk in reversed(self._chunks):
            if chunk.last <= position:
                break
            newer.append(chunk)
        return newer[::-1]
