"""From a journal, or from facts in any other place, to a pack.

Facts are read in the order of their seqs. Anchors are points of the journal's chain that the facts
hang on: one vouches for everything before it, and some more, bounded in number, say where two
histories part.
"""

import heapq
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import BinaryIO, Final, NamedTuple, cast

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire.evidence.errors import ExportProblem
from factwire.evidence.limits import ANCHORS, PROGRESS_FACTS
from factwire.evidence.pack_format import ChainAnchor, JournalAnchors
from factwire.evidence.pack_writer import PackWriter, WrittenPack, add_blobs
from factwire.evidence.replay_cases import ReplayCase
from factwire.facts import Fact, RecordingRedactor, encode_fact
from factwire.journal import Cursor, FactBatch, Filter, Journal
from factwire.journal.blobs import BlobStore
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.chunks import decode_line
from factwire.journal.filter import find_thread_id


class AnchorPlaces:
    """Seqs spread over all that went by: first every one, then every second, fourth, eighth …"""

    def __init__(self) -> None:
        self.first = 0
        self.last = 0
        self._kept: list[int] = []
        self._step = 1
        self._count = 0

    def note(self, seq: int) -> None:
        self.first = self.first or seq
        self.last = seq
        if self._count % self._step == 0:
            self._kept.append(seq)
            if len(self._kept) >= ANCHORS:
                self._kept = self._kept[::2]
                self._step *= 2
        self._count += 1

    def all(self) -> list[int]:
        """The places, the last one always among them."""
        return sorted({*self._kept, self.last}) if self._count else []


async def read_anchors(journal: Journal, places: list[int]) -> list[ChainAnchor]:
    """The chain's hash behind the commit of each place, once for each commit."""
    found: dict[int, str] = {}
    for seq in places:
        if not any(seq <= existing for existing in reversed(found)):
            point = await journal.chain_point(seq)
            found[point.seq] = point.hash.hex()
    return [ChainAnchor(seq=seq, hash=digest) for seq, digest in found.items()]


_MERGED_STREAMS: Final = 16
"""Threads that are read each by its own filter; of more, the whole journal is read once."""

_PAGE: Final = 500


class Stored(NamedTuple):
    """A fact, its place and its bytes."""

    seq: int
    line: bytes
    fact: Fact


async def threads_of_project(journal: Journal, project: str) -> list[str]:
    """The threads of a project."""
    found: list[str] = []
    page = await journal.threads(project=project, limit=_PAGE)
    while page.threads:
        found += [row.thread_id for row in page.threads]
        if page.after is None:
            break
        page = await journal.threads(project=project, after=page.after, limit=_PAGE)
    return sorted(found)


async def read_selected(
    journal: Journal, threads: Sequence[str] | None, last: int
) -> AsyncGenerator[Stored]:
    """The facts of some threads, or of all, up to a seq."""
    if threads is None or len(threads) > _MERGED_STREAMS:
        wanted = None if threads is None else frozenset(threads)
        async with aclosing(_read_stream(journal, None, last)) as rows:
            async for stored in rows:
                if wanted is None or find_thread_id(stored.fact) in wanted:
                    yield stored
        return
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(
                aclosing(_read_stream(journal, Filter(thread=name), last))
            )
            for name in sorted(set(threads))
        ]
        async with aclosing(_merge_streams(streams)) as rows:
            async for stored in rows:
                yield stored


async def _read_stream(
    journal: Journal, wanted: Filter | None, last: int
) -> AsyncGenerator[Stored]:
    if not last:
        return
    # It may be left before its end, and shall not outlive the journal.
    found = cast("AsyncGenerator[FactBatch]", journal.read(filter=wanted))
    async with aclosing(found) as batches:
        async for batch in batches:
            for seq, line in zip(batch.seqs, batch.lines(), strict=True):
                if seq > last:
                    return
                yield Stored(seq, line, decode_line(line))
            if batch.last >= last:
                return


async def _merge_streams(streams: list[AsyncGenerator[Stored]]) -> AsyncGenerator[Stored]:
    """Several streams as one, of each of which one fact is held."""
    waiting: list[tuple[int, int, Stored]] = []
    for index, stream in enumerate(streams):
        await _push_next(waiting, index, stream)
    while waiting:
        _, index, stored = heapq.heappop(waiting)
        yield stored
        await _push_next(waiting, index, streams[index])


async def _push_next(
    waiting: list[tuple[int, int, Stored]], index: int, stream: AsyncGenerator[Stored]
) -> None:
    found = await anext(stream, None)
    if found is not None:
        # A seq stands once in a journal, so nothing behind it is ever compared.
        heapq.heappush(waiting, (found.seq, index, found))


ExportProgress = Callable[[int], None]
"""Called with the number of facts since the last call."""

