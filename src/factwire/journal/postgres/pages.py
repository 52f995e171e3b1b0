"""Reading chunks from the server, a bounded page at a time.

Every page comes with the place of the journal in the same statement, so that what it does not have
is known not to have been there. A filter walks its postings; chunks it cannot match are not read.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from factwire.journal.chunk import Chunk
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalUnavailable
from factwire.journal.filter import Filter
from factwire.journal.postgres.driver import Connection, Row
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.rows import CHUNK_COLUMNS, Place, chunk_of
from factwire.journal.postgres.settings import PAGE_BYTES, PAGE_CHUNKS
from factwire.journal.resume import Bounds

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


def _sql(chosen: str) -> str:
    return _PAGE.format(columns=CHUNK_COLUMNS, chosen=chosen)


_PAGE_OF_ALL: Final = _sql(_ALL)
_PAGE_HAVING: Final = _sql(_HAVING)
_PAGE_OF_CLASS: Final = _sql(_OF_CLASS)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks past a position, and where the journal stood."""

    place: Place
    chunks: Sequence[Chunk]


class Pages:
    """Reads of one journal."""

    def __init__(self, journal: int, keys: Keys) -> None:
        self._journal = journal
        self._keys = keys

    async def after(self, connection: Connection, seq: int, wanted: Filter | None) -> Page:
        """The next chunks past `seq`; with a filter, only those that may have facts for it.

        No chunks: there is nothing more up to the place's head.
        """
        given = (self._journal, seq, PAGE_BYTES, PAGE_CHUNKS)
        names = wanted.keys() if wanted else ()
        if wanted is None or not (names or wanted.classes):
            return _page(await connection.fetch(_PAGE_OF_ALL, *given))
        classes = await self._classes(connection, wanted)
        if names:
            first, *rest = (self._keys.posting(name) for name in reversed(names))
            return _page(await connection.fetch(_PAGE_HAVING, *given, first, rest, classes))
        return _page(await connection.fetch(_PAGE_OF_CLASS, *given, classes))

    async def bounds(self, connection: Connection, thread: str | None) -> Bounds:
        """What can be resumed from, in the whole journal or in one thread."""
        key = None if thread is None else self._keys.name(thread)
        row = found(await connection.fetchrow(_BOUNDS, self._journal, key))
        nearest = row["nearest"]
        return Bounds(
            epoch=row["epoch"],
            head=row["head"],
            floor=max(row["floor"], row["gap"]),
            oldest=row["floor"],
            nearest=None if nearest is None else Cursor(row["epoch"], nearest),
        )

    async def _classes(self, connection: Connection, wanted: Filter) -> list[int] | None:
        if not wanted.classes:
            return None
        rows = await connection.fetch(
            "SELECT name FROM factwire.class WHERE journal = $1", self._journal
        )
        known = [row["name"].decode("utf-8", "surrogatepass") for row in rows]
        return [self._keys.posting(name) for name in wanted.class_keys(known)]


def found(row: Row | None) -> Row:
    """The row of the journal, which is there as long as the journal is."""
    if row is None:
        raise JournalUnavailable("the journal is no longer in the database")
    return row


def _page(rows: Sequence[Row]) -> Page:
    top = found(rows[0] if rows else None)
    place = Place(epoch=top["epoch"], head=top["head"], hash=top["head_hash"], floor=top["floor"])
    return Page(place=place, chunks=[chunk_of(row) for row in rows if row["last"] is not None])
