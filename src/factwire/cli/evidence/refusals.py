"""What evidence refuses, in one line with its stable code, and the exit code that goes with it."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from factwire.cli.failures import ISSUES, UNUSABLE, CliError
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from factwire.evidence import EvidenceError

_NO_PACK: Final = frozenset({"pack_not_zip", "blob_not_in_pack"})


@contextmanager
def plainly() -> Generator[None]:
    """Turns what evidence refuses inside the block into words."""
    from factwire.evidence import EvidenceError

    try:
        yield
    except EvidenceError as error:
        raise refusal(error) from error


def refusal(error: "EvidenceError") -> CliError:
    """A pack that was read and is not right is an issue; anything else could not be used."""
    from factwire.evidence import PackError

    wrong = isinstance(error, PackError) and error.code not in _NO_PACK
    code = ISSUES if wrong or error.code == "journal_corrupt" else UNUSABLE
    return CliError(f"{error.code}: {harmless(str(error))}", code)
