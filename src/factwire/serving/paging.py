"""Lists that are asked for and answered the same everywhere: a page at a time, newest first.

A row stands at the place of the fact that began it. A page begins after a place, not after a
count, so that what is added meanwhile shifts nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Annotated, Generic, Protocol, TypeVar

from litestar.params import QueryParameter

from factwire.facts.resources import Page
from factwire.journal import Cursor
from factwire.serving.asgi import Problem
from factwire.serving.limits import LIST_ITEMS, LIST_ITEMS_MOST


class Placed(Protocol):
    """Whatever stands at a place in the journal."""

    seq: int


R = TypeVar("R", bound=Placed)


class RowTable(Generic[R]):
    """Rows of one kind."""

    def __init__(self, rows: dict[str, R] | None = None) -> None:
        self.rows: dict[str, R] = rows or {}
        by_place = sorted((row.seq, key) for key, row in self.rows.items())
        self._places = [place for place, _ in by_place]
        self._keys = [key for _, key in by_place]

    def get(self, key: str) -> R | None:
        return self.rows.get(key)

    def add(self, key: str, row: R) -> R:
        """Take in a row; most are newer than all others."""
        at = bisect_right(self._places, row.seq)
        self.rows[key] = row
        self._places.insert(at, row.seq)
        self._keys.insert(at, key)
        return row

    def remove(self, key: str) -> None:
        """Take a row out; its id is free again."""
        row = self.rows.pop(key, None)
        if row is None:
            return
        at = bisect_left(self._places, row.seq)
        while self._keys[at] != key:
            at += 1
        del self._places[at], self._keys[at]

    def newest(self, before: int | None = None) -> Iterator[R]:
        """Rows from the newest to the oldest, of those that began before a place."""
        end = len(self._keys) if before is None else bisect_left(self._places, before)
        for at in range(end - 1, -1, -1):
            yield self.rows[self._keys[at]]


def select_rows(
    table: RowTable[R], wanted: Callable[[R], bool], before: int | None, limit: int
) -> tuple[list[R], int | None]:
    """At most `limit` rows that are wanted, and the place before which the next ones stand."""
    found: list[R] = []
    for row in table.newest(before):
        if not wanted(row):
            continue
        if len(found) == limit:
            return found, found[-1].seq
        found.append(row)
    return found, None


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
    wanted: Callable[[R], bool] = lambda _: True,
) -> Page[R]:
    """One page of a table that is true as of a cursor."""
    rows, before = select_rows(table, wanted, _parse_place(after), limit)
    return Page(
        items=rows,
        as_of=str(as_of),
        next=None if before is None else f"before-{before}",
    )


def _parse_place(after: str | None) -> int | None:
    if after is None:
        return None
    digits = after.removeprefix("before-")
    if digits == after or not (digits.isascii() and digits.isdigit()) or len(digits) > 16:  # noqa: PLR2004
        raise Problem(400, "cursor_invalid", "expected the `next` value of the previous page")
    return int(digits)
