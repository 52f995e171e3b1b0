"""`factwire journal tail`: the newest facts, and each new one as it is committed."""

import re
import sys
from collections import deque
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.failures import DONE
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.journal.filter import (
    After,
    Classes,
    Project,
    Run,
    Session,
    Task,
    Thread,
    Turn,
    chosen,
)
from factwire.cli.terminal_text import harmless
from factwire.facts import Fact
from factwire.journal import Cursor, CursorExpired, Filter, Journal
from factwire.journal.chunk import decode_line
from factwire.journal.filter import thread_of

Row = tuple[int, bytes]
"""A seq and the stored line."""

_FIRST_WINDOW: Final = 64
_WIDER: Final = 8
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_TELLING: Final = ("text", "delta", "message", "prompt", "output", "summary", "error", "reason")
"""Payload fields that say most, best first; without one the payload is shown as JSON."""

_EXCERPT: Final = 120
_STYLES: Final = {
    "action": "yellow",
    "error": "red",
    "model": "green",
    "reasoning": "bright_black",
    "run": "blue",
    "text": "green",
    "tool": "cyan",
    "turn": "magenta",
}
"""Family of a class → its colour."""


def tail(
    url: Url,
    *,
    lines: Annotated[int, typer.Option(min=0, help="Begin with so many of the newest.")] = 10,
    after: After = None,
    project: Project = None,
    session: Session = None,
    thread: Thread = None,
    run_id: Run = None,
    turn: Turn = None,
    task: Task = None,
    classes: Classes = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they are stored (NDJSON).")
    ] = False,
) -> None:
    """Follow a journal live, one readable line a fact, until Ctrl-C."""
    wanted = chosen(
        classes, project=project, session=session, thread=thread, run=run_id, turn=turn, task=task
    )
    show = _Raw() if as_json else _Readable()
    run(_tail(url, after, lines, wanted, show))


async def _tail(
    url: str, after: str | None, lines: int, wanted: Filter | None, show: "_Raw | _Readable"
) -> int:
    async with reading(url) as journal:
        start: Cursor | str | None = after
        if after is None:
            rows, start = await newest(journal, lines, wanted)
            show(rows)
        async for stretch in journal.follow(start, filter=wanted):
            show(list(zip(stretch.seqs, stretch.lines(), strict=True)))
    return DONE


async def newest(journal: Journal, count: int, wanted: Filter | None) -> tuple[list[Row], Cursor]:
    """The last `count` facts that pass, and the cursor after them.

    It looks at a window before the head, and at a wider one until enough have passed.
    """
    stats = await journal.stats()
    head, window = stats.head, _FIRST_WINDOW if count else 0
    while True:
        start = max(head.seq - window, stats.floor.seq)
        found: deque[Row] = deque(maxlen=count)
        with suppress(CursorExpired):
            await _gather(found, journal, Cursor(head.epoch, start), head, wanted)
            if len(found) == count or start == stats.floor.seq:
                return list(found), head
        if start == stats.floor.seq:
            await _gather(found, journal, None, head, wanted)
            return list(found), head
        window *= _WIDER


async def _gather(
    found: deque[Row], journal: Journal, after: Cursor | None, head: Cursor, wanted: Filter | None
) -> None:
    async for stretch in journal.read(after, filter=wanted):
        rows = zip(stretch.seqs, stretch.lines(), strict=True)
        found.extend((seq, line) for seq, line in rows if seq <= head.seq)
        if stretch.last >= head.seq:
            return


class _Raw:
    """Writes the stored bytes."""

    def __call__(self, rows: list[Row]) -> None:
        sys.stdout.buffer.writelines(line + b"\n" for _, line in rows)
        sys.stdout.buffer.flush()


class _Readable:
    """Writes one line a fact; on a terminal it is cut to the width."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def __call__(self, rows: list[Row]) -> None:
        for seq, line in rows:
            text = described(seq, decode_line(line))
            if self._console.is_terminal:
                self._console.print(text, no_wrap=True, overflow="ellipsis")
            else:
                self._console.print(text, soft_wrap=True)
        sys.stdout.flush()


def described(seq: int, fact: Fact) -> Text:
    """A fact in one line: seq, time, thread, class, title and an excerpt."""
    event_class = fact.event_class or "-"
    line = Text()
    line.append(f"{seq:>8}  {_time(fact.created_at)}  ", style="dim")
    line.append(f"{harmless(thread_of(fact) or '-', 24):<12}  ", style="bold")
    line.append(f"{harmless(event_class, 40):<20}  ", style=_style(event_class, fact.status))
    line.append(harmless(fact.title, 80))
    excerpt = harmless(_excerpt(fact), _EXCERPT)
    if excerpt:
        line.append(f"  {excerpt}", style="bright_black")
    return line


def _style(event_class: str, status: str) -> str:
    if status == "failed" or event_class.endswith((".failed", ".error")):
        return "red"
    return _STYLES.get(event_class.partition(".")[0], "default")


def _time(created_at: str) -> str:
    match = _TIME.match(created_at)
    return f"{match[1]} {match[2]}" if match else f"{harmless(created_at, 18):<19}"


def _excerpt(fact: Fact) -> str:
    payload: dict[str, Any] = fact.payload
    for name in _TELLING:
        if isinstance(payload.get(name), str) and payload[name]:
            return payload[name]
    if fact.detail or not payload:
        return fact.detail or ""
    return msgspec.json.encode(payload).decode()
