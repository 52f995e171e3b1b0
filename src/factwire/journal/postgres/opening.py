"""Opening a journal: a server that keeps its word, the newest tables, and the journal's own row."""

from typing import Final

from factwire.journal.chain import GENESIS
from factwire.journal.cursor import new_epoch
from factwire.journal.errors import JournalUrlError
from factwire.journal.postgres.driver import Connection, connect
from factwire.journal.postgres.lineage import server_lineage
from factwire.journal.postgres.schema import migrate
from factwire.journal.postgres.settings import STALLED, Settings

_DURABLE: Final = """
SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit
"""
_WAITS: Final = frozenset({"on", "remote_apply"})
_FIND: Final = "SELECT id FROM factwire.journal WHERE name = $1"
_CREATE: Final = """
INSERT INTO factwire.journal (name, epoch, lineage, hash, base_hash) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (name) DO NOTHING
"""


async def open_connection(settings: Settings) -> Connection:
    """A connection whose commits are durable when they return."""
    connection = await connect(settings.dsn, within=settings.patience, settings=_session(settings))
    try:
        await _ensure_durable(connection, settings)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def open_journal_row(connection: Connection, name: str) -> int:
    """The number of the journal in its database; creates what is not there yet."""
    await migrate(connection)
    found = await connection.fetchval(_FIND, name)
    if found is not None:
        return int(found)
    lineage = await server_lineage(connection)
    await connection.execute(_CREATE, name, new_epoch(), lineage, GENESIS)
    return int(await connection.fetchval(_FIND, name))


async def _ensure_durable(connection: Connection, settings: Settings) -> None:
    row = await connection.fetchrow(_DURABLE)
    if row is None or not settings.durable:
        return
    for name in ("fsync", "full_page_writes"):
        if row[name] != "on":
            message = f"{settings.shown}: the server runs with {name}=off, so that a crash can lose"
            remedy = f"turn {name} on, or add durable=no to the URL and lose the promise"
            raise JournalUrlError(f"{message} acknowledged facts; {remedy}")
    if row["synchronous_commit"] not in _WAITS:
        await connection.execute("SET synchronous_commit = on")


def _session(settings: Settings) -> dict[str, str]:
    """Every query here walks an index; a planner without statistics must not think otherwise."""
    return {
        "application_name": "factwire",
        "search_path": "pg_catalog",
        "lock_timeout": f"{settings.patience * 1000:.0f}",
        "idle_in_transaction_session_timeout": str(STALLED),
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "jit": "off",
    }
