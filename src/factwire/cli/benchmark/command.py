"""`factwire benchmark`: what was tried, and which of two runs did better."""

from math import isfinite
from typing import Annotated

import typer

from factwire.cli.diff.sides import OneSide, SideA, SideB, side_of, sides
from factwire.cli.failures import CliError
from factwire.cli.journal.access import run
from factwire.cli.run.options import JournalOption

benchmark = typer.Typer(
    name="benchmark",
    help="Trials of a benchmark: list them, compare two runs.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SolvedAt = Annotated[
    float, typer.Option(metavar="REWARD", help="The reward from which a trial is solved.")
]


@benchmark.command("trials")
def list_trials(
    given: OneSide,
    *,
    solved_at: SolvedAt = 1.0,
    journal: JournalOption = None,
    as_json: Json = False,
) -> None:
    """List trials: dataset, task, status, reward, time, cost, and where their trajectories are.

    Without #THREAD the trials of all threads are listed.
    """
    from factwire.cli.benchmark.showing import tried

    run(tried(side_of(given, journal), _reward(solved_at), as_json=as_json))


@benchmark.command()
def compare(
    a: SideA,
    b: SideB,
    *,
    solved_at: SolvedAt = 1.0,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="JOURNAL#THREAD",
            help="Also record the result as evidence on this thread of a journal.",
        ),
    ] = None,
    journal: JournalOption = None,
    as_json: Json = False,
) -> None:
    """Show how the trials of B came out against those of A: rewards, flips, cost, time.

    Trials are paired by dataset and task; several of one task count by their mean. Without #THREAD
    the trials of all threads are taken. The exit code is 0 when all came out the same with the
    same configuration, 1 when not, 2 when they cannot be compared.
    """
    from factwire.cli.benchmark.showing import Request, compared

    wanted = Request(names=(a, b), solved_at=_reward(solved_at), record=record, as_json=as_json)
    run(compared(sides(a, b, journal), wanted))


def _reward(given: float) -> float:
    """A reward that others can be compared with; raises `CliError` for what is no number."""
    if not isfinite(given):
        raise CliError(f"--solved-at takes a reward such as 0.5, not {given}")
    return given
