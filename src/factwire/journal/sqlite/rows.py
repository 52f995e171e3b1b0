"""Chunks and records as rows, and the one place where SQLite's complaints become the journal's."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import apsw
import msgspec

from factwire.journal.chain import Record
from factwire.journal.chunk import Chunk
from factwire.journal.errors import JournalCorrupt
from factwire.journal.sqlite.database import Blob, Database, Rows
from factwire.journal.sqlite.extents import Extent, ensure_extent, ensure_outline

OUTLINE: Final = "first, last, prev, hash, sum, seqs, links, body, keys"
_ONE: Final = f"SELECT {OUTLINE}, data FROM chunks WHERE first = ?"  # noqa: S608
_HOLDING: Final = f"SELECT {OUTLINE}, data FROM chunks WHERE first <= ? ORDER BY first DESC LIMIT 1"  # noqa: S608
_FROM: Final = f"SELECT {OUTLINE}, data FROM chunks WHERE first >= ? ORDER BY first"  # noqa: S608
_OUTLINES: Final = f"SELECT {OUTLINE} FROM chunks WHERE first >= ? ORDER BY first"  # noqa: S608

_encode: Final = msgspec.msgpack.Encoder().encode


DAMAGE: Final = (
    apsw.CorruptError,
    apsw.NotADBError,
    msgspec.MsgspecError,
    TypeError,
    UnicodeDecodeError,
)
"""What SQLite or a decoder raises when it meets bytes that nobody wrote."""


@contextmanager
def reading() -> Generator[None]:
    """Damage inside the block is a damaged journal."""
    try:
        yield
    except DAMAGE as error:
        raise JournalCorrupt(f"a stored value cannot be read: {error}") from error


def insert_chunk(connection: Database, chunk: Chunk) -> None:
    connection.execute(
        "INSERT INTO chunks VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            chunk.first,
            chunk.last,
            chunk.prev,
            chunk.hash,
            chunk.check,
            None if chunk.seqs is None else _encode(chunk.seqs),
            _encode(chunk.links) if chunk.links else None,
            chunk.body,
            chunk.index,
            chunk.data,
        ),
    )


def replace_chunk(connection: Database, chunk: Chunk) -> None:
    connection.execute("DELETE FROM chunks WHERE first = ?", (chunk.first,))
    insert_chunk(connection, chunk)


def chunk_at(connection: Database, first: int) -> Chunk:
    """The chunk that begins at a seq, checked."""
    row = connection.execute(_ONE, (first,)).get
    if row is None:
        raise JournalCorrupt("a chunk that the index names is missing", first=first)
    return ensure_extent(Extent(*row)).chunk()


def chunk_holding(connection: Database, seq: int) -> Chunk:
    """The chunk whose range a seq falls in, checked."""
    row = connection.execute(_HOLDING, (seq,)).get
    if row is None or not row[0] <= seq <= row[1]:
        raise JournalCorrupt("a chunk is missing", first=seq)
    return ensure_extent(Extent(*row)).chunk()


def first_holding(connection: Database, seq: int) -> int:
    """Where the chunk begins that has a seq in its range, or would have."""
    sql = "SELECT first FROM chunks WHERE first <= ? ORDER BY first DESC LIMIT 1"
    found: int | None = connection.execute(sql, (seq,)).get
    return seq if found is None else found


def chunks_after(connection: Database, after: int, upto: int) -> Iterator[Chunk]:
    """The chunks from the one that holds the seq past `after` on, checked, without a hole."""
    return (extent.chunk() for extent in extents_after(connection, after, upto))


def extents_after(connection: Database, after: int, upto: int) -> Iterator[Extent]:
    """The same, not decoded."""
    rows = connection.execute(_OUTLINES, (first_holding(connection, after + 1),))
    with closing(_Data(connection)) as data:
        for row in _unbroken(rows, after + 1, upto):
            yield ensure_extent(Extent(*row, data.of(row[0])))  # pyright: ignore[reportCallIssue]


def outlines_after(connection: Database, after: int, upto: int) -> Iterator[Chunk]:
    """The chunks without data, for those who look for keys."""
    rows = connection.execute(_OUTLINES, (first_holding(connection, after + 1),))
    for row in _unbroken(rows, after + 1, upto):
        yield ensure_outline(Extent(*row)).chunk()


def _unbroken(rows: Rows, place: int, upto: int) -> Iterator[tuple[Any, ...]]:
    # An open statement holds on to its snapshot; no error may keep one open.
    with closing(rows):
        for row in rows:
            if place > upto:
                return
            if not row[0] <= place <= row[1]:
                raise JournalCorrupt("a chunk is missing", first=place, last=row[0] - 1)
            yield row
            place = row[1] + 1
    if place <= upto:
        raise JournalCorrupt("a chunk is missing", first=place, last=upto)


class _Data:
    """The data of one chunk after the other, copied once where a row would copy it twice."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._blob: Blob | None = None

    def of(self, first: int) -> bytes:
        if self._blob is None:
            self._blob = self._connection.blob_open("main", "chunks", "data", first, False)  # noqa: FBT003
        else:
            self._blob.reopen(first)
        return self._blob.read()

    def close(self) -> None:
        if self._blob is not None:
            self._blob.close()


def raw_chunks(connection: Database) -> Iterator[Chunk]:
    """Every chunk there is, unchecked."""
    return (Extent(*row).chunk() for row in connection.execute(_FROM, (0,)))


def insert_record(connection: Database, record: Record) -> None:
    connection.execute(
        "INSERT INTO records(after, prev, hash, body) VALUES(?, ?, ?, ?)",
        (record.after, record.prev, record.hash, record.body),
    )


def all_records(connection: Database) -> list[Record]:
    rows = connection.execute("SELECT after, prev, hash, body FROM records ORDER BY number")
    return [Record(after=row[0], prev=row[1], hash=row[2], body=row[3]) for row in rows]
