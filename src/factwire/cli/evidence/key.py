"""`factwire evidence key`: your signing key; made once, shown ever after."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from factwire.cli.evidence.options import JsonOption, data_folder
from factwire.cli.evidence.refusals import plainly
from factwire.cli.terminal_text import harmless


def key(
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The key; one in the data folder if not."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a signing key that only you can read, or show the one there is; print its public half.

    A key is never written over. Give the public key to those who are to trust your packs.
    """
    from factwire.evidence import create_key, fingerprint, load_key, public_text
    from factwire.evidence.keys import key_path

    path = file or key_path(data_folder())
    with plainly():
        made = not path.exists()
        public = public_text(create_key(path) if made else load_key(path))
        key_id = fingerprint(public)
    if as_json:
        shown = {"file": str(path), "created": made, "publicKey": public, "keyId": key_id}
        sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{'made' if made else 'kept'} {harmless(str(path))}", markup=False)
    console.print(f"public key   {public}", markup=False)
    console.print(f"fingerprint  {key_id}", markup=False)
