"""`factwire benchmark`: the trials of a benchmark, and those of two runs compared.

A comparison can be recorded as evidence on a thread. That fact holds the sums of both sides and no
more, so that it stays small however many trials there were; who has the facts of the trials can
compare them again.
"""

import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import PurePath
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from factwire.cli.diff_command import (
    RunAArgument,
    RunArgument,
    RunBArgument,
    RunSource,
    cost_text,
    duration_text,
    pair_text,
    parse_source,
    parse_sources,
)
from factwire.cli.recordings import Recording, ThreadFamily, choose_family
from factwire.cli.targets import JournalOption, journal_url, run_work
from factwire.cli.terminal import (
    DIM,
    DONE,
    ISSUES,
    NAME,
    CliError,
    count_of,
    print_note,
    status_mark,
    terminal_safe,
    to_text,
)
from factwire.evidence.benchmark_trials import (
    BenchmarkComparison,
    TaskComparison,
    TrialRecord,
    TrialSums,
    compare_trials,
    read_trials,
)
from factwire.facts import Fact

benchmark = typer.Typer(
    name="benchmark",
    help="List benchmark trials and compare two runs.",
    no_args_is_help=True,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SolvedAtOption = Annotated[
    float, typer.Option(metavar="REWARD", help="The minimum reward for a trial to count as solved.")
]


@benchmark.command("trials")
def list_trials(
    source: RunArgument,
    *,
    solved_at: SolvedAtOption = 1.0,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """List trials: dataset, task, status, reward, time, cost and trajectory location.

    Without #THREAD, the trials of all threads are listed.
    """
    run_work(
        show_trials(parse_source(source, journal), _require_finite(solved_at), as_json=as_json)
    )


@benchmark.command()
def compare(
    a: RunAArgument,
    b: RunBArgument,
    *,
    solved_at: SolvedAtOption = 1.0,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="JOURNAL#THREAD",
            help="Also record the result as evidence on this thread of a journal.",
        ),
    ] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the trials of B with those of A: rewards, flips, cost, time.

    Trials are paired by dataset and task; several trials of one task count by their mean. Without
    #THREAD, the trials of all threads are used. Exit code 0: same results with the same
    configuration. 1: they differ. 2: they cannot be compared.
    """
    wanted = BenchmarkRequest(
        names=(a, b), solved_at=_require_finite(solved_at), record=record, as_json=as_json
    )
    run_work(compare_benchmarks(parse_sources(a, b, journal), wanted))


def _require_finite(reward: float) -> float:
    """A reward that others can be compared with; raises `CliError` for what is no number."""
    if not isfinite(reward):
        raise CliError(f"--solved-at expects a reward such as 0.5, got {reward}")
    return reward


_LISTED: Final = 200
"""Rows of a table for people."""

_FLIPS: Final = {"solved": ("now solved", "green"), "unsolved": ("no longer solved", "red")}


def trials_view(found: Sequence[TrialRecord], solved_at: float) -> RenderableType:
    """A row for each trial."""
    table = _build_table("", "dataset", "task", "reward", "time", "cost", "trajectory")
    for trial in found[:_LISTED]:
        table.add_row(
            status_mark(trial.status),
            Text(terminal_safe(trial.dataset or "", NAME)),
            Text(terminal_safe(trial.task or "unnamed", NAME)),
            _reward_text(trial, solved_at),
            duration_text(trial.duration_ms),
            cost_text(trial.cost_usd),
            Text(terminal_safe(", ".join(trial.trajectory_refs), 2 * NAME)),
        )
    return Group(table, *_more_rows(len(found)))


def benchmark_view(comparison: BenchmarkComparison, names: tuple[str, str]) -> RenderableType:
    """Both runs as a whole, then what differs task by task."""
    parts: list[RenderableType] = [
        _run_line("A", names[0], comparison.a),
        _run_line("B", names[1], comparison.b),
        _verdict_line(comparison),
    ]
    for change in comparison.configuration:
        values = (_setting_text(change.a), _setting_text(change.b))
        parts.append(
            Text(f"configuration {terminal_safe(change.field, NAME)}: {pair_text(*values)}")
        )
    table = _build_table("", "task", "reward", "change", "solved", "time", "cost", "")
    for task in comparison.tasks[:_LISTED]:
        _add_task(table, task)
    missing = [("only in A", comparison.only_a), ("only in B", comparison.only_b)]
    named = [
        Text(f"{word}: {terminal_safe(', '.join(each), 400)}") for word, each in missing if each
    ]
    return Group(*parts, "", table, *_more_rows(len(comparison.tasks)), *named)


def _run_line(letter: str, name: str, sums: TrialSums) -> Text:
    line = Text.assemble((f"{letter}  ", "bold"), terminal_safe(name, 80), "  ")
    line.append(f"mean reward {_number_text(sums.mean_reward)}", style="bold")
    words = (
        f"{sums.rewarded} of {count_of(sums.trials, 'trial')} rewarded",
        f"{sums.solved} solved",
        sums.failed and f"{sums.failed} failed",
        sums.unfinished and f"{sums.unfinished} unfinished",
        sums.timed and duration_text(sums.duration_ms),
        sums.total_tokens and f"{sums.total_tokens:,} tokens",
        cost_text(sums.cost_usd),
    )
    return line.append(f"  {' · '.join(str(word) for word in words if word)}", style=DIM)


def _verdict_line(comparison: BenchmarkComparison) -> Text:
    if comparison.same:
        return Text("same", style="bold green")
    line = Text("different", style="bold yellow")
    if comparison.paired_delta is not None:
        tasks = count_of(comparison.paired, "task")
        line.append(f"  B's reward is {comparison.paired_delta:+.3g} on {tasks} tried by both")
    return line


def _add_task(table: Table, task: TaskComparison) -> None:
    a, b = task.a, task.b
    delta = task.reward_delta
    word, style = _FLIPS[task.flip] if task.flip else ("", "")
    if a is None or b is None:
        word, style = ("only in B", "green") if a is None else ("only in A", "red")
    table.add_row(
        Text("=", style=DIM) if task.same else Text("≠", style="yellow"),
        Text(terminal_safe(task.task, NAME)),
        pair_text(_number_text(a and a.mean_reward), _number_text(b and b.mean_reward)),
        Text("" if not delta else f"{delta:+.3g}", style="green" if (delta or 0) > 0 else "red"),
        pair_text(_solved_text(a), _solved_text(b)),
        pair_text(duration_text(a and a.duration_ms), duration_text(b and b.duration_ms)),
        pair_text(cost_text(a.cost_usd if a else 0), cost_text(b.cost_usd if b else 0)),
        Text(word, style=style),
    )


def _build_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _more_rows(rows: int) -> list[Text]:
    more = rows - _LISTED
    return [Text(f"{more:,} more; use --json to see all", style=DIM)] if more > 0 else []


def _reward_text(trial: TrialRecord, solved_at: float) -> Text:
    if trial.reward is None:
        return Text(terminal_safe(trial.failure_category or "none", NAME), style=DIM)
    return Text(_number_text(trial.reward), style="green" if trial.reward >= solved_at else "")


def _solved_text(sums: TrialSums | None) -> str:
    return "" if sums is None else f"{sums.solved}/{sums.trials}"


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _setting_text(value: object) -> str:
    return "none" if value is None else terminal_safe(to_text(value), 2 * NAME)


_RECORDED_FIELDS: Final = ("solvedAt", "a", "b", "configuration", "paired", "pairedDelta")


async def record_comparison(
    place: str, comparison: BenchmarkComparison, names: tuple[str, str]
) -> None:
    """Write the result to `JOURNAL#THREAD`."""
    from factwire.runtime.recording import Recorder

    where, _, thread = place.rpartition("#")
    if not where or not thread:
        raise CliError("expected JOURNAL#THREAD to record on, such as sqlite:bench.db#weekly")
    a, b = (PurePath(name).name for name in names)
    document = msgspec.to_builtins(comparison)
    result = {name: document[name] for name in _RECORDED_FIELDS if document.get(name) is not None}
    async with Recorder(journal_url(where), thread_id=thread, agent_id="factwire") as recorder:
        key = recorder.comparison(
            f"{b} against {a}", summary=_summary_text(comparison), result=result
        )
    print_note(f"recorded as {key} on thread {thread}")


def _summary_text(comparison: BenchmarkComparison) -> str:
    if comparison.paired_delta is None:
        return "No task has a reward on both sides."
    return f"B's reward is {comparison.paired_delta:+.3g} on {count_of(comparison.paired, 'task')}."


class BenchmarkRequest(NamedTuple):
    """What to show; `names` are what a person calls the two runs."""

    names: tuple[str, str]
    solved_at: float
    record: str | None
    as_json: bool


async def show_trials(side: RunSource, solved_at: float, *, as_json: bool) -> int:
    """Show the trials of one side."""
    found = await _read_trials(side)
    if as_json:
        _print_json(found)
    else:
        Console(highlight=False).print(trials_view(found, solved_at))
    return DONE


async def compare_benchmarks(both: tuple[RunSource, RunSource], wanted: BenchmarkRequest) -> int:
    """Show how trials came out; the exit code says whether they did so differently."""
    one, other = [await _read_trials(side) for side in both]
    comparison = compare_trials(one, other, solved_at=wanted.solved_at)
    if wanted.record is not None:
        await record_comparison(wanted.record, comparison, wanted.names)
    if wanted.as_json:
        _print_json(comparison)
    else:
        Console(highlight=False).print(benchmark_view(comparison, wanted.names))
    return DONE if comparison.same else ISSUES


async def _read_trials(side: RunSource) -> list[TrialRecord]:
    async with side.open() as recording:
        family = await _choose_family(recording, side.thread)
        facts = [fact async for _, fact in recording.facts(family) if _is_about_trials(fact)]
        found = read_trials(facts)
    if not found:
        print_note(f"{recording.name} contains no trials")
    return found


def _is_about_trials(fact: Fact) -> bool:
    """Whether a fact tells of trials; a benchmark's others may be too many to hold."""
    return (fact.event_class or "").startswith(("benchmark.", "cost."))


async def _choose_family(recording: Recording, thread: str | None) -> ThreadFamily:
    """A thread and its children, or all threads together: a benchmark may have one for each."""
    if thread is not None:
        return await choose_family(recording, thread)
    known = await recording.kinship(None)
    return ThreadFamily(thread_id=None, members=frozenset(known.threads), alone=True)


def _print_json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()
