"""Every id that was ever appended, found at a cost that neither number nor kind of ids moves.

Ids are hashed to 64 bits, which makes random ids and ordered ones alike. The newest are in memory.
Older ones lie in runs that are written once: a run is cut into small pieces by the top bits of the
hash, a filter in front of each piece answers "never seen" without touching the disk, and four runs
of one level become one of the next, with four times the pieces. A hit is only a candidate; whoever
asks compares the fact.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from sys import byteorder
from time import sleep
from typing import Final

import msgspec

from factwire.journal.errors import JournalCorrupt
from factwire.journal.sqlite.database import Database

RUN_IDS: Final = 16_384
"""Ids of a new run: few enough to be cut within a few milliseconds."""

FAN_IN: Final = 4
"""Runs of one level that become one of the next."""

BREATH: Final = 256
"""Ids after which the interpreter is offered to those who append and wait."""

_PIECE_BITS: Final = 4
_FAN_BITS: Final = 2
_ENTRY: Final = 16
_FILTER_BITS: Final = 15
_FILTER_MASK: Final = (1 << _FILTER_BITS) - 1
_FILTER_BYTES: Final = 1 << (_FILTER_BITS - 3)
_CLEAR: Final = b"0" * (1 << _FILTER_BITS)
_SET: Final = ord("1")
_blank: Final = blake2b(digest_size=8)


class Run(msgspec.Struct):
    """A run; filters are read when they are first needed."""

    number: int
    level: int
    filters: list[bytes | None]


class Piece(msgspec.Struct, frozen=True):
    """Entries of a run whose hashes share their top bits: hash and seq, 8 bytes each."""

    number: int
    entries: bytes
    filter: bytes


def id_digests(ids: Iterable[str]) -> list[bytes]:
    """64 bits of each id."""
    digests: list[bytes] = []
    for fact_id in ids:
        # A copy spares reading the parameters again, which is half of what a short id costs.
        digest = _blank.copy()
        digest.update(fact_id.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    return digests


def hashes_of(digests: Iterable[bytes]) -> Sequence[int]:
    """Digests as numbers."""
    numbers = array("Q", b"".join(digests))
    if byteorder == "little":
        numbers.byteswap()
    return numbers


class Runs:
    """The runs of a journal, newest first."""

    def __init__(self, connection: Database) -> None:
        rows = connection.execute("SELECT run, level FROM id_runs ORDER BY run DESC")
        self.runs = tuple(_empty_run(number, level) for number, level in rows)

    def find(self, connection: Database, hashed: int) -> list[int]:
        """Seqs of facts whose id may have this hash, oldest last."""
        found: list[int] = []
        for run in self.runs:
            if _passing(connection, run, (hashed,)):
                piece = hashed >> _shift(run.level)
                found += _seqs_in(_load_entries(connection, run.number, piece), hashed)
        return found

    def passing(self, connection: Database, hashes: Sequence[int]) -> list[int]:
        """Places of those hashes that a filter lets through; nearly none that is new."""
        return [place for run in self.runs for place in _passing(connection, run, hashes)]

    def add(self, number: int, level: int) -> None:
        """Take in a run that has been committed."""
        self.runs = (_empty_run(number, level), *self.runs)

    def replace(self, old: Iterable[int], number: int, level: int) -> None:
        """Take in a run that has been committed in place of others."""
        gone = set(old)
        kept = [run for run in self.runs if run.number not in gone]
        fresh = [*kept, _empty_run(number, level)]
        self.runs = tuple(sorted(fresh, key=lambda run: -run.number))

    def due(self) -> tuple[int, list[int]] | None:
        """A level with enough runs to become one of the next, and those runs."""
        levels: dict[int, list[int]] = {}
        for run in self.runs:
            levels.setdefault(run.level, []).append(run.number)
        full = [item for item in levels.items() if len(item[1]) >= FAN_IN]
        return min(full, default=None)


def new_pieces(digests: Iterable[bytes], seqs: Iterable[int]) -> list[Piece]:
    """The pieces of a run of level 0, for digests of ids with their seqs."""
    entries = [digest + seq.to_bytes(8) for digest, seq in zip(digests, seqs, strict=True)]
    return _cut(entries, 0, 0, piece_count(0))


def merged_pieces(connection: Database, level: int, runs: Iterable[int]) -> Iterator[Piece]:
    """The pieces of the run of the next level, one source piece after the other."""
    numbers = tuple(runs)
    for piece in range(piece_count(level)):
        blob = b"".join(_load_entries(connection, number, piece) for number in numbers)
        entries = [blob[at : at + _ENTRY] for at in range(0, len(blob), _ENTRY)]
        yield from _cut(entries, level + 1, piece << _FAN_BITS, 1 << _FAN_BITS)


def next_run(connection: Database) -> int:
    """A number that no run has, and no leftover of an interrupted merge."""
    sql = "SELECT max(coalesce((SELECT max(run) FROM id_pieces), 0), coalesce(max(run), 0)) + 1"
    return connection.execute(sql + " FROM id_runs").get


def insert_piece(connection: Database, run: int, piece: Piece) -> None:
    connection.execute(
        "INSERT INTO id_pieces VALUES(?, ?, ?, ?, ?, ?)",
        (run, piece.number, _sum(piece.filter), piece.filter, _sum(piece.entries), piece.entries),
    )


def ensure_runs(connection: Database) -> None:
    """Read every piece of every run; raises `JournalCorrupt` at the first that was changed."""
    for number, level in connection.execute("SELECT run, level FROM id_runs"):
        for piece in range(piece_count(level)):
            _load_filter(connection, number, piece)
            _load_entries(connection, number, piece)


def drop_leftovers(connection: Database) -> None:
    """Forget the pieces of merges that a kill interrupted."""
    connection.execute("DELETE FROM id_pieces WHERE run NOT IN (SELECT run FROM id_runs)")


def piece_count(level: int) -> int:
    """How many pieces a run of a level has."""
    return 1 << (_PIECE_BITS + _FAN_BITS * level)


def _empty_run(number: int, level: int) -> Run:
    return Run(number, level, [None] * piece_count(level))


def _shift(level: int) -> int:
    """What is left of a hash's bits beside those that name its piece."""
    return 64 - _PIECE_BITS - _FAN_BITS * level


