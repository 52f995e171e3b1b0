"""Cases that somebody wrote down in a file."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from factwire.evidence import ReplayCase


def read_case_file(path: Path) -> "ReplayCase":
    """The case in a file; raises `CaseProblem`."""
    from factwire.evidence import CaseProblem, read_case

    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise CaseProblem("case_unreadable", message) from error
    return read_case(data, str(path))
