"""Threads and snapshots, read from their tables, and the walk that verifies the whole chain."""

import asyncio
from collections.abc import Sequence
from typing import Final

from factwire.journal.chain_verifier import ChainVerifier, SnapshotAnchor
from factwire.journal.chunks import ChainPoint, Record, ensure_reached, find_chain_point
from factwire.journal.cursor import Cursor, check_cursor, resolve_page_start
from factwire.journal.errors import JournalCorrupt
from factwire.journal.postgres.reader import PageReader, require_row
from factwire.journal.postgres.schema import (
    CHUNK_COLUMNS,
    KeyEncoder,
    decode_chunk,
    decode_record,
    decode_thread,
    decode_unchecked_chunk,
)
from factwire.journal.postgres.server_connection import PostgresConnection, PostgresRow
from factwire.journal.protocol import StoredSnapshot, VerifyReport
from factwire.journal.thread_catalogue import CatalogueThread, ThreadPage, ThreadStatus, build_page

_THREADS: Final = """
SELECT floor, record FROM factwire.thread WHERE journal = $1 AND last_seq < $2
AND ($3::bytea IS NULL OR project = $3) AND ($4::text IS NULL OR status = $4)
ORDER BY last_seq DESC LIMIT $5
"""
_HOLDER: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk WHERE journal = $1 AND last >= $2 ORDER BY last LIMIT 1
"""  # noqa: S608
_SAVE: Final = """
INSERT INTO factwire.snapshot (journal, thread, kind, seq, data, anchor)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (journal, thread, kind, seq)
DO UPDATE SET data = excluded.data, anchor = excluded.anchor
"""
_NEWEST: Final = """
SELECT seq, data, anchor FROM factwire.snapshot
WHERE journal = $1 AND thread = $2 AND kind = $3 AND seq <= $4 ORDER BY seq DESC LIMIT 1
"""


class PostgresCatalogue:
    """What one journal says of its threads."""

    def __init__(self, journal: int, pages: PageReader, keys: KeyEncoder) -> None:
        self._journal = journal
        self._pages = pages
        self._keys = keys

    async def threads(
        self,
        connection: PostgresConnection,
        *,
        project: str | None,
        status: ThreadStatus | None,
        after: Cursor | str | None,
        limit: int,
    ) -> ThreadPage:
        bounds = await self._pages.load_bounds(connection, None)
        below = resolve_page_start(after, bounds)
        key = None if project is None else self._keys.encode_name(project)
        chosen = (self._journal, below, key, status, limit + 1)
        rows = await connection.fetch(_THREADS, *chosen)
        return build_page([decode_thread(row).to_thread() for row in rows], limit, bounds.epoch)

    async def thread(
        self, connection: PostgresConnection, thread_id: str
    ) -> CatalogueThread | None:
        row = await connection.fetchrow(
            "SELECT floor, record FROM factwire.thread WHERE key = $1",
            self._keys.encode_name(thread_id),
        )
        return None if row is None else decode_thread(row).to_thread()

    async def save_snapshot(
        self, connection: PostgresConnection, thread_id: str, cursor: Cursor, data: bytes, kind: str
    ) -> StoredSnapshot:
        seq = check_cursor(cursor, await self._pages.load_bounds(connection, None))
        anchor = (await self._point(connection, seq)).hash
        key = (self._journal, self._keys.encode_name(thread_id), self._keys.encode_name(kind), seq)
        await connection.execute(_SAVE, *key, data, anchor)
        return StoredSnapshot(
            thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor
        )

    async def snapshot(
        self, connection: PostgresConnection, thread_id: str, kind: str, at: Cursor | None
    ) -> StoredSnapshot | None:
        bounds = await self._pages.load_bounds(connection, None)
        top = bounds.head if at is None else check_cursor(at, bounds)
        key = (self._journal, self._keys.encode_name(thread_id), self._keys.encode_name(kind), top)
        row = await connection.fetchrow(_NEWEST, *key)
        if row is None:
            return None
        return StoredSnapshot(
            thread_id=thread_id,
            kind=kind,
            cursor=Cursor(bounds.epoch, row["seq"]),
            data=row["data"],
            anchor=row["anchor"],
        )

    async def chain_point(self, connection: PostgresConnection, seq: int) -> ChainPoint:
        """Where the chain stands behind the commit of a seq."""
        ensure_reached(seq, await self._pages.load_bounds(connection, None))
        return await self._point(connection, seq)

    async def _point(self, connection: PostgresConnection, seq: int) -> ChainPoint:
        row = await connection.fetchrow(_HOLDER, self._journal, seq)
        if row is not None and row["first"] <= seq:
            return find_chain_point(decode_chunk(row), seq)
        base = require_row(
            await connection.fetchrow(
                "SELECT base, base_hash FROM factwire.journal WHERE id = $1", self._journal
            )
        )
        return ChainPoint(base["base"], bytes(base["base_hash"]))


_CHUNKS: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk WHERE journal = $1 AND last > $2 ORDER BY last LIMIT 16
"""  # noqa: S608
_RECORDS: Final = """
SELECT after, prev, hash, body FROM factwire.record WHERE journal = $1 ORDER BY number
"""

_ANCHORS: Final = "SELECT seq, anchor FROM factwire.snapshot WHERE journal = $1"


async def verify_journal(connection: PostgresConnection, journal: int) -> VerifyReport:
    """What a walk over the journal finds."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        place = require_row(
            await connection.fetchrow(
                "SELECT head, hash, base, base_hash FROM factwire.journal WHERE id = $1", journal
            )
        )
        records = [decode_record(row) for row in await connection.fetch(_RECORDS, journal)]
        # Threads and kinds are kept as keys of their names, which do not lead back to them.
        rows = await connection.fetch(_ANCHORS, journal)
        anchors = [SnapshotAnchor(row["seq"], row["anchor"], "a snapshot") for row in rows]
        walk = ChainVerifier(place["base"], place["base_hash"], records, anchors)
        position = int(place["base"])
        while rows := await connection.fetch(_CHUNKS, journal, position):
            position = int(rows[-1]["last"])
            if not await asyncio.to_thread(_verify_rows, walk, rows, records):
                break
        walk.finish(place["head"], place["hash"])
        return walk.report()


def _verify_rows(walk: ChainVerifier, rows: Sequence[PostgresRow], records: list[Record]) -> bool:
    """Walk some rows, and the records that stand after them, which are then taken off the list."""
    for row in rows:
        try:
            walk.take_chunk(decode_unchecked_chunk(row))
        except JournalCorrupt as error:
            walk.fail(error.reason, row["last"])
        while records and records[0].after <= row["last"]:
            walk.take_record(records.pop(0))
    return walk.damage is None
