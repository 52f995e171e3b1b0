"""`Journal` on one SQLite file."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from factwire.facts.fact import Fact
from factwire.journal.admission import prepare
from factwire.journal.catalogue import Thread, ThreadPage, ThreadRecord, ThreadStatus, page_of
from factwire.journal.chain_point import ChainPoint, ensure_reached
from factwire.journal.chunk import Stretch
from factwire.journal.cursor import MARK, Cursor
from factwire.journal.errors import CursorError, JournalClosed, JournalUnavailable
from factwire.journal.filter import Filter
from factwire.journal.live import Reader
from factwire.journal.policy import Compaction, Removal, Retention
from factwire.journal.protocol import Appended, Snapshot, Stats, VerifyReport
from factwire.journal.removal import plan_compaction, plan_retention
from factwire.journal.removed import Removed
from factwire.journal.restore import Restoration
from factwire.journal.resume import Bounds, check_cursor, fact_cursor, page_start, resume_after
from factwire.journal.sqlite import checks, lookups, restoring, snapshots
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.following import live, replay
from factwire.journal.sqlite.removing import remove
from factwire.journal.sqlite.roster import load_record
from factwire.journal.sqlite.store import Store
from factwire.journal.sqlite.writer import Writer


class SqliteJournal:
    """Implements `Journal`; one process writes, any number read beside it."""

    def __init__(self, path: str, *, read_only: bool = False, vfs: str | None = None) -> None:
        self._path = path
        self._read_only = read_only
        self._vfs = vfs
        self._opened: Store | None = None
        self._writer: Writer | None = None

    async def __aenter__(self) -> Self:
        store = await asyncio.get_running_loop().run_in_executor(None, self._open)
        self._opened, self._writer = store, store.writer
        return self

    def _open(self) -> Store:
        if Path(self._path).is_dir():
            raise JournalUnavailable(f"{self._path} is a folder; name a file in it")
        try:
            return Store(self._path, read_only=self._read_only, vfs=self._vfs)
        except (OSError, apsw.Error) as error:
            raise JournalUnavailable(f"{self._path} cannot be opened: {error}") from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store, self._opened, self._writer = self._store, None, None
        await store.close()

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> Appended:
        writer = self._writer or self._store.writing()
        return await writer.append(prepare(batch), expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[Stretch]:
        store = self._store
        with store.readers.reading(follows=False) as reader:
            head = await self._resume(reader, after, filter)
            async with aclosing(replay(store, reader, head, filter, limit)) as stretches:
                async for stretch in stretches:
                    yield stretch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[Stretch]:
        store = self._store
        with store.readers.reading(follows=True) as reader:
            head = await self._resume(reader, after, filter)
            async with aclosing(replay(store, reader, head, filter, None)) as stretches:
                async for stretch in stretches:
                    yield stretch
            async for stretch in live(store, reader, filter):
                yield stretch

    async def head(self) -> Cursor:
        return Cursor(self._store.epoch, (await self._store.place()).head)

    async def position(self, fact_id: str) -> Cursor:
        bounds = await self._bounds(None)
        return fact_cursor(fact_id, await lookups.seq_of(self._store, fact_id), bounds)

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        below = page_start(after, await self._bounds(None))
        rows = await lookups.rows(
            self._store, project=project, status=status, below=below, limit=limit + 1
        )
        return page_of(rows, limit, self._store.epoch)

    async def thread(self, thread_id: str) -> Thread | None:
        return await lookups.row(self._store, thread_id)

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> Snapshot:
        writer = self._store.writing()
        check_cursor(cursor, await self._bounds(None))
        save = partial(snapshots.save, writer.state, thread_id, kind, cursor, data)
        return await asyncio.wrap_future(writer.call(save))

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> Snapshot | None:
        bounds = await self._bounds(None)
        top = bounds.head if at is None else check_cursor(at, bounds)
        load = partial(
            snapshots.load, epoch=self._store.epoch, thread_id=thread_id, kind=kind, top=top
        )
        return await self._store.pool.run(load)

    async def retain(self, policy: Retention) -> Removal:
        scan = policy.keep_facts is not None or policy.keep_per_thread is not None
        return await remove(self._store, partial(plan_retention, policy), scan=scan)

    async def compact(self, policy: Compaction | None = None) -> Removal:
        plan = partial(plan_compaction, policy or Compaction())
        return await remove(self._store, plan, scan=True)

    async def verify(self) -> VerifyReport:
        writer = self._store.writer
        head = writer.state.place.head if writer else 0
        return await self._store.pool.run(partial(checks.verify, head=head))

    async def chain_point(self, seq: int) -> ChainPoint:
        ensure_reached(seq, await self._bounds(None))
        return await self._store.pool.run(partial(snapshots.point, seq=seq))

    def removed(self) -> AsyncIterator[Removed]:
        return restoring.removed(self._store)

    def records(self) -> AsyncIterator[ThreadRecord]:
        return lookups.records(self._store)

    async def restore(self, given: Restoration) -> Cursor:
        return await restoring.restore(self._store, given)

    async def stats(self) -> Stats:
        store = self._store
        place = await store.place()
        return Stats(
            bytes=await store.pool.run(_size),
            facts=place.head - place.removed,
            threads=await lookups.count(store),
            head=Cursor(store.epoch, place.head),
            floor=Cursor(store.epoch, place.floor),
            followers=store.readers.stats(place.head),
        )

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._opened

    async def _bounds(self, wanted: Filter | None) -> Bounds:
        store = self._store
        place = await store.place()
        floor = max(place.floor, place.gap)
        if place.gap > place.floor and wanted is not None and wanted.thread is not None:
            record = await store.pool.run(partial(load_record, thread_id=wanted.thread))
            floor = max(place.floor, record.floor if record else 0)
        return Bounds(epoch=store.epoch, head=place.head, floor=floor, oldest=place.floor)

    async def _resume(
        self, reader: Reader, after: Cursor | str | None, wanted: Filter | None
    ) -> int:
        """Put a reader where it wants to begin; answers with the head as of then."""
        store = self._store
        seq: int | None = None
        if isinstance(after, str) and not after.startswith(MARK):
            seq = await lookups.seq_of(store, after)
        async with store.readers.still():
            bounds = await self._bounds(wanted)
            try:
                reader.position = resume_after(after, bounds, lambda _: seq)
            except CursorError as error:
                thread = wanted.thread if wanted else None
                nearest = await store.pool.run(partial(snapshots.newest, thread=thread))
                raise type(error)(
                    str(error),
                    nearest=None if nearest is None else Cursor(store.epoch, nearest),
                    head=error.head,
                ) from None
        return bounds.head


def _size(connection: Database) -> int:
    pages: int = connection.pragma("page_count")
    free: int = connection.pragma("freelist_count")
    size: int = connection.pragma("page_size")
    return (pages - free) * size
