"""The embedded journal: one SQLite file in WAL mode, synced on every commit, with one writer."""

from factwire.journal.sqlite.journal import SqliteJournal
from factwire.journal.sqlite.opening import open_sqlite

__all__ = ["SqliteJournal", "open_sqlite"]
