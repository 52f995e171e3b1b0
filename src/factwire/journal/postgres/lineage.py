"""Telling a journal from an older copy of itself, on every new connection.

Three things mint a new epoch, so that no cursor of the other life matches by accident: another
system identifier (a dump loaded elsewhere), another timeline (a recovery to a point in time, or a
standby that took over and may lack the newest commits), and a journal that no longer has the last
commit this process saw. What cannot be seen from inside, an old copy of the data directory put back
while no process was connected, is for whoever puts it back to say, with `factwire journal import`.
"""

from typing import Final

from factwire.journal.chunk import anchor_in
from factwire.journal.cursor import new_epoch
from factwire.journal.postgres.driver import FORBIDDEN, Connection
from factwire.journal.postgres.rows import CHUNK_COLUMNS, unchecked_chunk

_SERVER: Final = """
SELECT system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
FROM pg_control_system()
"""
_FORK: Final = """
UPDATE factwire.journal SET epoch = $3, lineage = $4
WHERE id = $1 AND epoch = $2 RETURNING epoch
"""
_HOLDER: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk WHERE journal = $1 AND last >= $2 ORDER BY last LIMIT 1
"""  # noqa: S608


async def server_lineage(connection: Connection) -> str:
    """Which server this is, and of which of its lives; empty where the role may not know."""
    try:
        return str(await connection.fetchval(_SERVER))
    except FORBIDDEN:
        return ""


class Seen:
    """The last commit that this process saw, which the journal must always have."""

    def __init__(self, journal: int) -> None:
        self._journal = journal
        self.seq = 0
        self.hash = b""

    def note(self, seq: int, digest: bytes) -> None:
        if seq > self.seq:
            self.seq, self.hash = seq, digest

    async def check(self, connection: Connection) -> None:
        """Mint a new epoch if the journal is not the one that this process has seen."""
        row = await connection.fetchrow(
            "SELECT epoch, lineage, base FROM factwire.journal WHERE id = $1", self._journal
        )
        if row is None:
            return
        lineage = await server_lineage(connection)
        moved = bool(lineage and row["lineage"]) and lineage != row["lineage"]
        if moved or not await self._has_last(connection, row["base"]):
            self.seq, self.hash = 0, b""
            known = lineage or row["lineage"]
            await connection.execute(_FORK, self._journal, row["epoch"], new_epoch(), known)

    async def _has_last(self, connection: Connection, base: int) -> bool:
        # Taken once: commits go on while this one is looked for.
        seq, digest = self.seq, self.hash
        if seq <= base:
            return True
        row = await connection.fetchrow(_HOLDER, self._journal, seq)
        if row is None or row["first"] > seq:
            return False
        chunk = unchecked_chunk(row)
        # A thinned chunk no longer tells its commits apart.
        return chunk.seqs is not None or anchor_in(chunk, seq) == digest
