"""The command itself: its verbs, and how every failure ends as one line and an exit code."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

import typer
import typer.main

from factwire import __version__
from factwire.cli.answers import approve, cancel, deny, queue, steer
from factwire.cli.benchmark import benchmark
from factwire.cli.config import config
from factwire.cli.conformance import conformance
from factwire.cli.convert import convert
from factwire.cli.diff import diff
from factwire.cli.doctor import doctor
from factwire.cli.edge import edge, open_workbench
from factwire.cli.evidence import evidence
from factwire.cli.failures import DONE, INTERRUPTED, UNUSABLE, CliError, report
from factwire.cli.journal import journal
from factwire.cli.play import play
from factwire.cli.project import project
from factwire.cli.run import resume, run
from factwire.cli.schema import schema
from factwire.cli.tail import tail
from factwire.cli.thread_list import threads
from factwire.cli.validate import validate
from factwire.facts import FactError

app = typer.Typer(
    name="factwire",
    help="Facts, not prose: what an agent did, as typed, validated, ordered facts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(threads)
app.command()(resume)
app.command()(approve)
app.command()(deny)
app.command()(cancel)
app.command()(steer)
app.command()(queue)
app.command()(edge)
app.command("open")(open_workbench)
app.command()(tail)
app.command()(doctor)
app.command()(validate)
app.command()(convert)
app.command()(schema)
app.command()(project)
app.command()(play)
app.command()(diff)
app.command()(conformance)
app.command()(config)
app.add_typer(journal)
app.add_typer(evidence)
app.add_typer(benchmark)


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
    _prepare_streams()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        code = UNUSABLE
    except CliError as error:
        report(str(error))
        code = error.exit_code
    except (FactError, OSError) as error:
        _abandon_output()
        report(str(error))
        code = UNUSABLE
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run one command by its own means: click's `main` would take a closed pipe for an issue."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("factwire", arguments) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except Exception as error:
        if not isinstance(error, _UsageError):
            raise
        error.show()
        return error.exit_code
    return DONE


@runtime_checkable
class _UsageError(Protocol):
    """A usage error of whichever click it is that typer brings along."""

    exit_code: int

    def show(self) -> None: ...


def _prepare_streams() -> None:
    """A stream that is closed swallows, and one that cannot show a character shows its number."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon_output() -> None:
    """What could not be written cannot be written on exit either; nobody shall hear of that."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
