"""`factwire journal export` and `import`: a whole journal as one file, and a journal again.

The chain is verified before an export and the whole export before an import. Facts keep their
order, bytes and ids; the journal has an epoch of its own. Where facts had been removed before the
export, an empty journal is restored: seqs keep their gaps and removed ids stay taken. Where that
cannot be, in a journal with facts or from an export of the first version, the rest moves up, which
is said; where it left gaps in a thread's sequence, it is done only on request.

An export may come from a journal that nobody redacted. Where the first pass finds a secret, the
export is redacted as it is imported, and its snapshots, which show the secret too, are left out.
"""

import asyncio
import shutil
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final, cast

import msgspec
import typer

from factwire.cli.fact_files import open_source
from factwire.cli.journal_export_format import (
    FORMAT,
    DamagedExport,
    End,
    FactLine,
    Header,
    Line,
    LineWriter,
    RemovedLine,
    SnapshotLine,
    ThreadLine,
    read_export,
)
from factwire.cli.targets import (
    Advance,
    JournalUrl,
    journal_url,
    open_for_reading,
    open_for_writing,
    run_work,
    show_progress,
    to_cli_error,
)
from factwire.cli.terminal import DONE, ISSUES, CliError, count_of, errors, print_remark
from factwire.facts import (
    SECRETS_REDACTED,
    Fact,
    FactError,
    NameRedactor,
    RecordingRedactor,
    encode_fact,
    redact_text,
    redacted_remark,
)
from factwire.facts.fact import id_of
from factwire.facts.json_values import object_at, text_at
from factwire.journal import (
    AppendRefused,
    CatalogueRecord,
    Cursor,
    CursorExpired,
    Filter,
    Journal,
    PresentFact,
    RemovedFact,
    Restoration,
)
from factwire.journal.atomic_files import name_database, open_target, reserve_unfinished
from factwire.journal.blobs.blob_store import list_every_thread
from factwire.journal.chunks import decode_line
from factwire.journal.filter import find_thread_id
from factwire.journal.sqlite.journal import SqliteJournal

_SNAPSHOT: Final = "projection"

_TRIES: Final = 20
"""How often threads are read anew because facts were appended meanwhile."""

_REMOVED_MEANWHILE: Final = "facts were removed during the export; run it again"


def export(
    url: JournalUrl,
    file: Annotated[str, typer.Argument(help="A file to write, or - for standard output.")],
) -> None:
    """Write every fact with its seq, and the newest snapshots, to a file (NDJSON).

    It includes what the journal keeps about removed facts, so that an import gives the same journal
    again. The chain is verified first; a damaged journal is not exported.
    """
    run_work(_export(url, file))


async def _export(url: str, file: str) -> int:
    async with open_for_reading(url) as journal:
        whole = await _verify_scope(journal)
        with (
            _open_target(file) as target,
            show_progress("exporting", whole.header.facts) as advance,
        ):
            end = await _write_export(journal, whole, target, advance)
    if file != "-":
        errors.print(
            f"exported {count_of(end.facts, 'fact')} and {count_of(end.snapshots, 'snapshot')}"
        )
    return DONE


