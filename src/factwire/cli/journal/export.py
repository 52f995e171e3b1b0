"""`factwire journal export`: a whole journal as one file that can be checked line by line."""

import os
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, BinaryIO, Final, cast

import msgspec
import typer

from factwire.cli.failures import DONE, ISSUES, CliError, errors
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.journal.lines import (
    FORMAT,
    End,
    Header,
    LineWriter,
    RemovedLine,
    SnapshotLine,
    ThreadLine,
)
from factwire.cli.journal.progress import Advance, progress
from factwire.cli.terminal_text import counted
from factwire.journal import Cursor, Journal, Present, Removed, ThreadRecord
from factwire.journal.blobs.references import every_thread

_SNAPSHOT: Final = "projection"

_TRIES: Final = 20
"""How often threads are read anew because facts were appended meanwhile."""

_REMOVED_MEANWHILE: Final = "facts were removed during the export; run it again"


def export(
    url: Url,
    file: Annotated[str, typer.Argument(help="A file to write, or - for standard output.")],
) -> None:
    """Write every fact with its seq, and the newest snapshots, to a file (NDJSON).

    Of removed facts it holds what the journal keeps, so that an import is the same journal again.
    The chain is verified first; a damaged journal is not exported.
    """
    run(_export(url, file))


async def _export(url: str, file: str) -> int:
    async with reading(url) as journal:
        whole = await _whole(journal)
        with _target(file) as target, progress("exporting", whole.header.facts) as advance:
            end = await _write(journal, whole, target, advance)
    if file != "-":
        errors.print(
            f"exported {counted(end.facts, 'fact')} and {counted(end.snapshots, 'snapshot')}"
        )
    return DONE


class _Whole(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to export; `threads` only where facts were removed."""

    header: Header
    threads: list[ThreadRecord]


async def _whole(journal: Journal) -> _Whole:
    stats = await journal.stats()
    head, threads = stats.head.seq, list[ThreadRecord]()
    if stats.facts < head:
        head, threads = await _catalogue(journal)
    with progress("verifying"):
        report = await journal.verify()
    if report.damage is not None:
        place = f"{report.damage.first}–{report.damage.last}"
        message = f"journal_corrupt: damaged at {place}: {report.damage.reason}"
        raise CliError(f"{message}; nothing was exported", ISSUES)
    header = Header(
        factwire=FORMAT,
        epoch=stats.head.epoch,
        head=head,
        floor=stats.floor.seq,
        chain=report.head.hex(),
        # What was appended since the head was taken is left out.
        facts=report.facts - (report.intact - head),
    )
    return _Whole(header=header, threads=threads)


async def _catalogue(journal: Journal) -> tuple[int, list[ThreadRecord]]:
    """All threads as of one head, and that head."""
    for _ in range(_TRIES):
        before = await journal.head()
        records = [record async for record in journal.records()]
        if await journal.head() == before:
            return before.seq, records
    raise CliError("facts come in faster than threads can be read; export when it is quieter")


async def _write(journal: Journal, whole: _Whole, target: BinaryIO, advance: Advance) -> End:
    header, lines = whole.header, LineWriter()
    target.write(lines.line(header))
    facts = removed = snapshots = 0
    async for entry in _entries(journal, header):
        if isinstance(entry, Present):
            target.write(lines.fact(entry.seq, entry.line))
            facts += 1
            advance(1)
        else:
            target.write(lines.line(_removed_line(entry)))
            removed += 1
    if facts != header.facts:
        raise CliError(_REMOVED_MEANWHILE)
    target.writelines(lines.line(ThreadLine(thread=record)) for record in whole.threads)
    async for snapshot in _snapshots(journal, Cursor(header.epoch, header.head)):
        target.write(lines.line(snapshot))
        snapshots += 1
    end = End(
        end=True, facts=facts, snapshots=snapshots, removed=removed, threads=len(whole.threads)
    )
    target.write(lines.line(end))
    target.flush()
    return end


async def _entries(journal: Journal, header: Header) -> AsyncIterator[Present | Removed]:
    """Facts and what is left of removed ones, by seq."""
    removed = journal.removed()
    gone = await anext(removed, None)
    async for fact in _facts(journal, header):
        while gone and gone.seq < fact.seq:
            yield gone
            gone = await anext(removed, None)
        if gone and gone.seq == fact.seq:
            raise CliError(_REMOVED_MEANWHILE)
        yield fact


async def _facts(journal: Journal, header: Header) -> AsyncIterator[Present]:
    """Those that were there when the header was made; what was appended since is left out."""
    if header.head == 0:
        return
    async for stretch in journal.read():
        for seq, stored in zip(stretch.seqs, stretch.lines(), strict=True):
            if seq <= header.head:
                yield Present(seq, stored)
        if stretch.last >= header.head:
            return


def _removed_line(gone: Removed) -> RemovedLine:
    return RemovedLine(removed=gone.seq, id=gone.id, sequence=gone.sequence, digest=gone.digest)


async def _snapshots(journal: Journal, head: Cursor) -> AsyncIterator[SnapshotLine]:
    seen: set[str] = set()
    async for thread in every_thread(journal):
        found = None if thread in seen else await journal.snapshot(thread, _SNAPSHOT, head)
        seen.add(thread)
        if found is not None:
            yield SnapshotLine(
                snapshot=found.kind, thread_id=thread, seq=found.cursor.seq, data=found.data
            )


@contextmanager
def _target(file: str) -> Generator[BinaryIO]:
    """Standard output, or a file that appears only when it is whole and on disk."""
    if file == "-":
        yield sys.stdout.buffer
        return
    path = Path(file)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as partial:
        try:
            yield cast("BinaryIO", partial)
            partial.flush()
            os.fsync(partial.fileno())
            Path(partial.name).replace(path)
        except BaseException:
            Path(partial.name).unlink(missing_ok=True)
            raise
