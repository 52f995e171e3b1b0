"""`Records`: what an Edge lists, as a pure function of the facts of all its threads.

Facts come in the order of the journal. A thread that was deleted is gone from every list, with all
that belongs to it; its facts stay in the journal until retention takes them. Records are read once
from the journal, then along with the feed, and saved when it ends; what is saved only spares work:
without it, or with one of another journal, the lists are made anew from the facts.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.edge.records import run_records, thread_records
from factwire.facts import Fact
from factwire.facts.resources import (
    Approval,
    Artifact,
    Conversation,
    EvidenceRow,
    Preview,
    Project,
    RetentionRun,
    Run,
    Task,
    Thread,
)
from factwire.journal import Cursor, CursorError, Filter, Journal
from factwire.journal.blobs.blob_store import list_every_thread, run_disk_work
from factwire.serving.envelopes import ThreadPlace
from factwire.serving.paging import RowTable
from factwire.serving.streams.journal_feed import DecodedBatch, JournalFeed

RECORDS_VERSION: Final = 2
"""Of the saved form; another one is not read, but made anew from the facts."""


class SavedRecords(msgspec.Struct, kw_only=True):
    """Everything that records are, to go on from later."""

    version: int
    epoch: str
    seq: int
    projects: dict[str, Project]
    conversations: dict[str, Conversation]
    threads: dict[str, Thread]
    runs: dict[str, Run]
    approvals: dict[str, Approval]
    artifacts: dict[str, Artifact]
    tasks: dict[str, Task]
    previews: dict[str, Preview]
    evidence: dict[str, EvidenceRow]
    deleted: dict[str, None]
    places: dict[str, ThreadPlace]
    removals: dict[str, int] = {}
    retention: RetentionRun | None = None


class Records:
    """The tables; `note` takes in the next fact."""

    def __init__(self) -> None:
        self.seq = 0
        self.projects: RowTable[Project] = RowTable()
        self.conversations: RowTable[Conversation] = RowTable()
        self.threads: RowTable[Thread] = RowTable()
        self.runs: RowTable[Run] = RowTable()
        self.approvals: RowTable[Approval] = RowTable()
        self.artifacts: RowTable[Artifact] = RowTable()
        self.tasks: RowTable[Task] = RowTable()
        self.previews: RowTable[Preview] = RowTable()
        self.evidence: RowTable[EvidenceRow] = RowTable()
        self.deleted: dict[str, None] = {}
        self.places: dict[str, ThreadPlace] = {}
        """By thread, also of those that were deleted: their events stay in the streams."""
        self.removals: dict[str, int] = {}
        """Thread → the seq up to which retention is to remove its facts, and has not yet."""
        self.retention: RetentionRun | None = None
        """The last run of retention that removed something."""
        self.shortened: set[str] = set()
        """Threads whose rows may tell of facts that were removed, until they are rebuilt."""

    def apply(self, seq: int, fact: Fact) -> None:
        """Take in a fact; whatever is no news for these lists changes nothing."""
        self.seq = seq
        thread_id = thread_records.thread_of(fact)
        if thread_id is not None and thread_id in self.deleted:
            return
        handle = HANDLERS.get(fact.event_class or "")
        if handle is not None or thread_id not in self.threads.rows:
            thread_records.note_thread(self, seq, fact, thread_id)
        if handle is not None:
            handle(self, seq, fact)

    def rebuild(self, threads: set[str], facts: Iterable[tuple[int, Fact]]) -> None:
        """Make the rows of some threads anew, from all the facts that are left of them."""
        seq = self.seq
        removals, retention = self.removals, self.retention
        for thread_id in threads:
            thread_records.remove_rows(self, thread_id)
            self.places.pop(thread_id, None)
        for each in facts:
            self.apply(*each)
        self.seq, self.removals, self.retention = seq, removals, retention
        self.shortened -= threads

    def save(self, epoch: str) -> bytes:
        """The tables as bytes."""
        return msgspec.msgpack.encode(
            SavedRecords(
                version=RECORDS_VERSION,
                epoch=epoch,
                seq=self.seq,
                deleted=self.deleted,
                places=self.places,
                removals=self.removals,
                retention=self.retention,
                **{name: getattr(self, name).rows for name in _TABLES},
            )
        )

    @classmethod
    def restore(cls, data: bytes, epoch: str) -> "Records | None":
        """What `save` wrote, unless it is of another version or another journal."""
        try:
            saved = msgspec.msgpack.decode(data, type=SavedRecords)
        except msgspec.DecodeError:
            return None
        if (saved.version, saved.epoch) != (RECORDS_VERSION, epoch):
            return None
        records = cls()
        records.seq, records.deleted, records.places = saved.seq, saved.deleted, saved.places
        records.removals, records.retention = saved.removals, saved.retention
        for name in _TABLES:
            setattr(records, name, RowTable(getattr(saved, name)))
        return records


_TABLES: Final = (
    "projects",
    "conversations",
    "threads",
    "runs",
    "approvals",
    "artifacts",
    "tasks",
    "previews",
    "evidence",
)

Handle = Callable[[Records, int, Fact], None]

HANDLERS: Final[dict[str, Handle]] = {
    **thread_records.PROJECT_HANDLERS,
    **thread_records.THREAD_HANDLERS,
    **thread_records.REMOVAL_HANDLERS,
    **run_records.RUN_HANDLERS,
    **run_records.APPROVAL_HANDLERS,
    **thread_records.ARTIFACT_HANDLERS,
}
"""Class → what it means for the lists."""

CLASSES: Final = tuple(sorted(HANDLERS))
"""The classes that these lists are made of; no other needs to be read."""


RECORDS_FILE: Final = "edge-records"
_MODE: Final = 0o600


class RecordStore:
    """Records that follow a feed; made before the feed starts, so that they miss nothing."""

    def __init__(self, records: Records, feed: JournalFeed) -> None:
        self.records = records
        self.failure: Exception | None = None
        self._feed = feed
        self._stop: Callable[[], None] = feed.subscribe(self._take, self._record_failure)

    async def wait_for(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`."""
        await self._feed.wait_for(seq)
        if self.failure is not None:
            raise self.failure
        return self.records

    async def save(self, folder: Path) -> None:
        """Stop following, and keep what is there for the next start."""
        self._stop()
        data = self.records.save(self._feed.cursor.epoch)
        await run_disk_work(_replace_file, folder / RECORDS_FILE, data)

    async def rebuild(self, journal: Journal, threads: set[str]) -> None:
        """Make the rows of threads anew of which facts were removed, while facts go on coming."""
        found: list[tuple[int, Fact]] = []
        reached = 0
        while reached < self.records.seq:
            head = await journal.head()
            after = Cursor(head.epoch, reached) if reached else None
            found += await _read_facts_of(journal, threads, after, head.seq)
            reached = head.seq
        self.records.rebuild(threads, [each for each in found if each[0] <= self.records.seq])

    def _take(self, batch: DecodedBatch) -> None:
        for seq, fact in zip(batch.raw.seqs, batch.facts, strict=True):
            self.records.apply(seq, fact)
        self.records.seq = batch.raw.last

    def _record_failure(self, error: Exception) -> None:
        self.failure = error