class _ExportScope(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to export; `threads` only where facts were removed."""

    header: Header
    threads: list[CatalogueRecord]


async def _verify_scope(journal: Journal) -> _ExportScope:
    stats = await journal.stats()
    head, threads = stats.head.seq, list[CatalogueRecord]()
    if stats.facts < head:
        head, threads = await _read_threads(journal)
    with show_progress("verifying"):
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
    return _ExportScope(header=header, threads=threads)


async def _read_threads(journal: Journal) -> tuple[int, list[CatalogueRecord]]:
    """All threads as of one head, and that head."""
    for _ in range(_TRIES):
        before = await journal.head()
        records = [record async for record in journal.records()]
        if await journal.head() == before:
            return before.seq, records
    raise CliError("facts arrive faster than threads can be read; export at a quieter time")


async def _write_export(
    journal: Journal, whole: _ExportScope, target: BinaryIO, advance: Advance
) -> End:
    header, lines = whole.header, LineWriter()
    target.write(lines.line(header))
    facts = removed = snapshots = 0
    async for entry in _journal_entries(journal, header):
        if isinstance(entry, PresentFact):
            target.write(lines.fact(entry.seq, entry.line))
            facts += 1
            advance(1)
        else:
            target.write(lines.line(_removed_line(entry)))
            removed += 1
    if facts != header.facts:
        raise CliError(_REMOVED_MEANWHILE)
    target.writelines(lines.line(ThreadLine(thread=record)) for record in whole.threads)
    async for snapshot in _journal_snapshots(journal, Cursor(header.epoch, header.head)):
        target.write(lines.line(snapshot))
        snapshots += 1
    end = End(
        end=True, facts=facts, snapshots=snapshots, removed=removed, threads=len(whole.threads)
    )
    target.write(lines.line(end))
    target.flush()
    return end


async def _journal_entries(
    journal: Journal, header: Header
) -> AsyncIterator[PresentFact | RemovedFact]:
    """Facts and what is left of removed ones, by seq."""
    removed = journal.read_removed()
    gone = await anext(removed, None)
    async for fact in _journal_facts(journal, header):
        while gone and gone.seq < fact.seq:
            yield gone
            gone = await anext(removed, None)
        if gone and gone.seq == fact.seq:
            raise CliError(_REMOVED_MEANWHILE)
        yield fact


async def _journal_facts(journal: Journal, header: Header) -> AsyncIterator[PresentFact]:
    """Those that were there when the header was made; what was appended since is left out."""
    if header.head == 0:
        return
    async for batch in journal.read():
        for seq, stored in zip(batch.seqs, batch.lines(), strict=True):
            if seq <= header.head:
                yield PresentFact(seq, stored)
        if batch.last >= header.head:
            return


def _removed_line(gone: RemovedFact) -> RemovedLine:
    return RemovedLine(removed=gone.seq, id=gone.id, sequence=gone.sequence, digest=gone.digest)


async def _journal_snapshots(journal: Journal, head: Cursor) -> AsyncIterator[SnapshotLine]:
    seen: set[str] = set()
    async for thread in list_every_thread(journal):
        found = None if thread in seen else await journal.snapshot(thread, _SNAPSHOT, head)
        seen.add(thread)
        if found is not None:
            yield SnapshotLine(
                snapshot=found.kind, thread_id=thread, seq=found.cursor.seq, data=found.data
            )


@contextmanager
def _open_target(file: str) -> Generator[BinaryIO]:
    """Standard output, or a target that is written whole."""
    if file == "-":
        yield sys.stdout.buffer
        return
    with open_target(Path(file)) as target:
        yield target


class ExportRedactor:
    """Reads an export without its secrets; `count` is how many it replaced."""

    def __init__(self) -> None:
        self._names, self._texts = NameRedactor(), RecordingRedactor()
        self._others = 0

    @property
    def count(self) -> int:
        return self._names.count + self._texts.count + self._others

    def read(self, stream: BinaryIO) -> Iterator[tuple[int, Line]]:
        """The lines of an export, as many and in the same order, but for its snapshots."""
        waiting: deque[tuple[int, Line]] = deque()
        for number, line in read_export(stream):
            if isinstance(line, FactLine):
                waiting.append((number, line))
                fact = self._names.feed(_decode_fact(number, line))
                yield from _take_facts(waiting, self._texts.feed(fact))
            elif isinstance(line, RemovedLine):
                safe = msgspec.structs.replace(line, id=self._redact_name(line.id))
                waiting.append((number, safe))
            elif isinstance(line, ThreadLine):
                yield from _take_facts(waiting, self._texts.finish())
                yield number, ThreadLine(thread=self._redact_thread(line.thread))
            elif not isinstance(line, SnapshotLine):
                yield from _take_facts(waiting, self._texts.finish())
                yield number, line

    def _redact_thread(self, thread: CatalogueRecord) -> CatalogueRecord:
        title, rules = redact_text(thread.title or "")
        self._others += len(rules)
        name = self._redact_name
        return msgspec.structs.replace(
            thread,
            thread_id=name(thread.thread_id),
            project_id=thread.project_id and name(thread.project_id),
            session_id=thread.session_id and name(thread.session_id),
            title=title if rules else thread.title,
            open={name(action): seq for action, seq in thread.open.items()},
        )

    def _redact_name(self, name: str) -> str:
        safe = self._names.redact_name(name)
        self._others += safe != name
        return safe


def _take_facts(
    waiting: deque[tuple[int, Line]], facts: Iterator[Fact]
) -> Iterator[tuple[int, Line]]:
    """The lines whose facts are ready, each with the bytes that were exported unless its fact was
    changed.
    """
    for fact in facts:
        while isinstance(waiting[0][1], RemovedLine):
            yield waiting.popleft()
        number, line = waiting.popleft()
        if isinstance(line, FactLine) and fact != _decode_fact(number, line):
            line = FactLine(seq=line.seq, fact=msgspec.Raw(encode_fact(fact)))
        yield number, line
    while waiting and isinstance(waiting[0][1], RemovedLine):
        yield waiting.popleft()


ReadLines = Callable[[], Iterator[tuple[int, Line]]]
"""Reads an export from its first line."""


def build_restoration(read: ReadLines, floor: int, advance: Advance) -> Restoration:
    """What is in a checked export; a journal takes all entries before it takes a thread."""
    entries, threads = _export_entries(read, advance), _export_threads(read)
    return Restoration(floor=floor, entries=entries, threads=threads)


def _export_entries(read: ReadLines, advance: Advance) -> Iterator[PresentFact | RemovedFact]:
    for _, line in read():
        if isinstance(line, FactLine):
            advance(1)
            yield PresentFact(line.seq, bytes(line.fact))
        elif isinstance(line, RemovedLine):
            yield RemovedFact(line.removed, line.id, line.sequence, line.digest)


def _export_threads(read: ReadLines) -> Iterator[CatalogueRecord]:
    for _, line in read():
        if isinstance(line, ThreadLine):
            yield line.thread


Numbered = tuple[int, Fact]
"""A fact and the line of the export it stands on."""

_BATCH: Final = 1000


class ImportPlan(msgspec.Struct, kw_only=True):
    """What an export holds, from the pass that checked it."""

    header: Header | None = None
    facts: int = 0
    removed: int = 0
    snapshots: int = 0
    first: int = 0
    last: int = 0
    secrets: int = 0
    gap: str | None = None
    """The first place where a thread's sequence has a gap, in words."""

    @property
    def same_seqs(self) -> bool:
        return self.last == self.facts

    @property
    def restorable(self) -> bool:
        """Whether facts are missing, and the export says all that is known of them."""
        return self.header is not None and self.header.lossless and not self.same_seqs


class ImportResult(msgspec.Struct, kw_only=True):
    """What an import did."""

    epoch: str
    appended: int = 0
    repeated: int = 0
    snapshots: int = 0
    renumbered: bool = False
    restored: bool = False
    is_new: bool = False
    """Whether the journal appears only when the import is whole."""


def import_(
    file: Annotated[str, typer.Argument(help="An export, or - for standard input.")],
    url: JournalUrl,
    *,
    append: Annotated[
        bool,
        typer.Option(
            "--append", help="Import into a journal that has facts; existing ones are skipped."
        ),
    ] = False,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Close the gaps that compaction left in sequences."),
    ] = False,
) -> None:
    """Import an export into an empty journal, which gets its own epoch.

    Exit code 1: the export is damaged, or the journal refuses one of its facts.
    """
    run_work(_import(file, url, append=append, renumber=renumber))


