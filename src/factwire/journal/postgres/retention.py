"""Retention, compaction and restore in PostgreSQL, each in one transaction.

Everything slow comes first and holds up nobody: reading, deciding, rewriting chunks that others do
not see yet. Only then is the end of the journal locked, for as long as it takes to append the
records of what was removed. A reader that turned up meanwhile and needs what was removed makes the
removal start again. Small chunks are joined, so that a journal written one fact at a time reads
like one of batches.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chunks import (
    GENESIS,
    Chunk,
    Record,
    RecordBody,
    Truncated,
    build_record,
    decode_line,
    merge_chunks,
    thin_chunk,
)
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalUnavailable
from factwire.journal.filter import CLASS_MARK
from factwire.journal.followers import ReaderRegistry
from factwire.journal.postgres.reader import (
    PageReader,
    ReaderPresence,
    close_gate,
    remove_alone,
    require_row,
)
from factwire.journal.postgres.schema import (
    CHUNK_COLUMNS,
    KeyEncoder,
    compute_chunk_size,
    decode_chunk,
    decode_thread,
    encode_thread,
    list_chunk_values,
)
from factwire.journal.postgres.server_connection import PostgresConnection, PostgresRow, SessionPool
from factwire.journal.retention import (
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RestorePiece,
    cut_pieces,
    ensure_empty,
    ensure_new,
    list_removed,
)
from factwire.journal.thread_catalogue import CatalogueRecord

Facts = Iterable[tuple[int, Fact]]
Planner = Callable[[Facts, Holds, int, int], RemovalPlan]
"""Facts, holds, head and floor → what to remove."""

_PLACE: Final = "SELECT epoch, head, hash, floor, base FROM factwire.journal WHERE id = $1"
_ACTIONS: Final = """
SELECT opened, floor, record FROM factwire.thread WHERE journal = $1 AND opened IS NOT NULL
"""
NOTE: Final = """
INSERT INTO factwire.removed (journal, seq, id, sequence, digest)
SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[])
"""
_REWRITE: Final = """
UPDATE factwire.chunk SET first = $2, data = $4, index = $5, prev = $6, hash = $7, proof = $8,
    seqs = $9, links = $10, body = $11, facts = $12, size = $13
WHERE journal = $1 AND last = $3
"""
_UNLIST: Final = "DELETE FROM factwire.posting WHERE last = $1 AND key = ANY($2::bigint[])"
_RECORD: Final = (
    "INSERT INTO factwire.record (journal, after, prev, hash, body) VALUES ($1, $2, $3, $4, $5)"
)
_END_REMOVAL: Final = """
UPDATE factwire.journal SET hash = $2, floor = $3, base = $4, base_hash = $5,
    gap = greatest(gap, $6), facts = facts - $7, bytes = bytes - $8
