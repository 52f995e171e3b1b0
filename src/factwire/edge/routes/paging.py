"""Paging: how lists are asked for and answered, the same everywhere."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from litestar.params import QueryParameter

from factwire.edge.limits import LIST_ITEMS, LIST_ITEMS_MOST
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records import Page, Table, rows_of
from factwire.edge.records.rows import Row

R = TypeVar("R", bound=Row)

Limit = Annotated[
    int, QueryParameter(ge=1, le=LIST_ITEMS_MOST, description="Rows of one page, newest first.")
]
After = Annotated[
    str | None,
    QueryParameter(name="cursor", description="`next` of the page before; absent for the first."),
]
DEFAULT_LIMIT = LIST_ITEMS


def page(
    machine: Machine,
    table: Table[R],
    after: str | None,
    limit: int,
    wanted: Callable[[R], bool] = lambda _: True,
) -> Page[R]:
    """One page of a table."""
    rows, before = rows_of(table, wanted, _place(after), limit)
    return Page(
        items=rows,
        as_of=str(machine.cursor),
        next=None if before is None else f"before-{before}",
    )


def _place(after: str | None) -> int | None:
    if after is None:
        return None
    digits = after.removeprefix("before-")
    if digits == after or not (digits.isascii() and digits.isdigit()) or len(digits) > 16:  # noqa: PLR2004
        raise Problem(400, "cursor_invalid", "expected `next` of the page before, as it was given")
    return int(digits)