async def _import(file: str, url: str, *, append: bool, renumber: bool) -> int:
    with open_source(file) as source, _make_rereadable(source.stream) as stream:
        plan = _check_export(stream)
        restores = plan.restorable and not append and not renumber
        if plan.gap and not restores and not renumber:
            message = f"{plan.gap}: facts were removed there by compaction or retention; "
            raise CliError(redact_text(f"{message}use --renumber to close such gaps")[0], ISSUES)
        async with _open_import_target(url) as (journal, is_new):
            empty = (await journal.head()).seq == 0
            if not empty and not append:
                raise CliError(
                    "the journal already contains facts; use --append to add to them", ISSUES
                )
            read = _line_reader(stream, plan)
            with show_progress("importing", plan.facts) as advance:
                if restores and plan.header:
                    result = await _restore(read, journal, plan.header.floor, advance)
                else:
                    result = ImportResult(epoch=(await journal.head()).epoch, is_new=is_new)
                    await _copy_facts(read, journal, result, renumber=renumber, advance=advance)
            if isinstance(journal, SqliteJournal):
                await _mark_private_threads(journal)
            if result.restored or (empty and plan.same_seqs and not result.renumbered):
                result.snapshots = await _copy_snapshots(read, journal, result.epoch)
    _show_import(plan, result, empty=empty)
    print_remark(SECRETS_REDACTED, source.name, redacted_remark(plan.secrets))
    return DONE


