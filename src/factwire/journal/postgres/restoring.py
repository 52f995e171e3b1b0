"""A whole journal written into an empty one, in one transaction, and what of one only it knows."""

from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import GENESIS
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalUnavailable
from factwire.journal.filter import CLASS_MARK
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.pages import found
from factwire.journal.postgres.removal import NOTE, removed_columns
from factwire.journal.postgres.rows import chunk_size, chunk_values, record_bytes, thread_of_row
from factwire.journal.postgres.session import Sessions
from factwire.journal.removed import Removed
from factwire.journal.restore import Piece, Restoration, ensure_empty, ensure_new, pieces_of

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
_RECORD: Final = (
    "INSERT INTO factwire.record (journal, after, prev, hash, body) VALUES ($1, $2, $3, $4, $5)"
)
_THREADS: Final = """
INSERT INTO factwire.thread (journal, key, last_seq, project, status, opened, floor, record)
SELECT $1, * FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::text[], $6::bigint[],
    $7::bigint[], $8::bytea[])
"""
_END: Final = """
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


class Tally(msgspec.Struct):
    """What has been restored so far."""

    head: int = 0
    hash: bytes = GENESIS
    facts: int = 0
    bytes: int = 0
    threads: int = 0
    gap: int = 0


class Restoring:
    """Whole journals, in and out of the one with this number."""

    def __init__(self, journal: int, keys: Keys, sessions: Sessions) -> None:
        self._journal = journal
        self._keys = keys
        self._sessions = sessions

    async def restore(self, given: Restoration) -> Cursor:
        """Write what is given, or nothing of it."""
        begun = False

        async def write(connection: Connection) -> Cursor:
            nonlocal begun
            # What is given can be read once, so that nothing can be tried again.
            if begun:
                raise JournalUnavailable("the connection was lost during a restore; begin anew")
            begun = True
            async with connection.transaction():
                return await self._write(connection, given)

        return await self._sessions.run(write)

    async def removed(self) -> AsyncIterator[Removed]:
        """What is kept of each removed fact whose id is known, in order."""
        after = 0
        while rows := await self._rows(_REMOVED_AFTER, after):
            for row in rows:
                name = row["id"].decode("utf-8", "surrogatepass")
                yield Removed(row["seq"], name, row["sequence"], row["digest"])
            after = rows[-1]["seq"]

    async def records(self) -> AsyncIterator[ThreadRecord]:
        """Everything that is kept of each thread."""
        after = b""
        while rows := await self._rows(_THREADS_AFTER, after):
            for row in rows:
                yield thread_of_row(row)
            after = rows[-1]["key"]

    async def _rows(self, query: str, after: object) -> list[Any]:
        given = (self._journal, after, ROWS)
        return list(await self._sessions.run(lambda link: link.fetch(query, *given)))

    async def _write(self, connection: Connection, given: Restoration) -> Cursor:
        place = found(await connection.fetchrow(_LOCK, self._journal))
        ensure_empty(place["head"])
        tally = Tally()
        for piece in pieces_of(given):
            await self._piece(connection, piece, tally)
        threads = iter(given.threads)
        while records := list(islice(threads, ROWS)):
            await self._threads(connection, records, tally)
        ends = (tally.head, tally.hash, given.floor, GENESIS, tally.gap)
        figures = (tally.facts, tally.bytes, tally.threads)
        await connection.execute(_END, self._journal, *ends, *figures)
        return Cursor(place["epoch"], tally.head)

    async def _piece(self, connection: Connection, piece: Piece, tally: Tally) -> None:
        named = {self._keys.fact(fact_id): fact_id for fact_id in piece.ids()}
        taken = await connection.fetch(_TAKEN, list(named))
        ensure_new(named[row["key"]] for row in taken)
        await connection.execute(_IDS, list(named), list(piece.ids().values()))
        await connection.execute(NOTE, self._journal, *removed_columns(piece.removed))
        if piece.chunk is not None:
            chunk = piece.chunk
            values = (*chunk_values(chunk), chunk.facts, chunk_size(chunk))
            await connection.execute(_CHUNK, self._journal, *values)
            names = chunk.positions()
            postings = list({self._keys.posting(name) for name in names})
            await connection.execute(_POSTINGS, chunk.last, postings)
            classes = [_bytes(name) for name in names if name.startswith(CLASS_MARK)]
            await connection.execute(_CLASSES, self._journal, classes)
            tally.facts += chunk.facts
            tally.bytes += chunk_size(chunk)
        for record in piece.records:
            values = (record.after, record.prev, record.hash, record.body)
            await connection.execute(_RECORD, self._journal, *values)
        tally.head, tally.hash = piece.last, piece.end

    async def _threads(
        self, connection: Connection, records: list[ThreadRecord], tally: Tally
    ) -> None:
        name = self._keys.name
        await connection.execute(
            _THREADS,
            self._journal,
            [name(each.thread_id) for each in records],
            [each.last_seq for each in records],
            [each.project_id and name(each.project_id) for each in records],
            [each.status for each in records],
            [min(each.open.values(), default=None) for each in records],
            [each.floor for each in records],
            [record_bytes(each) for each in records],
        )
        tally.threads += len(records)
        tally.gap = max(tally.gap, *(each.floor for each in records))


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
