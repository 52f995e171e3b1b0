"""Replay, then live: from the server page by page, then from the tail in memory.

A reader is a position. Wherever its next facts come from, they are those right after it, so neither
a lost connection nor a lost notification can make a hole or a repeat. Every page comes with the
place of the journal in the same statement, so that what it does not have is known not to have been
there. Other processes are told how far the readers of this one have come.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from secrets import randbelow
from typing import Final

import msgspec

from factwire.journal.chunks import (
    Chunk,
    FactBatch,
    empty_batch,
    join_batches,
    select_batch,
    widen_batch,
)
from factwire.journal.cursor import MARK, Bounds, Cursor, check_cursor, resolve_start
from factwire.journal.errors import JournalUnavailable
from factwire.journal.filter import Filter
from factwire.journal.followers import CommitSignal, ReaderPosition, ReaderRegistry
from factwire.journal.postgres.schema import (
    CHUNK_COLUMNS,
    FactLookup,
    JournalTip,
    KeyEncoder,
    decode_chunk,
)
from factwire.journal.postgres.server_connection import (
    PAGE_BYTES,
    PAGE_CHUNKS,
    TAIL_BYTES,
    PostgresConnection,
    PostgresRow,
    PostgresSession,
    SessionPool,
)

_ALIVE: Final = 0x6677_0000
_REMOVING: Final = 0x6678_0000

_PUBLISH: Final = """
WITH gate AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared($4, 0))
INSERT INTO factwire.hold (journal, process, position) SELECT $1, $2, $3 FROM gate
ON CONFLICT (journal, process) DO UPDATE SET position = excluded.position
"""
_WITHDRAW: Final = "DELETE FROM factwire.hold WHERE journal = $1 AND process = $2"
_OTHERS: Final = """
SELECT process, position FROM factwire.hold
WHERE journal = $1 AND process <> $2 AND EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $3 AND objid = process::oid
    AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""


class ReaderPresence:
    """This process among those that have the journal open."""

    def __init__(self, journal: int, readers: ReaderRegistry) -> None:
        self.process = randbelow(2**31)
        self._journal = journal
        self._readers = readers
        self._published: int | None = None

    async def enter(self, connection: PostgresConnection) -> None:
        """Be present for as long as this connection lasts."""
        await connection.execute(
            "SELECT pg_advisory_lock_shared($1, $2)", _ALIVE + self._journal, self.process
        )
        self._published = None
        await self.refresh(connection)

    def covers(self, position: int) -> bool:
        """Whether what is published holds everything past a position already."""
        return self._published is not None and self._published <= position

    async def publish(self, connection: PostgresConnection, position: int) -> None:
        """Hold everything past a position."""
        if self._published is None or position < self._published:
            await self._publish(connection, position)

    async def refresh(self, connection: PostgresConnection) -> None:
        """Publish how far the slowest reader has come by now."""
        slowest = min(self._readers.positions().values(), default=None)
        if slowest is None:
            if self._published is not None:
                self._published = None
                await connection.execute(_WITHDRAW, self._journal, self.process)
        elif slowest != self._published:
            await self._publish(connection, slowest)

    async def load_other_positions(self, connection: PostgresConnection) -> dict[str, int]:
        """The positions of the other processes that are connected."""
        rows = await connection.fetch(_OTHERS, self._journal, self.process, _ALIVE + self._journal)
        return {f"process-{row['process']}": row["position"] for row in rows}

    async def _publish(self, connection: PostgresConnection, position: int) -> None:
        # Set first: a reader that opens meanwhile, further back, must not take the old one as
        # still published.
        self._published = position
        await connection.execute(
            _PUBLISH, self._journal, self.process, position, _REMOVING + self._journal
        )


async def close_gate(connection: PostgresConnection, journal: int) -> None:
    """Let nobody publish until this transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, 0)", _REMOVING + journal)


async def remove_alone(connection: PostgresConnection, journal: int) -> None:
    """Let no other removal run until this transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, 1)", _REMOVING + journal)