@asynccontextmanager
async def _open_import_target(url: str) -> AsyncGenerator[tuple[Journal, bool]]:
    """The journal to import into, and whether it is new. A new file gets its name once the import
    is whole: one that was killed or refused leaves nothing that could be taken for it, and can be
    repeated.
    """
    scheme, _, rest = journal_url(url).partition(":")
    name, mark, options = rest.partition("?")
    path = Path(name)
    if scheme != "sqlite" or await asyncio.to_thread(path.exists):
        async with open_for_writing(url, create=True) as journal:
            yield journal, False
        return
    with reserve_unfinished(path) as unfinished:
        target = f"sqlite:{unfinished}{mark}{options}"
        async with open_for_writing(target, create=True) as journal:
            yield journal, True
        await asyncio.to_thread(name_database, unfinished, path)


@contextmanager
def _make_rereadable(stream: BinaryIO) -> Generator[BinaryIO]:
    """A stream that can be read twice: once to check, once to import."""
    if stream is not sys.stdin.buffer and stream.seekable():
        yield stream
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)


def _line_reader(stream: BinaryIO, plan: ImportPlan) -> ReadLines:
    """Reads the lines as they were exported, or without the secrets that the first pass found. Text
    in which nothing was found keeps its bytes: redaction may cut a text into other pieces.
    """

    def read() -> Iterator[tuple[int, Line]]:
        stream.seek(0)
        return ExportRedactor().read(stream) if plan.secrets else read_export(stream)

    return read


def _check_export(stream: BinaryIO) -> ImportPlan:
    plan, redactor = ImportPlan(), ExportRedactor()
    with show_progress("checking") as advance:
        try:
            _plan_lines(stream, plan, advance)
            stream.seek(0)
            deque(redactor.read(stream), maxlen=0)
        except DamagedExport as error:
            raise CliError(redact_text(str(error))[0], ISSUES) from error
    plan.secrets = redactor.count
    return plan


def _plan_lines(stream: BinaryIO, plan: ImportPlan, advance: Advance) -> None:
    sequences: dict[str, int] = {}
    for number, line in read_export(stream):
        if isinstance(line, FactLine):
            _plan_fact(plan, number, line, sequences)
            advance(1)
        elif isinstance(line, SnapshotLine):
            plan.snapshots += 1
        elif isinstance(line, RemovedLine):
            plan.removed += 1
        elif isinstance(line, Header):
            plan.header = line


def _plan_fact(plan: ImportPlan, number: int, line: FactLine, sequences: dict[str, int]) -> None:
    fact = _decode_fact(number, line)
    plan.facts += 1
    plan.first, plan.last = plan.first or line.seq, line.seq
    gap = _find_gap(fact, sequences)
    if gap is not None and plan.gap is None:
        plan.gap = f"line {number}: {gap}"


def _decode_fact(number: int, line: FactLine) -> Fact:
    try:
        return decode_line(bytes(line.fact))
    except (FactError, msgspec.ValidationError) as error:
        raise DamagedExport(number, f"not a fact: {error}") from error


def _find_gap(fact: Fact, sequences: dict[str, int]) -> str | None:
    """What is missing before a fact in its thread, if anything is; takes note of the fact."""
    thread = find_thread_id(fact)
    if thread is None or fact.sequence is None:
        return None
    last = sequences.get(thread)
    sequences[thread] = fact.sequence
    if last is None or fact.sequence == last + 1:
        return None
    return f"thread {thread!r} goes from sequence {last} to {fact.sequence}"


async def _restore(read: ReadLines, journal: Journal, floor: int, advance: Advance) -> ImportResult:
    content = build_restoration(read, floor, advance)
    cursor = await journal.restore(content)
    facts = (await journal.stats()).facts
    return ImportResult(epoch=cursor.epoch, appended=facts, restored=True)


_PRIVACY_CLASSES: Final = ("thread.created", "thread.updated", "thread.forked", "history.removed")