async def read_records(journal: Journal, folder: Path) -> tuple[Records, Cursor]:
    """Records up to the end of a journal, and where that is."""
    epoch = (await journal.head()).epoch
    data = await run_disk_work(_read_file, folder / RECORDS_FILE)
    records = (Records.restore(data, epoch) if data else None) or Records()
    is_restored = records.seq > 0
    try:
        await _catch_up(records, journal, epoch)
        if is_restored and records.shortened:
            facts = await _read_facts_of(journal, records.shortened, None, records.seq)
            records.rebuild(set(records.shortened), facts)
    except CursorError:
        # Retention has gone past what was saved, or it was saved of a later state.
        records = Records()
        await _catch_up(records, journal, epoch)
    return records, Cursor(epoch, records.seq)


async def _catch_up(records: Records, journal: Journal, epoch: str) -> None:
    """Take in what lists are made of, in the order of the journal. A thread may begin with a fact
    that no list is made of; it is known from that one on.
    """
    start = records.seq
    after = Cursor(epoch, start) if start else None
    firsts = deque(await _read_first_facts(records, journal))
    async for batch in journal.read(after, filter=Filter(classes=CLASSES)):
        for seq, fact in batch.facts():
            while firsts and firsts[0][0] < seq:
                records.apply(*firsts.popleft())
            if firsts and firsts[0][0] == seq:
                firsts.popleft()
            records.apply(seq, fact)
        records.seq = batch.last
    end = max(records.seq, start)
    for seq, fact in firsts:
        records.apply(seq, fact)
    records.seq = max(end, records.seq)


async def _read_facts_of(
    journal: Journal, threads: set[str], after: Cursor | None, until: int
) -> list[tuple[int, Fact]]:
    """What the rows of some threads are made of, in order: the first fact of each, those that lists
    are made of, and those that stand beside a thread.
    """
    found: dict[int, Fact] = {}
    for thread_id in threads:
        if after is None:
            found |= await _read_first_fact(journal, thread_id)
        async for batch in journal.read(after, filter=Filter(thread=thread_id, classes=CLASSES)):
            found |= batch.facts()
    async for batch in journal.read(after, filter=Filter(classes=_BESIDE_THREADS)):
        for seq, fact in batch.facts():
            if fact.thread_id is None and fact.payload.get("aboutThread") in threads:
                found[seq] = fact
    return sorted(((seq, fact) for seq, fact in found.items() if seq <= until), key=_seq_of)


def _seq_of(placed: tuple[int, Fact]) -> int:
    return placed[0]


_BESIDE_THREADS: Final = ("action.resolved", "evidence.exported", "history.removed")
"""Classes of facts that an Edge writes about a thread without being of it."""


async def _read_first_facts(records: Records, journal: Journal) -> list[tuple[int, Fact]]:
    """The first fact of each thread that is not known yet, in order."""
    found = [
        each
        async for thread in list_every_thread(journal)
        if thread not in records.threads.rows and thread not in records.deleted
        for each in await _read_first_fact(journal, thread)
    ]
    return sorted((each for each in found if each[0] > records.seq), key=lambda each: each[0])


async def _read_first_fact(journal: Journal, thread_id: str) -> list[tuple[int, Fact]]:
    async for batch in journal.read(filter=Filter(thread=thread_id), limit=1):
        return list(batch.facts())
    return []


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _replace_file(path: Path, data: bytes) -> None:
    """Replace the file whole; half a file is never read."""
    fresh = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    file = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    with os.fdopen(file, "wb") as handle:
        handle.write(data)
    fresh.replace(path)
