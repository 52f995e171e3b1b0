"""Walking the whole chain in the database, from one state of it, while writers go on."""

import asyncio
from collections.abc import Sequence
from typing import Final

from factwire.journal.chain import Record
from factwire.journal.errors import JournalCorrupt
from factwire.journal.postgres.driver import Connection, Row
from factwire.journal.postgres.pages import found
from factwire.journal.postgres.rows import CHUNK_COLUMNS, record_of_row, unchecked_chunk
from factwire.journal.protocol import VerifyReport
from factwire.journal.walk import Anchor, Walk

_CHUNKS: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk WHERE journal = $1 AND last > $2 ORDER BY last LIMIT 16
"""  # noqa: S608
_RECORDS: Final = """
SELECT after, prev, hash, body FROM factwire.record WHERE journal = $1 ORDER BY number
"""

_ANCHORS: Final = "SELECT seq, anchor FROM factwire.snapshot WHERE journal = $1"


async def verify_journal(connection: Connection, journal: int) -> VerifyReport:
    """What a walk over the journal finds."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        place = found(
            await connection.fetchrow(
                "SELECT head, hash, base, base_hash FROM factwire.journal WHERE id = $1", journal
            )
        )
        records = [record_of_row(row) for row in await connection.fetch(_RECORDS, journal)]
        # Threads and kinds are kept as keys of their names, which do not lead back to them.
        rows = await connection.fetch(_ANCHORS, journal)
        anchors = [Anchor(row["seq"], row["anchor"], "a snapshot") for row in rows]
        walk = Walk(place["base"], place["base_hash"], records, anchors)
        position = int(place["base"])
        while rows := await connection.fetch(_CHUNKS, journal, position):
            position = int(rows[-1]["last"])
            if not await asyncio.to_thread(_walk_rows, walk, rows, records):
                break
        walk.end(place["head"], place["hash"])
        return walk.report()


def _walk_rows(walk: Walk, rows: Sequence[Row], records: list[Record]) -> bool:
    """Walk some rows, and the records that stand after them, which are then taken off the list."""
    for row in rows:
        try:
            walk.chunk(unchecked_chunk(row))
        except JournalCorrupt as error:
            walk.fail(error.reason, row["last"])
        while records and records[0].after <= row["last"]:
            walk.record(records.pop(0))
    return walk.damage is None
