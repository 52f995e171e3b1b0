"""`factwire diff`: two runs compared turn by turn.

A side is a file of facts, an evidence pack, standard input or a journal, with `#THREAD` behind it
where it holds several; or just the id of a thread in the journal that the command works on. A line
for each turn comes first, then the details of those that differ: `-` is what only A has, `+` what
only B has, `~` what both have in another way, `↕` what both have at another place. What is too
much for a screen is counted, and `--json` has it all.
"""

import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, cast

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from factwire.cli.recordings import Recording, choose_family, is_journal, open_recording
from factwire.cli.targets import JournalOption, run_work, to_cli_error
from factwire.cli.terminal import (
    DIM,
    DONE,
    ISSUES,
    LINE,
    NAME,
    UNUSABLE,
    CliError,
    count_of,
    print_note,
    terminal_safe,
    to_text,
)
from factwire.evidence.run_account import AccountBuilder, RunAccount
from factwire.evidence.run_comparison import (
    ASPECTS,
    Aspect,
    Change,
    Comparison,
    Difference,
    Figures,
    RunSide,
    TextChange,
    TurnComparison,
    TurnSide,
    narrow_comparison,
)
from factwire.evidence.run_diff import compare
from factwire.journal import JournalError

_HELP: Final = (
    "A file of facts, an evidence pack, - or a journal, with #THREAD if it holds several; or a "
    "thread of --journal."
)

RunAArgument = Annotated[str, typer.Argument(metavar="A", help=_HELP, show_default=False)]
RunBArgument = Annotated[
    str,
    typer.Argument(
        metavar="B", help="The run to compare with, in the same forms.", show_default=False
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help=_HELP, show_default=False)]


class RunSource(NamedTuple):
    """A recording and the thread that is meant, None where it holds but one."""

    where: str
    thread: str | None

    @property
    def how(self) -> str:
        """How a person names one thread of it; a URL is not repeated, it may hold a password."""
        where = "JOURNAL" if is_journal(self.where) else terminal_safe(self.where, 200)
        return f"choose one with {where}#THREAD"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Recording]:
        """The recording. Whatever cannot be read of it ends the command as unusable: 1 is the word
        for runs that were compared and differ.
        """
        try:
            async with open_recording(self.where) as recording:
                yield recording
        except JournalError as error:
            raise CliError(str(to_cli_error(error)), UNUSABLE) from error
        except CliError as error:
            raise CliError(str(error), UNUSABLE) from error


def parse_sources(a: str, b: str, journal: str | None) -> tuple[RunSource, RunSource]:
    """Both sides of a command."""
    if a == b == "-":
        raise CliError("standard input can be one of the two runs, not both")
    return parse_source(a, journal), parse_source(b, journal)


def parse_source(text: str, journal: str | None) -> RunSource:
    """The side that a text names; raises `CliError` where that is nothing."""
    if _exists(text) and "#" not in text:
        return RunSource(text, None)
    where, mark, thread = text.rpartition("#")
    if mark and thread and _exists(where):
        return RunSource(where, thread)
    if _exists(text):
        return RunSource(text, None)
    if "/" in text or "." in text:
        raise CliError(f"file not found: {terminal_safe(text, 200)}")
    return RunSource(_journal_for(text, journal), text)


def _exists(text: str) -> bool:
    return text == "-" or is_journal(text) or Path(text).exists()


def _journal_for(thread: str, journal: str | None) -> str:
    """The journal that a thread is looked for in: the one that is named, else the configured."""
    if journal is not None:
        return journal
    from factwire.cli.command_context import load_context

    url = load_context().configuration.journal
    path = url.removeprefix("sqlite:").partition("?")[0]
    if url.startswith("sqlite:") and not Path(path).is_file():
        name = terminal_safe(thread, 80)
        raise CliError(
            f"{name} is not a file, and there is no journal to look for a thread {name} in"
        )
    return url


