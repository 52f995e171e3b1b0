"""Whose a row is. Two threads may use one id, and neither may change the row of the other.

The first thread that uses an id has it as it is; the same id of another thread stands behind that
thread's own and a tilde. What a fact says counts for rows of its own thread alone.
"""

from typing import TypeVar

from factwire.edge.records.rows import ThreadRow
from factwire.edge.records.table import Table

R = TypeVar("R", bound=ThreadRow)


def key_of(table: Table[R], thread_id: str | None, bare: str) -> str:
    """The id under which a thread's own row is kept."""
    own = f"{thread_id}~{bare}"
    if own in table.rows:
        return own
    row = table.get(bare)
    return bare if row is None or row.thread_id == thread_id else own


def row_of(table: Table[R], thread_id: str | None, bare: str | None) -> R | None:
    """A thread's own row."""
    return None if bare is None else table.get(key_of(table, thread_id, bare))


def bare_id(row: ThreadRow, key: str) -> str:
    """The id that facts have, of a row that is kept under this one."""
    return key.removeprefix(f"{row.thread_id}~")