_PAGE: Final = """
WITH page AS (
    SELECT {columns}, before FROM (
        SELECT chunk.*, sum(size) OVER (ORDER BY last) - size AS before FROM ({chosen}) AS chunk
    ) AS counted WHERE before < $3
)
SELECT journal.epoch, journal.head, journal.hash AS head_hash, journal.floor, page.*
FROM factwire.journal LEFT JOIN page ON true WHERE journal.id = $1 ORDER BY page.last
"""
_ALL: Final = """
SELECT * FROM factwire.chunk WHERE journal = $1 AND last > $2 ORDER BY last LIMIT $4
"""
# The first key is the narrowest; the rest, and any of the classes, are looked up beside it.
_HAVING: Final = """
SELECT chunk.* FROM (
    SELECT last FROM factwire.posting AS found WHERE key = $5 AND last > $2
    AND NOT EXISTS (
        SELECT FROM unnest($6::bigint[]) AS other WHERE NOT EXISTS (
            SELECT FROM factwire.posting AS beside
            WHERE beside.key = other AND beside.last = found.last
        )
    )
    AND ($7::bigint[] IS NULL OR EXISTS (
        SELECT FROM unnest($7::bigint[]) AS class JOIN factwire.posting AS beside
        ON beside.key = class AND beside.last = found.last
    ))
    ORDER BY last LIMIT $4
) AS found JOIN factwire.chunk ON chunk.journal = $1 AND chunk.last = found.last
"""
_OF_CLASS: Final = """
SELECT chunk.* FROM (
    SELECT DISTINCT found.last FROM unnest($5::bigint[]) AS class CROSS JOIN LATERAL (
        SELECT last FROM factwire.posting WHERE key = class AND last > $2 ORDER BY last LIMIT $4
    ) AS found ORDER BY found.last LIMIT $4
) AS found JOIN factwire.chunk ON chunk.journal = $1 AND chunk.last = found.last
"""
_BOUNDS: Final = """
SELECT epoch, head, floor,
    CASE WHEN $2::bytea IS NULL THEN gap ELSE
        coalesce((SELECT floor FROM factwire.thread WHERE key = $2), 0) END AS gap,
    CASE WHEN $2::bytea IS NULL THEN
        (SELECT max(seq) FROM factwire.snapshot WHERE journal = $1) ELSE
        (SELECT max(seq) FROM factwire.snapshot WHERE journal = $1 AND thread = $2) END AS nearest
FROM factwire.journal WHERE id = $1
"""


def _build_sql(chosen: str) -> str:
    return _PAGE.format(columns=CHUNK_COLUMNS, chosen=chosen)


_PAGE_OF_ALL: Final = _build_sql(_ALL)
_PAGE_HAVING: Final = _build_sql(_HAVING)
_PAGE_OF_CLASS: Final = _build_sql(_OF_CLASS)


