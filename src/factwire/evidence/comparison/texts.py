"""Texts: the diff of two texts, line by line.

Lines are aligned with what is new in every run hidden, and shown as they are. Two texts of which
every line differs cost no more than their length; see `alignment` for the bound.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from factwire.evidence.comparison.alignment import Keys, Step, aligned, steps
from factwire.evidence.comparison.comparison import TextChange, TextLine
from factwire.evidence.comparison.limits import CONTEXT_LINES, DIFF_LINES, VALUE_CHARACTERS

Side = Literal["both", "a", "b"]


class Wording(msgspec.Struct, frozen=True):
    """A text as it is, and without what is new in every run."""

    text: str
    hidden: str


def text_change(a: Wording, b: Wording) -> TextChange:
    """What differs between two texts."""
    keys_a, keys_b = a.hidden.split("\n"), b.hidden.split("\n")
    lines_a, lines_b = Keys(keys_a, keys_a), Keys(keys_b, keys_b)
    found = aligned(lines_a, lines_b, lambda i, j: int(keys_a[i] == keys_b[j]))
    walk = list(steps(len(keys_a), len(keys_b), found))
    lines = list(_listed(walk, a.text.split("\n"), b.text.split("\n")))
    return TextChange(
        removed_lines=sum(at_b is None for _, at_b in walk),
        added_lines=sum(at_a is None for at_a, _ in walk),
        lines=lines[:DIFF_LINES],
        left_out=max(0, len(lines) - DIFF_LINES),
    )


def _listed(walk: list[Step], a: Sequence[str], b: Sequence[str]) -> Iterator[TextLine]:
    near, skipped = _near(walk), 0
    for index, (at_a, at_b) in enumerate(walk):
        if not near[index]:
            skipped += 1
            continue
        text = b[at_b] if at_a is None and at_b is not None else a[at_a or 0]
        yield TextLine(side=_side(at_a, at_b), text=text[:VALUE_CHARACTERS], left_out=skipped)
        skipped = 0


def _near(walk: list[Step]) -> list[bool]:
    """Which steps are a difference, or so near to one that they are shown with it."""
    near = [False] * len(walk)
    for index, (at_a, at_b) in enumerate(walk):
        if at_a is None or at_b is None:
            first, last = max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1
            near[first:last] = [True] * len(near[first:last])
    return near


def _side(at_a: int | None, at_b: int | None) -> Side:
    if at_a is None:
        return "b"
    return "a" if at_b is None else "both"
