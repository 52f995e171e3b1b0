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
from factwire.journal.admission import prepare
from factwire.journal.catalogue import Thread, ThreadPage, ThreadRecord, ThreadStatus
from factwire.journal.chain_point import ChainPoint
from factwire.journal.chunk import Stretch
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalClosed
from factwire.journal.filter import Filter
from factwire.journal.policy import Compaction, Removal, Retention
from factwire.journal.postgres.handle import Handle, open_handle
from factwire.journal.postgres.pages import found
from factwire.journal.postgres.reading import Opening
from factwire.journal.postgres.removal import Planner
from factwire.journal.postgres.restoring import Restoring
from factwire.journal.postgres.seal import seal_chunks
from factwire.journal.postgres.session import Work
from factwire.journal.postgres.settings import read_settings
from factwire.journal.postgres.verify import verify_journal
from factwire.journal.protocol import Appended, Snapshot, Stats, VerifyReport
from factwire.journal.removal import plan_compaction, plan_retention
from factwire.journal.removed import Removed
from factwire.journal.restore import Restoration
from factwire.journal.resume import fact_cursor

T = TypeVar("T")


class PostgresJournal:
    """Implements `Journal` for `postgres://user@host:port/database?journal=NAME`."""

    def __init__(self, url: str) -> None:
        self._settings = read_settings(url)
        self._handle: Handle | None = None

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
    def degraded(self) -> str | None:
        """Why calls have to wait for the server; None while it answers."""
        return self._opened().health.degraded

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> Appended:
        """Write a batch whole or not at all; returns when COMMIT has returned.

        While the server is away it waits, at most for the URL's `patience`. An append that ends in
        `JournalUnavailable` may have been written; appending it again as it is settles that.
        """
        handle = self._opened()
        entries = prepare(batch)
        if not entries:
            return Appended(handle.reading.epoch, (), (), ())
        return await handle.writer.append(entries, expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[Stretch]:
        handle = self._opened()
        with ExitStack() as stack:
            opening = Opening(
                after,
                filter,
                lambda readers, at: stack.enter_context(readers.reading(at, follows=False)),
            )
            bounds, reader = await handle.open_reader(opening)
            async for stretch in handle.reading.replay(bounds, reader, filter, limit):
                yield stretch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[Stretch]:
        handle = self._opened()
        with ExitStack() as stack:
            opening = Opening(
                after,
                filter,
                lambda readers, at: stack.enter_context(readers.reading(at, follows=True)),
            )
            bounds, reader = await handle.open_reader(opening)
            async for stretch in handle.reading.replay(bounds, reader, filter, None):
                yield stretch
            live = handle.reading.live(bounds, reader, filter, lambda: self._ensure(handle))
            async for stretch in live:
                yield stretch

    async def head(self) -> Cursor:
        bounds = await self._opened().reading.bounds()
        return Cursor(bounds.epoch, bounds.head)

    async def position(self, fact_id: str) -> Cursor:
        handle = self._opened()
        seqs = await self._run(lambda link: handle.ledger.seqs(link, [fact_id]))
        return fact_cursor(fact_id, seqs.get(fact_id), await handle.reading.bounds())

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        catalogue = self._opened().catalogue
        return await self._run(
            lambda link: catalogue.threads(
                link, project=project, status=status, after=after, limit=limit
            )
        )

    async def thread(self, thread_id: str) -> Thread | None:
        catalogue = self._opened().catalogue
        return await self._run(lambda link: catalogue.thread(link, thread_id))

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> Snapshot:
        catalogue = self._opened().catalogue
        return await self._run(
            lambda link: catalogue.save_snapshot(link, thread_id, cursor, data, kind)
        )

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> Snapshot | None:
        catalogue = self._opened().catalogue
        return await self._run(lambda link: catalogue.snapshot(link, thread_id, kind, at))

    async def retain(self, policy: Retention) -> Removal:
        return await self._remove(
            lambda facts, holds, head, floor: plan_retention(
                policy, facts, holds, head=head, floor=floor
            )
        )

    async def compact(self, policy: Compaction | None = None) -> Removal:
        """Drop increments that their final fact made redundant, and join small chunks."""
        removal = await self._remove(
            lambda facts, holds, head, floor: plan_compaction(
                policy or Compaction(), facts, holds, head=head, floor=floor
            )
        )
        handle = self._opened()
        await self._run(lambda link: seal_chunks(link, handle.journal, handle.keys))
        return removal

    async def verify(self) -> VerifyReport:
        journal = self._opened().journal
        return await self._run(lambda link: verify_journal(link, journal))

    async def chain_point(self, seq: int) -> ChainPoint:
        catalogue = self._opened().catalogue
        return await self._run(lambda link: catalogue.chain_point(link, seq))

    def removed(self) -> AsyncIterator[Removed]:
        return self._restoring().removed()

    def records(self) -> AsyncIterator[ThreadRecord]:
        return self._restoring().records()

    async def restore(self, given: Restoration) -> Cursor:
        return await self._restoring().restore(given)

    async def stats(self) -> Stats:
        handle = self._opened()
        row = await self._run(
            lambda link: link.fetchrow(
                "SELECT epoch, head, floor, facts, bytes, threads FROM factwire.journal"
                " WHERE id = $1",
                handle.journal,
            )
        )
        row = found(row)
        return Stats(
            bytes=row["bytes"],
            facts=row["facts"],
            threads=row["threads"],
            head=Cursor(row["epoch"], row["head"]),
            floor=Cursor(row["epoch"], row["floor"]),
            followers=handle.reading.readers.stats(row["head"]),
        )

    async def _remove(self, planner: Planner) -> Removal:
        remover = self._opened().remover
        return await self._run(lambda link: remover.run(link, planner))

    def _restoring(self) -> Restoring:
        handle = self._opened()
        return Restoring(handle.journal, handle.keys, handle.sessions)

    async def _run(self, work: Work[T]) -> T:
        return await self._opened().sessions.run(work)

    def _opened(self) -> Handle:
        if self._handle is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._handle

    def _ensure(self, handle: Handle) -> None:
        if self._opened() is not handle:
            raise JournalClosed("the journal was closed and opened again; follow it anew")