WHERE id = $1
"""


class RemovalOvertaken(Exception):
    """A reader turned up that needs what this removal was about to take."""


class ChunkOutcome(msgspec.Struct, kw_only=True):
    """What becomes of one chunk."""

    old: Chunk
    new: Chunk | None
    content: RecordBody | None
    removed: list[RemovedFact]


class RemovalTally(msgspec.Struct):
    """What a removal adds up to."""

    base: int
    removed: int = 0
    freed: int = 0
    shrunk: int = 0
    truncated: int = 0
    highest: int = 0
    base_hash: bytes | None = None
    contents: list[RecordBody] = msgspec.field(default_factory=list[RecordBody])


class PostgresRemover:
    """Removals from one journal."""

    def __init__(
        self,
        journal: int,
        *,
        pages: PageReader,
        keys: KeyEncoder,
        presence: ReaderPresence,
        readers: ReaderRegistry,
        gate: AbstractAsyncContextManager[object],
    ) -> None:
        self._journal = journal
        self._pages = pages
        self._keys = keys
        self._presence = presence
        self._readers = readers
        self._gate = gate

    async def run(self, connection: PostgresConnection, planner: Planner) -> RemovalResult:
        """Plan and carry out; safe to repeat, because all of it is one transaction."""
        while True:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await remove_alone(connection, self._journal)
                plan, row = await self._plan(connection, planner)
                tally = await self._carry_out(connection, plan, row["base"])
                async with self._gate:
                    removal = await self._finish(connection, plan, tally)
                    await transaction.commit()
                    return removal
            except BaseException as error:
                if not connection.is_closed():
                    await transaction.rollback()
                if not isinstance(error, RemovalOvertaken):
                    raise

    async def _plan(
        self, connection: PostgresConnection, planner: Planner
    ) -> tuple[RemovalPlan, PostgresRow]:
        row = require_row(await connection.fetchrow(_PLACE, self._journal))
        actions = {
            decode_thread(action).thread_id: int(action["opened"])
            for action in await connection.fetch(_ACTIONS, self._journal)
        }
        holds = Holds(readers=await self._positions(connection), actions=actions)
        head, floor = int(row["head"]), int(row["floor"])
        stream = _Facts(self._pages, connection, int(row["base"]), head)
        return await stream.plan_through(lambda facts: planner(facts, holds, head, floor)), row

    async def _positions(self, connection: PostgresConnection) -> dict[str, int]:
        return {
            **await self._presence.load_other_positions(connection),
            **self._readers.positions(),
        }

    async def _carry_out(
        self, connection: PostgresConnection, plan: RemovalPlan, base: int
    ) -> RemovalTally:
        tally = RemovalTally(base)
        top = max(plan.floor, max(plan.drop, default=0))
        position = base
        while position < top:
            page = await self._pages.load_after(connection, position, None)
            if not page.chunks:
                break
            outcomes = await asyncio.to_thread(_plan_outcomes, page.chunks, plan)
            for outcome in outcomes:
                await self._write(connection, outcome, tally)
            position = page.chunks[-1].last
        for thread, floor in plan.thread_floors.items():
            await connection.execute(
                "UPDATE factwire.thread SET floor = $2 WHERE key = $1",
                self._keys.encode_name(thread),
                floor,
            )
            await connection.execute(
                "DELETE FROM factwire.snapshot WHERE journal = $1 AND thread = $2",
                self._journal,
                self._keys.encode_name(thread),
            )
        return tally

    async def _write(
        self, connection: PostgresConnection, outcome: ChunkOutcome, tally: RemovalTally
    ) -> None:
        old, new = outcome.old, outcome.new
        if new is None:
            await connection.execute(
                "DELETE FROM factwire.chunk WHERE journal = $1 AND last = $2",
                self._journal,
                old.last,
            )
            tally.base, tally.base_hash = old.last, old.hash
            tally.truncated += old.facts
        else:
            values = (*list_chunk_values(new), new.facts, compute_chunk_size(new))
            await connection.execute(_REWRITE, self._journal, *values)
        stale = set(old.positions()).difference(new.positions() if new else ())
        await connection.execute(
            _UNLIST, old.last, [self._keys.encode_posting(name) for name in stale]
        )
        await connection.execute(NOTE, self._journal, *build_removed_columns(outcome.removed))
        tally.removed += len(outcome.removed)
        tally.highest = old.last if new is None else outcome.removed[-1].seq
        tally.freed += len(old.data) - (len(new.data) if new else 0)
        tally.shrunk += compute_chunk_size(old) - (compute_chunk_size(new) if new else 0)
        if outcome.content is not None:
            tally.contents.append(outcome.content)

    async def _finish(
        self, connection: PostgresConnection, plan: RemovalPlan, tally: RemovalTally
    ) -> RemovalResult:
        await close_gate(connection, self._journal)
        positions = (await self._positions(connection)).values()
        if any(position < tally.highest for position in positions):
            raise RemovalOvertaken
        row = require_row(await connection.fetchrow(f"{_PLACE} FOR NO KEY UPDATE", self._journal))
        base_hash = await self._base_hash(connection, tally)
        if tally.base_hash is not None:
            content = Truncated(floor=tally.base, hash=base_hash, dropped=tally.truncated)
            tally.contents.append(content)
            await connection.execute(
                "DELETE FROM factwire.record WHERE journal = $1 AND after <= $2",
                self._journal,
                tally.base,
            )
        chain = _build_records(tally.contents, row["head"], row["hash"])
        for record in chain:
            values = (record.after, record.prev, record.hash, record.body)
            await connection.execute(_RECORD, self._journal, *values)
        end = chain[-1].hash if chain else row["hash"]
        gap = max(plan.thread_floors.values(), default=0)
        figures = (gap, tally.removed, tally.shrunk)
        places = (end, plan.floor, tally.base, base_hash)
        await connection.execute(_END_REMOVAL, self._journal, *places, *figures)
        return RemovalResult(
            removed=tally.removed,
            freed=tally.freed,
            floor=Cursor(row["epoch"], plan.floor),
            held_by=plan.held_by,
        )

    async def _base_hash(self, connection: PostgresConnection, tally: RemovalTally) -> bytes:
        """Where the chain begins to be there: past the records that stood after the last removed.

        The newest fact is never removed, so there always is a chunk to begin with.
        """
        stored = "SELECT base_hash FROM factwire.journal WHERE id = $1"
        if tally.base_hash is None:
            return bytes(await connection.fetchval(stored, self._journal))
        following = await connection.fetchval(
            "SELECT prev FROM factwire.chunk WHERE journal = $1 AND last > $2"
            " ORDER BY last LIMIT 1",
            self._journal,
            tally.base,
        )
        return tally.base_hash if following is None else bytes(following)


class _Facts:
    """Facts for a planner that runs in a thread, while the event loop fetches them."""

    def __init__(
        self, pages: PageReader, connection: PostgresConnection, after: int, head: int
    ) -> None:
        self._pages = pages
        self._connection = connection
        self._position = after
        self._head = head
        self._loop = asyncio.get_running_loop()
        self._stopped = False

    async def plan_through(self, plan: Callable[[Facts], RemovalPlan]) -> RemovalPlan:
        work = asyncio.create_task(asyncio.to_thread(lambda: plan(self._iterate_facts())))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The connection is in use until the thread has noticed.
            self._stopped = True
            await asyncio.wait([work])
            raise

    def _iterate_facts(self) -> Iterator[tuple[int, Fact]]:
        while self._position < self._head and not self._stopped:
            fetch = self._pages.load_after(self._connection, self._position, None)
            chunks = asyncio.run_coroutine_threadsafe(fetch, self._loop).result().chunks
            for chunk in chunks:
                if chunk.first <= self._head:
                    yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)
            self._position = chunks[-1].last if chunks else self._head


def _plan_outcomes(chunks: Sequence[Chunk], plan: RemovalPlan) -> list[ChunkOutcome]:
    return [outcome for chunk in chunks if (outcome := _plan_outcome(chunk, plan)) is not None]


def _plan_outcome(chunk: Chunk, plan: RemovalPlan) -> ChunkOutcome | None:
    """What a plan makes of a chunk; None where it leaves it alone."""
    gone = list_removed(chunk, plan.keeps)
    whole = chunk.last <= plan.floor
    if not gone and not whole:
        return None
    new, content = (None, None) if whole else thin_chunk(chunk, plan.keeps)
    return ChunkOutcome(old=chunk, new=new, content=content, removed=gone)


def build_removed_columns(removed: Iterable[RemovedFact]) -> tuple[list[Any], ...]:
    """What stays of removed facts, as the columns that `NOTE` takes."""
    rows = list(removed)
    return (
        [each.seq for each in rows],
        [each.id.encode("utf-8", "surrogatepass") for each in rows],
        [each.sequence for each in rows],
        [each.digest for each in rows],
    )


def _build_records(contents: Sequence[RecordBody], after: int, prev: bytes) -> list[Record]:
    records: list[Record] = []
    for content in contents:
        record = build_record(after, prev, content)
        records.append(record)
        prev = record.hash
    return records


SEALED_BYTES: Final = 256 * 1024
"""Bytes of lines up to which chunks are joined: a read of part of one has to take all of it."""

_NEXT: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk
WHERE journal = $1 AND last > $2 AND last < (SELECT head FROM factwire.journal WHERE id = $1)
ORDER BY last LIMIT 512
"""  # noqa: S608
_DROP: Final = "DELETE FROM factwire.chunk WHERE journal = $1 AND last = ANY($2::bigint[])"
_ADD: Final = f"""
INSERT INTO factwire.chunk (journal, {CHUNK_COLUMNS}, facts, size)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""  # noqa: S608
_UNLIST_RUN: Final = """
DELETE FROM factwire.posting WHERE key = ANY($1::bigint[]) AND last = ANY($2::bigint[])
"""
_LIST: Final = (
    "INSERT INTO factwire.posting (key, last) SELECT key, $2 FROM unnest($1::bigint[]) AS key"
)
_RESIZE: Final = "UPDATE factwire.journal SET bytes = bytes + $2 WHERE id = $1"


async def seal_chunks(connection: PostgresConnection, journal: int, keys: KeyEncoder) -> None:
    """Join what can be joined; the newest chunk stays, because a writer may still look for it."""
    position = 0
    while True:
        async with connection.transaction():
            await remove_alone(connection, journal)
            rows = await connection.fetch(_NEXT, journal, position)
            if not rows:
                return
            runs = find_runs([decode_chunk(row) for row in rows])
            for run in runs:
                if len(run) > 1:
                    await _join_run(connection, journal, keys, run)
            position = runs[-1][-1].last


def find_runs(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Chunks in order, grouped by what can become one."""
    runs: list[list[Chunk]] = []
    size = 0
    for chunk in chunks:
        size += len(chunk.data)
        if runs and size <= SEALED_BYTES and _is_adjacent(runs[-1][-1], chunk):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
            size = len(chunk.data)
    return runs


