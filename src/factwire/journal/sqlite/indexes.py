"""The indexes on disk: every id that was ever appended, and which chunks hold which keys.

Ids are hashed to 64 bits, which makes random ids and ordered ones alike. They lie in runs that are
written once: a run is cut into small pieces by the top bits of the hash, a filter in front of each
piece answers "never seen" without touching the disk, and four runs of one level become one of the
next, with four times the pieces. A hit is only a candidate; whoever asks compares the fact.

A segment has the keys of some thousands of facts that are no longer merged. It is one row, checked
as a whole, because a key that is missing must be as trustworthy as one that is there. The newest
facts are in memory until they are sealed into both.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from sys import byteorder
from threading import Lock
from time import sleep
from typing import Final

import msgspec

from factwire.journal.chunks import Chunk
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter, Groups, Keys
from factwire.journal.sqlite.schema import Database

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


class IdRun(msgspec.Struct):
    """A run; filters are read when they are first needed."""

    number: int
    level: int
    filters: list[bytes | None]


class IdPiece(msgspec.Struct, frozen=True):
    """Entries of a run whose hashes share their top bits: hash and seq, 8 bytes each."""

    number: int
    entries: bytes
    filter: bytes


def digest_ids(ids: Iterable[str]) -> list[bytes]:
    """64 bits of each id."""
    digests: list[bytes] = []
    for fact_id in ids:
        # A copy spares reading the parameters again, which is half of what a short id costs.
        digest = _blank.copy()
        digest.update(fact_id.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    return digests


def to_hashes(digests: Iterable[bytes]) -> Sequence[int]:
    """Digests as numbers."""
    numbers = array("Q", b"".join(digests))
    if byteorder == "little":
        numbers.byteswap()
    return numbers


class IdRuns:
    """The runs of a journal, newest first."""

    def __init__(self, connection: Database) -> None:
        rows = connection.execute("SELECT run, level FROM id_runs ORDER BY run DESC")
        self.runs = tuple(_build_empty_run(number, level) for number, level in rows)

    def find(self, connection: Database, hashed: int) -> list[int]:
        """Seqs of facts whose id may have this hash, oldest last."""
        found: list[int] = []
        for run in self.runs:
            if _filter_hashes(connection, run, (hashed,)):
                piece = hashed >> _compute_shift(run.level)
                found += _find_seqs(_load_entries(connection, run.number, piece), hashed)
        return found

    def filter_hashes(self, connection: Database, hashes: Sequence[int]) -> list[int]:
        """Places of those hashes that a filter lets through; nearly none that is new."""
        return [place for run in self.runs for place in _filter_hashes(connection, run, hashes)]

    def add(self, number: int, level: int) -> None:
        """Take in a run that has been committed."""
        self.runs = (_build_empty_run(number, level), *self.runs)

    def replace(self, old: Iterable[int], number: int, level: int) -> None:
        """Take in a run that has been committed in place of others."""
        gone = set(old)
        kept = [run for run in self.runs if run.number not in gone]
        fresh = [*kept, _build_empty_run(number, level)]
        self.runs = tuple(sorted(fresh, key=lambda run: -run.number))

    def find_due(self) -> tuple[int, list[int]] | None:
        """A level with enough runs to become one of the next, and those runs."""
        levels: dict[int, list[int]] = {}
        for run in self.runs:
            levels.setdefault(run.level, []).append(run.number)
        full = [item for item in levels.items() if len(item[1]) >= FAN_IN]
        return min(full, default=None)


def build_pieces(digests: Iterable[bytes], seqs: Iterable[int]) -> list[IdPiece]:
    """The pieces of a run of level 0, for digests of ids with their seqs."""
    entries = [digest + seq.to_bytes(8) for digest, seq in zip(digests, seqs, strict=True)]
    return _build_pieces(entries, 0, 0, count_pieces(0))


def merge_pieces(connection: Database, level: int, runs: Iterable[int]) -> Iterator[IdPiece]:
    """The pieces of the run of the next level, one source piece after the other."""
    numbers = tuple(runs)
    for piece in range(count_pieces(level)):
        blob = b"".join(_load_entries(connection, number, piece) for number in numbers)
        entries = [blob[at : at + _ENTRY] for at in range(0, len(blob), _ENTRY)]
        yield from _build_pieces(entries, level + 1, piece << _FAN_BITS, 1 << _FAN_BITS)


def find_next_run(connection: Database) -> int:
    """A number that no run has, and no leftover of an interrupted merge."""
    sql = "SELECT max(coalesce((SELECT max(run) FROM id_pieces), 0), coalesce(max(run), 0)) + 1"
    return connection.execute(sql + " FROM id_runs").get


def insert_piece(connection: Database, run: int, piece: IdPiece) -> None:
    connection.execute(
        "INSERT INTO id_pieces VALUES(?, ?, ?, ?, ?, ?)",
        (
            run,
            piece.number,
            _sum_piece(piece.filter),
            piece.filter,
            _sum_piece(piece.entries),
            piece.entries,
        ),
    )


def ensure_runs(connection: Database) -> None:
    """Read every piece of every run; raises `JournalCorrupt` at the first that was changed."""
    for number, level in connection.execute("SELECT run, level FROM id_runs"):
        for piece in range(count_pieces(level)):
            _load_filter(connection, number, piece)
            _load_entries(connection, number, piece)


def drop_leftovers(connection: Database) -> None:
    """Forget the pieces of merges that a kill interrupted."""
    connection.execute("DELETE FROM id_pieces WHERE run NOT IN (SELECT run FROM id_runs)")


def count_pieces(level: int) -> int:
    """How many pieces a run of a level has."""
    return 1 << (_PIECE_BITS + _FAN_BITS * level)


def _build_empty_run(number: int, level: int) -> IdRun:
    return IdRun(number, level, [None] * count_pieces(level))


def _compute_shift(level: int) -> int:
    """What is left of a hash's bits beside those that name its piece."""
    return 64 - _PIECE_BITS - _FAN_BITS * level


