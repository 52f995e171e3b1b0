"""Frames as they go over a socket, made once for everybody who gets them.

A frame is `{type, seq_id, cursor?, payload}`. `seq_id` counts the frames of one connection, so it
is the only part that differs between two readers: a frame is kept with a hole of a fixed width in
that place, which makes its length, and so its WebSocket header, the same for all. Numbers are
padded with spaces, which JSON ignores. Numbering a batch is one copy of its bytes.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from factwire.hub.frames.event_log import HubEvent
from factwire.hub.frames.frame_types import FRAMES, Direction, FramePayload
from factwire.journal import Cursor
from factwire.serving.streams.frame_encoder import text_header

_WIDTH: Final = 12
"""Digits of the largest `seq_id`: more than a connection can be sent."""

_BLOCK: Final = 256

Frame = tuple[bytes, bytes]
"""What stands before the number of a frame, and behind it."""


@lru_cache(maxsize=256)
def _padded_numbers(block: int) -> tuple[bytes, ...]:
    first = block * _BLOCK
    return tuple(b"%*d" % (_WIDTH, number) for number in range(first, first + _BLOCK))


def _number_range(first: int, count: int) -> tuple[bytes, ...]:
    """The numbers from one on, each as wide as a hole."""
    block, at = first // _BLOCK, first % _BLOCK
    found = _padded_numbers(block)[at : at + count]
    while len(found) < count:
        block += 1
        found += _padded_numbers(block)[: count - len(found)]
    return found


class FrameBatch:
    """Frames that are written at once, not numbered yet; `seqs` are the places of events in the
    log, 0 for what has none, and `begin` is the first of them.
    """

    __slots__ = ("_pieces", "begin", "count", "frames", "seqs", "size")

    def __init__(self, seqs: Sequence[int], frames: Sequence[Frame]) -> None:
        self.seqs = seqs
        self.begin = seqs[0]
        self.count = len(frames)
        self.frames = frames
        behind = b""
        self._pieces: list[bytes] = []
        for before, after in frames:
            self._pieces += (behind + before, b"")
            behind = after
        self._pieces.append(behind)
        self.size = sum(map(len, self._pieces)) + self.count * _WIDTH

    def number(self, first: int) -> bytes:
        """The frames of a connection that is at this number."""
        # The holes are filled anew each time: a list of its own for each reader costs more.
        self._pieces[1::2] = _number_range(first, self.count)
        return b"".join(self._pieces)

    def after(self, seq: int) -> "FrameBatch | None":
        """Without the events up to a place; None where nothing is left."""
        if not 0 < self.begin <= seq:
            return self
        kept = [each for each in zip(self.seqs, self.frames, strict=True) if each[0] > seq]
        return FrameBatch([each[0] for each in kept], [each[1] for each in kept]) if kept else None


def encode_event(epoch: str, event: HubEvent) -> Frame:
    """An event of the log; its cursor is where a reader that has it goes on."""
    cursor = b'"cursor":"%s",' % str(Cursor(epoch, event.seq)).encode()
    return _encode(event.type, cursor, event.payload)


def encode_single(type_: str, payload: FramePayload, direction: Direction) -> FrameBatch:
    """A frame that is no event of the log; raises `TypeError` for one that is not in the table."""
    row = FRAMES[type_]
    if direction not in row.directions or not isinstance(payload, row.payload):
        raise TypeError(f"{type_} is not sent {direction} with {type(payload).__name__}")
    return FrameBatch((0,), (_encode(type_, b"", msgspec.json.encode(payload)),))


def _encode(type_: str, cursor: bytes, payload: bytes) -> Frame:
    before = b'{"type":"%s","seq_id":' % type_.encode()
    after = b',%s"payload":%s}' % (cursor, payload)
    header = text_header(len(before) + _WIDTH + len(after))
    return header + before, after
