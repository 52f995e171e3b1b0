"""A recorded run, wherever it is kept: a file of facts in any form, a pack, or a journal.

Every fact comes with its place, by which a person names a point of the run. In a journal that is
the journal's seq. In a file it is the fact's sequence in its thread; a fact that has none there,
because it carries no sequence or belongs to a child thread, stands at the furthest place that came
before it, or before all others. Up to a place means every fact whose place is not beyond it.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from factwire.cli.failures import CliError, errors
from factwire.cli.journal.access import SCHEMES, reading
from factwire.cli.terminal_text import harmless
from factwire.cli.threads import Family, Kin, Kinship
from factwire.facts import Fact

OPTION: Final = "choose one with --thread ID"

LISTED: Final = 20
"""Threads that are listed for a person to choose from."""

_SQLITE: Final = b"SQLite format 3\x00"
_ARCHIVE: Final = b"PK\x03\x04"
_SCHEMES: Final = tuple(f"{scheme}:" for scheme in SCHEMES)


class Placed(NamedTuple):
    """A fact and its place; None is before all others."""

    place: int | None
    fact: Fact


class Recording(Protocol):
    """An open recording. `unit` is what a place is called. In one that is `kept`, facts come in
    order, and what is missing between them was removed on purpose.
    """

    name: str
    unit: str
    kept: bool

    async def kinship(self, thread: str | None) -> Kinship:
        """The threads there are: all, or as many as can be listed; with `thread`, those that can
        be of its family.
        """
        ...

    async def family(self, kinship: Kinship, thread: str | None) -> Family: ...

    def facts(self, family: Family, at: int | None = None) -> AsyncIterator[Placed]:
        """The facts of a family up to a place, in the order of the recording."""
        ...


@asynccontextmanager
async def open_recording(where: str) -> AsyncGenerator[Recording]:
    """Open what a command was given: a path, `-`, an evidence pack, or a journal's URL."""
    if is_journal(where):
        from factwire.cli.journal_recording import JournalRecording

        async with reading(where) as journal:
            yield JournalRecording(journal)
    elif is_pack(where):
        from factwire.cli.pack_recording import opened_pack

        with opened_pack(where) as recording:
            yield recording
    else:
        from factwire.cli.file_recording import opened_file

        with opened_file(where) as recording:
            yield recording


def is_journal(where: str) -> bool:
    """Whether a text names a journal: by its scheme, or because the file is a SQLite database."""
    if where.startswith(_SCHEMES) or "://" in where:
        return True
    return _begins_with(where, _SQLITE)


def is_pack(where: str) -> bool:
    """Whether a text names a file that is meant as an evidence pack."""
    return _begins_with(where, _ARCHIVE)


def _begins_with(where: str, start: bytes) -> bool:
    path = Path(where)
    if where == "-" or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(start)) == start
    except OSError:
        return False


async def chosen(recording: Recording, thread: str | None, how: str = OPTION) -> Family:
    """The family of a thread; without one, of the only thread there is.

    Raises `CliError`, and lists the threads, where that does not say which; `how` tells a person
    what the command takes to choose one.
    """
    kinship = await recording.kinship(thread)
    if thread is not None and thread not in kinship.threads:
        roots = (await recording.kinship(None)).roots()
        _list(roots)
        raise CliError(f"{recording.name} holds no thread {harmless(thread, 80)!r}")
    if thread is None:
        roots = kinship.roots()
        if len(roots) > 1:
            _list(roots)
            raise CliError(f"{recording.name} holds several threads; {how}")
        thread = roots[0].thread_id if roots else None
    return await recording.family(kinship, thread)


def note(message: str) -> None:
    """Tell a person on standard error what is no failure."""
    errors.print("note:", style="bold", end=" ")
    errors.print(harmless(message), markup=False, soft_wrap=True)


def _list(roots: list[Kin]) -> None:
    if not roots:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("thread", overflow="fold")
    table.add_column("facts", justify="right")
    table.add_column("title", overflow="ellipsis", no_wrap=True)
    for kin in roots[:LISTED]:
        title = Text(harmless(kin.title or "", 80))
        table.add_row(Text(harmless(kin.thread_id)), f"{kin.facts:,}", title)
    if len(roots) > LISTED:
        table.caption = "and more"
    Console(stderr=True, highlight=False).print(table)
