"""What evidence refuses, in one line with its stable code, and the exit code that goes with it.

What is no pack, or cannot be read as one, is told from a pack that was read and is not right.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from factwire.cli.failures import ISSUES, UNUSABLE, CliError
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from factwire.evidence import EvidenceError

_UNREAD: Final = frozenset(
    {
        *("pack_not_zip", "pack_truncated", "pack_unreadable", "pack_compression_unknown"),
        *("pack_too_big", "manifest_missing", "manifest_version", "blob_not_in_pack"),
    }
)
"""Codes of what is no pack, or none that this version can read to its end."""

_UNOPENED: Final[dict[type[OSError], str]] = {
    FileNotFoundError: "does not exist",
    IsADirectoryError: "is a folder; name a file",
    NotADirectoryError: "cannot be there: a part of the path is a file, not a folder",
    PermissionError: "may not be opened; you lack the right to",
    FileExistsError: "is there already",
}
"""What the system refuses about a path, in words."""


@contextmanager
def plainly() -> Generator[None]:
    """Turns what evidence refuses inside the block into words."""
    from factwire.evidence import EvidenceError

    try:
        yield
    except EvidenceError as error:
        raise refusal(error) from error
    except tuple(_UNOPENED) as error:
        raise CliError(f"{harmless(str(error.filename))} {_UNOPENED[type(error)]}") from error


def refusal(error: "EvidenceError") -> CliError:
    """A pack that was read and is not right is an issue; anything else could not be used."""
    from factwire.evidence import PackError

    wrong = isinstance(error, PackError) and error.code not in _UNREAD
    code = ISSUES if wrong or error.code == "journal_corrupt" else UNUSABLE
    return CliError(f"{error.code}: {harmless(str(error))}", code)