class ChunkPage(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks past a position, and where the journal stood."""

    place: JournalTip
    chunks: Sequence[Chunk]


class PageReader:
    """Reads of one journal."""

    def __init__(self, journal: int, keys: KeyEncoder) -> None:
        self._journal = journal
        self._keys = keys

    async def load_after(
        self, connection: PostgresConnection, seq: int, wanted: Filter | None
    ) -> ChunkPage:
        """The next chunks past `seq`; with a filter, only those that may have facts for it.

        No chunks: there is nothing more up to the place's head.
        """
        arguments = (self._journal, seq, PAGE_BYTES, PAGE_CHUNKS)
        names = wanted.keys() if wanted else ()
        if wanted is None or not (names or wanted.classes or wanted.any_keys):
            return _build_page(await connection.fetch(_PAGE_OF_ALL, *arguments))
        if wanted.any_keys and not names:
            # More than is wanted, where there are classes as well; the rest is left out later.
            some = [self._keys.encode_posting(name) for name in wanted.any_keys]
            return _build_page(await connection.fetch(_PAGE_OF_CLASS, *arguments, some))
        classes = await self._list_classes(connection, wanted)
        if names:
            first, *rest = (self._keys.encode_posting(name) for name in reversed(names))
            return _build_page(
                await connection.fetch(_PAGE_HAVING, *arguments, first, rest, classes)
            )
        return _build_page(await connection.fetch(_PAGE_OF_CLASS, *arguments, classes))

    async def load_bounds(self, connection: PostgresConnection, thread: str | None) -> Bounds:
        """What can be resumed from, in the whole journal or in one thread."""
        key = None if thread is None else self._keys.encode_name(thread)
        row = require_row(await connection.fetchrow(_BOUNDS, self._journal, key))
        nearest = row["nearest"]
        return Bounds(
            epoch=row["epoch"],
            head=row["head"],
            floor=max(row["floor"], row["gap"]),
            oldest=row["floor"],
            nearest=None if nearest is None else Cursor(row["epoch"], nearest),
        )

    async def _list_classes(
        self, connection: PostgresConnection, wanted: Filter
    ) -> list[int] | None:
        if not wanted.classes:
            return None
        rows = await connection.fetch(
            "SELECT name FROM factwire.class WHERE journal = $1", self._journal
        )
        names = [row["name"].decode("utf-8", "surrogatepass") for row in rows]
        return [self._keys.encode_posting(name) for name in wanted.class_keys(names)]


def require_row(row: PostgresRow | None) -> PostgresRow:
    """The row of the journal, which is there as long as the journal is."""
    if row is None:
        raise JournalUnavailable("the journal is no longer in the database")
    return row


def _build_page(rows: Sequence[PostgresRow]) -> ChunkPage:
    top = require_row(rows[0] if rows else None)
    place = JournalTip(
        epoch=top["epoch"], head=top["head"], hash=top["head_hash"], floor=top["floor"]
    )
    return ChunkPage(
        place=place, chunks=[decode_chunk(row) for row in rows if row["last"] is not None]
    )


class ChunkTail:
    """Adjacent chunks up to the last seq that this process has heard of."""

    def __init__(self, head: int) -> None:
        self.head = head
        self._chunks: deque[Chunk] = deque()
        self._bytes = 0

    def add(self, chunk: Chunk) -> None:
        """Take a new chunk; one that does not follow the last begins the tail anew."""
        if chunk.last <= self.head:
            return
        if chunk.first != self.head + 1:
            self.restart(chunk.first - 1)
        self._chunks.append(chunk)
        self._bytes += len(chunk.data)
        self.head = chunk.last
        while self._bytes > TAIL_BYTES and len(self._chunks) > 1:
            self._bytes -= len(self._chunks.popleft().data)

    def restart(self, head: int) -> None:
        """Hold nothing, and know of nothing past `head`."""
        self._chunks.clear()
        self._bytes = 0
        self.head = head

    def since(self, position: int) -> list[Chunk] | None:
        """Everything past a position; None where the tail does not have all of it."""
        if position >= self.head:
            return []
        if not self._chunks or self._chunks[0].first > position + 1:
            return None
        newer: list[Chunk] = []
        for chunk in reversed(self._chunks):
            if chunk.last <= position:
                break
            newer.append(chunk)
        return newer[::-1]


class PostgresReader:
    """Every read and follow of one open journal."""

    def __init__(
        self,
        sessions: SessionPool,
        pages: PageReader,
        ledger: FactLookup,
        place: JournalTip,
        readers: ReaderRegistry,
    ) -> None:
        self.bell = CommitSignal()
        self.readers = readers
        self.gate = asyncio.Lock()
        """Held while a reader finds its place, and while a removal of this process ends."""
        self.epoch = place.epoch
        self.tail = ChunkTail(place.head)
        self._trouble: Exception | None = None
        self._sessions = sessions
        self._pages = pages
        self._ledger = ledger

    def last_heard_seq(self) -> int:
        return self.tail.head

    def take_page(self, page: ChunkPage) -> None:
        """Take in what another process committed."""
        place, before = page.place, self.tail.head
        self._trouble = None
        if place.epoch != self.epoch:
            self.epoch = place.epoch
            self.tail.restart(place.head)
            self.bell.notify()
            return
        for chunk in page.chunks:
            self.tail.add(chunk)
        # More than a page behind: followers read it from the server themselves.
        if self.tail.head < place.head:
            self.tail.restart(place.head)
        if self.tail.head != before:
            self.bell.notify()

    def note_trouble(self, error: Exception) -> None:
        """Let followers raise what keeps this process from hearing of new facts."""
        self._trouble = error
        self.bell.notify()

    def note_commit(self, place: JournalTip, chunk: Chunk) -> None:
        """Take in what this process committed."""
        if place.epoch != self.epoch:
            self.epoch = place.epoch
            self.tail.restart(place.head)
        self.tail.add(chunk)
        self.bell.notify()

    async def bounds(self, thread: str | None = None) -> Bounds:
        return await self._sessions.run(lambda link: self._pages.load_bounds(link, thread))

    async def open(
        self, request: "ReadRequest", presence: ReaderPresence, watching: PostgresSession
    ) -> tuple[Bounds, ReaderPosition]:
        """The place of a new reader, held against removals from here on."""
        async with self.gate:
            bounds, start = await self._resume(request)
            place = request.stack(self.readers, start)
        if not presence.covers(start):
            await watching.run(lambda link: presence.publish(link, start))
            # A removal may have ended before the position was published.
            bounds, place.position = await self._resume(request)
        return bounds, place

    async def replay(
        self, bounds: Bounds, reader: ReaderPosition, wanted: Filter | None, limit: int | None
    ) -> AsyncIterator[FactBatch]:
        """Everything up to the head that the bounds name."""
        covered, left = reader.position, limit
        while reader.position < bounds.head and left != 0:
            page = await self._load_page(bounds, reader.position, wanted)
            for chunk in page.chunks:
                if chunk.first > bounds.head or left == 0:
                    break
                after = reader.position
                batch = select_batch(chunk, bounds.epoch, after=after, wanted=wanted, limit=left)
                reader.position = batch.last
                left = left and left - len(batch.seqs)
                if batch.seqs:
                    yield widen_batch(batch, covered + 1)
                    covered = batch.last
            if left != 0 and (not page.chunks or page.chunks[-1].last >= bounds.head):
                reader.position = max(reader.position, bounds.head)
        if covered < reader.position:
            yield empty_batch(bounds.epoch, covered + 1, reader.position)

    async def live(
        self,
        bounds: Bounds,
        reader: ReaderPosition,
        wanted: Filter | None,
        ensure_open: Callable[[], None],
    ) -> AsyncIterator[FactBatch]:
        """Everything after the reader's position, as it comes."""
        covered = reader.position
        while True:
            seen = self.bell.count
            ensure_open()
            if self._trouble is not None:
                raise self._trouble
            chunks, top = await self._load_newer(bounds, reader.position, wanted)
            batches = [
                select_batch(chunk, bounds.epoch, after=reader.position, wanted=wanted)
                for chunk in chunks
            ]
            idle = top <= reader.position
            reader.position = max(reader.position, top)
            if any(batch.seqs for batch in batches):
                yield widen_batch(join_batches(batches), covered + 1)
                covered = batches[-1].last
            elif idle:
                await self.bell.wait(seen)

    async def _load_newer(
        self, bounds: Bounds, position: int, wanted: Filter | None
    ) -> tuple[list[Chunk], int]:
        if self.epoch != bounds.epoch:
            _ensure_same(msgspec.structs.replace(bounds, epoch=self.epoch), bounds, position)
        chunks = self.tail.since(position)
        if chunks is not None:
            return chunks, self.tail.head
        page = await self._load_page(bounds, position, wanted)
        if page.chunks:
            return list(page.chunks), page.chunks[-1].last
        return [], page.place.head

    async def _load_page(self, bounds: Bounds, position: int, wanted: Filter | None) -> ChunkPage:
        page = await self._sessions.run(lambda link: self._pages.load_after(link, position, wanted))
        place = page.place
        now = msgspec.structs.replace(
            bounds, epoch=place.epoch, head=max(place.head, position), floor=place.floor
        )
        _ensure_same(now, bounds, position)
        return page

    async def _resume(self, request: "ReadRequest") -> tuple[Bounds, int]:
        async def work(link: PostgresConnection) -> tuple[Bounds, int | None]:
            thread = request.wanted.thread if request.wanted else None
            bounds = await self._pages.load_bounds(link, thread)
            after = request.after
            if isinstance(after, str) and not after.startswith(MARK):
                seqs = await self._ledger.find_seqs(link, [after])
                return bounds, seqs.get(after)
            return bounds, None

        bounds, seq = await self._sessions.run(work)
        return bounds, resolve_start(request.after, bounds, lambda _: seq)


class ReadRequest(msgspec.Struct):
    """A reader that is about to be opened; `stack` registers it."""

    after: Cursor | str | None
    wanted: Filter | None
    stack: Callable[[ReaderRegistry, int], ReaderPosition]


def _ensure_same(now: Bounds, then: Bounds, position: int) -> None:
    check_cursor(Cursor(then.epoch, position), now)
