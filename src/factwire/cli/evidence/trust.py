"""`factwire evidence trust`: whose key is whose."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factwire.cli.evidence.options import data_folder
from factwire.cli.evidence.refusals import plainly
from factwire.cli.terminal_text import harmless


def trust(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who signs with the key.")],
    public_key: Annotated[str, typer.Argument(metavar="PUBLIC-KEY", help="The key as base64.")],
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The list; one in the data folder if not."),
    ] = None,
) -> None:
    """Add a public key to a trust list, under a name.

    Compare the fingerprint with its owner over another way than the one the key came by.
    """
    from factwire.evidence import fingerprint
    from factwire.evidence.keys import trust as add
    from factwire.evidence.keys import trust_path

    path = file or trust_path(data_folder())
    with plainly():
        add(path, name, public_key)
        key_id = fingerprint(public_key)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{harmless(name)} is {key_id}", markup=False)
    console.print(f"listed in {harmless(str(path))}", markup=False)
