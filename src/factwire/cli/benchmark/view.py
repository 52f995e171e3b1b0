"""Trials and their comparison as tables."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from factwire.cli.diff.figures import cost, duration, pair
from factwire.cli.sections.lines import DIM, NAME, mark_of, shown
from factwire.cli.terminal_text import counted, harmless
from factwire.evidence.comparison import BenchmarkComparison, TaskComparison, Trial, TrialSums

_LISTED: Final = 200
"""Rows of a table for people."""

_FLIPS: Final = {"solved": ("now solved", "green"), "unsolved": ("no longer solved", "red")}


def listed(found: Sequence[Trial], solved_at: float) -> RenderableType:
    """A row for each trial."""
    table = _table("", "dataset", "task", "reward", "time", "cost", "trajectory")
    for trial in found[:_LISTED]:
        table.add_row(
            mark_of(trial.status),
            Text(harmless(trial.dataset or "", NAME)),
            Text(harmless(trial.task or "unnamed", NAME)),
            _reward(trial, solved_at),
            duration(trial.duration_ms),
            cost(trial.cost_usd),
            Text(harmless(", ".join(trial.trajectory_refs), 2 * NAME)),
        )
    return Group(table, *_more(len(found)))


def drawn(comparison: BenchmarkComparison, names: tuple[str, str]) -> RenderableType:
    """Both runs as a whole, then what differs task by task."""
    parts: list[RenderableType] = [
        _run("A", names[0], comparison.a),
        _run("B", names[1], comparison.b),
        _verdict(comparison),
    ]
    for change in comparison.configuration:
        values = (_setting(change.a), _setting(change.b))
        parts.append(Text(f"configuration {harmless(change.field, NAME)}: {pair(*values)}"))
    table = _table("", "task", "reward", "change", "solved", "time", "cost", "")
    for task in comparison.tasks[:_LISTED]:
        _add_task(table, task)
    missing = [("only in A", comparison.only_a), ("only in B", comparison.only_b)]
    named = [Text(f"{word}: {harmless(', '.join(each), 400)}") for word, each in missing if each]
    return Group(*parts, "", table, *_more(len(comparison.tasks)), *named)


def _run(letter: str, name: str, sums: TrialSums) -> Text:
    line = Text.assemble((f"{letter}  ", "bold"), harmless(name, 80), "  ")
    line.append(f"mean reward {_number(sums.mean_reward)}", style="bold")
    words = (
        f"{sums.rewarded} of {counted(sums.trials, 'trial')} rewarded",
        f"{sums.solved} solved",
        sums.failed and f"{sums.failed} failed",
        sums.unfinished and f"{sums.unfinished} unfinished",
        sums.timed and duration(sums.duration_ms),
        sums.total_tokens and f"{sums.total_tokens:,} tokens",
        cost(sums.cost_usd),
    )
    return line.append(f"  {' · '.join(str(word) for word in words if word)}", style=DIM)


def _verdict(comparison: BenchmarkComparison) -> Text:
    if comparison.same:
        return Text("same", style="bold green")
    line = Text("different", style="bold yellow")
    if comparison.paired_delta is not None:
        tasks = counted(comparison.paired, "task")
        line.append(f"  B's reward is {comparison.paired_delta:+.3g} on {tasks} that both tried")
    return line


def _add_task(table: Table, task: TaskComparison) -> None:
    a, b = task.a, task.b
    delta = task.reward_delta
    word, style = _FLIPS[task.flip] if task.flip else ("", "")
    if a is None or b is None:
        word, style = ("only in B", "green") if a is None else ("only in A", "red")
    table.add_row(
        Text("=", style=DIM) if task.same else Text("≠", style="yellow"),
        Text(harmless(task.task, NAME)),
        pair(_number(a and a.mean_reward), _number(b and b.mean_reward)),
        Text("" if not delta else f"{delta:+.3g}", style="green" if (delta or 0) > 0 else "red"),
        pair(_solved(a), _solved(b)),
        pair(duration(a and a.duration_ms), duration(b and b.duration_ms)),
        pair(cost(a.cost_usd if a else 0), cost(b.cost_usd if b else 0)),
        Text(word, style=style),
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _more(rows: int) -> list[Text]:
    more = rows - _LISTED
    return [Text(f"{more:,} more; --json has them all", style=DIM)] if more > 0 else []


def _reward(trial: Trial, solved_at: float) -> Text:
    if trial.reward is None:
        return Text(harmless(trial.failure_category or "none", NAME), style=DIM)
    return Text(_number(trial.reward), style="green" if trial.reward >= solved_at else "")


def _solved(sums: TrialSums | None) -> str:
    return "" if sums is None else f"{sums.solved}/{sums.trials}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _setting(value: object) -> str:
    return "none" if value is None else harmless(shown(value), 2 * NAME)
