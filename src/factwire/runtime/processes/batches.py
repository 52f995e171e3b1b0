"""Batches: many small writes become few pieces, and nobody waits noticeably for them.

Text of a stream is gathered until it has waited for `seconds` or is `size` bytes long. Pieces come
out in the order in which they began, over all streams, so that an error message stays near the
output that it is about. Offsets count bytes of the text as UTF-8, without a hole, per stream.
"""

from typing import Final, Literal

import msgspec

from factwire.runtime.processes.text import whole_characters

Stream = Literal["stdout", "stderr"]

STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")

_LONGEST_CHARACTER: Final = 4


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Text of one stream; `offset` is where its first byte stands."""

    stream: Stream
    offset: int
    text: str


class Batches:
    """Gathers; knows the time only from its caller."""

    def __init__(self, *, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = max(size, _LONGEST_CHARACTER)
        self._waiting: dict[Stream, bytearray] = {}
        self._since = 0.0
        self.offsets: dict[Stream, int] = dict.fromkeys(STREAMS, 0)

    @property
    def due(self) -> float | None:
        """When what waits must go; None while nothing does."""
        return self._since + self._seconds if self._waiting else None

    def add(self, stream: Stream, data: bytes, now: float) -> list[Batch]:
        """Take whole characters; gives what must go at once."""
        if not data:
            return []
        if not self._waiting:
            self._since = now
        waiting = self._waiting.setdefault(stream, bytearray())
        waiting += data
        return self.flush() if len(waiting) >= self._size else []

    def flush(self) -> list[Batch]:
        """All that waits."""
        batches = [
            batch for stream, data in self._waiting.items() for batch in self._cut(stream, data)
        ]
        self._waiting.clear()
        return batches

    def _cut(self, stream: Stream, data: bytearray) -> list[Batch]:
        batches: list[Batch] = []
        content, at = bytes(data), 0
        while at < len(content):
            piece = content[at : at + self._size + 1]
            piece = piece[: whole_characters(piece, self._size)]
            batches.append(Batch(stream, self.offsets[stream], piece.decode()))
            self.offsets[stream] += len(piece)
            at += len(piece)
        return batches
