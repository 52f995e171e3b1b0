"""Lines: how one thing of a state is put into words.

Nothing that a fact said reaches a line unless it has been made harmless.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec
from rich.text import Text

from factwire.cli.terminal_text import harmless

DIM: Final = "bright_black"
LINE: Final = 200
NAME: Final = 40
"""Characters of one saying, and of one name or word."""

_MARKS: Final = {
    **dict.fromkeys(("completed", "output-available", "applied", "accepted"), ("✓", "green")),
    **dict.fromkeys(("running", "progress", "spawned", "connected"), ("▸", "cyan")),
    **dict.fromkeys(("input-streaming", "input-available"), ("▸", "cyan")),
    **dict.fromkeys(("pending", "info", "idle"), ("·", "default")),
    **dict.fromkeys(("blocked", "waiting"), ("■", "yellow")),
    **dict.fromkeys(("failed", "output-error", "rejected", "error"), ("✗", "red")),
    **dict.fromkeys(("canceled", "cancelled", "closed"), ("-", DIM)),
    "warning": ("!", "yellow"),
}
"""Status → its mark and colour; any other status is shown as its word."""

Thing = TypeVar("Thing")


class Section(NamedTuple):
    """Lines under a title; `left_out` counts other things that are not among them."""

    title: str
    lines: list[Text]
    left_out: int = 0


def mark_of(status: str) -> Text:
    """A status as a mark of one character, or as its word."""
    mark, style = _MARKS.get(status, ("", "default"))
    return Text(mark or harmless(status, NAME), style=style, end="")


def described(status: str, name: str, *details: object) -> Text:
    """One line: a mark, what it is about, and whatever is known of it."""
    line = Text()
    line.append_text(mark_of(status))
    line.append(f" {harmless(name, 2 * NAME)}")
    for detail in details:
        if detail:
            line.append(f"  {harmless(str(detail), LINE)}", style=DIM)
    return line


def newest(
    title: str, things: dict[str, Thing], last: int, line: Callable[[str, Thing], Text]
) -> Section:
    """A line for each of the newest things, the oldest of them first."""
    keys = list(islice(reversed(things), last))[::-1]
    return Section(title, [line(key, things[key]) for key in keys], len(things) - len(keys))


def shown(value: Any) -> str:
    """A value of a fact as text: a list of words as a command is typed, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(map(shown, cast("Sequence[Any]", value)))
    return msgspec.json.encode(value).decode()
