"""Lists that are asked for and answered the same everywhere: a page at a time, newest first.

A row stands at the place of the fact that began it. A page begins after a place, not after a
count, so that what is added meanwhile shifts nothing.
"""

from typing import Annotated, TypeVar

from litestar.params import QueryParameter

from factwire.facts.resources import Page
from factwire.journal import Cursor
from factwire.journal.sqlite.schema import Value
from factwire.serving.asgi import Problem
from factwire.serving.limits import LIST_ITEMS, LIST_ITEMS_MOST
from factwire.serving.row_store import Placed, RowPlace, RowSearch, RowTable

R = TypeVar("R", bound=Placed)

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
