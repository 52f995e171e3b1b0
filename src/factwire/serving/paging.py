"""Lists that are asked for and answered the same everywhere: rows on disk, a page at a time.

A row stands at the place of the fact that began it. A page begins after a place, not after a
count, so that what is added meanwhile shifts nothing. Rows are derived from a journal and saved
with the place they hold for, so nothing is lost with the file: one that is damaged, or belongs to
another journal, is made anew. What was changed since the last `save` is in memory and goes before
what the file has; of the rest, memory has a bounded number of rows that were used last.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from heapq import merge
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import apsw
import msgspec
from litestar.params import QueryParameter

from factwire.facts.resources import Page
from factwire.journal import Cursor
from factwire.journal.sqlite.schema import Database, Value, connect, roll_back
from factwire.serving.asgi import Problem
from factwire.serving.limits import LIST_ITEMS, LIST_ITEMS_MOST, ROWS_IN_MEMORY, ROWS_LOG_BYTES


class Placed(Protocol):
    """Whatever stands at a place in the journal."""

    seq: int


R = TypeVar("R", bound=Placed)
ColumnOf = Callable[[Any], Value]
"""What a column has of a row."""


class RowSearch(msgspec.Struct, frozen=True):
    """A condition that no single column decides: as SQL, and for a row in memory."""

    condition: str
    values: tuple[Value, ...]
    matches: Callable[[Any], bool]


class RowPlace(NamedTuple):
    """Where a row stands; of several rows of one fact, the key decides."""

    seq: int
    key: str


def columns_of(*names: str) -> dict[str, ColumnOf]:
    """Columns that are fields of the row."""
    return {name: attrgetter(name) for name in names}


class RowDatabase:
    """The file, as it was left by whoever had the same `version` and journal, else empty; without
    a path, one in memory.
    """

    def __init__(self, path: Path | None, version: str, epoch: str) -> None:
        self.epoch = epoch
        self._path = path
        self._version = version
        self._tables: list[RowTable[Any]] = []
        try:
            self.connection = self._open()
        except apsw.Error:
            self.remove_file()
            self.connection = self._open()

    def _open(self) -> Database:
        connection = connect(None if self._path is None else str(self._path), vfs=None)
        connection.pragma("synchronous", "normal")
        connection.execute("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value)")
        rows: dict[str, Value] = dict(connection.execute("SELECT name, value FROM meta"))
        if (rows.get("version"), rows.get("epoch")) == (self._version, self.epoch):
            return connection
        if rows:
            connection.close()
            self.remove_file()
            return self._open()
        fresh = (("version", self._version), ("epoch", self.epoch), ("seq", 0))
        connection.executemany("INSERT INTO meta VALUES(?, ?)", fresh)
        return connection

    def remove_file(self) -> None:
        """Have the next start make everything anew."""
        if self._path is not None:
            remove_rows(self._path)

    def read_seq(self) -> int:
        """The place for which the saved rows hold."""
        with self.detect_damage():
            return self.connection.execute("SELECT value FROM meta WHERE name = 'seq'").get

    @property
    def change_count(self) -> int:
        """How many rows were changed since the last `save`."""
        return sum(len(table.changed) for table in self._tables)

    def add_table(self, table: "RowTable[Any]") -> None:
        """Save a table with the others."""
        self._tables.append(table)

    def save(self, seq: int) -> None:
        """Write all that was changed and the place for which it holds, or nothing; raises
        `apsw.Error`.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            for table in self._tables:
                table.write_changes()
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (seq,))
            self.connection.execute("COMMIT")
        except BaseException:
            roll_back(self.connection)
            raise
        for table in self._tables:
            table.forget_changes()

    @property
    def has_long_log(self) -> bool:
        """Whether the write-ahead log is to be copied."""
        if self._path is None:
            return False
        try:
            return self._path.with_name(f"{self._path.name}-wal").stat().st_size > ROWS_LOG_BYTES
        except FileNotFoundError:
            return False

    def copy_log(self) -> None:
        """Copy the write-ahead log into the database; meant for another thread, because it waits
        for the disk.
        """
        with suppress(apsw.Error):
            connection = connect(str(self._path), vfs=None)
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.close()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def detect_damage(self) -> Generator[None]:
        """Raise a `Problem` for what cannot be read, and have the next start make it anew."""
        try:
            yield
        except (apsw.Error, msgspec.DecodeError) as error:
            self.remove_file()
            raise Problem(
                503, "lists_damaged", "the saved lists are damaged; restart to make them anew"
            ) from error


