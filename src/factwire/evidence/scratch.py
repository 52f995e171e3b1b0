"""A scratch file for what must be known of a whole run before any of it can be written down.

It is a private database without a name, which the system removes with the process; a run of any
length costs a few megabytes of memory.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self, cast

import apsw

from factwire.journal.sqlite.database import Database

_CACHE_KIB: Final = 4_096

Merge = Callable[[bytes, bytes], bytes]
"""The row that is known and the row that comes → the row to keep."""


class Scratch:
    """Rows by table, in the order in which each was first put."""

    def __init__(self) -> None:
        self._database = cast("Database", apsw.Connection(""))
        self._database.pragma("journal_mode", "off")
        self._database.pragma("synchronous", "off")
        self._database.pragma("cache_size", -_CACHE_KIB)
        self._database.execute("BEGIN")
        self._tables: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close(True)  # noqa: FBT003

    def append(self, table: str, row: bytes) -> None:
        """Put a row that no other one replaces."""
        self._database.execute(f"INSERT INTO {self._table(table)}(body) VALUES(?)", (row,))

    def note(self, table: str, key: str, row: bytes) -> None:
        """Put a row unless its key is known."""
        name = self._table(table)
        self._database.execute(f"INSERT OR IGNORE INTO {name}(key, body) VALUES(?, ?)", (key, row))

    def put(self, table: str, key: str, row: bytes, merge: Merge | None = None) -> None:
        """Put a row under a key; what is known there is merged with it, or gives way."""
        name = self._table(table)
        known = self._database.execute(f"SELECT body FROM {name} WHERE key = ?", (key,)).get  # noqa: S608
        if known is None:
            self._database.execute(f"INSERT INTO {name}(key, body) VALUES(?, ?)", (key, row))
        else:
            row = row if merge is None else merge(known, row)
            self._database.execute(f"UPDATE {name} SET body = ? WHERE key = ?", (row, key))  # noqa: S608

    def rows(self, table: str, limit: int | None = None) -> Iterator[bytes]:
        sql = f"SELECT body FROM {self._table(table)} ORDER BY id LIMIT ?"  # noqa: S608
        for (body,) in self._database.execute(sql, (-1 if limit is None else limit,)):
            yield body

    def count(self, table: str) -> int:
        found: int = self._database.execute(f"SELECT count(*) FROM {self._table(table)}").get  # noqa: S608
        return found

    def _table(self, table: str) -> str:
        name = self._tables.get(table)
        if name is None:
            name = self._tables[table] = f"t{len(self._tables)}"
            columns = "id INTEGER PRIMARY KEY, key TEXT UNIQUE, body BLOB NOT NULL"
            self._database.execute(f"CREATE TABLE {name}({columns})")
        return name
