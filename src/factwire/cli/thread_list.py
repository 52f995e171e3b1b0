"""`factwire threads`: the threads of a journal, or of an Edge, and what they wait for."""

import asyncio
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.edge.target import EdgeOption, edge_url
from factwire.cli.failures import DONE, CliError
from factwire.cli.journal.access import reading
from factwire.cli.journal.access import run as run_work
from factwire.cli.recording import note
from factwire.cli.run.options import JournalOption, WorkspaceOption
from factwire.cli.sections.lines import DIM, mark_of
from factwire.cli.terminal_text import counted, harmless
from factwire.journal import Filter, Journal, Thread

if TYPE_CHECKING:
    from factwire.cli.run.place import Place

STATUSES: Final = ("idle", "running", "waiting", "completed", "failed", "canceled")

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
_LONGEST_PAGE: Final = 1_000


class Listed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread as it is listed. `live` is whether a runtime works on it; one that reads as running
    and is not live was left behind by a process that died.
    """

    thread: Thread
    prompt: str | None
    live: bool


def threads(
    *,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="Only threads of this project.")
    ] = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help=f"Only these: {', '.join(STATUSES)}.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=_LONGEST_PAGE, help="So many at once.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="The next page, as the last one says.")
    ] = None,
    edge: EdgeOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List threads: status, title or first prompt, last activity, open approvals."""
    from factwire.cli.run.place import place

    if status is not None and status not in STATUSES:
        raise CliError(f"expected a status of {', '.join(STATUSES)}, got {harmless(status, 40)!r}")
    wanted: dict[str, Any] = {"project": project, "status": status}
    wanted |= {"limit": limit, "after": after}
    url = edge_url(edge, journal)
    if url is not None:
        from factwire.cli.edge.listing import list_threads

        run_work(list_threads(url, **wanted, as_json=as_json))
    run_work(_threads(place(journal=journal, workspace=workspace), wanted, as_json=as_json))


async def _threads(where: "Place", wanted: dict[str, Any], *, as_json: bool) -> int:
    from factwire.runtime.control import running

    url = where.configuration.journal
    if await asyncio.to_thread(_is_missing, url):
        _show([], None, as_json=as_json)
        return DONE
    runtimes = await running(where.configuration.data)
    live = {now.thread_id for each in runtimes for now in each.threads if now.turn_id is not None}
    async with reading(url) as journal:
        page = await journal.threads(**wanted)
        listed = [
            Listed(
                thread=thread,
                prompt=await _first_prompt(journal, thread.thread_id),
                live=thread.thread_id in live,
            )
            for thread in page.threads
        ]
    _show(listed, None if page.after is None else str(page.after), as_json=as_json)
    return DONE


def _is_missing(url: str) -> bool:
    """Whether nothing was ever run here; that is no failure."""
    from pathlib import Path

    scheme, _, rest = url.partition(":")
    return scheme == "sqlite" and not Path(rest.partition("?")[0]).exists()


async def _first_prompt(journal: Journal, thread_id: str) -> str | None:
    wanted = Filter(thread=thread_id, classes=("turn.submitted",))
    async for stretch in journal.read(filter=wanted, limit=1):
        for _, fact in stretch.facts():
            prompt = fact.payload.get("prompt")
            return prompt if isinstance(prompt, str) else None
    return None


def _show(listed: list[Listed], after: str | None, *, as_json: bool) -> None:
    if as_json:
        page = {"threads": listed, "after": after}
        sys.stdout.buffer.write(msgspec.json.encode(page) + b"\n")
        return
    console = Console(highlight=False)
    if not listed:
        note('no threads; begin one with: factwire run demo "hello"')
    for each in listed:
        _print(console, _row(each))
        for action in each.thread.open_actions:
            console.print(
                f"    ? factwire approve {harmless(action)}", markup=False, soft_wrap=True
            )
    if after is not None:
        note(f"there are more: --after {after}")


def _print(console: Console, line: Text) -> None:
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)


def _row(each: Listed) -> Text:
    thread = each.thread
    line = mark_of(thread.status)
    line.append(f" {_standing(each):<10}", style="bold")
    line.append(f"{harmless(thread.thread_id)}  ")
    line.append(f"{_time(thread.updated_at)}  ", style=DIM)
    line.append(harmless(thread.title or each.prompt or "", 60))
    line.append(f"  {counted(thread.fact_count, 'fact')}", style=DIM)
    return line


def _standing(each: Listed) -> str:
    left = each.thread.status == "running" and not each.live
    return "stale" if left else each.thread.status


def _time(text: str) -> str:
    match = _TIME.match(text)
    return f"{match[1]} {match[2]}" if match else harmless(text, 16)