def _filter_hashes(connection: Database, run: IdRun, hashes: Sequence[int]) -> list[int]:
    found: list[int] = []
    filters = run.filters
    shift = _compute_shift(run.level)
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


def _build_pieces(entries: Sequence[bytes], level: int, lowest: int, count: int) -> list[IdPiece]:
    """The `count` pieces from `lowest` on, of a run of a level."""
    parts: list[list[bytes]] = [[] for _ in range(count)]
    # One digit a bit, the highest first, because a digit is set faster than a bit.
    digits = [bytearray(_CLEAR) for _ in range(count)]
    hashes = to_hashes(entry[:8] for entry in entries)
    shift = _compute_shift(level)
    for at in range(0, len(entries), BREATH):
        sleep(0)
        for entry, hashed in zip(entries[at : at + BREATH], hashes[at : at + BREATH], strict=True):
            place = (hashed >> shift) - lowest
            parts[place].append(entry)
            marks = digits[place]
            marks[~hashed & _FILTER_MASK] = _SET
            marks[~hashed >> _FILTER_BITS & _FILTER_MASK] = _SET
    return [
        IdPiece(
            lowest + at, b"".join(parts[at]), int(digits[at], 2).to_bytes(_FILTER_BYTES, "little")
        )
        for at in range(count)
    ]


def _find_seqs(entries: bytes, hashed: int) -> list[int]:
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
    return _check_piece(connection.execute(sql, (run, piece)).get, run, piece)


def _load_entries(connection: Database, run: int, piece: int) -> bytes:
    sql = "SELECT sum, entries FROM id_pieces WHERE run = ? AND piece = ?"
    return _check_piece(connection.execute(sql, (run, piece)).get, run, piece)


def _check_piece(row: tuple[bytes, bytes] | None, run: int, piece: int) -> bytes:
    if row is None or _sum_piece(row[1]) != row[0]:
        raise JournalCorrupt(f"piece {piece} of id run {run} is missing or was changed")
    return row[1]