def _passing(connection: Database, run: Run, hashes: Sequence[int]) -> list[int]:
    found: list[int] = []
    filters = run.filters
    shift = _shift(run.level)
    for place, hashed in enumerate(hashes):
        bits = filters[hashed >> shift]
        if bits is None:
            piece = hashed >> shift
            bits = filters[piece] = _load_filter(connection, run.number, piece)
        low = hashed & _FILTER_MASK
        if bits[low >> 3] >> (low & 7) & 1:
            high = hashed >> _FILTER_BITS & _FILTER_MASK
            if bits[high >> 3] >> (high & 7) & 1:
                found.append(place)
    return found


def _cut(entries: Sequence[bytes], level: int, lowest: int, count: int) -> list[Piece]:
    """The `count` pieces from `lowest` on, of a run of a level."""
    parts: list[list[bytes]] = [[] for _ in range(count)]
    # One digit a bit, the highest first, because a digit is set faster than a bit.
    digits = [bytearray(_CLEAR) for _ in range(count)]
    hashes = hashes_of(entry[:8] for entry in entries)
    shift = _shift(level)
    for at in range(0, len(entries), BREATH):
        sleep(0)
        for entry, hashed in zip(entries[at : at + BREATH], hashes[at : at + BREATH], strict=True):
            place = (hashed >> shift) - lowest
            parts[place].append(entry)
            marks = digits[place]
            marks[~hashed & _FILTER_MASK] = _SET
            marks[~hashed >> _FILTER_BITS & _FILTER_MASK] = _SET
    return [
        Piece(
            lowest + at, b"".join(parts[at]), int(digits[at], 2).to_bytes(_FILTER_BYTES, "little")
        )
        for at in range(count)
    ]


def _seqs_in(entries: bytes, hashed: int) -> list[int]:
    key = hashed.to_bytes(8)
    found: list[int] = []
    at = entries.find(key)
    while at >= 0:
        if at % _ENTRY == 0:
            found.append(int.from_bytes(entries[at + 8 : at + _ENTRY]))
        at = entries.find(key, at + 1)
    return found[::-1]


def _load_filter(connection: Database, run: int, piece: int) -> bytes:
    sql = "SELECT filter_sum, filter FROM id_pieces WHERE run = ? AND piece = ?"
    return _checked(connection.execute(sql, (run, piece)).get, run, piece)


def _load_entries(connection: Database, run: int, piece: int) -> bytes:
    sql = "SELECT sum, entries FROM id_pieces WHERE run = ? AND piece = ?"
    return _checked(connection.execute(sql, (run, piece)).get, run, piece)


def _checked(row: tuple[bytes, bytes] | None, run: int, piece: int) -> bytes:
    if row is None or _sum(row[1]) != row[0]:
        raise JournalCorrupt(f"piece {piece} of id run {run} is missing or was changed")
    return row[1]


def _sum(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
