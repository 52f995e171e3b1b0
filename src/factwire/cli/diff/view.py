"""A comparison for a person: which turns differ, at a glance, and then how.

A line for each turn comes first, then the details of those that differ. Everything that a fact
said is made harmless; what is too much for a screen is counted, and `--json` has it all.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from factwire.cli.diff.details import details
from factwire.cli.diff.figures import figures
from factwire.cli.sections.lines import DIM
from factwire.cli.terminal_text import counted, harmless
from factwire.evidence.comparison import (
    ASPECTS,
    Comparison,
    Difference,
    RunSide,
    TurnComparison,
    TurnSide,
)

_MARKS: Final = {
    "same": ("=", DIM),
    "differs": ("≠", "yellow"),
    "only_a": ("-", "red"),
    "only_b": ("+", "green"),
}
_WORDS: Final = {"only_a": "only in A", "only_b": "only in B"}
_FOLDED: Final = 3
"""Turns in a row that are the same; more of them are one line."""

_WHOLE: Final = ("live", "idle")


def drawn(comparison: Comparison, names: tuple[str, str]) -> RenderableType:
    """The comparison of two runs that a person gave these names."""
    parts: list[RenderableType] = [
        _run("A", names[0], comparison.a),
        _run("B", names[1], comparison.b),
        _verdict(comparison),
        "",
        *_turn_lines(comparison.turns),
    ]
    for turn in comparison.turns:
        if turn.differences:
            parts += ["", *_section(_head(turn), turn.differences)]
    if comparison.outside:
        head = Text("beside all turns", style="bold")
        parts += ["", *_section(head, comparison.outside)]
    return Group(*parts)


def _run(letter: str, name: str, side: RunSide) -> Text:
    line = Text.assemble((f"{letter}  ", "bold"), harmless(name, 80))
    words = [counted(side.turns, "turn"), counted(side.facts, "fact")]
    line.append(f"  {' · '.join(words)}", style=DIM)
    if side.hydration not in _WHOLE:
        line.append(f" · {harmless(side.hydration, 20)}: not all facts are there", style="yellow")
    return line


def _verdict(comparison: Comparison) -> Text:
    if comparison.same:
        words = "same" if len(comparison.aspects) == len(ASPECTS) else "same in what was compared"
        return Text(words, style="bold green")
    changed = [turn for turn in comparison.turns if turn.status != "same"]
    line = Text("different", style="bold yellow")
    if changed:
        line.append(f"  {len(changed):,} of {counted(len(comparison.turns), 'turn')}")
    if comparison.outside:
        line.append("  and something beside them" if changed else "  beside all turns")
    told = figures(comparison.a.figures, comparison.b.figures)
    return line.append(f"  {told}", style=DIM) if told else line


def _turn_lines(turns: list[TurnComparison]) -> Iterator[Text]:
    for same, grouped in groupby(turns, key=lambda turn: turn.status == "same"):
        row = list(grouped)
        if same and len(row) > _FOLDED:
            first, last = _number(row[0]), _number(row[-1])
            yield Text(
                f"= turns {first} to {last}  {counted(len(row), 'turn')} the same", style=DIM
            )
        else:
            yield from map(_turn_line, row)


def _turn_line(turn: TurnComparison) -> Text:
    mark, style = _MARKS[turn.status]
    line = Text.assemble((f"{mark} turn {_number(turn):<7}", style))
    line.append(harmless(_prompt(turn), 60), style=DIM if turn.status == "same" else "")
    if turn.status in _WORDS:
        line.append(f"  {_WORDS[turn.status]}", style=style)
    elif turn.differences:
        line.append(f"  {', '.join(_aspects(turn.differences))}", style=style)
    return line


def _head(turn: TurnComparison) -> Text:
    line = Text.assemble((f"turn {_number(turn)}", "bold"), f"  {harmless(_prompt(turn), 80)}")
    if turn.a is not None and turn.b is not None:
        told = figures(turn.a.figures, turn.b.figures)
        if told:
            line.append(f"  {told}", style=DIM)
    return line


def _section(head: Text, found: list[Difference]) -> Iterator[RenderableType]:
    yield head
    for aspect, grouped in groupby(found, key=lambda each: each.aspect):
        yield Padding.indent(Text(aspect, style="bold cyan"), 2)
        for line in details(list(grouped)):
            yield Padding.indent(line, 4)


def _number(turn: TurnComparison) -> str:
    """The number of a turn, or both where they are not the same: `2↔3`."""
    numbers = [side.number for side in (turn.a, turn.b) if side is not None]
    return "↔".join(map(str, dict.fromkeys(numbers)))


def _prompt(turn: TurnComparison) -> str:
    side = _either(turn)
    text = side.prompt or "(no prompt)"
    return text if side.by is None else f"{side.by}: {text}"


def _either(turn: TurnComparison) -> TurnSide:
    side = turn.a or turn.b
    if side is None:
        raise ValueError("a compared turn is in A or in B")
    return side


def _aspects(found: list[Difference]) -> list[str]:
    return list(dict.fromkeys(each.aspect for each in found))
