"""What shell text consists of: simple commands, and the files they are redirected from and to."""

from typing import Final, Literal

import msgspec

LONGEST_COMMAND: Final = 20_000
"""Characters of shell text that are read; more is unclear, and nobody could check it by eye."""

MOST_COMMANDS: Final = 200
"""Simple commands in one text."""

DEEPEST: Final = 8
"""Commands within commands."""

Word = str | None


class Redirection(msgspec.Struct, frozen=True):
    """A file that a command reads or writes by redirection."""

    way: Literal["read", "edit"]
    path: str


class Simple(msgspec.Struct, frozen=True, kw_only=True):
    """One simple command. `also` are other readings of it, which can only forbid: what a wrapper
    runs, or the wrapper round what is run.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    piped: bool = False
    also: tuple["Simple", ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """What was found; `unclear` says why that is not all."""

    commands: tuple[Simple, ...]
    unclear: str | None = None


class Unclear(Exception):
    """Raised inside the reader and caught by it."""
