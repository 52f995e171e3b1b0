"""Sides: the two runs that a command is given, each wherever it is kept.

A side is a file of facts, an evidence pack, standard input or a journal, with `#THREAD` behind it
where it holds several; or just the id of a thread in the journal that the command works on.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from factwire.cli.failures import UNUSABLE, CliError
from factwire.cli.journal.access import failure
from factwire.cli.recording import Recording, is_journal, open_recording
from factwire.cli.terminal_text import harmless
from factwire.journal import JournalError

_HELP: Final = (
    "A file of facts, an evidence pack, - or a journal, with #THREAD where it holds several; "
    "or a thread of --journal."
)

SideA = Annotated[str, typer.Argument(metavar="A", help=_HELP, show_default=False)]
SideB = Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)]
OneSide = Annotated[str, typer.Argument(metavar="RUN", help=_HELP, show_default=False)]


class Side(NamedTuple):
    """A recording and the thread that is meant, None where it holds but one."""

    where: str
    thread: str | None

    @property
    def how(self) -> str:
        """How a person names one thread of it; a URL is not repeated, it may hold a password."""
        where = "JOURNAL" if is_journal(self.where) else harmless(self.where, 200)
        return f"choose one with {where}#THREAD"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Recording]:
        """The recording. Whatever cannot be read of it ends the command as unusable: 1 is the word
        for runs that were compared and differ.
        """
        try:
            async with open_recording(self.where) as recording:
                yield recording
        except JournalError as error:
            raise CliError(str(failure(error)), UNUSABLE) from error
        except CliError as error:
            raise CliError(str(error), UNUSABLE) from error


def sides(a: str, b: str, journal: str | None) -> tuple[Side, Side]:
    """Both sides of a command."""
    if a == b == "-":
        raise CliError("standard input can be one of the two runs, not both")
    return side_of(a, journal), side_of(b, journal)


def side_of(text: str, journal: str | None) -> Side:
    """The side that a text names; raises `CliError` where that is nothing."""
    if _is_there(text) and "#" not in text:
        return Side(text, None)
    where, mark, thread = text.rpartition("#")
    if mark and thread and _is_there(where):
        return Side(where, thread)
    if _is_there(text):
        return Side(text, None)
    if "/" in text or "." in text:
        raise CliError(f"there is no file {harmless(text, 200)}")
    return Side(_journal(text, journal), text)


def _is_there(text: str) -> bool:
    return text == "-" or is_journal(text) or Path(text).exists()


def _journal(thread: str, journal: str | None) -> str:
    """The journal that a thread is looked for in: the one that is named, else the configured."""
    if journal is not None:
        return journal
    from factwire.cli.run.place import place

    url = place().configuration.journal
    path = url.removeprefix("sqlite:").partition("?")[0]
    if url.startswith("sqlite:") and not Path(path).is_file():
        name = harmless(thread, 80)
        raise CliError(f"{name} is no file, and there is no journal to find a thread {name} in")
    return url
