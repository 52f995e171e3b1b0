"""`factwire conformance`: what a stream or an agent keeps of the contract, and what it breaks."""

import os
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.fact_files import open_source, read_document
from factwire.cli.terminal import DONE, ISSUES, CliError, count_of, terminal_safe
from factwire.facts import UnreadableInput

if TYPE_CHECKING:
    from factwire.conformance import Finding, Report, Result


_MARKS: Final = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "not-applicable": ("–", "bright_black"),
}
_LEVELS: Final = {
    "facts": "facts valid",
    "projection": "projection compatible",
    "runtime": "runtime compatible",
    "supervisor": "supervisor",
}
_WORD: Final = 60
"""Characters of a class, an id or a path."""

_SHOWN: Final = 3
"""Findings of one case that a person is shown; the other reports have more."""


class LevelOption(StrEnum):
    """How far to go."""

    facts = "facts"
    projection = "projection"
    runtime = "runtime"
    supervisor = "supervisor"


def conformance(
    *,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY", help="An agent; the factory is called to create it."
        ),
    ] = None,
    facts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A recorded stream, a fixture, a pack or a journal; - for standard input.",
        ),
    ] = None,
    reducer: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function that turns facts into a state document.",
        ),
    ] = None,
    reducer_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="A program that does the same: a request on each line of its standard input, "
            "a state document on each line of its standard output.",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="EDGE", help="A running Edge; --thread selects the thread."),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The thread of the Edge, pack or journal to test."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT",
            help="The prompt to use for text, tool, approval, failure or cancel; takes "
            "precedence over the agent's conformance_prompts.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="The time limit for one trial.")] = 60.0,
    level: Annotated[
        LevelOption, typer.Option(help="The level to test; each level includes the ones before it.")
    ] = LevelOption.runtime,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")
    ] = None,
) -> None:
    """Test an agent, a stream, a reducer or an Edge's thread; by default, Factwire itself.

    The agent runs in a temporary folder with a journal in memory. Whatever it asks for is approved,
    except once, when it is denied. Exit code 0: conformant. 1: not conformant. 2: it could not be
    tested.
    """
    if sum(each is not None for each in (provider, facts, url, reducer, reducer_command)) > 1:
        raise CliError("choose one: --provider, --facts, --reducer, --reducer-command or --url")
    if url is not None and thread is None:
        raise CliError("--url needs --thread to select a thread of the Edge")
    if thread is not None and url is None and facts is None:
        raise CliError("--thread needs --url or --facts")
    if prompt and provider is None:
        raise CliError("--prompt needs an agent: name one with --provider")
    before = set(threading.enumerate())
    if url is not None and thread is not None:
        report = _try_streamed(url, thread, level.value)
    elif reducer is not None or reducer_command is not None:
        report = _try_reducer(reducer, reducer_command, seconds)
    else:
        recorded = None if facts is None else (facts, thread)
        report = _try_subject(
            provider, recorded, _parse_prompts(prompt or []), seconds, level.value
        )
    if html is not None:
        _write_page(report, html)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        _show(report, html)
    _exit_at_once(DONE if report.conformant else ISSUES, before)


def _try_subject(
    provider: str | None,
    recorded: tuple[str, str | None] | None,
    prompts: dict[str, str],
    seconds: float,
    level: Any,
) -> "Report":
    from factwire.conformance import ConformanceError, load_factory, try_factwire, try_provider

    try:
        if provider is not None:
            make = load_factory(provider)
            return try_provider(make, name=provider, prompts=prompts, seconds=seconds, level=level)
        return try_factwire(level) if recorded is None else _try_recorded(*recorded, level)
    except ConformanceError as error:
        raise CliError(f"{error.code}: {error}") from error


def _try_reducer(function: str | None, command: str | None, seconds: float) -> "Report":
    """A reducer is judged at one level: by what its states show."""
    import shlex

    from factwire.conformance import ConformanceError, LinesReducer, load_reducer, try_reducer

    try:
        if function is not None:
            return try_reducer(load_reducer(function), name=function, seconds=seconds)
        words = shlex.split(command or "")
        if not words:
            raise CliError("--reducer-command needs a program")
        with LinesReducer(words, seconds) as reduce:
            reduce([], None)
            return try_reducer(reduce, name=command or "", seconds=seconds)
    except ConformanceError as error:
        raise CliError(f"{error.code}: {error}") from error
    except ValueError as error:
        raise CliError(f"--reducer-command cannot be split into words: {error}") from error


def _try_recorded(path: str, thread: str | None, level: Any) -> "Report":
    from factwire.cli.recordings import is_journal, is_pack
    from factwire.conformance import try_facts, try_fixture

    if is_journal(path) or is_pack(path):
        from factwire.cli.targets import finish_work

        return finish_work(_try_kept(path, thread, level))
    if thread is not None:
        raise CliError(
            "--thread works with a pack or a journal; a file is always tested as a whole"
        )
    with open_source(path) as source:
        try:
            document = read_document(source)
            if document.fixture is not None:
                return try_fixture(document.fixture, name=source.name, level=level)
            items = [item for _, item in document.facts]
        except UnreadableInput as error:
            raise CliError(f"{error.code}: {source.name}: {error}") from error
        return try_facts(items, name=source.name, level=level)


