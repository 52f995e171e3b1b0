"""`factwire journal import`: an export becomes a journal again.

The whole export is checked before anything is written. Facts keep their order, bytes and ids; the
journal has an epoch of its own. Where facts had been removed before the export, an empty journal is
restored: seqs keep their gaps and removed ids stay taken (`restoring`). Where that cannot be, in a
journal with facts or from an export of the first version, the rest moves up, which is said; where
it left gaps in a thread's sequence, it is done only on request.
"""

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final, cast

import msgspec
import typer

from factwire.cli.documents import open_source
from factwire.cli.failures import DONE, ISSUES, CliError, errors
from factwire.cli.journal.access import Url, failure, run, writing
from factwire.cli.journal.lines import (
    DamagedExport,
    FactLine,
    Header,
    RemovedLine,
    SnapshotLine,
    read_export,
)
from factwire.cli.journal.progress import Advance, progress
from factwire.cli.journal.restoring import restoration
from factwire.cli.terminal_text import counted
from factwire.facts import Fact, FactError
from factwire.journal import AppendRefused, Cursor, CursorExpired, Journal
from factwire.journal.chunk import decode_line
from factwire.journal.filter import thread_of

Numbered = tuple[int, Fact]
"""A fact and the line of the export it stands on."""

_BATCH: Final = 1000


class Plan(msgspec.Struct, kw_only=True):
    """What an export holds, from the pass that checked it."""

    header: Header | None = None
    facts: int = 0
    removed: int = 0
    snapshots: int = 0
    first: int = 0
    last: int = 0
    gap: str | None = None
    """The first place where a thread's sequence has a gap, in words."""

    @property
    def same_seqs(self) -> bool:
        return self.last == self.facts

    @property
    def restorable(self) -> bool:
        """Whether facts are missing, and the export says all that is known of them."""
        return self.header is not None and self.header.lossless and not self.same_seqs


class Result(msgspec.Struct, kw_only=True):
    """What an import did."""

    epoch: str
    appended: int = 0
    repeated: int = 0
    snapshots: int = 0
    renumbered: bool = False
    restored: bool = False


def import_(
    file: Annotated[str, typer.Argument(help="An export, or - for standard input.")],
    url: Url,
    *,
    append: Annotated[
        bool, typer.Option("--append", help="Into a journal with facts; known ones are skipped.")
    ] = False,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Close the gaps that compaction left in sequences."),
    ] = False,
) -> None:
    """Read an export into an empty journal, which gets an epoch of its own.

    Exit code 1: the export is damaged, or the journal refuses a fact of it.
    """
    run(_import(file, url, append=append, renumber=renumber))


async def _import(file: str, url: str, *, append: bool, renumber: bool) -> int:
    with open_source(file) as source, _rereadable(source.stream) as stream:
        plan = _check(stream)
        restores = plan.restorable and not append and not renumber
        if plan.gap and not restores and not renumber:
            message = f"{plan.gap}: facts were removed there by compaction or retention; "
            raise CliError(f"{message}--renumber closes such gaps", ISSUES)
        async with writing(url, create=True) as journal:
            empty = (await journal.head()).seq == 0
            if not empty and not append:
                raise CliError("the journal holds facts already; --append adds to them", ISSUES)
            stream.seek(0)
            with progress("importing", plan.facts) as advance:
                if restores and plan.header:
                    result = await _restore(stream, journal, plan.header.floor, advance)
                else:
                    result = await _copy(stream, journal, renumber=renumber, advance=advance)
            if result.restored or (empty and plan.same_seqs and not result.renumbered):
                stream.seek(0)
                result.snapshots = await _copy_snapshots(stream, journal, result.epoch)
    _tell(plan, result, empty=empty)
    return DONE


@contextmanager
def _rereadable(stream: BinaryIO) -> Generator[BinaryIO]:
    """A stream that can be read twice: once to check, once to import."""
    if stream is not sys.stdin.buffer and stream.seekable():
        yield stream
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)


def _check(stream: BinaryIO) -> Plan:
    plan = Plan()
    sequences: dict[str, int] = {}
    with progress("checking") as advance:
        try:
            for number, line in read_export(stream):
                if isinstance(line, FactLine):
                    _take(plan, number, line, sequences)
                    advance(1)
                elif isinstance(line, SnapshotLine):
                    plan.snapshots += 1
                elif isinstance(line, RemovedLine):
                    plan.removed += 1
                elif isinstance(line, Header):
                    plan.header = line
        except DamagedExport as error:
            raise CliError(str(error), ISSUES) from error
    return plan


