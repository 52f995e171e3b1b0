"""Tables of the SQLite journal, the connections that use them, and chunks and records as rows.

Tables are numbered migrations. Most reads hand out whole chunks; for those neither the index nor
the links of a chunk are decoded, because their bytes, as stored, are what the checksum was made of.
Here is the one place where SQLite's complaints become the journal's.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, Protocol, cast

import apsw
import msgspec

from factwire.journal.chunks import ChainLink, Chunk, FactBatch, Record, sum_data, sum_outline
from factwire.journal.errors import JournalCorrupt, JournalError, JournalUnavailable

Value = int | str | bytes | None


class Rows(Protocol):
    """The rows of a statement; `get` is the only row, its only value, or None."""

    @property
    def get(self) -> Any: ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class BlobHandle(Protocol):
    """One stored value, and after `reopen` the same column of another row."""

    def read(self, length: int = ..., /) -> bytes: ...

    def reopen(self, rowid: int, /) -> None: ...

    def close(self, force: bool = ..., /) -> None: ...  # noqa: FBT001


class Database(Protocol):
    """A connection."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statements: str, bindings: Sequence[Value] = ..., /) -> Rows: ...

    def executemany(self, statements: str, bindings: Iterable[Sequence[Value]], /) -> Rows: ...

    def blob_open(
        self,
        database: str,
        table: str,
        column: str,
        rowid: int,
        writeable: bool,  # noqa: FBT001
        /,
    ) -> BlobHandle: ...

    def pragma(self, name: str, value: Any = ..., /) -> Any: ...

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def set_wal_hook(self, callable: Callable[[Any, str, int], int] | None, /) -> None: ...  # noqa: A002

    def wal_autocheckpoint(self, n: int, /) -> None: ...

    def wal_checkpoint(self, dbname: str | None = ..., mode: int = ...) -> tuple[int, int]: ...

    def close(self, force: bool = ..., /) -> None: ...  # noqa: FBT001


SQLITE_FLOOR: Final = 3_051_003
"""First SQLite whose write-ahead log is free of a corruption that hit earlier releases."""

BUSY_MS: Final = 10_000
"""How long a connection waits for another one of this journal, such as a checkpoint."""

PAGE_BYTES: Final = 8_192
"""Size of a database page; chunks span many, and fewer of them read faster."""

MIGRATIONS: Final = (
    """
    CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE chunks(
        first INTEGER PRIMARY KEY, last INTEGER NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL,
        sum BLOB NOT NULL, seqs BLOB, links BLOB, body BLOB NOT NULL, keys BLOB NOT NULL,
        data BLOB NOT NULL);
    CREATE TABLE records(
        number INTEGER PRIMARY KEY, after INTEGER NOT NULL, prev BLOB NOT NULL,
        hash BLOB NOT NULL, body BLOB NOT NULL);
    CREATE TABLE segments(
        first INTEGER PRIMARY KEY, last INTEGER NOT NULL, sum BLOB NOT NULL, keys BLOB NOT NULL);
    CREATE TABLE id_runs(run INTEGER PRIMARY KEY, level INTEGER NOT NULL);
    CREATE TABLE id_pieces(
        run INTEGER NOT NULL, piece INTEGER NOT NULL, filter_sum BLOB NOT NULL,
        filter BLOB NOT NULL, sum BLOB NOT NULL, entries BLOB NOT NULL, PRIMARY KEY(run, piece));
    CREATE TABLE retired(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL, sequence INTEGER, digest BLOB NOT NULL,
        sum BLOB NOT NULL);
    CREATE TABLE threads(
        id TEXT PRIMARY KEY, last INTEGER NOT NULL, project TEXT, status TEXT NOT NULL,
        floor INTEGER NOT NULL, opened INTEGER, sum BLOB NOT NULL, record BLOB NOT NULL);
    CREATE INDEX threads_by_activity ON threads(last);
    CREATE INDEX threads_by_floor ON threads(floor) WHERE floor > 0;
    CREATE INDEX threads_by_action ON threads(opened) WHERE opened IS NOT NULL;
    CREATE TABLE snapshots(
        thread TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL, anchor BLOB NOT NULL,
        sum BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY(thread, kind, seq));
    CREATE INDEX snapshots_by_place ON snapshots(seq);
    """,
    """
    CREATE INDEX threads_by_status ON threads(status, last);
    """,
    """
    CREATE TABLE private_threads(id TEXT PRIMARY KEY, after INTEGER NOT NULL) WITHOUT ROWID;
    """,
)


