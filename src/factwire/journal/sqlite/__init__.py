"""The embedded journal: one SQLite file in WAL mode, synced on every commit, with one writer."""

from urllib.parse import parse_qs

from factwire.journal.errors import JournalUrlError
from factwire.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal", "open_sqlite"]


def open_sqlite(url: str) -> SqliteJournal:
    """The journal at `sqlite:PATH`, or beside its writer at `sqlite:PATH?mode=ro`."""
    path, _, query = url.removeprefix("sqlite:").partition("?")
    options = parse_qs(query, strict_parsing=True) if query else {}
    mode = options.pop("mode", ["rw"])
    if not path or options or mode not in (["rw"], ["ro"]):
        raise JournalUrlError(f"expected sqlite:PATH or sqlite:PATH?mode=ro, got {url!r}")
    return SqliteJournal(path, read_only=mode == ["ro"])
