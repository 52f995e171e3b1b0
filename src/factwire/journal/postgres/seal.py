"""Joining small chunks, so that a journal written one fact at a time reads like one of batches.

A joined chunk still has the hash of each commit in it. Chunks are joined only where the chain runs
straight from one to the next; a record between them, or facts missing from one, keeps them apart.
"""

from collections.abc import Sequence
from typing import Final

from factwire.journal.chunk import Chunk, merged
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.presence import remove_alone
from factwire.journal.postgres.rows import CHUNK_COLUMNS, chunk_of, chunk_size, chunk_values

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
_UNLIST: Final = """
DELETE FROM factwire.posting WHERE key = ANY($1::bigint[]) AND last = ANY($2::bigint[])
"""
_LIST: Final = (
    "INSERT INTO factwire.posting (key, last) SELECT key, $2 FROM unnest($1::bigint[]) AS key"
)
_RESIZE: Final = "UPDATE factwire.journal SET bytes = bytes + $2 WHERE id = $1"


async def seal_chunks(connection: Connection, journal: int, keys: Keys) -> None:
    """Join what can be joined; the newest chunk stays, because a writer may still look for it."""
    position = 0
    while True:
        async with connection.transaction():
            await remove_alone(connection, journal)
            rows = await connection.fetch(_NEXT, journal, position)
            if not rows:
                return
            runs = runs_of([chunk_of(row) for row in rows])
            for run in runs:
                if len(run) > 1:
                    await _join(connection, journal, keys, run)
            position = runs[-1][-1].last


def runs_of(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Chunks in order, grouped by what can become one."""
    runs: list[list[Chunk]] = []
    size = 0
    for chunk in chunks:
        size += len(chunk.data)
        if runs and size <= SEALED_BYTES and _follows(runs[-1][-1], chunk):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
            size = len(chunk.data)
    return runs


def _follows(before: Chunk, chunk: Chunk) -> bool:
    whole = before.seqs is None and chunk.seqs is None
    return whole and before.hash == chunk.prev and before.last + 1 == chunk.first


async def _join(connection: Connection, journal: int, keys: Keys, run: Sequence[Chunk]) -> None:
    whole = merged(run)
    lasts = [chunk.last for chunk in run]
    listed = [keys.posting(name) for name in whole.positions()]
    await connection.execute(_DROP, journal, lasts)
    await connection.execute(_ADD, journal, *chunk_values(whole), whole.facts, chunk_size(whole))
    await connection.execute(_UNLIST, listed, lasts)
    await connection.execute(_LIST, list(set(listed)), whole.last)
    grown = chunk_size(whole) - sum(map(chunk_size, run))
    await connection.execute(_RESIZE, journal, grown)
