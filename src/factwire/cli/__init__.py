"""The `factwire` command: one module a verb, and one place where failures become words."""

import sys
from typing import Annotated

import click
import typer

from factwire import __version__
from factwire.cli.convert import convert
from factwire.cli.failures import INTERRUPTED, UNUSABLE, CliError, report
from factwire.cli.schema import schema
from factwire.cli.validate import validate
from factwire.facts import FactError

__all__ = ["app", "main"]

app = typer.Typer(
    name="factwire",
    help="Facts, not prose: what an agent did, as typed, validated, ordered facts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(validate)
app.command()(convert)
app.command()(schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"factwire {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hold the options that come before a verb."""
    del version


def main() -> None:
    """Run the command line; every failure ends as one line and an exit code."""
    try:
        sys.exit(app(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; writing more, even on exit, would fail again.
        sys.stderr.close()
        sys.exit(UNUSABLE)
    except CliError as error:
        report(str(error))
        sys.exit(error.exit_code)
    except (FactError, OSError) as error:
        report(str(error))
        sys.exit(UNUSABLE)
