"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="URL", help="The journal; the configured one if not given."),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", help="The folder to work in; the current one if not given."),
]