def ensure_sqlite() -> None:
    """Refuse to touch a journal with a SQLite that could damage it."""
    found = apsw.SQLITE_VERSION_NUMBER
    if found < SQLITE_FLOOR:
        raise JournalError(
            f"SQLite 3.51.3 or later is required, but apsw includes {found}; update apsw"
        )


def connect(path: str | None, *, vfs: str | None, read_only: bool = False) -> Database:
    """A connection that waits rather than fails, and that syncs every commit it makes; without a
    path, to a database in memory that is this connection's alone.
    """
    flags = (
        apsw.SQLITE_OPEN_READONLY
        if read_only
        else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    )
    if path is not None and not read_only and vfs is None:
        _make_private(path)
    connection = cast("Database", apsw.Connection(path or ":memory:", flags=flags, vfs=vfs))
    connection.set_busy_timeout(BUSY_MS)
    connection.wal_autocheckpoint(0)
    if not read_only:
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
    return connection


def _make_private(path: str) -> None:
    """A new journal is its owner's alone, and so are the files that SQLite makes beside it."""
    # Whatever is wrong with the path, SQLite says it better.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def migrate(connection: Database) -> None:
    """Bring the tables up to date, step by step; never in a database of another program."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
    if names and "migrations" not in names:
        raise JournalUnavailable("the database belongs to another program; name another file")
    connection.execute("CREATE TABLE IF NOT EXISTS migrations(number INTEGER PRIMARY KEY)")
    for number, script in enumerate(MIGRATIONS, start=1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version(connection) < number:
                connection.execute(script)
                connection.execute("INSERT INTO migrations VALUES(?)", (number,))
            connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise
    if version(connection) > len(MIGRATIONS):
        raise JournalError("the journal was written by a newer Factwire; update this installation")


def version(connection: Database) -> int:
    """The last migration that was done."""
    return connection.execute("SELECT coalesce(max(number), 0) FROM migrations").get


def roll_back(connection: Database) -> None:
    """End a transaction that SQLite may or may not have ended by itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def get_meta(connection: Database, name: str) -> "int | str | bytes | None":
    return connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).get


def set_meta(connection: Database, name: str, value: "int | str | bytes") -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (name, value))


_TYPES: Final = (int, int, bytes, bytes, bytes, bytes, bytes, bytes)

_seqs: Final = msgspec.msgpack.Decoder[tuple[int, ...]](tuple[int, ...])
_links: Final = msgspec.msgpack.Decoder[tuple[ChainLink, ...]](tuple[ChainLink, ...])


class Extent(msgspec.Struct, frozen=True, gc=False):
    """The columns of a row, in the order of `OUTLINE`; `data` is empty where it was not asked for.

    `seqs` and `links` are encoded, or None as in `Chunk`.
    """

    first: int
    last: int
    prev: bytes
    hash: bytes
    check: bytes
    seqs: bytes | None
    links: bytes | None
    body: bytes
    index: bytes
    data: bytes = b""

    def to_chunk(self) -> Chunk:
        """The same, decoded; raises `JournalCorrupt` where a value is not of its column's type."""
        kinds = (self.first, self.last, self.prev, self.hash, self.check)
        if (*map(type, (*kinds, self.body, self.index, self.data)),) != _TYPES:
            raise JournalCorrupt("a stored value has the wrong type")
        return Chunk(
            first=self.first,
            last=self.last,
            data=self.data,
            index=self.index,
            prev=self.prev,
            hash=self.hash,
            check=self.check,
            seqs=None if self.seqs is None else _seqs.decode(self.seqs),
            links=() if self.links is None else _links.decode(self.links),
            body=self.body,
        )

    def to_batch(self, epoch: str) -> FactBatch:
        """Everything that the chunk holds."""
        seqs = range(self.first, self.last + 1) if self.seqs is None else _seqs.decode(self.seqs)
        return FactBatch(epoch=epoch, first=self.first, last=self.last, seqs=seqs, data=self.data)


