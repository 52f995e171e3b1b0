"""`PostgresJournal`: one named journal in one database, written by any number of processes.

`append` returns after COMMIT with synchronous_commit=on, and so after every synchronous standby
where the server has some. It wants direct connections, or a pooler that keeps sessions, because
notifications and locks belong to a session.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from factwire.facts.fact import Fact
from factwire.journal.admission import prepare_facts
from factwire.journal.chunks import ChainPoint, FactBatch
from factwire.journal.cursor import Cursor, require_fact_cursor
from factwire.journal.errors import JournalClosed
from factwire.journal.filter import Filter
from factwire.journal.postgres.handle import PostgresHandle, open_handle
from factwire.journal.postgres.reader import ReadRequest, require_row
from factwire.journal.postgres.retention import Planner, PostgresRestorer, seal_chunks
from factwire.journal.postgres.server_connection import Work, read_settings
from factwire.journal.postgres.snapshots import verify_journal
from factwire.journal.protocol import AppendResult, JournalStats, StoredSnapshot, VerifyReport
from factwire.journal.retention import (
    CompactionPolicy,
    RemovalResult,
    RemovedFact,
    Restoration,
    RetentionPolicy,
    plan_compaction,
    plan_retention,
)
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadPage,
    ThreadStatus,
)

T = TypeVar("T")


class PostgresJournal:
    """Implements `Journal` for `postgres://user@host:port/database?journal=NAME`."""

    def __init__(self, url: str) -> None:
        self._settings = read_settings(url)
        self._handle: PostgresHandle | None = None

    async def __aenter__(self) -> Self:
        self._handle = await open_handle(self._settings)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.close()

    @property
    def outage(self) -> str | None:
        """Why calls have to wait for the server; None while it answers."""
        return self._require_handle().health.outage

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        """Write a batch whole or not at all; returns when COMMIT has returned.

        While the server is away it waits, at most for the URL's `patience`. An append that ends in
        `JournalUnavailable` may have been written; appending it again as it is settles that.
        """
        handle = self._require_handle()
        entries = prepare_facts(batch)
        if not entries:
            return AppendResult(handle.reader.epoch, (), (), ())
        return await handle.writer.append(entries, expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        handle = self._require_handle()
        with ExitStack() as stack:
            opening = ReadRequest(
                after,
                filter,
                lambda readers, at: stack.enter_context(readers.open_reader(at, follows=False)),
            )
            bounds, reader = await handle.open_reader(opening)
            async for batch in handle.reader.replay(bounds, reader, filter, limit):
                yield batch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[FactBatch]:
        handle = self._require_handle()
        with ExitStack() as stack:
            opening = ReadRequest(
                after,
                filter,
                lambda readers, at: stack.enter_context(readers.open_reader(at, follows=True)),
            )
            bounds, reader = await handle.open_reader(opening)
            async for batch in handle.reader.replay(bounds, reader, filter, None):
                yield batch
            live = handle.reader.live(
                bounds, reader, filter, lambda: self._ensure_same_handle(handle)
            )
            async for batch in live:
                yield batch

    async def head(self) -> Cursor:
        bounds = await self._require_handle().reader.bounds()
        return Cursor(bounds.epoch, bounds.head)

    async def position(self, fact_id: str) -> Cursor:
        handle = self._require_handle()
        seqs = await self._run(lambda link: handle.ledger.find_seqs(link, [fact_id]))
        return require_fact_cursor(fact_id, seqs.get(fact_id), await handle.reader.bounds())

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        catalogue = self._require_handle().catalogue
        return await self._run(
            lambda link: catalogue.threads(
                link, project=project, status=status, after=after, limit=limit
            )
        )

    async def thread(self, thread_id: str) -> CatalogueThread | None:
        catalogue = self._require_handle().catalogue
        return await self._run(lambda link: catalogue.thread(link, thread_id))

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> StoredSnapshot:
        catalogue = self._require_handle().catalogue
        return await self._run(
            lambda link: catalogue.save_snapshot(link, thread_id, cursor, data, kind)
        )

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> StoredSnapshot | None:
        catalogue = self._require_handle().catalogue
        return await self._run(lambda link: catalogue.snapshot(link, thread_id, kind, at))

    async def retain(self, policy: RetentionPolicy) -> RemovalResult:
        return await self._remove(
            lambda facts, holds, head, floor: plan_retention(
                policy, facts, holds, head=head, floor=floor
            )
        )

    async def compact(self, policy: CompactionPolicy | None = None) -> RemovalResult:
        """Drop increments that their final fact made redundant, and join small chunks."""
        removal = await self._remove(
            lambda facts, holds, head, floor: plan_compaction(
                policy or CompactionPolicy(), facts, holds, head=head, floor=floor
            )
        )
        handle = self._require_handle()
        await self._run(lambda link: seal_chunks(link, handle.journal, handle.keys))
        return removal

    async def verify(self) -> VerifyReport:
        journal = self._require_handle().journal
        return await self._run(lambda link: verify_journal(link, journal))

    async def chain_point(self, seq: int) -> ChainPoint:
        catalogue = self._require_handle().catalogue
        return await self._run(lambda link: catalogue.chain_point(link, seq))

    def read_removed(self) -> AsyncIterator[RemovedFact]:
        return self._build_restorer().stream_removed()

    def records(self) -> AsyncIterator[CatalogueRecord]:
        return self._build_restorer().stream_records()

    async def restore(self, restoration: Restoration) -> Cursor:
        return await self._build_restorer().restore(restoration)

    async def stats(self) -> JournalStats:
        handle = self._require_handle()
        row = await self._run(
            lambda link: link.fetchrow(
                "SELECT epoch, head, floor, facts, bytes, threads FROM factwire.journal"
                " WHERE id = $1",
                handle.journal,
            )
        )
        row = require_row(row)
        return JournalStats(
            bytes=row["bytes"],
            facts=row["facts"],
            threads=row["threads"],
            head=Cursor(row["epoch"], row["head"]),
            floor=Cursor(row["epoch"], row["floor"]),
            followers=handle.reader.readers.stats(row["head"]),
        )

    async def _remove(self, planner: Planner) -> RemovalResult:
        remover = self._require_handle().remover
        return await self._run(lambda link: remover.run(link, planner))

    def _build_restorer(self) -> PostgresRestorer:
        handle = self._require_handle()
        return PostgresRestorer(handle.journal, handle.keys, handle.sessions)

    async def _run(self, work: Work[T]) -> T:
        return await self._require_handle().sessions.run(work)

    def _require_handle(self) -> PostgresHandle:
        if self._handle is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._handle

    def _ensure_same_handle(self, handle: PostgresHandle) -> None:
        if self._require_handle() is not handle:
            raise JournalClosed("the journal was closed and reopened; follow it again")
