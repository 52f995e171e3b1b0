"""Threads and snapshots, read from their tables."""

from typing import Final

from factwire.journal.catalogue import Thread, ThreadPage, ThreadStatus, page_of
from factwire.journal.chain_point import ChainPoint, ensure_reached, point_in
from factwire.journal.cursor import Cursor
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.pages import Pages, found
from factwire.journal.postgres.rows import CHUNK_COLUMNS, chunk_of, thread_of_row
from factwire.journal.protocol import Snapshot
from factwire.journal.resume import check_cursor, page_start

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


class Catalogue:
    """What one journal says of its threads."""

    def __init__(self, journal: int, pages: Pages, keys: Keys) -> None:
        self._journal = journal
        self._pages = pages
        self._keys = keys

    async def threads(
        self,
        connection: Connection,
        *,
        project: str | None,
        status: ThreadStatus | None,
        after: Cursor | str | None,
        limit: int,
    ) -> ThreadPage:
        bounds = await self._pages.bounds(connection, None)
        below = page_start(after, bounds)
        key = None if project is None else self._keys.name(project)
        chosen = (self._journal, below, key, status, limit + 1)
        rows = await connection.fetch(_THREADS, *chosen)
        return page_of([thread_of_row(row).row() for row in rows], limit, bounds.epoch)

    async def thread(self, connection: Connection, thread_id: str) -> Thread | None:
        row = await connection.fetchrow(
            "SELECT floor, record FROM factwire.thread WHERE key = $1", self._keys.name(thread_id)
        )
        return None if row is None else thread_of_row(row).row()

    async def save_snapshot(
        self, connection: Connection, thread_id: str, cursor: Cursor, data: bytes, kind: str
    ) -> Snapshot:
        seq = check_cursor(cursor, await self._pages.bounds(connection, None))
        anchor = (await self._point(connection, seq)).hash
        key = (self._journal, self._keys.name(thread_id), self._keys.name(kind), seq)
        await connection.execute(_SAVE, *key, data, anchor)
        return Snapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)

    async def snapshot(
        self, connection: Connection, thread_id: str, kind: str, at: Cursor | None
    ) -> Snapshot | None:
        bounds = await self._pages.bounds(connection, None)
        top = bounds.head if at is None else check_cursor(at, bounds)
        key = (self._journal, self._keys.name(thread_id), self._keys.name(kind), top)
        row = await connection.fetchrow(_NEWEST, *key)
        if row is None:
            return None
        return Snapshot(
            thread_id=thread_id,
            kind=kind,
            cursor=Cursor(bounds.epoch, row["seq"]),
            data=row["data"],
            anchor=row["anchor"],
        )

    async def chain_point(self, connection: Connection, seq: int) -> ChainPoint:
        """Where the chain stands behind the commit of a seq."""
        ensure_reached(seq, await self._pages.bounds(connection, None))
        return await self._point(connection, seq)

    async def _point(self, connection: Connection, seq: int) -> ChainPoint:
        row = await connection.fetchrow(_HOLDER, self._journal, seq)
        if row is not None and row["first"] <= seq:
            return point_in(chunk_of(row), seq)
        base = found(
            await connection.fetchrow(
                "SELECT base, base_hash FROM factwire.journal WHERE id = $1", self._journal
            )
        )
        return ChainPoint(base["base"], bytes(base["base_hash"]))
