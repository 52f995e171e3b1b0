"""The verbs of `factwire evidence`, one module each."""

import typer

from factwire.cli.evidence.check import check
from factwire.cli.evidence.export import export
from factwire.cli.evidence.key import key
from factwire.cli.evidence.show import show
from factwire.cli.evidence.trust import trust
from factwire.cli.evidence.verify import verify

evidence = typer.Typer(
    name="evidence",
    help="Export a history as one signed file, and check, show and test such files.",
    no_args_is_help=True,
)
for command in (export, verify, show, check, key, trust):
    evidence.command()(command)