def _is_adjacent(before: Chunk, chunk: Chunk) -> bool:
    whole = before.seqs is None and chunk.seqs is None
    return whole and before.hash == chunk.prev and before.last + 1 == chunk.first


async def _join_run(
    connection: PostgresConnection, journal: int, keys: KeyEncoder, run: Sequence[Chunk]
) -> None:
    whole = merge_chunks(run)
    lasts = [chunk.last for chunk in run]
    listed = [keys.encode_posting(name) for name in whole.positions()]
    await connection.execute(_DROP, journal, lasts)
    await connection.execute(
        _ADD, journal, *list_chunk_values(whole), whole.facts, compute_chunk_size(whole)
    )
    await connection.execute(_UNLIST_RUN, listed, lasts)
    await connection.execute(_LIST, list(set(listed)), whole.last)
    grown = compute_chunk_size(whole) - sum(map(compute_chunk_size, run))
    await connection.execute(_RESIZE, journal, grown)


ROWS: Final = 1_000
"""Rows that are read or written at once."""

_LOCK: Final = "SELECT epoch, head FROM factwire.journal WHERE id = $1 FOR UPDATE"
_TAKEN: Final = "SELECT key FROM factwire.fact WHERE key = ANY($1::bytea[])"
_IDS: Final = "INSERT INTO factwire.fact (key, seq) SELECT * FROM unnest($1::bytea[], $2::bigint[])"
_CHUNK: Final = """
INSERT INTO factwire.chunk
    (journal, first, last, data, index, prev, hash, proof, seqs, links, body, facts, size)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""
_POSTINGS: Final = """
INSERT INTO factwire.posting (key, last) SELECT key, $1 FROM unnest($2::bigint[]) AS key
"""
_CLASSES: Final = """
INSERT INTO factwire.class (journal, name) SELECT $1, name FROM unnest($2::bytea[]) AS name
ON CONFLICT DO NOTHING
"""
_THREADS: Final = """
INSERT INTO factwire.thread (journal, key, last_seq, project, status, opened, floor, record)
SELECT $1, * FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::text[], $6::bigint[],
    $7::bigint[], $8::bytea[])
