"""`factwire diff`: two runs compared turn by turn."""

from typing import Annotated

import typer

from factwire.cli.diff.sides import SideA, SideB, sides
from factwire.cli.journal.access import run
from factwire.cli.run.options import JournalOption


def diff(
    a: SideA,
    b: SideB,
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ASPECTS", help="Only these, with commas: prompt, answers, tools, cost …"
        ),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the turn with this number in either run."),
    ] = None,
    journal: JournalOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole comparison as one JSON document.")
    ] = False,
) -> None:
    """Show how run B differs from run A: prompts, answers, tools, approvals, files, cost …

    Turns are paired by prompt and order. Ids and times are never a difference. The exit code is 0
    when both are the same, 1 when they differ, 2 when they cannot be compared.
    """
    from factwire.cli.diff.showing import Request, aspects_of, compared

    wanted = Request(names=(a, b), aspects=aspects_of(only), turn=turn, as_json=as_json)
    run(compared(sides(a, b, journal), wanted))