def remove_rows(path: Path) -> None:
    """Remove the file of a database, and those that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


class RowTable(Generic[R]):
    """Rows of one kind, by key and by place. Those with one value in any of its `columns` are
    found without looking at the others.
    """

    def __init__(
        self,
        database: RowDatabase,
        name: str,
        kind: type[R],
        columns: Mapping[str, ColumnOf] | None = None,
    ) -> None:
        self.changed: dict[str, R | None] = {}
        """What the file does not have yet; None for a row that was removed."""
        self._database = database
        self._name = name
        self._columns = columns or {}
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._recent: OrderedDict[str, R] = OrderedDict()
        self._absent: dict[str, None] = {}
        """Keys of no row: the first facts of a thread, and names that a row might have, ask for
        them over and over. Bounded by starting over.
        """
        database.add_table(self)
        with database.detect_damage():
            self._create()

    def _create(self) -> None:
        columns = "".join(f", {column}" for column in self._columns)
        execute = self._database.connection.execute
        execute(
            f"CREATE TABLE IF NOT EXISTS {self._name}("
            f"key TEXT PRIMARY KEY, seq INTEGER NOT NULL{columns}, row BLOB NOT NULL)"
        )
        execute(f"CREATE INDEX IF NOT EXISTS {self._name}_by_seq ON {self._name}(seq)")
        for column in self._columns:
            index = f"{self._name}_by_{column}"
            execute(f"CREATE INDEX IF NOT EXISTS {index} ON {self._name}({column}, seq)")

    def get(self, key: str) -> R | None:
        """A row to read."""
        if key in self.changed:
            return self.changed[key]
        row = self._recent.get(key)
        if row is not None:
            self._recent.move_to_end(key)
            return row
        if key in self._absent:
            return None
        with self._database.detect_damage():
            found = self._database.connection.execute(
                f"SELECT row FROM {self._name} WHERE key = ?",  # noqa: S608 - our own table
                (key,),
            ).get
        if found is not None:
            return self._keep(key, self._decode(found))
        if len(self._absent) >= ROWS_IN_MEMORY:
            self._absent.clear()
        self._absent[key] = None
        return None

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def edit(self, key: str) -> R | None:
        """A row to change in place."""
        row = self.get(key)
        if row is not None:
            self.changed[key] = row
        return row

    def add(self, key: str, row: R) -> R:
        """Take in a row, in the place of any other with its key."""
        self._absent.pop(key, None)
        self.changed[key] = row
        return row

    def remove(self, key: str) -> None:
        """Take a row out; its key is free again."""
        self.changed[key] = None

    def newest(
        self,
        before: RowPlace | None = None,
        search: RowSearch | None = None,
        **wanted: Value | None,
    ) -> Iterator[R]:
        """Rows from the newest to the oldest: those that began before a place, that a search finds,
        and that have these values in these columns; None means any.
        """
        for _, row in self.newest_by_key(before, search, **wanted):
            yield row

    def newest_by_key(
        self,
        before: RowPlace | None = None,
        search: RowSearch | None = None,
        **wanted: Value | None,
    ) -> Iterator[tuple[RowPlace, R]]:
        """As `newest`, with the place of each row."""
        values = {name: value for name, value in wanted.items() if value is not None}
        changed = sorted(
            (_to_order(row.seq, key), row)
            for key, row in self.changed.items()
            if row is not None
            and (before is None or _to_order(row.seq, key) > _to_order(*before))
            and (search is None or search.matches(row))
            and all(self._columns[name](row) == value for name, value in values.items())
        )
        saved = self._read_saved(before, search, values)
        for (place, key), row in merge(changed, saved, key=itemgetter(0)):
            yield RowPlace(-place, key), row

    def _read_saved(
        self, before: RowPlace | None, search: RowSearch | None, wanted: Mapping[str, Value]
    ) -> Iterator[tuple[tuple[int, str], R]]:
        """Saved rows, a few at a time, because the table may change between two of them."""
        conditions = [f"{name} = ?" for name in wanted]
        values = list(wanted.values())
        if search is not None:
            conditions.append(f"({search.condition})")
            values.extend(search.values)
        while True:
            places = [] if before is None else ["seq <= ? AND (seq < ? OR key > ?)"]
            bounds = () if before is None else (before.seq, before.seq, before.key)
            where = " AND ".join([*conditions, *places]) or "1"
            with self._database.detect_damage():
                rows = list(
                    self._database.connection.execute(
                        f"SELECT seq, key, row FROM {self._name} WHERE {where} "  # noqa: S608
                        "ORDER BY seq DESC, key LIMIT ?",
                        (*values, *bounds, _READ_AHEAD),
                    )
                )
            for seq, key, data in rows:
                if key not in self.changed:
                    yield _to_order(seq, key), self._recent.get(key) or self._decode(data)
            if len(rows) < _READ_AHEAD:
                return
            before = RowPlace(*rows[-1][:2])

    def _decode(self, data: bytes) -> R:
        with self._database.detect_damage():
            return self._decoder.decode(data)

    def count_by(self, column: str) -> dict[Value, int]:
        """How many rows have each value of a column."""
        with self._database.detect_damage():
            rows = self._database.connection.execute(
                f"SELECT {column}, count(*) FROM {self._name} GROUP BY {column}"  # noqa: S608
            )
            counted: dict[Value, int] = dict(rows)
            for key, row in self.changed.items():
                saved = self._database.connection.execute(
                    f"SELECT {column} FROM {self._name} WHERE key = ?",  # noqa: S608
                    (key,),
                )
                for (value,) in saved:
                    counted[value] -= 1
                if row is not None:
                    value = self._columns[column](row)
                    counted[value] = counted.get(value, 0) + 1
        return counted

    def write_changes(self) -> None:
        """Write what was changed, as a part of the transaction of its database."""
        connection = self._database.connection
        removed = [(key,) for key, row in self.changed.items() if row is None]
        connection.executemany(f"DELETE FROM {self._name} WHERE key = ?", removed)  # noqa: S608
        marks = ", ".join("?" * (3 + len(self._columns)))
        connection.executemany(
            f"REPLACE INTO {self._name} VALUES({marks})",
            [
                (
                    key,
                    row.seq,
                    *(column_of(row) for column_of in self._columns.values()),
                    msgspec.msgpack.encode(row),
                )
                for key, row in self.changed.items()
                if row is not None
            ],
        )

    def forget_changes(self) -> None:
        """What was changed is saved."""
        for key, row in self.changed.items():
            if row is None:
                self._recent.pop(key, None)
            else:
                self._keep(key, row)
        self.changed.clear()

    def _keep(self, key: str, row: R) -> R:
        self._recent[key] = row
        self._recent.move_to_end(key)
        if len(self._recent) > ROWS_IN_MEMORY:
            self._recent.popitem(last=False)
        return row


def _to_order(seq: int, key: str) -> tuple[int, str]:
    return -seq, key


_READ_AHEAD: Final = 128


Limit = Annotated[
    int,
    QueryParameter(
        ge=1, le=LIST_ITEMS_MOST, description="The number of rows per page, newest first."
    ),
]
After = Annotated[
    str | None,
    QueryParameter(
        name="cursor",
        description="The `next` value of the previous page; omit it for the first page.",
    ),
]
DEFAULT_LIMIT = LIST_ITEMS


def build_page(
    as_of: Cursor,
    table: RowTable[R],
    after: str | None,
    limit: int,
    search: RowSearch | None = None,
    **wanted: Value | None,
) -> Page[R]:
    """One page of a table that is true as of a cursor; `wanted` as in `RowTable.newest`."""
    rows: list[R] = []
    place: RowPlace | None = None
    for found, row in table.newest_by_key(_parse_place(after), search, **wanted):
        if len(rows) == limit:
            return Page(items=rows, as_of=str(as_of), next=_format_place(place))
        rows.append(row)
        place = found
    return Page(items=rows, as_of=str(as_of))


def _format_place(place: RowPlace | None) -> str | None:
    return None if place is None else f"before-{place.seq}-{place.key}"


def _parse_place(after: str | None) -> RowPlace | None:
    if after is None:
        return None
    before, _, rest = after.partition("-")
    digits, _, key = rest.partition("-")
    if before != "before" or not (digits.isascii() and digits.isdigit()) or len(digits) > 16:  # noqa: PLR2004
        raise Problem(400, "cursor_invalid", "expected the `next` value of the previous page")
    return RowPlace(int(digits), key)