def _take(plan: Plan, number: int, line: FactLine, sequences: dict[str, int]) -> None:
    fact = _fact(number, line)
    plan.facts += 1
    plan.first, plan.last = plan.first or line.seq, line.seq
    gap = _gap(fact, sequences)
    if gap is not None and plan.gap is None:
        plan.gap = f"line {number}: {gap}"


def _fact(number: int, line: FactLine) -> Fact:
    try:
        return decode_line(bytes(line.fact))
    except (FactError, msgspec.ValidationError) as error:
        raise DamagedExport(number, f"it holds no fact: {error}") from error


def _gap(fact: Fact, sequences: dict[str, int]) -> str | None:
    """What is missing before a fact in its thread, if anything is; takes note of the fact."""
    thread = thread_of(fact)
    if thread is None or fact.sequence is None:
        return None
    last = sequences.get(thread)
    sequences[thread] = fact.sequence
    if last is None or fact.sequence == last + 1:
        return None
    return f"thread {thread!r} goes from sequence {last} to {fact.sequence}"


async def _restore(stream: BinaryIO, journal: Journal, floor: int, advance: Advance) -> Result:
    given = restoration(stream, floor, advance)
    cursor = await journal.restore(given)
    facts = (await journal.stats()).facts
    return Result(epoch=cursor.epoch, appended=facts, restored=True)


async def _copy(stream: BinaryIO, journal: Journal, *, renumber: bool, advance: Advance) -> Result:
    result = Result(epoch=(await journal.head()).epoch)
    numbering = _Renumbering() if renumber else None
    batch: list[Numbered] = []
    for number, line in read_export(stream):
        if isinstance(line, FactLine):
            fact = _fact(number, line)
            batch.append((number, numbering.take(fact) if numbering else fact))
        if len(batch) == _BATCH:
            await _append(journal, batch, result)
            advance(len(batch))
            batch.clear()
    await _append(journal, batch, result)
    result.renumbered = numbering is not None and numbering.changed
    return result


class _Renumbering:
    """Leaves the sequence of a thread to the journal from its first gap on."""

    def __init__(self) -> None:
        self.changed = False
        self._sequences: dict[str, int] = {}
        self._broken: set[str | None] = set()

    def take(self, fact: Fact) -> Fact:
        thread = thread_of(fact)
        if _gap(fact, self._sequences) is not None:
            self._broken.add(thread)
        if thread is None or thread not in self._broken:
            return fact
        self.changed = True
        return msgspec.structs.replace(fact, sequence=None)


async def _append(journal: Journal, batch: list[Numbered], result: Result) -> None:
    try:
        answer = await journal.append([fact for _, fact in batch])
    except AppendRefused as error:
        raise await _refusal(journal, batch, error) from error
    repeated = sum(answer.repeated)
    result.repeated += repeated
    result.appended += len(batch) - repeated


async def _refusal(journal: Journal, batch: list[Numbered], error: AppendRefused) -> CliError:
    """The refusal with its line: what comes before it in the batch goes in, one by one."""
    for number, fact in batch:
        try:
            await journal.append([fact])
        except AppendRefused as refusal:
            what = failure(refusal)
            return CliError(f"line {number}: {what}; the lines before it are in", what.exit_code)
    return failure(error)


async def _copy_snapshots(stream: BinaryIO, journal: Journal, epoch: str) -> int:
    saved = 0
    for _, line in read_export(stream):
        if isinstance(line, SnapshotLine):
            cursor = Cursor(epoch, line.seq)
            # One from before facts that are gone cannot be followed up with what is left.
            with suppress(CursorExpired):
                await journal.save_snapshot(line.thread_id, cursor, line.data, line.snapshot)
                saved += 1
    return saved


def _tell(plan: Plan, result: Result, *, empty: bool) -> None:
    known = f", {result.repeated:,} more were there already" if result.repeated else ""
    errors.print(f"imported {counted(result.appended, 'fact')}{known}; epoch {result.epoch}")
    if result.restored:
        gone = plan.last - plan.facts
        errors.print(
            f"seqs are as they were; the ids of {counted(plan.removed, 'removed fact')} stay taken"
        )
        if gone > plan.removed:
            unknown = counted(gone - plan.removed, "removed fact")
            errors.print(f"nothing is known of {unknown}, whose ids can be taken again")
    elif empty and not plan.same_seqs:
        old = f"{plan.first:,}–{plan.last:,}"
        errors.print(f"seqs were renumbered: {old} are now 1–{plan.facts:,}")
    if result.renumbered:
        errors.print("sequences were renumbered in threads that had gaps")
    left = plan.snapshots - result.snapshots
    if left:
        errors.print(f"left out {counted(left, 'snapshot')}, which the facts can make anew")
