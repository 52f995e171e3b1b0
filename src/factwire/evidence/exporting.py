"""From a journal, or from facts in any other place, to a pack."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import BinaryIO, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire.evidence.anchors import Places, anchors_at
from factwire.evidence.assertions import ReplayCase
from factwire.evidence.blobs import take_blobs
from factwire.evidence.errors import ExportProblem
from factwire.evidence.limits import PROGRESS_FACTS
from factwire.evidence.selection import selected
from factwire.evidence.summary import JournalAnchors
from factwire.evidence.writing import PackWriter, Written
from factwire.facts import Fact, Redactor, encode_fact
from factwire.journal import Cursor, Journal
from factwire.journal.blobs import BlobStore
from factwire.journal.filter import thread_of

Progress = Callable[[int], None]
"""Called with the number of facts since the last call."""

_RACED: Final = "facts were removed from the journal during the export; run it again"


class Options(msgspec.Struct, frozen=True, kw_only=True):
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
    options: Options = Options(),  # noqa: B008
    progress: Progress = lambda _: None,
) -> Written:
    """Write the facts of some threads, or of all, to a pack.

    The journal's chain is verified first; raises `ExportProblem` where it is damaged, where there
    is nothing to export, or where facts are removed meanwhile.
    """
    await _ensure_intact(journal)
    place = await _placed(journal, until)
    tallies: dict[str, _Tally] = {}
    places = Places()
    with PackWriter(target, source="journal", stored=options.stored) as writer:
        told = _Told(progress)
        async with aclosing(selected(journal, threads, place.head)) as facts:
            async for stored in facts:
                within = stored.seq <= place.last
                _count(tallies, stored.fact, within=within)
                if within:
                    writer.take(stored.fact, stored.line, stored.seq)
                    places.note(stored.seq)
                    if told.one():
                        # Whoever else lives in this process works on meanwhile.
                        await asyncio.sleep(0)
        told.rest()
        _ensure_some(writer.facts)
        writer.end_facts()
        await take_blobs(writer, options.blobs, include=options.with_blobs)
        anchors = JournalAnchors(
            epoch=place.epoch,
            first_seq=places.first,
            last_seq=places.last,
            anchors=await anchors_at(journal, places.all()),
            removed=await _removed(journal, tallies, place),
            threads=None if threads is None else sorted(threads),
            until=None if until is None else until.seq,
        )
        await _ensure_still(journal, place)
        return writer.finish(key=options.key, journal=anchors, cases=_encoded(options.cases))


async def export_facts(
    facts: Iterable[Fact],
    target: BinaryIO,
    *,
    options: Options = Options(),  # noqa: B008
    progress: Progress = lambda _: None,
) -> Written:
    """Write facts that are in no journal to a pack, in the order in which they come.

    What nobody has redacted yet is redacted here, by the rules of a journal's intake.
    """
    redactor = Redactor()
    with PackWriter(target, source="file", stored=options.stored) as writer:
        told = _Told(progress)
        for given in facts:
            fact = redactor.feed(given).fact
            writer.take(fact, encode_fact(fact))
            told.one()
        told.rest()
        _ensure_some(writer.facts)
        writer.end_facts()
        await take_blobs(writer, options.blobs, include=options.with_blobs)
        return writer.finish(key=options.key, cases=_encoded(options.cases))


class _Told:
    """Tells a progress callback in steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = 0

    def one(self) -> bool:
        """Whether a step is done, and told."""
        self._count += 1
        is_step = self._count == PROGRESS_FACTS
        if is_step:
            self.rest()
        return is_step

    def rest(self) -> None:
        if self._count:
            self._progress(self._count)
            self._count = 0


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

    def missing(self) -> int:
        """Sequences between the first and the last that are not there."""
        if self.first is None or self.last is None:
            return 0
        return max(0, self.last - self.first + 1 - self.taken)


async def _ensure_intact(journal: Journal) -> None:
    report = await journal.verify()
    if report.damage is not None:
        place = f"{report.damage.first}–{report.damage.last}"
        message = f"the journal is damaged at {place}: {report.damage.reason}; export nothing of it"
        raise ExportProblem("journal_corrupt", message)


async def _placed(journal: Journal, until: Cursor | None) -> _Place:
    stats = await journal.stats()
    head = stats.head
    if until is not None and (until.epoch != head.epoch or until.seq > head.seq):
        message = f"{until} is no place of this journal, which is at {head}"
        raise ExportProblem("cursor_not_of_journal", message)
    last = head.seq if until is None else until.seq
    return _Place(head.epoch, head.seq, last, head.seq - stats.facts)


async def _ensure_still(journal: Journal, place: _Place) -> None:
    stats = await journal.stats()
    if stats.head.epoch != place.epoch or stats.head.seq - stats.facts != place.gone:
        raise ExportProblem("export_raced", _RACED)


async def _removed(journal: Journal, tallies: dict[str, _Tally], place: _Place) -> dict[str, int]:
    """Thread → how many of its facts are gone, up to where they are taken.

    A catalogue counts every fact that a thread ever had. Of a thread that went on meanwhile, and
    before a place that was asked for, only what is missing between facts is certain.
    """
    found: dict[str, int] = {}
    for thread, tally in tallies.items() if place.gone else ():
        row = await journal.thread(thread)
        gone = 0 if row is None else row.fact_count - tally.present
        if row is None or row.last_seq > place.head or place.last < place.head:
            gone = min(gone, tally.missing())
        if gone > 0:
            found[thread] = gone
    return found


def _count(tallies: dict[str, _Tally], fact: Fact, *, within: bool) -> None:
    thread = thread_of(fact)
    if thread is None:
        return
    tally = tallies.setdefault(thread, _Tally())
    tally.present += 1
    if within:
        tally.taken += 1
        tally.first = fact.sequence if tally.first is None else tally.first
        tally.last = fact.sequence


def _ensure_some(facts: int) -> None:
    if not facts:
        message = "there are no facts to export; look for the thread with `factwire threads`"
        raise ExportProblem("nothing_to_export", message)


def _encoded(cases: Iterable[ReplayCase]) -> list[bytes]:
    return [msgspec.json.encode(case) for case in cases]
