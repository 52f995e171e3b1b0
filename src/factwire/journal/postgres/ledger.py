"""What a writer must look up before it may admit a batch: ids that are known, and threads."""

from collections.abc import Iterable, Mapping
from typing import Final

from factwire.journal.admission import Entry, Known
from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chunk import Chunk, decode_line
from factwire.journal.errors import JournalCorrupt
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.rows import CHUNK_COLUMNS, chunk_of, thread_of_row

_SEQS: Final = "SELECT key, seq FROM factwire.fact WHERE key = ANY($1::bytea[])"
_THREADS: Final = "SELECT floor, record FROM factwire.thread WHERE key = ANY($1::bytea[])"
_REMOVED: Final = (
    "SELECT seq, sequence, digest FROM factwire.removed"
    " WHERE journal = $1 AND seq = ANY($2::bigint[])"
)
_HOLDERS: Final = f"""
SELECT DISTINCT ON (chunk.last) {", ".join("chunk." + name for name in CHUNK_COLUMNS.split(", "))}
FROM unnest($2::bigint[]) AS wanted (seq) CROSS JOIN LATERAL (
    SELECT * FROM factwire.chunk WHERE journal = $1 AND last >= wanted.seq ORDER BY last LIMIT 1
) AS chunk ORDER BY chunk.last
"""  # noqa: S608


def touched_threads(batches: Iterable[Iterable[Entry]]) -> set[str]:
    """Every thread that facts of these batches belong to."""
    return {entry.thread for batch in batches for entry in batch if entry.thread is not None}


class Ledger:
    """Reads what is stored about ids and threads of one journal."""

    def __init__(self, journal: int, keys: Keys) -> None:
        self._journal = journal
        self._keys = keys

    async def threads(
        self, connection: Connection, names: Iterable[str]
    ) -> dict[str, ThreadRecord | None]:
        """The record of each thread, None for one that is new."""
        found: dict[str, ThreadRecord | None] = dict.fromkeys(names)
        if found:
            rows = await connection.fetch(_THREADS, [self._keys.name(name) for name in found])
            for row in rows:
                record = thread_of_row(row)
                found[record.thread_id] = record
        return found

    async def seqs(self, connection: Connection, fact_ids: Iterable[str]) -> dict[str, int]:
        """The seq of each id that was ever appended."""
        named = {self._keys.fact(fact_id): fact_id for fact_id in fact_ids}
        rows = await connection.fetch(_SEQS, list(named))
        return {named[row["key"]]: row["seq"] for row in rows}

    async def known(self, connection: Connection, fact_ids: Iterable[str]) -> dict[str, Known]:
        """What the journal has, or had, under each of these ids."""
        seqs = await self.seqs(connection, fact_ids)
        if not seqs:
            return {}
        places = sorted(seqs.values())
        gone = await connection.fetch(_REMOVED, self._journal, places)
        at = {row["seq"]: Known(row["seq"], row["sequence"], digest=row["digest"]) for row in gone}
        rest = [seq for seq in places if seq not in at]
        if rest:
            rows = await connection.fetch(_HOLDERS, self._journal, rest)
            at.update(_lines_at((chunk_of(row) for row in rows), set(rest)))
        return _by_id(seqs, at)


def _lines_at(chunks: Iterable[Chunk], wanted: set[int]) -> dict[int, Known]:
    found: dict[int, Known] = {}
    for chunk in chunks:
        for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
            if seq in wanted:
                found[seq] = Known(seq, decode_line(line).sequence, line)
    return found


def _by_id(seqs: Mapping[str, int], at: Mapping[int, Known]) -> dict[str, Known]:
    missing = [seq for seq in seqs.values() if seq not in at]
    if missing:
        raise JournalCorrupt("a fact is neither stored nor noted as removed", first=missing[0])
    return {fact_id: at[seq] for fact_id, seq in seqs.items()}
