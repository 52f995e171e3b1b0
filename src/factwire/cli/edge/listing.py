"""The threads of an Edge, as `factwire threads` lists them."""

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from factwire.cli.edge.target import edge_client
from factwire.cli.failures import DONE
from factwire.cli.recording import note
from factwire.cli.sections.lines import DIM, mark_of
from factwire.cli.terminal_text import counted, harmless

if TYPE_CHECKING:
    from factwire.client import Page, Thread

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
_MOST: Final = 500


async def list_threads(
    url: str,
    *,
    project: str | None,
    status: str | None,
    limit: int,
    after: str | None,
    as_json: bool,
) -> int:
    """Print one page of an Edge's threads."""
    wanted: dict[str, Any] = {"project_id": project, "activity": status, "cursor": after}
    async with edge_client(url) as client:
        page = await client.threads(**wanted, limit=min(limit, _MOST)).page()
    if as_json:
        said = {"threads": page.items, "after": page.next}
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    else:
        _show(page)
    return DONE


def _show(page: "Page[Thread]") -> None:
    console = Console(highlight=False)
    cut = {"no_wrap": True, "overflow": "ellipsis"} if console.is_terminal else {"soft_wrap": True}
    if not page.items:
        note("this Edge has no such threads")
    for thread in page.items:
        console.print(_row(thread), **cut)  # pyright: ignore[reportArgumentType]
        for approval in thread.open_approvals:
            line = f"    ? factwire approve {harmless(approval)}"
            console.print(line, markup=False, soft_wrap=True)
    if page.next is not None:
        note(f"there are more: --after {page.next}")


def _row(thread: "Thread") -> Text:
    line = mark_of(thread.activity)
    line.append(f" {thread.activity:<10}", style="bold")
    line.append(f"{harmless(thread.thread_id)}  ")
    match = _TIME.match(thread.updated_at)
    line.append(f"{match[1]} {match[2]}  " if match else "", style=DIM)
    line.append(harmless(thread.title or "", 60))
    if thread.queued_runs:
        line.append(f"  {counted(len(thread.queued_runs), 'run')} queued", style=DIM)
    return line
