"""Letting other processes know how far the readers of this one have come.

Each process publishes one position, never ahead of its slowest reader. It counts for as long as the
process is connected: a lock of its session says so, which the server drops when the session ends,
so that no clock decides whether a process is alive. Publishing and the last step of a removal
exclude each other, so that a removal sees a reader or the reader sees the removal.
"""

from secrets import randbelow
from typing import Final

from factwire.journal.live import Readers
from factwire.journal.postgres.driver import Connection

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


class Presence:
    """This process among those that have the journal open."""

    def __init__(self, journal: int, readers: Readers) -> None:
        self.process = randbelow(2**31)
        self._journal = journal
        self._readers = readers
        self._published: int | None = None

    async def enter(self, connection: Connection) -> None:
        """Be present for as long as this connection lasts."""
        await connection.execute(
            "SELECT pg_advisory_lock_shared($1, $2)", _ALIVE + self._journal, self.process
        )
        self._published = None
        await self.refresh(connection)

    def covers(self, position: int) -> bool:
        """Whether what is published holds everything past a position already."""
        return self._published is not None and self._published <= position

    async def publish(self, connection: Connection, position: int) -> None:
        """Hold everything past a position."""
        if self._published is None or position < self._published:
            await self._publish(connection, position)

    async def refresh(self, connection: Connection) -> None:
        """Publish how far the slowest reader has come by now."""
        slowest = min(self._readers.positions().values(), default=None)
        if slowest is None:
            if self._published is not None:
                self._published = None
                await connection.execute(_WITHDRAW, self._journal, self.process)
        elif slowest != self._published:
            await self._publish(connection, slowest)

    async def others(self, connection: Connection) -> dict[str, int]:
        """The positions of the other processes that are connected."""
        rows = await connection.fetch(_OTHERS, self._journal, self.process, _ALIVE + self._journal)
        return {f"process-{row['process']}": row["position"] for row in rows}

    async def _publish(self, connection: Connection, position: int) -> None:
        # Set first: a reader that opens meanwhile, further back, must not take the old one as
        # still published.
        self._published = position
        await connection.execute(
            _PUBLISH, self._journal, self.process, position, _REMOVING + self._journal
        )


async def close_gate(connection: Connection, journal: int) -> None:
    """Let nobody publish until this transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, 0)", _REMOVING + journal)


async def remove_alone(connection: Connection, journal: int) -> None:
    """Let no other removal run until this transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, 1)", _REMOVING + journal)
