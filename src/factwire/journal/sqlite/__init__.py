"""The embedded journal: one SQLite file in WAL mode, synced on every commit, with one writer."""

from factwire.journal.sqlite.journal import SqliteJournal, open_sqlite

__all__ = ["SqliteJournal", "open_sqlite"]
