"""Bringing a journal back as it was: the same seqs with their gaps, and ids that stay taken.

A restore begins from an empty journal and is the only thing that sets a seq. It is written in
pieces of adjacent seqs. What had been removed before is a gap in a piece, and a record of the chain
vouches for it as if the removal had happened here. A restored journal is therefore one like any
other: readers, removals and walks know nothing of where it came from.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import GENESIS, Record, RecordBody, Truncated, record_of
from factwire.journal.chunk import Chunk, decode_line, gapped_chunk, grouped, new_chunk
from factwire.journal.errors import RestoreRefused
from factwire.journal.filter import keys_of
from factwire.journal.removed import Removed

PIECE_SEQS: Final = 1_024
"""Facts, present or removed, of one piece."""

PIECE_BYTES: Final = 512 * 1024
"""Bytes of lines after which a piece is closed."""


class Present(msgspec.Struct, frozen=True, gc=False):
    """A fact that is there, as the line under which it is stored."""

    seq: int
    line: bytes


class Restoration(msgspec.Struct, frozen=True, kw_only=True):
    """A whole journal, to be written into an empty one.

    `entries` rise by seq; a seq that is missing was removed, and nothing is known of it. All up to
    `floor` were removed. `threads` are the records of the catalogue as of the last entry.
    """

    floor: int
    entries: Iterable[Present | Removed]
    threads: Iterable[ThreadRecord]


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """The seqs `first`–`last`: what is there, what is gone, and the records that vouch for it.

    `chunk` is None up to the floor, where nothing is there.
    """

    first: int
    last: int
    chunk: Chunk | None
    records: tuple[Record, ...]
    removed: tuple[Removed, ...]

    def ids(self) -> dict[str, int]:
        """Every id of the piece and its seq; raises `RestoreRefused` where one comes twice."""
        found = {each.id: each.seq for each in self.removed}
        if self.chunk is not None:
            lines = zip(self.chunk.places(), self.chunk.lines(), strict=True)
            found.update((decode_line(line).id, seq) for seq, line in lines)
        facts = 0 if self.chunk is None else self.chunk.facts
        if len(found) != len(self.removed) + facts:
            raise RestoreRefused(f"an id comes twice among the facts {self.first}–{self.last}")
        return found

    @property
    def end(self) -> bytes:
        """The hash that the chain has after the piece."""
        if self.records:
            return self.records[-1].hash
        return GENESIS if self.chunk is None else self.chunk.hash

    @property
    def gone(self) -> int:
        """How many of its seqs hold no fact."""
        return self.last - self.first + 1 - (0 if self.chunk is None else self.chunk.facts)


def pieces_of(given: Restoration) -> Iterator[Piece]:
    """A journal in pieces, from the first seq on."""
    before, end = 0, GENESIS
    for last, group in _groups(given):
        piece = _piece(before + 1, last, group, end, given.floor)
        before, end = last, piece.end
        yield piece


def ensure_empty(head: int) -> None:
    """A restore never mixes with facts that are there."""
    if head:
        raise RestoreRefused(f"the journal holds facts up to {head}; restore into an empty one")


def ensure_new(taken: Iterable[str]) -> None:
    """An id is taken once, also in what is restored."""
    for fact_id in taken:
        raise RestoreRefused(f"the id {fact_id!r} comes twice")


_Group = list[Present | Removed]


def _groups(given: Restoration) -> Iterator[tuple[int, _Group]]:
    """Entries of adjacent seqs, and the seq that a group reaches to, which may be the floor."""
    group: _Group = []
    size = seq = 0
    for entry in given.entries:
        _ensure_in_place(entry, seq, given.floor)
        at_floor = seq <= given.floor < entry.seq and given.floor > 0
        if at_floor or len(group) == PIECE_SEQS or size >= PIECE_BYTES:
            yield given.floor if at_floor else seq, group
            group, size = [], 0
        group.append(entry)
        seq = entry.seq
        size += len(entry.line) if isinstance(entry, Present) else 0
    if group:
        yield seq, group


def _ensure_in_place(entry: Present | Removed, after: int, floor: int) -> None:
    if entry.seq <= after:
        raise RestoreRefused(f"expected a fact after {after}, got {entry.seq}")
    if entry.seq <= floor and isinstance(entry, Present):
        raise RestoreRefused(f"expected nothing up to the floor {floor}, got a fact at {entry.seq}")


def _piece(first: int, last: int, group: _Group, prev: bytes, floor: int) -> Piece:
    kept = [(entry.seq, entry.line) for entry in group if isinstance(entry, Present)]
    removed = tuple(entry for entry in group if isinstance(entry, Removed))
    if last <= floor:
        return Piece(first=first, last=last, chunk=None, records=(), removed=removed)
    contents: list[RecordBody] = []
    if len(kept) == last - first + 1:
        keys = [keys_of(decode_line(line)) for _, line in kept]
        chunk = new_chunk(prev, first, [line for _, line in kept], grouped(keys))
    else:
        chunk, content = gapped_chunk(prev, first, last, kept)
        contents.append(content)
    if first == floor + 1 and floor:
        contents.append(Truncated(floor=floor, hash=GENESIS, dropped=floor))
    records = tuple(_chained(contents, last, chunk.hash))
    return Piece(first=first, last=last, chunk=chunk, records=records, removed=removed)


def _chained(contents: Iterable[RecordBody], after: int, prev: bytes) -> Iterator[Record]:
    for content in contents:
        record = record_of(after, prev, content)
        prev = record.hash
        yield record
