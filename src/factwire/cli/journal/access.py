"""Opening the journal that a command names, and turning what goes wrong there into one line.

A bare path is a SQLite file. Commands that only read open it read-only, which works beside a
running writer and never creates anything.
"""

import asyncio
import warnings
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar

import typer

from factwire.cli.failures import INTERRUPTED, ISSUES, UNUSABLE, CliError, errors
from factwire.cli.terminal_text import harmless
from factwire.journal import (
    AppendRefused,
    CursorError,
    Journal,
    JournalCorrupt,
    JournalError,
    RestoreRefused,
    open_journal,
)

Result = TypeVar("Result")

SCHEMES: Final = ("sqlite", "postgres", "postgresql", "nats", "memory")

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="sqlite:PATH or just a path, postgres://…, nats://….",
        show_default=False,
    ),
]


def reading(url: str) -> Journal:
    """The journal, to be opened for reading alone where its backend knows the difference."""
    found = journal_url(url)
    _ensure_there(found)
    is_file = found.startswith("sqlite:") and "?" not in found
    return _open(f"{found}?mode=ro" if is_file else found)


def writing(url: str, *, create: bool) -> Journal:
    """The journal, to be opened for writing."""
    found = journal_url(url)
    if not create:
        _ensure_there(found)
    return _open(found)


def run(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work and exit with the code it returns."""
    raise typer.Exit(done(work))


def done(work: Coroutine[Any, Any, Result]) -> Result:
    """What a command's work results in; what a journal refuses becomes words."""
    try:
        with _plain_warnings():
            return asyncio.run(work)
    except JournalError as error:
        raise failure(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def failure(error: JournalError) -> CliError:
    """What to tell a person: the stable code, what happened, and where to go on from."""
    text = f"{error.code}: {harmless(str(error))}"
    if isinstance(error, CursorError) and error.nearest is not None:
        text += f" ({error.nearest})"
    wrong = isinstance(error, AppendRefused | JournalCorrupt | RestoreRefused)
    return CliError(text, ISSUES if wrong else UNUSABLE)


@contextmanager
def _plain_warnings() -> Generator[None]:
    """What a backend warns of, in one line instead of with a place in the code."""

    def show(message: Warning | str, *_: object) -> None:
        errors.print("warning:", style="bold yellow", end=" ")
        errors.print(harmless(str(message)), markup=False, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def journal_url(text: str) -> str:
    """The URL a text means. It is never repeated in an error, because it may hold a password."""
    scheme, colon, _ = text.partition(":")
    if colon and scheme in SCHEMES:
        return text
    if "://" in text:
        known = ", ".join(f"{name}:" for name in SCHEMES)
        raise CliError(
            f"{harmless(scheme)}:// names no kind of journal; there are {known} or a path"
        )
    if "?" in text:
        raise CliError("a path may not hold a question mark; use sqlite:PATH?mode=ro for options")
    return f"sqlite:{text}"


def _ensure_there(url: str) -> None:
    """SQLite would open a folder, or create a file, before it finds out."""
    if url.startswith("sqlite:"):
        path, _, _ = url.removeprefix("sqlite:").partition("?")
        if not Path(path).is_file():
            raise CliError(f"there is no journal at {harmless(path)}")


def _open(url: str) -> Journal:
    try:
        return open_journal(url)
    except JournalError as error:
        raise failure(error) from error
    except ValueError as error:
        scheme, _, _ = url.partition(":")
        raise CliError(f"the {scheme}: URL cannot be read: {harmless(str(error))}") from error
