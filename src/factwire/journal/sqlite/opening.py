"""The URLs of the embedded journal."""

from typing import Final

from factwire.journal.errors import JournalUrlError
from factwire.journal.sqlite.journal import SqliteJournal

_MODES: Final = {"": False, "mode=rw": False, "mode=ro": True}
"""What may stand behind the question mark → whether the handle only reads."""


def open_sqlite(url: str) -> SqliteJournal:
    """The journal at `sqlite:PATH`, or beside its writer at `sqlite:PATH?mode=ro`."""
    path, _, query = url.removeprefix("sqlite:").partition("?")
    if not path or query not in _MODES:
        raise JournalUrlError(f"expected sqlite:PATH or sqlite:PATH?mode=ro, got {url!r}")
    return SqliteJournal(path, read_only=_MODES[query])
