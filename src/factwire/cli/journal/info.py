"""`factwire journal info`: what a journal holds and how far it has come."""

import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from factwire.cli.failures import DONE
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.terminal_text import harmless
from factwire.journal import Cursor, FollowerStats, Journal


class Info(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures; `cursor` is the head as text, facts up to `floor` were removed."""

    epoch: str
    head: int
    cursor: str
    floor: int
    facts: int
    threads: int
    bytes: int
    followers: tuple[FollowerStats, ...]
    last_activity: str | None


def info(
    url: Url, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show epoch, head, facts, threads, size, followers and last activity."""
    run(_info(url, as_json=as_json))


async def _info(url: str, *, as_json: bool) -> int:
    async with reading(url) as journal:
        found = await _figures(journal)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        _show(found)
    return DONE


async def _figures(journal: Journal) -> Info:
    stats = await journal.stats()
    return Info(
        epoch=stats.head.epoch,
        head=stats.head.seq,
        cursor=str(stats.head),
        floor=stats.floor.seq,
        facts=stats.facts,
        threads=stats.threads,
        bytes=stats.bytes,
        followers=stats.followers,
        last_activity=await _last_activity(journal, stats.head),
    )


async def _last_activity(journal: Journal, head: Cursor) -> str | None:
    """When the newest fact says that it was made; it is the one fact that is never removed."""
    if head.seq == 0:
        return None
    async for stretch in journal.read(Cursor(head.epoch, head.seq - 1), limit=1):
        for _, fact in stretch.facts():
            return fact.created_at
    return None


def _show(found: Info) -> None:
    rows = [
        ("epoch", found.epoch),
        ("head", f"{found.head:,}"),
        ("removed up to", f"{found.floor:,}" if found.floor else ""),
        ("facts", f"{found.facts:,}"),
        ("threads", f"{found.threads:,}"),
        ("size", decimal(found.bytes)),
        *(("follower", f"{each.name}, {each.lag:,} behind") for each in found.followers),
        ("last activity", found.last_activity or "never"),
    ]
    console = Console(highlight=False, soft_wrap=True)
    for name, value in rows:
        if value:
            console.print(Text.assemble((f"{name:<14} ", "bold"), harmless(value, 80)))
