"""The options that choose facts, the same for every command that shows some."""

from typing import Annotated

import typer

from factwire.journal import Filter

Project = Annotated[str | None, typer.Option(help="Only facts of this project.")]
Session = Annotated[str | None, typer.Option(help="Only facts of this session.")]
Thread = Annotated[str | None, typer.Option(help="Only facts of this thread.")]
Run = Annotated[str | None, typer.Option("--run", help="Only facts of this run.")]
Turn = Annotated[str | None, typer.Option(help="Only facts of this turn.")]
Task = Annotated[str | None, typer.Option(help="Only facts of this task.")]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class", metavar="PREFIX", help="Only this class and those below it; may be repeated."
    ),
]
After = Annotated[
    str | None, typer.Option(metavar="CURSOR", help="Begin after this cursor or fact id.")
]


def chosen(classes: list[str] | None, **ids: str | None) -> Filter | None:
    """The filter that the options ask for; None for all facts."""
    wanted = Filter(**ids, classes=tuple(classes or ()))
    return None if wanted == Filter() else wanted
