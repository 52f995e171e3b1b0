"""A journal in PostgreSQL, shared by processes; needs `factwire[postgres]`."""

from factwire.journal.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
