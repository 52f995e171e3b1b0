"""`factwire doctor`: what is installed and set up, what is wrong, and how to mend it."""

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.failures import DONE, ISSUES
from factwire.cli.journal.access import journal_url
from factwire.cli.journal.access import run as run_work
from factwire.cli.run.options import JournalOption, WorkspaceOption
from factwire.cli.terminal_text import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from factwire.cli.doctor.findings import Finding

_MARKS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_NAME: Final = 14


def doctor(
    *,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation: Python, SQLite, sandbox, journal, data folder, agents, MCP servers.

    Each line that is not well says what to do. Exit code 0: it works. 1: something fails.
    """
    run_work(_doctor(journal, workspace, as_json=as_json))


async def _doctor(journal: str | None, workspace: "Path | None", *, as_json: bool) -> int:
    found = [finding async for finding in _findings(journal, workspace)]
    sick = any(finding.status == "fail" for finding in found)
    if as_json:
        report = {"ok": not sick, "findings": found}
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        _show(found)
    return ISSUES if sick else DONE


async def _findings(journal: str | None, workspace: "Path | None") -> "AsyncIterator[Finding]":
    from factwire.cli.doctor import agents, machine, models, servers, state
    from factwire.cli.doctor.findings import fail
    from factwire.runtime.agents import BUILT_INS, register
    from factwire.runtime.configuration import (
        ConfigurationError,
        SandboxSettings,
        load_configuration,
    )

    yield machine.python()
    yield machine.sqlite()
    yield machine.extras()
    flags = [("journal", journal_url(journal))] if journal else []
    try:
        resolved = load_configuration(workspace, flags=flags)
    except ConfigurationError as error:
        for problem in error.problems:
            yield fail("configuration", str(problem), "mend what is named; the rest waits for it")
        yield await machine.sandbox(SandboxSettings())
        return
    given = resolved.configuration
    yield await machine.sandbox(given.sandbox)
    yield state.configuration(resolved)
    yield state.workspace(given, workspace)
    yield state.data_folder(given)
    yield await state.journal(given)
    yield await state.runtimes(given)
    registered = register(given)
    told = (*state.agents(given, registered), *models.openai(given), *servers.servers(given))
    others = {name: why for name, why in registered.problems.items() if name not in BUILT_INS}
    for finding in (*told, *await agents.outside(given, others)):
        yield finding


def _show(found: "list[Finding]") -> None:
    console = Console(highlight=False, soft_wrap=True)
    for finding in found:
        mark, style = _MARKS[finding.status]
        line = Text.assemble((f"{mark} ", style), (f"{harmless(finding.name):<{_NAME}} ", "bold"))
        console.print(line.append(harmless(finding.message)))
        if finding.fix is not None:
            console.print(Text(f"{'':<{_NAME + 2}} → {harmless(finding.fix)}", style="cyan"))