_RACED: Final = "facts were removed from the journal during the export; run it again"


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a pack beside the facts. Without a key it is not signed."""

    key: Ed25519PrivateKey | None = None
    blobs: BlobStore | None = None
    with_blobs: bool = False
    cases: tuple[ReplayCase, ...] = ()
    stored: bool = False
    """Do not compress: bigger, and the same bytes whatever zlib is installed."""


async def export_journal(
    journal: Journal,
    target: BinaryIO,
    *,
    threads: Sequence[str] | None,
    until: Cursor | None = None,
    options: ExportOptions = ExportOptions(),  # noqa: B008
    progress: ExportProgress = lambda _: None,
) -> WrittenPack:
    """Write the facts of some threads, or of all, to a pack.

    The journal's chain is verified first; raises `ExportProblem` where it is damaged, where there
    is nothing to export, or where facts are removed meanwhile.
    """
    await _ensure_intact(journal)
    place = await _find_place(journal, until)
    tallies: dict[str, _Tally] = {}
    places = AnchorPlaces()
    with PackWriter(target, source="journal", stored=options.stored) as writer:
        step: list[Stored] = []
        async with aclosing(read_selected(journal, threads, place.head)) as facts:
            async for stored in facts:
                within = stored.seq <= place.last
                _count_fact(tallies, stored.fact, within=within)
                if within:
                    step.append(stored)
                    places.note(stored.seq)
                    if len(step) == PROGRESS_FACTS:
                        # Whoever else lives in this process works on meanwhile.
                        await run_disk_work(_write_step, writer, step)
                        progress(len(step))
                        step.clear()
        await run_disk_work(_write_step, writer, step)
        if step:
            progress(len(step))
        _ensure_facts(writer.facts)
        await run_disk_work(writer.end_facts)
        await add_blobs(writer, options.blobs, include=options.with_blobs)
        anchors = JournalAnchors(
            epoch=place.epoch,
            first_seq=places.first,
            last_seq=places.last,
            anchors=await read_anchors(journal, places.all()),
            removed=await _count_removed(journal, tallies, place),
            threads=None if threads is None else sorted(threads),
            until=None if until is None else until.seq,
        )
        await _ensure_unchanged(journal, place)
        return await run_disk_work(
            writer.finish, key=options.key, journal=anchors, cases=_encode_cases(options.cases)
        )


def _write_step(writer: PackWriter, step: Sequence[Stored]) -> None:
    for stored in step:
        writer.take(stored.fact, stored.line, stored.seq)


async def export_facts(
    facts: Iterable[Fact],
    target: BinaryIO,
    *,
    options: ExportOptions = ExportOptions(),  # noqa: B008
    progress: ExportProgress = lambda _: None,
) -> WrittenPack:
    """Write facts that are in no journal to a pack, in the order in which they come.

    What nobody has redacted yet is redacted here, by the rules of a journal's intake.
    """
    redactor = RecordingRedactor()
    with PackWriter(target, source="file", stored=options.stored) as writer:
        reported = 0
        for fact in redactor.redact(facts):
            writer.take(fact, encode_fact(fact))
            if writer.facts - reported == PROGRESS_FACTS:
                progress(PROGRESS_FACTS)
                reported = writer.facts
        if writer.facts > reported:
            progress(writer.facts - reported)
        _ensure_facts(writer.facts)
        writer.end_facts()
        await add_blobs(writer, options.blobs, include=options.with_blobs)
        return writer.finish(key=options.key, cases=_encode_cases(options.cases))


class _Place(msgspec.Struct, frozen=True):
    """The head, how far facts are taken, and how many were gone by then."""

    epoch: str
    head: int
    last: int
    gone: int


class _Tally(msgspec.Struct):
    """The facts of a thread: all that are there, and those that are taken."""

    present: int = 0
    taken: int = 0
    first: int | None = None
    last: int | None = None

    def count_missing(self) -> int:
        """Sequences between the first and the last that are not there."""
        if self.first is None or self.last is None:
            return 0
        return max(0, self.last - self.first + 1 - self.taken)


async def _ensure_intact(journal: Journal) -> None:
    report = await journal.verify()
    if report.damage is not None:
        place = f"{report.damage.first}–{report.damage.last}"
        message = f"the journal is damaged at {place}: {report.damage.reason}; nothing was exported"
        raise ExportProblem("journal_corrupt", message)


async def _find_place(journal: Journal, until: Cursor | None) -> _Place:
    stats = await journal.stats()
    head = stats.head
    if until is not None and (until.epoch != head.epoch or until.seq > head.seq):
        message = f"{until} is not a position in this journal, which ends at {head}"
        raise ExportProblem("cursor_not_of_journal", message)
    last = head.seq if until is None else until.seq
    return _Place(head.epoch, head.seq, last, head.seq - stats.facts)


async def _ensure_unchanged(journal: Journal, place: _Place) -> None:
    stats = await journal.stats()
    if stats.head.epoch != place.epoch or stats.head.seq - stats.facts != place.gone:
        raise ExportProblem("export_raced", _RACED)


async def _count_removed(
    journal: Journal, tallies: dict[str, _Tally], place: _Place
) -> dict[str, int]:
    """Thread → how many of its facts are gone, up to where they are taken.

    A catalogue counts every fact that a thread ever had. Of a thread that went on meanwhile, and
    before a place that was asked for, only what is missing between facts is certain.
    """
    found: dict[str, int] = {}
    for thread, tally in tallies.items() if place.gone else ():
        row = await journal.thread(thread)
        gone = 0 if row is None else row.fact_count - tally.present
        if row is None or row.last_seq > place.head or place.last < place.head:
            gone = min(gone, tally.count_missing())
        if gone > 0:
            found[thread] = gone
    return found


def _count_fact(tallies: dict[str, _Tally], fact: Fact, *, within: bool) -> None:
    thread = find_thread_id(fact)
    if thread is None:
        return
    tally = tallies.setdefault(thread, _Tally())
    tally.present += 1
    if within:
        tally.taken += 1
        tally.first = fact.sequence if tally.first is None else tally.first
        tally.last = fact.sequence


def _ensure_facts(facts: int) -> None:
    if not facts:
        message = "there are no facts to export; list the threads with `factwire threads`"
        raise ExportProblem("nothing_to_export", message)


def _encode_cases(cases: Iterable[ReplayCase]) -> list[bytes]:
    return [msgspec.json.encode(case) for case in cases]