def diff(
    a: RunAArgument,
    b: RunBArgument,
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ASPECTS",
            help=("Only these aspects, separated by commas: prompt, answers, tools, cost …"),
        ),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the turn with this number, in both runs."),
    ] = None,
    journal: JournalOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole comparison as one JSON document.")
    ] = False,
) -> None:
    """Show how run B differs from run A: prompts, answers, tools, approvals, files, cost …

    Turns are paired by prompt and order. Ids and times never count as a difference. Exit code 0: no
    differences. 1: they differ. 2: they cannot be compared.
    """
    wanted = DiffRequest(names=(a, b), aspects=parse_aspects(only), turn=turn, as_json=as_json)
    run_work(compare_runs(parse_sources(a, b, journal), wanted))


_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def figures_text(a: Figures, b: Figures) -> str:
    """The figures of both sides, as far as either has any."""
    rows = (
        ("time", duration_text(a.duration_ms), duration_text(b.duration_ms)),
        ("tokens", _count_text(a.total_tokens), _count_text(b.total_tokens)),
        ("cost", cost_text(a.cost_usd), cost_text(b.cost_usd)),
    )
    texts = [f"{name} {pair_text(one, other)}" for name, one, other in rows if one or other]
    return ", ".join(texts)


def pair_text(a: str, b: str) -> str:
    """Both, or one where they are the same."""
    return a if a == b else f"{a or 'unknown'} → {b or 'unknown'}"


def duration_text(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < _SECOND:
        return f"{milliseconds:.0f} ms"
    if milliseconds < _MINUTE:
        return f"{round(milliseconds / _SECOND, 1):g} s"
    if milliseconds < _HOUR:
        return f"{milliseconds // _MINUTE:.0f} min {milliseconds % _MINUTE // _SECOND:.0f} s"
    return f"{milliseconds // _HOUR:.0f} h {milliseconds % _HOUR // _MINUTE:.0f} min"


def cost_text(dollars: float) -> str:
    """Dollars with as many digits as small sums need."""
    return "" if not dollars else f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4g}"


def _count_text(number: int) -> str:
    return f"{number:,}" if number else ""


_LISTED: Final = 30
"""Differences of one aspect of a turn that are listed."""

_TEXT_LINES: Final = 40
"""Lines of one text's diff that are shown."""

_SHORT: Final = 30
"""Characters of a value that fits on one line beside another."""

_A: Final = "red"
_B: Final = "green"
_KIND_MARKS: Final = {
    "removed": ("-", _A),
    "added": ("+", _B),
    "changed": ("~", "yellow"),
    "moved": ("↕", "yellow"),
}
_SIDES: Final = {"a": ("- ", _A), "b": ("+ ", _B), "both": ("  ", DIM)}


def difference_lines(found: list[Difference]) -> Iterator[Text]:
    """Lines for the differences of one aspect."""
    for difference in found[:_LISTED]:
        yield from _lines_of(difference)
    if len(found) > _LISTED:
        yield Text(f"{len(found) - _LISTED:,} more; use --json to see all", style=DIM)


def _lines_of(difference: Difference) -> Iterator[Text]:
    mark, style = _KIND_MARKS[difference.kind]
    line = Text.assemble((f"{mark} {terminal_safe(difference.subject, 2 * NAME)}", style))
    if difference.kind == "moved":
        line.append(f"  place {difference.at_a} → {difference.at_b}", style=DIM)
    if difference.kind == "changed":
        yield line
        for change in difference.changes:
            yield from _change_lines(change)
        return
    for change in difference.changes:
        value = change.a if difference.kind == "removed" else change.b
        line.append(f"  {terminal_safe(change.field, NAME)}: ", style=DIM)
        line.append(_value_text(value, 2 * NAME))
    yield line


def _change_lines(change: Change) -> Iterator[Text]:
    field = terminal_safe(change.field, NAME)
    if change.text is not None:
        yield Text(f"  {field}", style=DIM)
        yield from _text_lines(change.text)
        return
    a, b = _value_text(change.a, LINE), _value_text(change.b, LINE)
    if len(a) <= _SHORT and len(b) <= _SHORT:
        yield Text.assemble((f"  {field}: ", DIM), (a, _A), " → ", (b, _B))
        return
    yield Text(f"  {field}", style=DIM)
    start, end = _common_ends(a, b)
    yield _marked_line("a", a, start, end)
    yield _marked_line("b", b, start, end)


