"""The `factwire` command: its verbs, and how every failure ends as one line and an exit code.

A verb's module is imported when the verb is used, so that `factwire --help` waits for none.
"""

import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NamedTuple, Protocol, cast, runtime_checkable

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from factwire import __version__
from factwire.cli.terminal import (
    DONE,
    INTERRUPTED,
    UNUSABLE,
    CliError,
    TerminalOutput,
    forget_notes,
    report,
)
from factwire.facts import FactError


class Verb(NamedTuple):
    """A command or a group of them: where it is defined, and its line in `factwire --help`."""

    module: str
    name: str
    help: str


VERBS: Final = {
    "run": Verb(
        "run_command",
        "run",
        "Run one turn of an agent and watch it: answer, tools, output and approvals.",
    ),
    "threads": Verb(
        "threads_command",
        "threads",
        "List threads: status, title or first prompt, last activity, open approvals.",
    ),
    "resume": Verb(
        "run_command",
        "resume",
        "Show a thread's status and continue it: wait for its open approval, start queued turns.",
    ),
    "approve": Verb(
        "control_commands",
        "approve",
        "Allow an open action, from any terminal.",
    ),
    "deny": Verb(
        "control_commands",
        "deny",
        "Deny an open action; the agent continues without it.",
    ),
    "cancel": Verb(
        "control_commands",
        "cancel",
        "Stop a running turn, close an abandoned one, or remove one from the queue.",
    ),
    "steer": Verb(
        "control_commands",
        "steer",
        "Send a message to the running turn of a thread; the agent reads it between two steps.",
    ),
    "queue": Verb(
        "control_commands",
        "queue",
        "List the queued turns of a thread, next one first, and change their order.",
    ),
    "rules": Verb(
        "control_commands",
        "rules",
        "List the rules that `approve --always` granted and that hold, newest first; revoke one.",
    ),
    "edge": Verb(
        "edge_command",
        "edge",
        "Serve this machine's agents over REST, WebSocket and event streams, behind one token.",
    ),
    "hub": Verb(
        "hub_command",
        "hub",
        "Serve people and their machines: accounts, invitations and sign-in.",
    ),
    "join": Verb(
        "join_command",
        "join",
        "Join a Hub with the Edge of this machine: print a code, and wait until it is confirmed.",
    ),
    "leave": Verb(
        "join_command",
        "leave",
        "Leave the Hub; what was uploaded stays there.",
    ),
    "login": Verb(
        "devices_command",
        "login",
        "Sign in to a Hub, by a code that you confirm on a screen where you are signed in.",
    ),
    "logout": Verb(
        "devices_command",
        "logout",
        "Sign out of a Hub, and forget the session on this machine.",
    ),
    "devices": Verb(
        "devices_command",
        "devices",
        "List, confirm, rename and revoke your devices at a Hub.",
    ),
    "tasks": Verb(
        "devices_command",
        "tasks",
        "List what was given to agents from a Hub, also what waits for its device.",
    ),
    "team": Verb(
        "team_command",
        "team",
        "Have agents on several devices work together: create a team, run it, decide, watch, stop.",
    ),
    "open": Verb(
        "edge_command",
        "open_workbench",
        "Open the workbench in your browser, signed in.",
    ),
    "tail": Verb(
        "tail_command",
        "tail",
        "Follow the events or facts of an Edge or a journal, live.",
    ),
    "doctor": Verb(
        "doctor_command",
        "doctor",
        "Check the installation: Python, SQLite, sandbox, journal, "
        "data folder, agents, MCP servers.",
    ),
    "validate": Verb(
        "validate_command",
        "validate",
        "Validate facts: a JSON fact, an array, one fact per line (NDJSON), or a fixture.",
    ),
    "convert": Verb(
        "convert_command",
        "convert",
        "Convert facts between shapes, or an agent's own stream to facts, one JSON object per "
        "line.",
    ),
    "schema": Verb(
        "schema_command",
        "schema",
        "Print a schema of facts or of their projection, or write all schemas to a folder.",
    ),
    "project": Verb(
        "project_command",
        "project",
        "Show the state that facts produce: conversation, tools, open actions, tasks, team …",
    ),
    "play": Verb(
        "play_command",
        "play",
        "Play back a recorded run: conversation, process, approvals and team.",
    ),
    "diff": Verb(
        "diff_command",
        "diff",
        "Show how run B differs from run A: prompts, answers, tools, approvals, files, cost …",
    ),
    "conformance": Verb(
        "conformance_command",
        "conformance",
        "Test an agent, a stream or an Edge's thread for conformance; by default, Factwire itself.",
    ),
    "config": Verb(
        "config_command",
        "config",
        "Show every setting, its value and its source.",
    ),
    "trust": Verb(
        "config_command",
        "trust",
        "Show what a project's factwire.toml changes, and trust it, so that its settings apply.",
    ),
    "untrust": Verb(
        "config_command",
        "untrust",
        "Ignore a project's factwire.toml again.",
    ),
    "journal": Verb(
        "journal_command",
        "journal",
        "Inspect, verify, move and shrink a journal: sqlite:PATH or a path, postgres://…, "
        "nats://….",
    ),
    "evidence": Verb(
        "evidence_command",
        "evidence",
        "Export a history as one signed file, and verify, show and test such files.",
    ),
    "benchmark": Verb(
        "benchmark_command",
        "benchmark",
        "List benchmark trials and compare two runs.",
    ),
}


def load_verb(name: str) -> Any:
    """The command itself, from its module."""
    verb = VERBS[name]
    found = getattr(import_module(f"factwire.cli.{verb.module}"), verb.name)
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class LazyGroup(TyperGroup):
    """Lists verbs without importing their modules; a verb that is used is loaded."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, help=verb.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_verb(name or ""), rest


app = typer.Typer(
    name="factwire",
    cls=LazyGroup,
    help="Facts, not prose: what an agent did, as typed, validated, ordered facts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"factwire {__version__}")
        raise typer.Exit


_WITHOUT_SECRETS: Final = frozenset((None, "schema", "doctor", "config", "trust", "untrust"))
"""Verbs that show no facts, or that report what is wrong with the settings themselves."""


@app.callback()
def _root(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hold the options that come before a verb, and hide what the settings name as secret."""
    del version
    if context.invoked_subcommand not in _WITHOUT_SECRETS:
        from factwire.cli.targets import declare_own_secrets

        declare_own_secrets()


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
    forget_notes()
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
    shown = sys.stdout
    if shown.isatty() and type(shown) is io.TextIOWrapper:
        sys.stdout = TerminalOutput(cast("BinaryIO", shown.buffer), shown.encoding)


def _abandon_output() -> None:
    """What could not be written cannot be written on exit either; nobody shall hear of that."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
