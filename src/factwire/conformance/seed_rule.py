"""A rule of the contracts that Factwire grew from, and the requirements by which it is kept.

Rules are counted as their sources state them, so that none is forgotten; behaviour is claimed and
tested by requirement. One that says nothing to Factwire has a reason instead, and one that does
not wholly hold yet says what is lacking.
"""

from collections.abc import Iterable

import msgspec


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`covered_by` are ids of requirements; `aside` is why a rule does not apply here; `gap` is
    what of it does not hold yet.
    """

    id: str
    source: str
    text: str
    covered_by: tuple[str, ...] = ()
    aside: str | None = None
    gap: str | None = None


class Row(msgspec.Struct, frozen=True):
    """One rule before it has a number: its words, and what keeps it."""

    text: str
    covered_by: str = ""
    aside: str | None = None
    gap: str | None = None


def aside(text: str, reason: str) -> Row:
    """A rule that says nothing to Factwire, and why."""
    return Row(text, aside=reason)


def lacking(text: str, covered_by: str, gap: str) -> Row:
    """A rule that is kept but for something."""
    return Row(text, covered_by, gap=gap)


def rules(prefix: str, source: str, rows: Iterable[Row | tuple[str, str]]) -> tuple[Rule, ...]:
    """The rules of one section, numbered in its order; new ones go to the end."""
    return tuple(
        Rule(
            id=f"{prefix}-{number:02}",
            source=source,
            text=row.text,
            covered_by=tuple(row.covered_by.split()),
            aside=row.aside,
            gap=row.gap,
        )
        for number, row in enumerate(map(_row, rows), 1)
    )


def _row(row: Row | tuple[str, str]) -> Row:
    return row if isinstance(row, Row) else Row(*row)
