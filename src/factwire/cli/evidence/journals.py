"""The journal that a pack is made from or compared with.

To the journal's own verbs a file that is no database is a damaged journal. Here it is a slip of the
person who named it, and calling it damaged would speak against the pack.
"""

from pathlib import Path
from typing import Final

from factwire.cli.failures import CliError
from factwire.cli.journal.access import journal_url, reading
from factwire.cli.terminal_text import harmless
from factwire.journal import Journal

_SQLITE: Final = b"SQLite format 3\x00"


def named_journal(url: str) -> Journal:
    """The journal, to be opened for reading; raises `CliError` for a file that is none."""
    journal = reading(url)
    scheme, _, rest = journal_url(url).partition(":")
    if scheme == "sqlite":
        _ensure_database(Path(rest.partition("?")[0]))
    return journal


def _ensure_database(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_SQLITE))
    except PermissionError as error:
        raise CliError(f"{harmless(str(path))} may not be opened; you lack the right to") from error
    if start != _SQLITE:
        raise CliError(f"{harmless(str(path))} is no journal: it is no SQLite database")