async def _try_kept(where: str, thread: str | None, level: Any) -> "Report":
    """A thread of a pack or a journal, with the threads that belong to it."""
    from factwire.cli.recordings import choose_family, open_raw_recording
    from factwire.conformance import try_facts
    from factwire.facts import write_fact

    async with open_raw_recording(where) as recording:
        family = await choose_family(recording, thread)
        items = [write_fact(each.fact) async for each in recording.facts(family)]
        return try_facts(items, name=recording.name, level=level, gaps_declared=recording.kept)


def _try_streamed(url: str, thread: str, level: Any) -> "Report":
    """What the facts of an Edge's thread keep; nobody can be asked anything by them."""
    from factwire.cli.targets import finish_work
    from factwire.conformance import try_facts

    return try_facts(finish_work(_facts_of(url, thread)), name=thread, level=level)


async def _facts_of(url: str, thread: str) -> list[object]:
    from factwire.cli.targets import edge_client
    from factwire.facts import write_fact

    async with edge_client(url) as client:
        await client.thread(thread)
        placed = client.past_facts(thread_id=thread, limit=1_000)
        return [write_fact(each.fact) async for each in placed]


def _parse_prompts(options: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in options]
    for name, sign, text in pairs:
        if not sign or not text:
            raise CliError(f"expected NAME=TEXT after --prompt, got {terminal_safe(name, 80)!r}")
    return {name.strip(): text for name, _, text in pairs}


def _write_page(report: "Report", path: Path) -> None:
    from factwire.conformance import html_report
    from factwire.journal.atomic_files import write_target

    try:
        write_target(path, html_report(report))
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror or error}") from error


def _show(report: "Report", page: Path | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    says = {row.id: row.sentence for row in report.requirements}
    for level, title in _LEVELS.items():
        results = [each for each in report.results if each.level == level]
        if results:
            console.print(Text(title, style="bold"))
            for each in results:
                _show_result(each, says, console.print)
    _show_summary(report, console.print)
    if page is not None:
        console.print(Text(f"page: {terminal_safe(str(page))}"))


def _show_result(result: "Result", says: dict[str, str], write: Callable[[Text], None]) -> None:
    mark, style = _MARKS[result.status]
    line = Text.assemble("  ", (f"{mark} ", style), terminal_safe(result.id))
    if result.reason is not None:
        line.append(f"  {terminal_safe(result.reason, 120)}", style="bright_black")
    if result.status == "failed":
        line.append(f"  {' '.join(says[name] for name in sorted(result.broken))}")
    write(line)
    for finding in result.findings[:_SHOWN]:
        _show_finding(finding, write)
    left = len(result.findings) - _SHOWN + result.findings_omitted
    if left > 0:
        write(
            Text(f"      and {left:,} more; use --json or --html to see all", style="bright_black")
        )


def _show_finding(finding: "Finding", write: Callable[[Text], None]) -> None:
    line = Text("      ").append(finding.requirement, style="red")
    write(line.append(f": {terminal_safe(finding.message, 400)}"))
    about = _fact_text(finding)
    if about:
        write(Text(f"        {about}", style="cyan"))


def _fact_text(finding: "Finding") -> str:
    """The fact that shows it, by class, id and place; the other reports have all of it."""
    named = None if finding.fact is None else finding.fact.get("eventClass")
    words = [named if isinstance(named, str) else None, finding.fact_id]
    words += [f"at {finding.path}"] if finding.path else []
    return " ".join(terminal_safe(word, _WORD) for word in words if word)


def _show_summary(report: "Report", write: Callable[[Text], None]) -> None:
    verdict = ("conformant", "bold green") if report.conformant else ("not conformant", "bold red")
    level = "none" if report.level is None else _LEVELS[report.level]
    counts = report.counts
    line = Text.assemble("\n", verdict, f": {terminal_safe(report.subject.name)}, level: {level}\n")
    line.append(f"{counts.passed:,} passed, {counts.failed:,} failed, ")
    line.append(f"{counts.not_applicable:,} not applicable; ")
    held_to = count_of(len(report.requirements), "requirement")
    write(line.append(f"{report.judged:,} of {held_to} judged"))
    for each in report.coverage:
        write(Text(f"  {_LEVELS[each.level]}: {each.judged:,} of {each.total:,} judged"))
        for row in each.not_judged:
            write(Text(f"    {row.count:,} not judged: {row.reason}", style="bright_black"))


def _exit_at_once(code: int, before: set[threading.Thread]) -> None:
    """Leave, even if an agent left threads behind that would never let the process end."""
    # An executor's threads are waited for at the end even if they are daemons.
    if set(threading.enumerate()) - before:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)
