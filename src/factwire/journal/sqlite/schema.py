"""Tables of the SQLite journal, as numbered migrations, and the connections that use them.

A migration and the row that says it was done are one transaction: a kill at any point leaves the
step before it or the step itself, never a half.
"""

import os
from contextlib import suppress
from typing import Final, cast

import apsw

from factwire.journal.errors import JournalError
from factwire.journal.sqlite.database import Database

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
)


def ensure_sqlite() -> None:
    """Refuse to touch a journal with a SQLite that could damage it."""
    found = apsw.SQLITE_VERSION_NUMBER
    if found < SQLITE_FLOOR:
        raise JournalError(f"SQLite 3.51.3 or later is needed, apsw brings {found}; update apsw")


def connect(path: str, *, vfs: str | None, read_only: bool = False) -> Database:
    """A connection that waits rather than fails, and that syncs every commit it makes."""
    flags = (
        apsw.SQLITE_OPEN_READONLY
        if read_only
        else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    )
    if not read_only and vfs is None:
        _make_private(path)
    connection = cast("Database", apsw.Connection(path, flags=flags, vfs=vfs))
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
    """Bring the tables up to date, step by step."""
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
        raise JournalError("the journal was written by a later Factwire; update this one")


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
