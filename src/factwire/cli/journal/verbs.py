"""The verbs of `factwire journal`, one module each."""

import typer

from factwire.cli.journal.cat import cat
from factwire.cli.journal.compact import compact
from factwire.cli.journal.export import export
from factwire.cli.journal.importing import import_
from factwire.cli.journal.info import info
from factwire.cli.journal.tail import tail
from factwire.cli.journal.verify import verify

journal = typer.Typer(
    name="journal",
    help="Look at, check, move and shrink a journal: sqlite:PATH or a path, postgres://…, nats://….",
    no_args_is_help=True,
)
for command in (info, tail, cat, verify, export, compact):
    journal.command()(command)
journal.command("import")(import_)
