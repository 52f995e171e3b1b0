"""`factwire threads`: the threads of a journal, or of an Edge, and what they wait for."""

import asyncio
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
    WorkspaceOption,
    choose_edge,
    edge_client,
    open_for_reading,
    run_work,
)
from factwire.cli.terminal import (
    DIM,
    DONE,
    CliError,
    count_of,
    print_note,
    status_mark,
    terminal_safe,
)
from factwire.facts.status_words import THREAD_WORDS, word_of
from factwire.journal import CatalogueThread, Filter, Journal

if TYPE_CHECKING:
    from factwire.cli.command_context import CommandContext
    from factwire.facts.resources import Page
    from factwire.facts.resources import Thread as EdgeThread


STATUSES: Final = {word: status for status, word in THREAD_WORDS.items()}
"""Status as a person reads it → what a journal calls it."""

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
_LONGEST_PAGE: Final = 1_000


class ListedThread(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread as it is listed. `live` is whether a runtime works on it; one that reads as running
    and is not live was left behind by a process that died.
    """

    thread: CatalogueThread
    prompt: str | None
    live: bool


def threads(
    *,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="Only threads of this project.")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS", help=f"Only threads with this status: {', '.join(STATUSES)}."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=_LONGEST_PAGE, help="The number of threads per page.")
    ] = 20,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR", help="The next page; the value is printed at the end of a page."
        ),
    ] = None,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List threads: status, title or first prompt, last activity, open approvals."""
    from factwire.cli.command_context import load_context

    if status is not None and status not in {*STATUSES, *THREAD_WORDS}:
        raise CliError(
            f"expected one of the statuses {', '.join(STATUSES)}, got {terminal_safe(status, 40)!r}"
        )
    wanted: dict[str, Any] = {"project": project, "status": STATUSES.get(status or "", status)}
    wanted |= {"limit": limit, "after": after}
    target = choose_edge(edge, hub, device, journal)
    if target is not None:
        run_work(list_edge_threads(target, **wanted, as_json=as_json))
    run_work(
        _list_journal_threads(
            load_context(journal=journal, workspace=workspace), wanted, as_json=as_json
        )
    )


async def _list_journal_threads(
    where: "CommandContext", wanted: dict[str, Any], *, as_json: bool
) -> int:
    from factwire.runtime.control import SocketControls

    url = where.configuration.journal
    if await asyncio.to_thread(_is_missing, url):
        _show_rows([], None, as_json=as_json)
        return DONE
    runtimes = await SocketControls(where.configuration.data).status()
    live = {now.thread_id for each in runtimes for now in each.threads if now.turn_id is not None}
    async with open_for_reading(url) as journal:
        page = await journal.threads(**wanted)
        listed = [
            ListedThread(
                thread=thread,
                prompt=await _first_prompt(journal, thread.thread_id),
                live=thread.thread_id in live,
            )
            for thread in page.threads
        ]
    _show_rows(listed, None if page.after is None else str(page.after), as_json=as_json)
    return DONE


def _is_missing(url: str) -> bool:
    """Whether nothing was ever run here; that is no failure."""
    from pathlib import Path

    scheme, _, rest = url.partition(":")
    return scheme == "sqlite" and not Path(rest.partition("?")[0]).exists()


async def _first_prompt(journal: Journal, thread_id: str) -> str | None:
    wanted = Filter(thread=thread_id, classes=("turn.submitted",))
    async for batch in journal.read(filter=wanted, limit=1):
        for _, fact in batch.facts():
            prompt = fact.payload.get("prompt")
            return prompt if isinstance(prompt, str) else None
    return None


def _show_rows(listed: list[ListedThread], after: str | None, *, as_json: bool) -> None:
    if as_json:
        page = {"threads": listed, "after": after}
        sys.stdout.buffer.write(msgspec.json.encode(page) + b"\n")
        return
    console = Console(highlight=False)
    if not listed:
        print_note('no threads; start one with: factwire run demo "hello"')
    for each in listed:
        _print_row(console, _row_line(each))
        for action in each.thread.open_actions:
            console.print(
                f"    ? factwire approve {terminal_safe(action)}", markup=False, soft_wrap=True
            )
    if after is not None:
        print_note(f"more threads: --after {after}")


def _print_row(console: Console, line: Text) -> None:
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)


def _row_line(each: ListedThread) -> Text:
    thread = each.thread
    line = status_mark(thread.status)
    line.append(f" {_status_of(each):<10}", style="bold")
    line.append(f"{terminal_safe(thread.thread_id)}  ")
    line.append(f"{_time_text(thread.updated_at)}  ", style=DIM)
    line.append(terminal_safe(thread.title or each.prompt or "", 60))
    line.append(f"  {count_of(thread.fact_count, 'fact')}", style=DIM)
    return line


def _status_of(each: ListedThread) -> str:
    left = each.thread.status == "running" and not each.live
    return "stale" if left else word_of(THREAD_WORDS, each.thread.status)


def _time_text(text: str) -> str:
    match = _TIME.match(text)
    return f"{match[1]} {match[2]}" if match else terminal_safe(text, 16)


_MOST: Final = 500


async def list_edge_threads(
    target: EdgeTarget,
    *,
    project: str | None,
    status: str | None,
    limit: int,
    after: str | None,
    as_json: bool,
) -> int:
    """Print one page of an Edge's threads."""
    wanted: dict[str, Any] = {"project_id": project, "activity": status, "cursor": after}
    async with edge_client(target) as client:
        page = await client.threads(**wanted, limit=min(limit, _MOST)).page()
    if as_json:
        document = {"threads": page.items, "after": page.next}
        sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    else:
        _show_page(page, target.flags)
    return DONE


def _show_page(page: "Page[EdgeThread]", flags: str) -> None:
    console = Console(highlight=False)
    cut = {"no_wrap": True, "overflow": "ellipsis"} if console.is_terminal else {"soft_wrap": True}
    if not page.items:
        print_note("no matching threads on this Edge")
    for thread in page.items:
        console.print(_thread_line(thread), **cut)  # pyright: ignore[reportArgumentType]
        for approval in thread.open_approvals:
            line = f"    ? factwire approve {terminal_safe(approval + flags)}"
            console.print(line, markup=False, soft_wrap=True)
    if page.next is not None:
        print_note(f"more threads: --after {page.next}")


def _thread_line(thread: "EdgeThread") -> Text:
    line = status_mark(thread.activity)
    line.append(f" {THREAD_WORDS[thread.activity]:<10}", style="bold")
    line.append(f"{terminal_safe(thread.thread_id)}  ")
    match = _TIME.match(thread.updated_at)
    line.append(f"{match[1]} {match[2]}  " if match else "", style=DIM)
    line.append(terminal_safe(thread.title or "", 60))
    if thread.queued_runs:
        line.append(f"  {count_of(len(thread.queued_runs), 'run')} queued", style=DIM)
    return line
