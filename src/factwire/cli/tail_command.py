"""`factwire tail`: what happens on an Edge, or in a journal, one line each, until Ctrl-C."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.targets import (
    DeviceHubOption,
    DeviceOption,
    EdgeOption,
    EdgeTarget,
    JournalOption,
    choose_edge,
    edge_client,
    open_for_reading,
    run_work,
)
from factwire.cli.terminal import DONE, CliError, terminal_safe
from factwire.facts.json_values import object_at, text_at

if TYPE_CHECKING:
    from factwire.client import Event


_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_EXCERPT_FIELDS: Final = (
    *("content", "delta", "text", "summary", "message", "title", "toolName", "status", "error"),
)
"""Fields of a payload that say most, best first."""

_EXCERPT: Final = 120
_STYLES: Final = {"approval": "yellow", "error": "red", "run": "blue", "thread": "magenta"}


def tail(
    *,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="Only this thread.")] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Only these event types or fact classes, separated by commas; each includes "
            "its subtypes.",
        ),
    ] = None,
    facts: Annotated[
        bool, typer.Option("--facts", help="Show the facts themselves, not an Edge's events.")
    ] = False,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Continue after this cursor; from now on by default."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Start with the oldest one kept.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print NDJSON.")] = False,
) -> None:
    """Follow the events or facts of an Edge or a journal, live.

    A stream that is cut resumes where it stopped. Exit code 2: no Edge or Hub answers, or the
    cursor cannot be resumed.
    """
    if cursor and everything:
        raise CliError("choose one: --cursor or --all")
    from factwire.cli.command_context import load_context

    target = choose_edge(edge, hub, device, journal)
    where: dict[str, Any] = {"cursor": cursor, "thread_id": thread}
    where["since"] = None if cursor or everything else "now"
    names = None if types is None else tuple(name.strip() for name in types.split(","))
    if target is None:
        at = load_context(journal=journal).configuration.journal
        run_work(_follow_journal(at, where, names, as_json=as_json))
    follow = _follow_facts if facts else _follow_events
    run_work(follow(target, where, names, as_json=as_json))


async def _follow_journal(
    url: str, where: dict[str, Any], classes: tuple[str, ...] | None, *, as_json: bool
) -> int:
    from factwire.cli.journal_command import fact_line
    from factwire.journal import Filter
    from factwire.journal.chunks import decode_line

    console = Console(highlight=False)
    wanted = Filter(thread=where["thread_id"], classes=classes or ())
    async with open_for_reading(url) as journal:
        start = await journal.head() if where["since"] else where["cursor"]
        async for batch in journal.follow(start, filter=wanted if wanted.keys() else None):
            for seq, line in zip(batch.seqs, batch.lines(), strict=True):
                if as_json:
                    _write_line(line)
                else:
                    _print_line(console, fact_line(seq, decode_line(line)))
    return DONE


async def _follow_events(
    target: EdgeTarget, where: dict[str, Any], types: tuple[str, ...] | None, *, as_json: bool
) -> int:
    console = Console(highlight=False)
    async with edge_client(target) as client, client.events(**where, types=types) as events:
        async for event in events:
            if as_json:
                _write_line(msgspec.json.encode(event))
            else:
                _print_line(console, _event_line(event))
    return DONE


async def _follow_facts(
    target: EdgeTarget, where: dict[str, Any], classes: tuple[str, ...] | None, *, as_json: bool
) -> int:
    from factwire.cli.journal_command import fact_line
    from factwire.facts import encode_fact

    console = Console(highlight=False)
    async with edge_client(target) as client, client.facts(**where, classes=classes) as facts:
        async for placed in facts:
            if as_json:
                _write_line(encode_fact(placed.fact))
            else:
                _print_line(console, fact_line(placed.seq, placed.fact))
    return DONE


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _print_line(console: Console, line: Text) -> None:
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)
    sys.stdout.flush()


def _event_line(event: "Event") -> Text:
    """An event in one line: seq, time, thread, type and an excerpt."""
    time = _TIME.match(event.sent_at)
    line = Text(f"{event.seq:>8}  ", style="dim")
    line.append(f"{time[1]} {time[2]}  " if time else "", style="dim")
    line.append(f"{terminal_safe(event.scope.thread_id or '-', 30):<12}  ", style="bold")
    style = _STYLES.get(event.type.partition(".")[0], "default")
    line.append(f"{terminal_safe(event.type, 40):<24}  ", style=style)
    line.append(terminal_safe(_excerpt(event.payload), _EXCERPT), style="bright_black")
    return line


def _excerpt(payload: object) -> str:
    text = text_at(object_at(payload) or {}, *_EXCERPT_FIELDS)
    return msgspec.json.encode(payload).decode() if text is None else text