async def _mark_private_threads(journal: SqliteJournal) -> None:
    """Note anew which threads are private, by what their facts say."""
    private: dict[str, int] = {}
    async for batch in journal.read(filter=Filter(classes=_PRIVACY_CLASSES)):
        for seq, fact in batch.facts():
            about = text_at(fact.payload, "aboutThread")
            stated = (object_at(fact.payload.get("thread")) or {}) if about else fact.payload
            thread = about or find_thread_id(fact)
            if thread is not None and stated.get("private") is True:
                # Once its history was removed, all that is left of it came after the mark.
                private.setdefault(thread, 0 if about else seq - 1)
    if not private:
        return
    async for batch in journal.read():
        for seq, fact in batch.facts():
            thread, parent = find_thread_id(fact), id_of(fact, "parentThreadId")
            if thread is not None and parent in private:
                private.setdefault(thread, seq - 1)
    for thread, after in private.items():
        await journal.mark_private(thread, after)


async def _copy_facts(
    read: ReadLines, journal: Journal, result: ImportResult, *, renumber: bool, advance: Advance
) -> None:
    numbering = _Renumbering() if renumber else None
    batch: list[Numbered] = []
    for number, line in read():
        if isinstance(line, FactLine):
            fact = _decode_fact(number, line)
            batch.append((number, numbering.take(fact) if numbering else fact))
        if len(batch) == _BATCH:
            await _append_batch(journal, batch, result)
            advance(len(batch))
            batch.clear()
    await _append_batch(journal, batch, result)
    result.renumbered = numbering is not None and numbering.changed


class _Renumbering:
    """Leaves the sequence of a thread to the journal from its first gap on."""

    def __init__(self) -> None:
        self.changed = False
        self._sequences: dict[str, int] = {}
        self._broken: set[str | None] = set()

    def take(self, fact: Fact) -> Fact:
        thread = find_thread_id(fact)
        if _find_gap(fact, self._sequences) is not None:
            self._broken.add(thread)
        if thread is None or thread not in self._broken:
            return fact
        self.changed = True
        return msgspec.structs.replace(fact, sequence=None)


async def _append_batch(journal: Journal, batch: list[Numbered], result: ImportResult) -> None:
    try:
        answer = await journal.append([fact for _, fact in batch])
    except AppendRefused as error:
        append = not result.is_new
        raise await _locate_refusal(journal, batch, error, append=append) from error
    repeated = sum(answer.repeated)
    result.repeated += repeated
    result.appended += len(batch) - repeated


async def _locate_refusal(
    journal: Journal, batch: list[Numbered], error: AppendRefused, *, append: bool
) -> CliError:
    """The refusal with its line, found by appending one fact after the other."""
    for number, fact in batch:
        try:
            await journal.append([fact])
        except AppendRefused as refusal:
            what = to_cli_error(refusal)
            left = "the lines before it were imported" if append else "nothing was imported"
            return CliError(f"line {number}: {what}; {left}", what.exit_code)
    return to_cli_error(error)


async def _copy_snapshots(read: ReadLines, journal: Journal, epoch: str) -> int:
    saved = 0
    for _, line in read():
        if isinstance(line, SnapshotLine):
            cursor = Cursor(epoch, line.seq)
            # One from before facts that are gone cannot be followed up with what is left.
            with suppress(CursorExpired):
                await journal.save_snapshot(line.thread_id, cursor, line.data, line.snapshot)
                saved += 1
    return saved


def _show_import(plan: ImportPlan, result: ImportResult, *, empty: bool) -> None:
    known = f", {result.repeated:,} already existed" if result.repeated else ""
    errors.print(f"imported {count_of(result.appended, 'fact')}{known}; epoch {result.epoch}")
    if result.restored:
        gone = plan.last - plan.facts
        errors.print(
            f"seqs are unchanged; the ids of {count_of(plan.removed, 'removed fact')} stay reserved"
        )
        if gone > plan.removed:
            unknown = count_of(gone - plan.removed, "removed fact")
            errors.print(f"{unknown} not recorded; their ids can be used again")
    elif empty and not plan.same_seqs:
        old = f"{plan.first:,}–{plan.last:,}"
        errors.print(f"seqs were renumbered: {old} are now 1–{plan.facts:,}")
    if result.renumbered:
        errors.print("sequences were renumbered in threads that had gaps")
    left = plan.snapshots - result.snapshots
    if left:
        errors.print(f"left out {count_of(left, 'snapshot')}, which can be rebuilt from the facts")
