"""Arguments and options that several verbs have, and where keys are kept."""

from pathlib import Path
from typing import Annotated

import typer

PackArgument = Annotated[
    Path, typer.Argument(metavar="PACK", help="An evidence pack.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def data_folder() -> Path:
    """The configured data folder, in which keys and trust lists are kept."""
    from factwire.cli.run.place import place

    return Path(place().configuration.data)
