"""`Journal` on one SQLite file, and the URLs that open it.

The writer keeps the newest ids and threads in memory. A read-only handle has no such memory and
replays what is not sealed yet; that is a bounded number of facts.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import apsw

from factwire.facts.fact import Fact
from factwire.journal.admission import prepare_facts
from factwire.journal.chunks import (
    ChainBatch,
    ChainPoint,
    FactBatch,
    decode_line,
    ensure_reached,
)
from factwire.journal.cursor import (
    MARK,
    Bounds,
    Cursor,
    check_cursor,
    require_fact_cursor,
    resolve_page_start,
    resolve_start,
)
from factwire.journal.errors import CursorError, JournalClosed, JournalUnavailable, JournalUrlError
from factwire.journal.filter import Filter, find_thread_id
from factwire.journal.followers import ReaderPosition
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
from factwire.journal.sqlite import retention, snapshots
from factwire.journal.sqlite.handle import SqliteHandle
from factwire.journal.sqlite.indexes import IdRuns
from factwire.journal.sqlite.journal_state import (
    Overlay,
    find_sealed,
    insert_private_threads,
    list_threads,
    load_ends,
    load_lines_after,
    load_private_threads,
    load_record,
    load_records_after,
    note_fact,
    save_records,
)
from factwire.journal.sqlite.reader import follow_live, replay
from factwire.journal.sqlite.reader_pool import FETCH_BYTES
from factwire.journal.sqlite.retention import MirrorEnd, remove
from factwire.journal.sqlite.schema import Database
from factwire.journal.sqlite.writer import SqliteWriter
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadPage,
    ThreadStatus,
    build_page,
)


async def find_seq(store: SqliteHandle, fact_id: str) -> int | None:
    """The seq of a fact, also of one that has been removed."""
    if store.writer is None:
        return await store.pool.run(partial(_find_stored_seq, fact_id=fact_id))
    state = store.writer.state
    known = await asyncio.wrap_future(store.writer.inspect(lambda: state.find_existing(fact_id)))
    return known and known.seq


async def list_thread_rows(
    store: SqliteHandle, *, project: str | None, status: ThreadStatus | None, below: int, limit: int
) -> Sequence[CatalogueThread]:
    """Threads by last activity, newest first."""
    overlay = await _load_overlay(store)
    query = partial(
        list_threads, overlay=overlay, project=project, status=status, below=below, limit=limit
    )
    return await store.pool.run(query)


async def load_thread(store: SqliteHandle, thread_id: str) -> CatalogueThread | None:
    """One thread."""
    overlay = await _load_overlay(store)
    record = overlay.get(thread_id)
    if record is None:
        record = await store.pool.run(partial(load_record, thread_id=thread_id))
    return record and record.to_thread()


async def stream_records(store: SqliteHandle) -> AsyncIterator[CatalogueRecord]:
    """Everything that is kept of each thread."""
    overlay = await _load_overlay(store)
    for record in overlay.values():
        yield record
    after = ""
    while page := await store.pool.run(partial(load_records_after, after=after)):
        for record in page:
            if record.thread_id not in overlay:
                yield record
        after = page[-1].thread_id


async def count_threads(store: SqliteHandle) -> int:
    """How many threads there are."""
    overlay = await _load_overlay(store)
    return await store.pool.run(partial(_count_stored_threads, overlay=overlay))


async def _load_overlay(store: SqliteHandle) -> Overlay:
    """Records that are newer than those on disk; a writer brings the disk up to date instead."""
    if store.writer is None:
        return await store.pool.run(_replay_overlay)
    state = store.writer.state
    if state.dirty:
        flush = partial(save_records, state.connection)
        save = store.writer.call(lambda: flush(state.dirty_records()), state.mark_clean)
        await asyncio.wrap_future(save)
    return {}


def _replay_overlay(connection: Database) -> Overlay:
    place = load_ends(connection)
    overlay: Overlay = {}
    for seq, line in load_lines_after(connection, max(place.sealed, place.base), place.head):
        fact = decode_line(line)
        thread = find_thread_id(fact)
        if thread is not None:
            note_fact(connection, overlay, thread, fact, seq)
    return overlay


def _find_stored_seq(connection: Database, fact_id: str) -> int | None:
    place = load_ends(connection)
    for seq, line in load_lines_after(connection, max(place.sealed, place.base), place.head):
        if decode_line(line).id == fact_id:
            return seq
    sql = "SELECT seq FROM retired WHERE seq > ? AND id = ?"
    restored: int | None = connection.execute(sql, (place.sealed, fact_id)).get
    if restored is not None:
        return restored
    known = find_sealed(connection, IdRuns(connection), fact_id, place)
    return known and known.seq


def _count_stored_threads(connection: Database, overlay: Overlay) -> int:
    stored: int = connection.execute("SELECT count(*) FROM threads").get
    return stored + sum(load_record(connection, thread) is None for thread in overlay)


class SqliteJournal:
    """Implements `Journal`; one process writes, any number read beside it."""

    def __init__(self, path: str, *, read_only: bool = False, vfs: str | None = None) -> None:
        self._path = path
        self._read_only = read_only
        self._vfs = vfs
        self._opened: SqliteHandle | None = None
        self._writer: SqliteWriter | None = None

    async def __aenter__(self) -> Self:
        store = await asyncio.get_running_loop().run_in_executor(None, self._open)
        self._opened, self._writer = store, None if store.mirrored else store.writer
        return self

    def _open(self) -> SqliteHandle:
        if Path(self._path).is_dir():
            raise JournalUnavailable(f"{self._path} is a folder; name a file in it")
        try:
            return SqliteHandle(self._path, read_only=self._read_only, vfs=self._vfs)
        except (OSError, apsw.Error) as error:
            raise JournalUnavailable(f"{self._path} cannot be opened: {error}") from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store, self._opened, self._writer = self._handle, None, None
        await store.close()

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        writer = self._writer or self._handle.require_author()
        return await writer.append(prepare_facts(batch), expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        store = self._handle
        with store.readers.open_reader(follows=False) as reader:
            head = await self._resume(reader, after, filter)
            async with aclosing(replay(store, reader, head, filter, limit)) as batches:
                async for batch in batches:
                    yield batch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[FactBatch]:
        store = self._handle
        with store.readers.open_reader(follows=True) as reader:
            head = await self._resume(reader, after, filter)
            async with aclosing(replay(store, reader, head, filter, None)) as batches:
                async for batch in batches:
                    yield batch
            async for batch in follow_live(store, reader, filter):
                yield batch

    async def head(self) -> Cursor:
        return Cursor(self._handle.epoch, (await self._handle.load_ends()).head)

    async def position(self, fact_id: str) -> Cursor:
        bounds = await self._bounds(None)
        return require_fact_cursor(fact_id, await find_seq(self._handle, fact_id), bounds)

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        below = resolve_page_start(after, await self._bounds(None))
        rows = await list_thread_rows(
            self._handle, project=project, status=status, below=below, limit=limit + 1
        )
        return build_page(rows, limit, self._handle.epoch)

    async def thread(self, thread_id: str) -> CatalogueThread | None:
        return await load_thread(self._handle, thread_id)

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> StoredSnapshot:
        writer = self._handle.require_writer()
        check_cursor(cursor, await self._bounds(None))
        save = partial(snapshots.save_snapshot, writer.state, thread_id, kind, cursor, data)
        return await asyncio.wrap_future(writer.call(save))

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> StoredSnapshot | None:
        bounds = await self._bounds(None)
        top = bounds.head if at is None else check_cursor(at, bounds)
        load = partial(
            snapshots.load_snapshot,
            epoch=self._handle.epoch,
            thread_id=thread_id,
            kind=kind,
            top=top,
        )
        return await self._handle.pool.run(load)

    async def retain(self, policy: RetentionPolicy) -> RemovalResult:
        plan = partial(plan_retention, policy)
        return await remove(self._handle, plan, scan=policy.reads_facts)

    async def compact(self, policy: CompactionPolicy | None = None) -> RemovalResult:
        plan = partial(plan_compaction, policy or CompactionPolicy())
        return await remove(self._handle, plan, scan=True)

    async def verify(self) -> VerifyReport:
        writer = self._handle.writer
        head = writer.state.place.head if writer else 0
        return await self._handle.pool.run(partial(snapshots.verify, head=head))

    async def chain_point(self, seq: int) -> ChainPoint:
        ensure_reached(seq, await self._bounds(None))
        return await self._handle.pool.run(partial(snapshots.load_chain_point, seq=seq))

    def read_removed(self) -> AsyncIterator[RemovedFact]:
        return retention.stream_removed(self._handle)

    def records(self) -> AsyncIterator[CatalogueRecord]:
        return stream_records(self._handle)

    async def restore(self, restoration: Restoration) -> Cursor:
        return await retention.restore(self._handle, restoration)

    async def read_chain(
        self, after: ChainPoint, record: bytes = b"", size: int = FETCH_BYTES
    ) -> ChainBatch:
        """What a mirror that has come to a point of the chain lacks, about `size` bytes at a time;
        `record` is the hash of the last record that it has. Raises `ChainPointUnknown`.
        """
        load = partial(snapshots.load_chain, after=after, record=record, size=size)
        return await self._handle.pool.run(load)

    async def mark_private(self, thread_id: str, after: int | None = None) -> None:
        """Keep the facts of a thread, and of those below it, from being read as a chain for a
        mirror: all that come from now on, or those after a seq. This cannot be taken back.
        """
        writer = self._handle.require_author()
        state = writer.state

        def write() -> None:
            start = state.place.head if after is None else after
            insert_private_threads(state.connection, {thread_id: start})

        def note() -> None:
            state.note_private(load_private_threads(state.connection))

        await asyncio.wrap_future(writer.call(write, note))

    async def private_threads(self) -> Collection[str]:
        """The threads whose facts no mirror is given."""
        return (await self._handle.pool.run(load_private_threads)).keys()

    def hold_chain(self, name: str, position: int) -> AbstractContextManager[ReaderPosition]:
        """Keep commits after a position from being removed or thinned out inside the block; the
        position may be moved.
        """
        return self._handle.readers.open_reader(position, follows=True, chain=name)

    async def become_mirror(self, epoch: str) -> None:
        """Take on the epoch of the journal that this one is to mirror. From then on it refuses to
        append, to remove and to be restored into.
        """
        store, self._writer = self._handle, None
        await asyncio.wrap_future(store.require_writer().call(partial(store.mark_mirrored, epoch)))

    async def mirror_end(self) -> MirrorEnd:
        """How far a mirror has come."""
        writer = self._handle.require_writer()
        return await asyncio.wrap_future(
            writer.inspect(partial(retention.load_mirror_end, writer.state))
        )

    async def withheld(self) -> int:
        """How many facts of private threads this mirror was not given."""
        return await self._handle.pool.run(retention.count_withheld)

    async def take_chain(self, batch: ChainBatch) -> MirrorEnd:
        """Take in what follows in the mirrored chain, verified; returns when it is durable.
        Raises `MirrorRefused`, having taken nothing.
        """
        return await retention.take_chain(self._handle, batch)

    async def take_removed(
        self, removed: Sequence[RemovedFact], threads: Sequence[CatalogueRecord]
    ) -> None:
        """Take in what the mirrored journal keeps of facts that it removed before the mirror had
        them, ahead of the chain that leaves them out.
        """
        await retention.take_removed(self._handle, removed, threads)

    async def stats(self) -> JournalStats:
        store = self._handle
        place = await store.load_ends()
        return JournalStats(
            bytes=await store.pool.run(_compute_size),
            facts=place.head - place.removed,
            threads=await count_threads(store),
            head=Cursor(store.epoch, place.head),
            floor=Cursor(store.epoch, place.floor),
            followers=store.readers.stats(place.head),
        )

    @property
    def _handle(self) -> SqliteHandle:
        if self._opened is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._opened

    async def _bounds(self, wanted: Filter | None) -> Bounds:
        store = self._handle
        place = await store.load_ends()
        floor = max(place.floor, place.gap)
        if place.gap > place.floor and wanted is not None and wanted.thread is not None:
            record = await store.pool.run(partial(load_record, thread_id=wanted.thread))
            floor = max(place.floor, record.floor if record else 0)
        return Bounds(epoch=store.epoch, head=place.head, floor=floor, oldest=place.floor)

    async def _resume(
        self, reader: ReaderPosition, after: Cursor | str | None, wanted: Filter | None
    ) -> int:
        """Put a reader where it wants to begin; answers with the head as of then."""
        store = self._handle
        seq: int | None = None
        if isinstance(after, str) and not after.startswith(MARK):
            seq = await find_seq(store, after)
        async with store.readers.hold_removals():
            bounds = await self._bounds(wanted)
            try:
                reader.position = resolve_start(after, bounds, lambda _: seq)
            except CursorError as error:
                thread = wanted.thread if wanted else None
                nearest = await store.pool.run(
                    partial(snapshots.find_newest_snapshot, thread=thread)
                )
                raise type(error)(
                    str(error),
                    nearest=None if nearest is None else Cursor(store.epoch, nearest),
                    head=error.head,
                ) from None
        return bounds.head


def _compute_size(connection: Database) -> int:
    pages: int = connection.pragma("page_count")
    free: int = connection.pragma("freelist_count")
    size: int = connection.pragma("page_size")
    return (pages - free) * size


_MODES: Final = {"": False, "mode=rw": False, "mode=ro": True}
"""What may stand behind the question mark → whether the handle only reads."""


def open_sqlite(url: str) -> SqliteJournal:
    """The journal at `sqlite:PATH`, or beside its writer at `sqlite:PATH?mode=ro`."""
    path, _, query = url.removeprefix("sqlite:").partition("?")
    if not path or query not in _MODES:
        raise JournalUrlError(f"expected sqlite:PATH or sqlite:PATH?mode=ro, got {url!r}")
    if path.startswith((":", "file:")) or "\0" in path:
        # SQLite takes such a name for a database in memory, of which each connection has its own.
        raise JournalUrlError(
            f"{path!r} is not the path of a file; use memory: for a journal in memory, or begin "
            "the path of a file with ./"
        )
    return SqliteJournal(path, read_only=_MODES[query])