def _text_lines(change: TextChange) -> Iterator[Text]:
    for line in change.lines[:_TEXT_LINES]:
        if line.left_out:
            yield Text(f"    … {count_of(line.left_out, 'line')} the same", style=DIM)
        mark, style = _SIDES[line.side]
        yield Text(f"    {mark}{terminal_safe(line.text, LINE)}", style=style)
    left_out = max(0, len(change.lines) - _TEXT_LINES) + change.left_out
    if left_out:
        yield Text(f"    {count_of(left_out, 'more line')}; use --json to see more", style=DIM)


def _marked_line(side: str, text: str, start: int, end: int) -> Text:
    """A value with what is special about it made bold."""
    mark, style = _SIDES[side]
    line = Text(f"    {mark}", style=style)
    line.append(text[:start])
    line.append(text[start : len(text) - end], style="bold")
    return line.append(text[len(text) - end :])


def _common_ends(a: str, b: str) -> tuple[int, int]:
    """How many characters two texts have in common at the start, and then at the end."""
    most = min(len(a), len(b))
    start = next((place for place in range(most) if a[place] != b[place]), most)
    rest = most - start
    end = next((place for place in range(rest) if a[-1 - place] != b[-1 - place]), rest)
    return start, end


def _value_text(value: Any, limit: int) -> str:
    return "none" if value is None else terminal_safe(to_text(value), limit)


_STATUS_MARKS: Final = {
    "same": ("=", DIM),
    "differs": ("≠", "yellow"),
    "only_a": ("-", "red"),
    "only_b": ("+", "green"),
}
_WORDS: Final = {"only_a": "only in A", "only_b": "only in B"}
_FOLDED: Final = 3
"""Turns in a row that are the same; more of them are one line."""

_WHOLE: Final = ("live", "idle")


def comparison_view(comparison: Comparison, names: tuple[str, str]) -> RenderableType:
    """The comparison of two runs that a person gave these names."""
    parts: list[RenderableType] = [
        _run_line("A", names[0], comparison.a),
        _run_line("B", names[1], comparison.b),
        _verdict_line(comparison),
        "",
        *_turn_lines(comparison.turns),
    ]
    for turn in comparison.turns:
        if turn.differences:
            parts += ["", *_difference_section(_turn_heading(turn), turn.differences)]
    if comparison.outside:
        head = Text("outside the turns", style="bold")
        parts += ["", *_difference_section(head, comparison.outside)]
    return Group(*parts)


def _run_line(letter: str, name: str, side: RunSide) -> Text:
    line = Text.assemble((f"{letter}  ", "bold"), terminal_safe(name, 80))
    words = [count_of(side.turns, "turn"), count_of(side.facts, "fact")]
    line.append(f"  {' · '.join(words)}", style=DIM)
    if side.hydration not in _WHOLE:
        line.append(
            f" · {terminal_safe(side.hydration, 20)}: some facts are missing", style="yellow"
        )
    return line


def _verdict_line(comparison: Comparison) -> Text:
    if comparison.same:
        words = (
            "same"
            if len(comparison.aspects) == len(ASPECTS)
            else "no differences in what was compared"
        )
        return Text(words, style="bold green")
    changed = [turn for turn in comparison.turns if turn.status != "same"]
    line = Text("different", style="bold yellow")
    if changed:
        line.append(f"  {len(changed):,} of {count_of(len(comparison.turns), 'turn')}")
    if comparison.outside:
        line.append("  and something outside the turns" if changed else "  outside the turns")
    totals = figures_text(comparison.a.figures, comparison.b.figures)
    return line.append(f"  {totals}", style=DIM) if totals else line


def _turn_lines(turns: list[TurnComparison]) -> Iterator[Text]:
    for same, grouped in groupby(turns, key=lambda turn: turn.status == "same"):
        row = list(grouped)
        if same and len(row) > _FOLDED:
            first, last = _turn_number(row[0]), _turn_number(row[-1])
            yield Text(
                f"= turns {first} to {last}  {count_of(len(row), 'turn')} the same", style=DIM
            )
        else:
            yield from map(_turn_line, row)


