"""An export as what a journal restores: read once for its facts, and once more for its threads."""

from collections.abc import Iterator
from typing import BinaryIO

from factwire.cli.journal.lines import FactLine, RemovedLine, ThreadLine, read_export
from factwire.cli.journal.progress import Advance
from factwire.journal import Present, Removed, Restoration, ThreadRecord


def restoration(stream: BinaryIO, floor: int, advance: Advance) -> Restoration:
    """What is in a checked export; a journal takes all entries before it takes a thread."""
    entries, threads = _entries(stream, advance), _threads(stream)
    return Restoration(floor=floor, entries=entries, threads=threads)


def _entries(stream: BinaryIO, advance: Advance) -> Iterator[Present | Removed]:
    stream.seek(0)
    for _, line in read_export(stream):
        if isinstance(line, FactLine):
            advance(1)
            yield Present(line.seq, bytes(line.fact))
        elif isinstance(line, RemovedLine):
            yield Removed(line.removed, line.id, line.sequence, line.digest)


def _threads(stream: BinaryIO) -> Iterator[ThreadRecord]:
    stream.seek(0)
    for _, line in read_export(stream):
        if isinstance(line, ThreadLine):
            yield line.thread