def ensure_extent(extent: Extent) -> Extent:
    """The extent itself; raises `JournalCorrupt` when its bytes are not those that were written."""
    if sum_data(extent.data) != extent.body:
        raise JournalCorrupt(
            "the bytes do not match their checksum", first=extent.first, last=extent.last
        )
    return ensure_outline(extent)


def ensure_outline(extent: Extent) -> Extent:
    """The extent itself, of which all but the data has been checked."""
    links = () if extent.links is None else msgspec.Raw(extent.links)
    seqs = None if extent.seqs is None else msgspec.Raw(extent.seqs)
    header = (extent.first, extent.last, extent.prev, extent.hash, links, seqs, extent.body)
    if sum_outline(header, extent.index) != extent.check:
        raise JournalCorrupt(
            "the index does not match its checksum", first=extent.first, last=extent.last
        )
    return extent


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
def translate_damage() -> Generator[None]:
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


def load_chunk_at(connection: Database, first: int) -> Chunk:
    """The chunk that begins at a seq, checked."""
    row = connection.execute(_ONE, (first,)).get
    if row is None:
        raise JournalCorrupt("a chunk that the index refers to is missing", first=first)
    return ensure_extent(Extent(*row)).to_chunk()


def load_chunk_holding(connection: Database, seq: int) -> Chunk:
    """The chunk whose range a seq falls in, checked."""
    row = connection.execute(_HOLDING, (seq,)).get
    if row is None or not row[0] <= seq <= row[1]:
        raise JournalCorrupt("a chunk is missing", first=seq)
    return ensure_extent(Extent(*row)).to_chunk()


def find_first_holding(connection: Database, seq: int) -> int:
    """Where the chunk begins that has a seq in its range, or would have."""
    sql = "SELECT first FROM chunks WHERE first <= ? ORDER BY first DESC LIMIT 1"
    found: int | None = connection.execute(sql, (seq,)).get
    return seq if found is None else found


def load_chunks_after(connection: Database, after: int, upto: int) -> Iterator[Chunk]:
    """The chunks from the one that holds the seq past `after` on, checked, without a hole."""
    return (extent.to_chunk() for extent in load_extents_after(connection, after, upto))


def load_extents_after(connection: Database, after: int, upto: int) -> Iterator[Extent]:
    """The same, not decoded."""
    rows = connection.execute(_OUTLINES, (find_first_holding(connection, after + 1),))
    with closing(_DataColumn(connection)) as data:
        for row in _check_unbroken(rows, after + 1, upto):
            yield ensure_extent(Extent(*row, data.read(row[0])))  # pyright: ignore[reportCallIssue]


def load_outlines_after(connection: Database, after: int, upto: int) -> Iterator[Chunk]:
    """The chunks without data, for those who look for keys."""
    rows = connection.execute(_OUTLINES, (find_first_holding(connection, after + 1),))
    for row in _check_unbroken(rows, after + 1, upto):
        yield ensure_outline(Extent(*row)).to_chunk()


def _check_unbroken(rows: Rows, place: int, upto: int) -> Iterator[tuple[Any, ...]]:
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


class _DataColumn:
    """The data of one chunk after the other, copied once where a row would copy it twice."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._blob: BlobHandle | None = None

    def read(self, first: int) -> bytes:
        if self._blob is None:
            self._blob = self._connection.blob_open("main", "chunks", "data", first, False)  # noqa: FBT003
        else:
            self._blob.reopen(first)
        return self._blob.read()

    def close(self) -> None:
        if self._blob is not None:
            self._blob.close()


def load_raw_chunks(connection: Database) -> Iterator[Chunk]:
    """Every chunk there is, unchecked."""
    return (Extent(*row).to_chunk() for row in connection.execute(_FROM, (0,)))


def insert_record(connection: Database, record: Record) -> None:
    connection.execute(
        "INSERT INTO records(after, prev, hash, body) VALUES(?, ?, ?, ?)",
        (record.after, record.prev, record.hash, record.body),
    )


def load_all_records(connection: Database) -> list[Record]:
    rows = connection.execute("SELECT after, prev, hash, body FROM records ORDER BY number")
    return [Record(after=row[0], prev=row[1], hash=row[2], body=row[3]) for row in rows]
