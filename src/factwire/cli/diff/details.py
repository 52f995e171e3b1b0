"""Details: one aspect's differences in lines.

`-` is what only A has, `+` what only B has, `~` what both have in another way, `↕` what both have
at another place.
"""

from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from factwire.cli.sections.lines import DIM, LINE, NAME, shown
from factwire.cli.terminal_text import counted, harmless
from factwire.evidence.comparison import Change, Difference, TextChange

_LISTED: Final = 30
"""Differences of one aspect of a turn that are listed."""

_TEXT_LINES: Final = 40
"""Lines of one text's diff that are shown."""

_SHORT: Final = 30
"""Characters of a value that fits on one line beside another."""

_A: Final = "red"
_B: Final = "green"
_MARKS: Final = {
    "removed": ("-", _A),
    "added": ("+", _B),
    "changed": ("~", "yellow"),
    "moved": ("↕", "yellow"),
}
_SIDES: Final = {"a": ("- ", _A), "b": ("+ ", _B), "both": ("  ", DIM)}


def details(found: list[Difference]) -> Iterator[Text]:
    """Lines for the differences of one aspect."""
    for difference in found[:_LISTED]:
        yield from _lines(difference)
    if len(found) > _LISTED:
        yield Text(f"{len(found) - _LISTED:,} more; --json has them all", style=DIM)


def _lines(difference: Difference) -> Iterator[Text]:
    mark, style = _MARKS[difference.kind]
    line = Text.assemble((f"{mark} {harmless(difference.subject, 2 * NAME)}", style))
    if difference.kind == "moved":
        line.append(f"  place {difference.at_a} → {difference.at_b}", style=DIM)
    if difference.kind == "changed":
        yield line
        for change in difference.changes:
            yield from _change(change)
        return
    for change in difference.changes:
        value = change.a if difference.kind == "removed" else change.b
        line.append(f"  {harmless(change.field, NAME)}: ", style=DIM)
        line.append(_value(value, 2 * NAME))
    yield line


def _change(change: Change) -> Iterator[Text]:
    field = harmless(change.field, NAME)
    if change.text is not None:
        yield Text(f"  {field}", style=DIM)
        yield from _text(change.text)
        return
    a, b = _value(change.a, LINE), _value(change.b, LINE)
    if len(a) <= _SHORT and len(b) <= _SHORT:
        yield Text.assemble((f"  {field}: ", DIM), (a, _A), " → ", (b, _B))
        return
    yield Text(f"  {field}", style=DIM)
    start, end = _common(a, b)
    yield _marked("a", a, start, end)
    yield _marked("b", b, start, end)


def _text(change: TextChange) -> Iterator[Text]:
    for line in change.lines[:_TEXT_LINES]:
        if line.left_out:
            yield Text(f"    … {counted(line.left_out, 'line')} the same", style=DIM)
        mark, style = _SIDES[line.side]
        yield Text(f"    {mark}{harmless(line.text, LINE)}", style=style)
    left_out = max(0, len(change.lines) - _TEXT_LINES) + change.left_out
    if left_out:
        yield Text(f"    {counted(left_out, 'more line')}; --json has more of them", style=DIM)


def _marked(side: str, text: str, start: int, end: int) -> Text:
    """A value with what is special about it made bold."""
    mark, style = _SIDES[side]
    line = Text(f"    {mark}", style=style)
    line.append(text[:start])
    line.append(text[start : len(text) - end], style="bold")
    return line.append(text[len(text) - end :])


def _common(a: str, b: str) -> tuple[int, int]:
    """How many characters two texts have in common at the start, and then at the end."""
    most = min(len(a), len(b))
    start = next((place for place in range(most) if a[place] != b[place]), most)
    rest = most - start
    end = next((place for place in range(rest) if a[-1 - place] != b[-1 - place]), rest)
    return start, end


def _value(value: Any, limit: int) -> str:
    return "none" if value is None else harmless(shown(value), limit)
