"""Every id that was ever taken, in some 25 bytes each: a fingerprint per seq and a table over them.

A fingerprint only says where to look. Whoever finds one reads the stored fact and compares the
whole id, so that two ids with one fingerprint cost a read and never an answer.
"""

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from sys import byteorder
from typing import Final

_SHARDS: Final = 64
"""Tables of which one grows at a time, so that growing is never a long pause."""

_SMALLEST: Final = 64
_blank: Final = blake2b(digest_size=8)


def fingerprints(ids: Iterable[str]) -> list[int]:
    """64 bits of each id, the same in every process; never 0, which stands for an empty place."""
    digests: list[bytes] = []
    for fact_id in ids:
        # A copy spares reading the parameters again, which is half of what a short id costs.
        digest = _blank.copy()
        digest.update(fact_id.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    marks = array("Q", b"".join(digests))
    if byteorder == "big":
        marks.byteswap()
    return [mark or 1 for mark in marks]


class Ids:
    """Seqs by the fingerprint of their fact's id."""

    def __init__(self) -> None:
        self.prints = array("Q")
        self._tables = [array("Q", bytes(8 * _SMALLEST)) for _ in range(_SHARDS)]
        self._used = [0] * _SHARDS

    def put(self, seq: int, mark: int) -> None:
        """Note the id of a seq out of turn; noting it again changes nothing."""
        self.skip(seq + 1)
        if self.prints[seq - 1]:
            return
        self.prints[seq - 1] = mark
        self._place(mark % _SHARDS, seq, mark)

    def skip(self, seq: int) -> None:
        """Leave the seqs up to this one open, where they are not noted yet."""
        missing = seq - 1 - len(self.prints)
        if missing > 0:
            self.prints.frombytes(bytes(8 * missing))

    def extend(self, marks: Iterable[int]) -> None:
        """Note the ids of the seqs that come next; 0 where one is not known."""
        tables, used, add = self._tables, self._used, self.prints.append
        seq = len(self.prints)
        for mark in marks:
            seq += 1
            add(mark)
            if not mark:
                continue
            shard = mark % _SHARDS
            table = tables[shard]
            mask = len(table) - 1
            slot = (mark // _SHARDS) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = seq
            used[shard] += 1
            if used[shard] * 3 > mask * 2:
                self._grow(shard)

    def taken(self, marks: Sequence[int]) -> list[tuple[int, int]]:
        """(place in `marks`, seq) of each that is noted; most writes find none."""
        tables, prints = self._tables, self.prints
        hits: list[tuple[int, int]] = []
        for place, mark in enumerate(marks):
            table = tables[mark % _SHARDS]
            mask = len(table) - 1
            slot = (mark // _SHARDS) & mask
            while seq := table[slot]:
                if prints[seq - 1] == mark:
                    hits.append((place, seq))
                slot = (slot + 1) & mask
        return hits

    def find(self, mark: int) -> list[int]:
        """The seqs whose id may be the one with this fingerprint; nearly always none or one."""
        return [seq for _, seq in self.taken((mark,))]

    def _place(self, shard: int, seq: int, mark: int) -> None:
        table = self._tables[shard]
        mask = len(table) - 1
        slot = (mark // _SHARDS) & mask
        while table[slot]:
            slot = (slot + 1) & mask
        table[slot] = seq
        self._used[shard] += 1
        if self._used[shard] * 3 > mask * 2:
            self._grow(shard)

    def _grow(self, shard: int) -> None:
        held = [seq for seq in self._tables[shard] if seq]
        table = self._tables[shard] = array("Q", bytes(16 * len(self._tables[shard])))
        mask = len(table) - 1
        for seq in held:
            slot = (self.prints[seq - 1] // _SHARDS) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = seq
