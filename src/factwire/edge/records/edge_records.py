"""`Records`: what an Edge lists, as a pure function of the facts of all its threads.

Facts come in the order of the journal. A thread that was deleted is gone from every list, with all
that belongs to it; its facts stay in the journal until retention takes them. Records are read once
from the journal, then along with the feed, and saved as they grow and when it ends; what is saved
only spares work: without it, or with one of another journal, the lists are made anew from the
facts.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from factwire.edge.limits import SAVE_FACTS, SAVE_FACTS_PER_ROW
from factwire.edge.records import run_records, thread_records
from factwire.facts import Fact
from factwire.facts.resources import (
    Approval,
    Artifact,
    Conversation,
    EvidenceRow,
    Preview,
    Project,
    Run,
    Task,
    Thread,
)
from factwire.journal import Cursor, CursorError, Filter, Journal
from factwire.journal.atomic_files import read_regular_file, replace_file
from factwire.journal.blobs.blob_store import list_every_thread, run_disk_work
from factwire.serving.envelopes import ThreadPlace
from factwire.serving.logs import logger
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

    def save(self, epoch: str) -> bytes:
        """The tables as bytes."""
        return msgspec.msgpack.encode(
            SavedRecords(
                version=RECORDS_VERSION,
                epoch=epoch,
                seq=self.seq,
                deleted=self.deleted,
                places=self.places,
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
    **run_records.RUN_HANDLERS,
    **run_records.APPROVAL_HANDLERS,
    **thread_records.ARTIFACT_HANDLERS,
}
"""Class → what it means for the lists."""

CLASSES: Final = tuple(sorted(HANDLERS))
"""The classes that these lists are made of; no other needs to be read."""


RECORDS_FILE: Final = "edge-records"
_log: Final = logger("factwire.edge")
_LARGEST: Final = 2**31
"""Bytes of saved lists that are read; beyond that they are cheaper to make anew."""


class RecordStore:
    """Records that follow a feed; made before the feed starts, so that they miss nothing. With a
    folder they are saved as they grow, so that a start after a crash reads few facts.
    """

    def __init__(self, records: Records, feed: JournalFeed, folder: Path | None = None) -> None:
        self.records = records
        self.failure: Exception | None = None
        self._feed = feed
        self._folder = folder
        self._saved_seq = records.seq
        self._saving: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] = feed.subscribe(self._take, self._record_failure)

    async def wait_for(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`."""
        await self._feed.wait_for(seq)
        if self.failure is not None:
            raise self.failure
        return self.records

    @property
    def is_saving(self) -> bool:
        return self._saving is not None

    async def save(self, folder: Path) -> None:
        """Stop following, and keep what is there for the next start."""
        self._stop()
        if self._saving is not None:
            await self._saving
        data = self.records.save(self._feed.cursor.epoch)
        await run_disk_work(replace_file, folder / RECORDS_FILE, data)

    def _take(self, batch: DecodedBatch) -> None:
        for seq, fact in zip(batch.raw.seqs, batch.facts, strict=True):
            self.records.apply(seq, fact)
        self.records.seq = batch.raw.last
        if self._folder is not None and self._saving is None and self._is_save_due():
            self._saved_seq = self.records.seq
            data = self.records.save(self._feed.cursor.epoch)
            self._saving = asyncio.create_task(self._write(self._folder / RECORDS_FILE, data))

    def _is_save_due(self) -> bool:
        """Whether as many facts came as make a save worth its cost, which grows with the rows."""
        rows = sum(len(getattr(self.records, name).rows) for name in _TABLES)
        return self.records.seq - self._saved_seq >= max(SAVE_FACTS, SAVE_FACTS_PER_ROW * rows)

    async def _write(self, path: Path, data: bytes) -> None:
        await _try_to_save(path, data)
        self._saving = None

    def _record_failure(self, error: Exception) -> None:
        self.failure = error


async def read_records(journal: Journal, folder: Path) -> tuple[Records, Cursor]:
    """Records up to the end of a journal, and where that is."""
    epoch = (await journal.head()).epoch
    data = await run_disk_work(_read_file, folder / RECORDS_FILE)
    records = (Records.restore(data, epoch) if data else None) or Records()
    saved_seq = records.seq
    try:
        await _catch_up(records, journal, epoch)
    except CursorError:
        # Retention has gone past what was saved, or it was saved of a later state.
        records, saved_seq = Records(), 0
        await _catch_up(records, journal, epoch)
    if records.seq - saved_seq >= SAVE_FACTS:
        await _try_to_save(folder / RECORDS_FILE, records.save(epoch))
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


async def _try_to_save(path: Path, data: bytes) -> None:
    """Save lists; on a disk that takes no more, they are made anew by the next start."""
    try:
        await run_disk_work(replace_file, path, data)
    except OSError as error:
        _log.warning("records_unsaved", detail=error.strerror)


def _read_file(path: Path) -> bytes | None:
    """What was saved; None where nothing is, or nothing that can be read."""
    try:
        return read_regular_file(path, _LARGEST)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("records_unreadable", file=path.name, detail=error.strerror)
        return None