def _sum_piece(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class UnindexedFacts(msgspec.Struct):
    """Ids with their seqs, the digest of each in the same order, and the keys of each commit.

    `keys` begin with the first seq of their commit; commits may have been merged since.
    """

    seqs: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    digests: list[bytes] = msgspec.field(default_factory=list[bytes])
    keys: list[tuple[int, Iterable[Keys]]] = msgspec.field(
        default_factory=list[tuple[int, Iterable[Keys]]]
    )

    def add(self, ids: Iterable[str], digests: Iterable[bytes], seqs: Iterable[int]) -> None:
        """Take in facts in their order."""
        self.seqs.update(zip(ids, seqs, strict=True))
        self.digests += digests

    def join(self, later: "UnindexedFacts") -> "UnindexedFacts":
        return UnindexedFacts(
            {**self.seqs, **later.seqs}, self.digests + later.digests, self.keys + later.keys
        )

    def list_keys_of_chunks(self, firsts: Sequence[int]) -> Iterator[tuple[int, Iterable[Keys]]]:
        """The keys of the chunks that begin at these seqs."""
        found: list[dict[Keys, None]] = [{} for _ in firsts]
        for first, keys in self.keys:
            found[bisect_right(firsts, first) - 1].update(dict.fromkeys(keys))
        return zip(firsts, found, strict=True)


CACHED: Final = 64
"""Decoded segments kept in memory, some hundred kilobytes each."""


class KeySegment(msgspec.Struct, frozen=True, array_like=True):
    """Where its chunks begin, and groups of keys → which of them hold facts with these."""

    firsts: tuple[int, ...]
    rows: tuple[tuple[Keys, list[int]], ...]

    def groups(self) -> Groups:
        return dict(self.rows)


class SegmentRow(msgspec.Struct, frozen=True):
    """A segment as stored."""

    first: int
    last: int
    check: bytes
    keys: bytes


_RANGE: Final = (
    "SELECT first, last FROM segments WHERE first <= ?2 AND first >= "
    "coalesce((SELECT max(first) FROM segments WHERE first <= ?1), 0) ORDER BY first"
)
_decoder: Final = msgspec.msgpack.Decoder[KeySegment](KeySegment)


def build_segment(
    chunks: Iterable[tuple[int, Iterable[Keys]]], first: int, last: int
) -> SegmentRow:
    """The segment of adjacent chunks, each with its first seq and the keys of its facts."""
    firsts: list[int] = []
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    for place, (start, groups) in enumerate(chunks):
        firsts.append(start)
        # Those who append and wait come first.
        sleep(0)
        for keys in groups:
            found[keys].append(place)
    blob = msgspec.msgpack.encode(KeySegment(tuple(firsts), tuple(found.items())))
    return SegmentRow(first, last, _sum_segment(first, last, blob), blob)


def insert_segment(connection: Database, row: SegmentRow) -> None:
    connection.execute(
        "INSERT INTO segments VALUES(?, ?, ?, ?)", (row.first, row.last, row.check, row.keys)
    )


class SegmentCache:
    """Segments by demand, with the latest ones kept decoded; used by several threads."""

    def __init__(self) -> None:
        self._cache: OrderedDict[int, KeySegment] = OrderedDict()
        self._lock = Lock()

    def candidates(
        self, connection: Database, wanted: Filter, after: int, upto: int
    ) -> Iterator[int]:
        """Where chunks begin that may hold what a filter wants, among sealed facts past `after`."""
        place: int | None = None
        for first, last in connection.execute(_RANGE, (after + 1, upto)):
            if place not in (None, first):
                raise JournalCorrupt("a segment of the index is missing", first=place)
            place = last + 1
            segment = self._get(connection, first)
            start = bisect_right(segment.firsts, after + 1) - 1
            for position in wanted.select(segment.groups()):
                if position >= start:
                    yield segment.firsts[position]
        if place is not None and place <= upto:
            raise JournalCorrupt("a segment of the index is missing", first=place)

    def _get(self, connection: Database, first: int) -> KeySegment:
        with self._lock:
            known = self._cache.get(first)
            if known is not None:
                self._cache.move_to_end(first)
                return known
        segment = load_segment(connection, first)
        with self._lock:
            self._cache[first] = segment
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return segment


def load_segment(connection: Database, first: int) -> KeySegment:
    """The segment that begins at a seq, checked."""
    sql = "SELECT last, sum, keys FROM segments WHERE first = ?"
    row: tuple[int, bytes, bytes] | None = connection.execute(sql, (first,)).get
    if row is None or _sum_segment(first, row[0], row[2]) != row[1]:
        raise JournalCorrupt("a segment of the index is missing or was changed", first=first)
    return _decoder.decode(row[2])


def is_covered(segment: KeySegment, outline: Chunk) -> bool:
    """Whether a segment leads to a chunk from each of the chunk's keys."""
    if outline.first not in segment.firsts:
        return False
    place = segment.firsts.index(outline.first)
    known = segment.groups()
    return all(place in known.get(keys, ()) for keys in outline.groups())


def _sum_segment(first: int, last: int, blob: bytes) -> bytes:
    return sha256(b"%d %d\n" % (first, last) + blob).digest()
