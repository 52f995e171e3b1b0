"""A point of the hash chain, by which somebody outside can tell whether a journal is still the one
that it was: the hash there stands for every byte that was committed before.
"""

import msgspec

from factwire.journal.chunk import Chunk, links_of
from factwire.journal.cursor import Cursor
from factwire.journal.resume import Bounds, check_cursor


class ChainPoint(msgspec.Struct, frozen=True):
    """The chain has `hash` behind the commit whose last fact is, or was, at `seq`."""

    seq: int
    hash: bytes


def point_in(chunk: Chunk, seq: int) -> ChainPoint:
    """The end of the commit that a seq of the chunk belongs to; of a thinned chunk, its own end."""
    if chunk.seqs is None:
        end = chunk.first - 1
        for link in links_of(chunk):
            end += link.facts
            if seq <= end:
                return ChainPoint(end, link.hash)
    return ChainPoint(chunk.last, chunk.hash)


def ensure_reached(seq: int, bounds: Bounds) -> int:
    """The seq; raises `CursorFromFuture` for one past the head."""
    return check_cursor(Cursor(bounds.epoch, seq), msgspec.structs.replace(bounds, floor=0))