def _turn_line(turn: TurnComparison) -> Text:
    mark, style = _STATUS_MARKS[turn.status]
    line = Text.assemble((f"{mark} turn {_turn_number(turn):<7}", style))
    line.append(terminal_safe(_turn_prompt(turn), 60), style=DIM if turn.status == "same" else "")
    if turn.status in _WORDS:
        line.append(f"  {_WORDS[turn.status]}", style=style)
    elif turn.differences:
        line.append(f"  {', '.join(_aspect_names(turn.differences))}", style=style)
    return line


def _turn_heading(turn: TurnComparison) -> Text:
    line = Text.assemble(
        (f"turn {_turn_number(turn)}", "bold"), f"  {terminal_safe(_turn_prompt(turn), 80)}"
    )
    if turn.a is not None and turn.b is not None:
        totals = figures_text(turn.a.figures, turn.b.figures)
        if totals:
            line.append(f"  {totals}", style=DIM)
    return line


def _difference_section(head: Text, found: list[Difference]) -> Iterator[RenderableType]:
    yield head
    for aspect, grouped in groupby(found, key=lambda each: each.aspect):
        yield Padding.indent(Text(aspect, style="bold cyan"), 2)
        for line in difference_lines(list(grouped)):
            yield Padding.indent(line, 4)


def _turn_number(turn: TurnComparison) -> str:
    """The number of a turn, or both where they are not the same: `2↔3`."""
    numbers = [side.number for side in (turn.a, turn.b) if side is not None]
    return "↔".join(map(str, dict.fromkeys(numbers)))


def _turn_prompt(turn: TurnComparison) -> str:
    side = _either(turn)
    text = side.prompt or "(no prompt)"
    return text if side.by is None else f"{side.by}: {text}"


def _either(turn: TurnComparison) -> TurnSide:
    side = turn.a or turn.b
    if side is None:
        raise ValueError("a compared turn must be in A or B")
    return side


def _aspect_names(found: list[Difference]) -> list[str]:
    return list(dict.fromkeys(each.aspect for each in found))


class DiffRequest(NamedTuple):
    """What to show; `names` are what a person calls the two runs."""

    names: tuple[str, str]
    aspects: frozenset[Aspect] | None
    turn: int | None
    as_json: bool


def parse_aspects(only: list[str] | None) -> frozenset[Aspect] | None:
    """The aspects that an option lists, None for all; raises `CliError` for any other word."""
    if only is None:
        return None
    words = [word.strip() for each in only for word in each.split(",") if word.strip()]
    known = ", ".join(ASPECTS)
    if not words:
        raise CliError(f"--only needs an aspect; choose from {known}")
    for word in words:
        if word not in ASPECTS:
            raise CliError(f"unknown aspect {terminal_safe(word, 40)!r}; choose from {known}")
    return frozenset(cast("list[Aspect]", words))


async def compare_runs(both: tuple[RunSource, RunSource], wanted: DiffRequest) -> int:
    """Show how two runs differ; the exit code says whether they do."""
    one, other = [await _read_account(side) for side in both]
    comparison = narrow_comparison(compare(one, other), aspects=wanted.aspects, turn=wanted.turn)
    if wanted.turn is not None and not comparison.turns:
        most = max(one.side.turns, other.side.turns)
        raise CliError(f"neither run has a turn {wanted.turn}; choose 1 to {most}")
    _show_comparison(comparison, wanted)
    return DONE if comparison.same else ISSUES


async def _read_account(side: RunSource) -> RunAccount:
    async with side.open() as recording:
        family = await choose_family(recording, side.thread, side.how)
        accountant = AccountBuilder(family.thread_id, kept=recording.kept)
        async for _, fact in recording.facts(family):
            accountant.take(fact)
    account = accountant.build()
    if not account.side.facts:
        print_note(f"{recording.name} contains no facts")
    return account


def _show_comparison(comparison: Comparison, wanted: DiffRequest) -> None:
    if wanted.as_json:
        sys.stdout.buffer.write(msgspec.json.encode(comparison) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(comparison_view(comparison, wanted.names))
