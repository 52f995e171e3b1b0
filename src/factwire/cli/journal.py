"""`factwire journal`: look at, check, move and shrink a journal, whichever backend it is on."""

import typer

from factwire.cli.journal_cat import cat
from factwire.cli.journal_compact import compact
from factwire.cli.journal_export import export
from factwire.cli.journal_import import import_
from factwire.cli.journal_info import info
from factwire.cli.journal_tail import tail
from factwire.cli.journal_verify import verify

journal = typer.Typer(
    name="journal",
    help="Look at, check, move and shrink a journal: sqlite:PATH or a path, postgres://…, nats://….",
    no_args_is_help=True,
)
for command in (info, tail, cat, verify, export, compact):
    journal.command()(command)
journal.command("import")(import_)
