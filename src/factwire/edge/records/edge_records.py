"""`Records`: what an Edge lists, as a pure function of the facts of all its threads.

Facts come in the order of the journal. A thread that was deleted is gone from every list, with all
that belongs to it; its facts stay in the journal until retention takes them. Records are saved with
the place in the journal for which they hold while they follow the feed, so that a start, after a
crash too, reads no more than the facts since; without what was saved they are made anew.
"""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import apsw

from factwire.edge.records import run_records, thread_records
from factwire.edge.records.run_records import MarkedTurns
from factwire.edge.records.thread_records import (
    LAST,
    LastRetention,
    PendingRemoval,
    PlacedThread,
    ShortenedThread,
)
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
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.serving.asgi import Problem
from factwire.serving.envelopes import ThreadPlace
from factwire.serving.limits import ROWS_UNSAVED, ROWS_UNSAVED_FACTS, ROWS_UNSAVED_SECONDS
from factwire.serving.logs import logger
from factwire.serving.paging import RowDatabase, RowTable, columns_of, remove_rows
from factwire.serving.streams.journal_feed import DecodedBatch, JournalFeed

RECORDS_VERSION: Final = 6
"""Of the saved form; another one is not read, but made anew from the facts."""

_log: Final = logger("factwire.edge")


def _is_unsettled(thread: Thread) -> int:
    return int(thread.activity in ("running", "waiting") or bool(thread.queued_runs))


def _words_of(thread: Thread) -> str:
    return (thread.title or "").casefold()


def _project_of(thread: PlacedThread) -> str | None:
    return thread.place.project_id


def _worktree_of(run: Run) -> str | None:
    return None if run.worktree is None else run.worktree.path


class Records:
    """The tables; `apply` takes in the next fact. Without a database, they are in memory."""

    def __init__(self, database: RowDatabase | None = None) -> None:
        database = database or RowDatabase(None, "", "")

        def table(name: str, kind: type[Any], *columns: str, **others: Any) -> RowTable[Any]:
            return RowTable(database, name, kind, columns_of(*columns) | others)

        self.database = database
        self.seq = database.read_seq()
        self.projects: RowTable[Project] = table("projects", Project)
        self.conversations: RowTable[Conversation] = table("conversations", Conversation)
        self.threads: RowTable[Thread] = table(
            "threads",
            Thread,
            "project_id",
            "status",
            "activity",
            is_unsettled=_is_unsettled,
            words=_words_of,
        )
        self.runs: RowTable[Run] = table(
            "runs", Run, "thread_id", "project_id", "status", worktree=_worktree_of
        )
        self.approvals: RowTable[Approval] = table(
            "approvals", Approval, "thread_id", "run_id", "status"
        )
        self.artifacts: RowTable[Artifact] = table("artifacts", Artifact, "thread_id", "run_id")
        self.tasks: RowTable[Task] = table("tasks", Task, "thread_id", "status")
        self.previews: RowTable[Preview] = table(
            "previews", Preview, "thread_id", "run_id", "status"
        )
        self.evidence: RowTable[EvidenceRow] = table("evidence", EvidenceRow, "thread_id")
        self.places: RowTable[PlacedThread] = table("places", PlacedThread, project_id=_project_of)
        self.removals: RowTable[PendingRemoval] = table("removals", PendingRemoval)
        """By thread: what retention is to remove of it, and has not yet."""
        self.retention_runs: RowTable[LastRetention] = table("retention_runs", LastRetention)
        self.marked_turns: RowTable[MarkedTurns] = table("marked_turns", MarkedTurns)
        """By thread: its turns that name a task or a worker."""
        self.shortened: RowTable[ShortenedThread] = table("shortened", ShortenedThread)
        """By thread: whose rows may tell of facts that were removed, until they are rebuilt."""

    def apply(self, seq: int, fact: Fact) -> None:
        """Take in a fact; whatever is no news for these lists changes nothing."""
        self.seq = seq
        thread_id = thread_records.thread_of(fact)
        if thread_id is not None and self.is_deleted(thread_id):
            return
        handle = HANDLERS.get(fact.event_class or "")
        if handle is not None or (thread_id is not None and thread_id not in self.threads):
            thread_records.note_thread(self, seq, fact, thread_id)
        if handle is not None:
            handle(self, seq, fact)

    def is_deleted(self, thread_id: str) -> bool:
        """Whether there was a thread of this id that was deleted."""
        row = self.places.get(thread_id)
        return row is not None and row.is_deleted

    def place_of(self, thread_id: str) -> ThreadPlace | None:
        """Where a thread belongs, if it has been heard of."""
        row = self.places.get(thread_id)
        return None if row is None else row.place

    @property
    def retention(self) -> RetentionRun | None:
        """The last run of retention that removed something."""
        row = self.retention_runs.get(LAST)
        return None if row is None else row.run

    def pending_removals(self) -> dict[str, int]:
        """Thread → the seq up to which retention is to remove its facts, and has not yet."""
        return {place.key: row.through for place, row in self.removals.newest_by_key()}

    def rebuild(self, threads: set[str], facts: Iterable[tuple[int, Fact]]) -> None:
        """Make the rows of some threads anew, from all the facts that are left of them."""
        seq, pending = self.seq, self.pending_removals()
        for thread_id in threads:
            thread_records.remove_rows(self, thread_id)
            self.places.remove(thread_id)
        for each in facts:
            self.apply(*each)
        for thread_id in self.pending_removals():
            if thread_id not in pending:
                self.removals.remove(thread_id)
        self.seq = seq
        for thread_id in threads:
            self.shortened.remove(thread_id)


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
"""The classes that these lists are made of; no other of a thread that is known changes them."""