"""
_END_RESTORE: Final = """
UPDATE factwire.journal SET head = $2, hash = $3, floor = $4, base = $4, base_hash = $5, gap = $6,
    facts = $7, bytes = $8, threads = $9
WHERE id = $1
"""
_REMOVED_AFTER: Final = """
SELECT seq, id, sequence, digest FROM factwire.removed
WHERE journal = $1 AND seq > $2 AND id IS NOT NULL ORDER BY seq LIMIT $3
"""
_THREADS_AFTER: Final = """
SELECT key, floor, record FROM factwire.thread
WHERE journal = $1 AND key > $2 ORDER BY key LIMIT $3
"""


class RestoreTally(msgspec.Struct):
    """What has been restored so far."""

    head: int = 0
    hash: bytes = GENESIS
    facts: int = 0
    bytes: int = 0
    threads: int = 0
    gap: int = 0


class PostgresRestorer:
    """Whole journals, in and out of the one with this number."""

    def __init__(self, journal: int, keys: KeyEncoder, sessions: SessionPool) -> None:
        self._journal = journal
        self._keys = keys
        self._sessions = sessions

    async def restore(self, restoration: Restoration) -> Cursor:
        """Write what is given, or nothing of it."""
        begun = False

        async def write(connection: PostgresConnection) -> Cursor:
            nonlocal begun
            # What is given can be read once, so that nothing can be tried again.
            if begun:
                raise JournalUnavailable(
                    "the connection was lost during a restore; start the restore again"
                )
            begun = True
            async with connection.transaction():
                return await self._write(connection, restoration)

        return await self._sessions.run(write)

    async def stream_removed(self) -> AsyncIterator[RemovedFact]:
        """What is kept of each removed fact whose id is known, in order."""
        after = 0
        while rows := await self._load_rows(_REMOVED_AFTER, after):
            for row in rows:
                name = row["id"].decode("utf-8", "surrogatepass")
                yield RemovedFact(row["seq"], name, row["sequence"], row["digest"])
            after = rows[-1]["seq"]

    async def stream_records(self) -> AsyncIterator[CatalogueRecord]:
        """Everything that is kept of each thread."""
        after = b""
        while rows := await self._load_rows(_THREADS_AFTER, after):
            for row in rows:
                yield decode_thread(row)
            after = rows[-1]["key"]

    async def _load_rows(self, query: str, after: object) -> list[Any]:
        arguments = (self._journal, after, ROWS)
        return list(await self._sessions.run(lambda link: link.fetch(query, *arguments)))

    async def _write(self, connection: PostgresConnection, restoration: Restoration) -> Cursor:
        place = require_row(await connection.fetchrow(_LOCK, self._journal))
        ensure_empty(place["head"])
        tally = RestoreTally()
        for piece in cut_pieces(restoration):
            await self._write_piece(connection, piece, tally)
        threads = iter(restoration.threads)
        while records := list(islice(threads, ROWS)):
            await self._write_threads(connection, records, tally)
        ends = (tally.head, tally.hash, restoration.floor, GENESIS, tally.gap)
        figures = (tally.facts, tally.bytes, tally.threads)
        await connection.execute(_END_RESTORE, self._journal, *ends, *figures)
        return Cursor(place["epoch"], tally.head)

    async def _write_piece(
        self, connection: PostgresConnection, piece: RestorePiece, tally: RestoreTally
    ) -> None:
        named = {self._keys.encode_fact_id(fact_id): fact_id for fact_id in piece.ids()}
        taken = await connection.fetch(_TAKEN, list(named))
        ensure_new(named[row["key"]] for row in taken)
        await connection.execute(_IDS, list(named), list(piece.ids().values()))
        await connection.execute(NOTE, self._journal, *build_removed_columns(piece.removed))
        if piece.chunk is not None:
            chunk = piece.chunk
            values = (*list_chunk_values(chunk), chunk.facts, compute_chunk_size(chunk))
            await connection.execute(_CHUNK, self._journal, *values)
            names = chunk.positions()
            postings = list({self._keys.encode_posting(name) for name in names})
            await connection.execute(_POSTINGS, chunk.last, postings)
            classes = [_encode_name(name) for name in names if name.startswith(CLASS_MARK)]
            await connection.execute(_CLASSES, self._journal, classes)
            tally.facts += chunk.facts
            tally.bytes += compute_chunk_size(chunk)
        for record in piece.records:
            values = (record.after, record.prev, record.hash, record.body)
            await connection.execute(_RECORD, self._journal, *values)
        tally.head, tally.hash = piece.last, piece.end

    async def _write_threads(
        self, connection: PostgresConnection, records: list[CatalogueRecord], tally: RestoreTally
    ) -> None:
        name = self._keys.encode_name
        await connection.execute(
            _THREADS,
            self._journal,
            [name(each.thread_id) for each in records],
            [each.last_seq for each in records],
            [each.project_id and name(each.project_id) for each in records],
            [each.status for each in records],
            [min(each.open.values(), default=None) for each in records],
            [each.floor for each in records],
            [encode_thread(each) for each in records],
        )
        tally.threads += len(records)
        tally.gap = max(tally.gap, *(each.floor for each in records))


def _encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
