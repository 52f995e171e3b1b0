"""A recording in a file or on standard input.

It is read twice, first for the threads it holds and then for the facts of one, and so never held in
memory when it has one fact to a line. What cannot be read twice is put into a temporary file.
"""

import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any, Final

import msgspec

from factwire.cli.documents import Source, open_source, read_document
from factwire.cli.failures import CliError
from factwire.cli.progress import watched
from factwire.cli.recording import Placed
from factwire.cli.terminal_text import harmless
from factwire.cli.threads import Family, Kinship
from factwire.facts import Fact, InvalidFacts, UnreadableInput, read_item

_COPIED: Final = 1024 * 1024


@contextmanager
def opened_file(path: str) -> Generator["FileRecording"]:
    """Open a file, or standard input for `-`; raises `CliError` for what cannot be opened."""
    with open_source(path) as source:
        if source.stream.seekable():
            yield FileRecording(source)
            return
        with TemporaryFile() as copy:
            yield FileRecording(_copied(source, copy))


class FileRecording:
    """The facts of one file."""

    unit = "sequence"
    kept = False

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._source = source

    async def kinship(self, thread: str | None) -> Kinship:
        del thread
        found = Kinship()
        for fact in self._read("reading"):
            found.note(fact)
        return found

    async def family(self, kinship: Kinship, thread: str | None) -> Family:
        return kinship.family(thread)

    async def facts(self, family: Family, at: int | None = None) -> AsyncIterator[Placed]:
        furthest: int | None = None
        for fact in self._read("projecting"):
            if not family.has(fact):
                continue
            place = furthest
            if fact.sequence is not None and family.is_main(fact):
                place = fact.sequence
                furthest = place if furthest is None else max(furthest, place)
            if at is None or place is None or place <= at:
                yield Placed(place, fact)

    def _read(self, doing: str) -> Iterator[Fact]:
        self._source.stream.seek(0)
        return facts_in(self._source, doing)


def facts_in(source: Source, doing: str | None = None) -> Iterator[Fact]:
    """The facts of an open input; raises `CliError`, which names it, for what cannot be read.

    With `doing`, how far it got is shown under this word.
    """
    try:
        items = read_document(source).facts
        shown = items if doing is None else watched(items, source, doing)
        for number, (line, item) in enumerate(shown, 1):
            yield _fact_of(item, line, number)
    except UnreadableInput as error:
        raise CliError(f"{harmless(source.name)}: {error}") from error


def _fact_of(item: Any, line: int | None, number: int) -> Fact:
    """The fact of an item; what is none is named with its line, or its number in the document."""
    try:
        reading = read_item(item)
    except UnreadableInput as error:
        raise UnreadableInput(error.reason, line=line) from error
    if reading.fact is not None:
        return reading.fact
    reason = str(InvalidFacts(reading.issues))
    raise UnreadableInput(reason if line else f"fact {number}: {reason}", line=line)


def _copied(source: Source, copy: IO[bytes]) -> Source:
    shutil.copyfileobj(source.stream, copy, _COPIED)
    return msgspec.structs.replace(source, stream=copy, size=copy.tell() or None)