RECORDS_FILE: Final = "edge-records.db"


class RecordStore:
    """Records that follow a feed; made before the feed starts, so that they miss nothing. With a
    folder they are saved as they grow, many rows at once, so that a start after a crash reads few
    facts.
    """

    def __init__(self, records: Records, feed: JournalFeed) -> None:
        self.records = records
        self.failure: Exception | None = None
        self._feed = feed
        self._saved = records.seq
        self._unsaved: str | None = None
        self._copying: asyncio.Task[None] | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._stop: Callable[[], None] = feed.subscribe(self._take, self._record_failure)

    async def wait_for(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`."""
        await self._feed.wait_for(seq)
        if self.failure is not None:
            raise self.failure
        return self.records

    async def close(self) -> None:
        """Stop following, and save where the records are."""
        self._stop()
        if self._copying is not None:
            await self._copying
        if self.failure is None:
            self._save()
        self.records.database.close()

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
        database = self.records.database
        if (
            database.change_count > ROWS_UNSAVED
            or self.records.seq - self._saved > ROWS_UNSAVED_FACTS
        ):
            self._save()
        elif self._saving is None and database.change_count:
            loop = asyncio.get_running_loop()
            self._saving = loop.call_later(ROWS_UNSAVED_SECONDS, self._save)
        if database.has_long_log and (self._copying is None or self._copying.done()):
            self._copying = asyncio.create_task(run_disk_work(database.copy_log))

    def _save(self) -> None:
        """Save the records; while the disk takes nothing they go on in memory."""
        self._cancel_saving()
        try:
            self.records.database.save(self.records.seq)
        except apsw.Error as error:
            if self._unsaved != str(error):
                _log.warning("lists_not_saved", detail=str(error))
            self._unsaved = str(error)
        else:
            self._saved, self._unsaved = self.records.seq, None

    def _cancel_saving(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None

    def _record_failure(self, error: Exception) -> None:
        # What a fact has changed by half is not to be saved.
        self._cancel_saving()
        self.failure = error


async def read_records(journal: Journal, folder: Path) -> tuple[Records, Cursor]:
    """Records up to the end of a journal, and where that is."""
    epoch = (await journal.head()).epoch
    try:
        records = await _open_records(journal, folder, epoch)
    except (CursorError, Problem):
        # Retention has gone past what was saved, or it was saved of a later state, or is damaged.
        await run_disk_work(remove_rows, folder / RECORDS_FILE)
        records = await _open_records(journal, folder, epoch)
    return records, Cursor(epoch, records.seq)


def _open_database(path: Path, epoch: str) -> RowDatabase:
    """The file of the lists; where none can be kept, they are in memory and made anew next time."""
    try:
        return RowDatabase(path, str(RECORDS_VERSION), epoch)
    except (apsw.Error, OSError) as error:
        _log.warning("lists_not_saved", file=path.name, detail=str(error))
        return RowDatabase(None, str(RECORDS_VERSION), epoch)


async def _open_records(journal: Journal, folder: Path, epoch: str) -> Records:
    records = Records(await run_disk_work(_open_database, folder / RECORDS_FILE, epoch))
    is_restored = records.seq > 0
    try:
        await _catch_up(records, journal, epoch)
        shortened = {place.key for place, _ in records.shortened.newest_by_key()}
        if is_restored and shortened:
            facts = await _read_facts_of(journal, shortened, None, records.seq)
            records.rebuild(shortened, facts)
        for thread_id in shortened:
            records.shortened.remove(thread_id)
        records.database.save(records.seq)
    except BaseException:
        records.database.close()
        raise
    return records


async def _catch_up(records: Records, journal: Journal, epoch: str) -> None:
    """Take in the facts since the records were saved."""
    database = records.database
    after = Cursor(epoch, records.seq) if records.seq else None
    missing = (await journal.head()).seq - records.seq
    if missing > ROWS_UNSAVED_FACTS:
        _log.info("lists_catching_up", facts=missing)
    async for batch in journal.read(after):
        for seq, fact in batch.facts():
            records.apply(seq, fact)
        records.seq = batch.last
        if database.change_count > ROWS_UNSAVED:
            database.save(records.seq)
            if database.has_long_log:
                await run_disk_work(database.copy_log)


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


async def _read_first_fact(journal: Journal, thread_id: str) -> list[tuple[int, Fact]]:
    async for batch in journal.read(filter=Filter(thread=thread_id), limit=1):
        return list(batch.facts())
    return []
