"""What stays of a fact that was removed: enough to tell a repeat from a conflict, for ever."""

from collections.abc import Callable

import msgspec

from factwire.journal.admission import body_digest
from factwire.journal.chunk import Chunk, decode_line


class Removed(msgspec.Struct, frozen=True, gc=False):
    """A removed fact: its place, its id, its sequence in its thread and the digest of its body."""

    seq: int
    id: str
    sequence: int | None
    digest: bytes


def removed_of(chunk: Chunk, keeps: Callable[[int], bool]) -> list[Removed]:
    """What will stay of the facts of a chunk that are not kept."""
    found: list[Removed] = []
    for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
        if not keeps(seq):
            fact = decode_line(line)
            found.append(Removed(seq, fact.id, fact.sequence, body_digest(line)))
    return found
