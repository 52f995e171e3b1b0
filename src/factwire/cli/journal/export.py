"""`factwire journal export`: a whole journal as one file that can be checked line by line."""

import os
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, BinaryIO, cast

import typer

from factwire.cli.failures import DONE, ISSUES, CliError, errors
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.journal.lines import FORMAT, End, Header, LineWriter, SnapshotLine
from factwire.cli.journal.progress import Advance, progress
from factwire.cli.terminal_text import counted
from factwire.journal import Cursor, Journal
from factwire.journal.blobs.references import every_thread

_SNAPSHOT: str = "projection"


def export(
    url: Url,
    file: Annotated[str, typer.Argument(help="A file to write, or - for standard output.")],
) -> None:
    """Write every fact with its seq, and the newest snapshots, to a file (NDJSON).

    The chain is verified first; a damaged journal is not exported.
    """
    run(_export(url, file))


async def _export(url: str, file: str) -> int:
    async with reading(url) as journal:
        header = await _header(journal)
        with _target(file) as target, progress("exporting", header.facts) as advance:
            end = await _write(journal, header, target, advance)
    if file != "-":
        errors.print(
            f"exported {counted(end.facts, 'fact')} and {counted(end.snapshots, 'snapshot')}"
        )
    return DONE


async def _header(journal: Journal) -> Header:
    with progress("verifying"):
        report = await journal.verify()
    if report.damage is not None:
        place = f"{report.damage.first}–{report.damage.last}"
        message = f"journal_corrupt: damaged at {place}: {report.damage.reason}"
        raise CliError(f"{message}; nothing was exported", ISSUES)
    stats = await journal.stats()
    return Header(
        factwire=FORMAT,
        epoch=stats.head.epoch,
        head=report.intact,
        floor=stats.floor.seq,
        chain=report.head.hex(),
        facts=report.facts,
    )


async def _write(journal: Journal, header: Header, target: BinaryIO, advance: Advance) -> End:
    lines = LineWriter()
    target.write(lines.line(header))
    facts = snapshots = 0
    async for seq, stored in _facts(journal, header):
        target.write(lines.fact(seq, stored))
        facts += 1
        advance(1)
    if facts != header.facts:
        raise CliError("facts were removed during the export; run it again")
    async for snapshot in _snapshots(journal, Cursor(header.epoch, header.head)):
        target.write(lines.line(snapshot))
        snapshots += 1
    end = End(end=True, facts=facts, snapshots=snapshots)
    target.write(lines.line(end))
    target.flush()
    return end


async def _facts(journal: Journal, header: Header) -> AsyncIterator[tuple[int, bytes]]:
    """Those that were there when the header was made; what was appended since is left out."""
    if header.head == 0:
        return
    async for stretch in journal.read():
        for seq, stored in zip(stretch.seqs, stretch.lines(), strict=True):
            if seq <= header.head:
                yield seq, stored
        if stretch.last >= header.head:
            return


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
