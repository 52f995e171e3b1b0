"""`factwire journal verify`: is every byte the one that was committed; if not, from where on."""

import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from factwire.cli.failures import DONE, ISSUES
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.journal.progress import progress
from factwire.cli.terminal_text import counted, harmless
from factwire.journal import Damage, JournalCorrupt, VerifyReport


def verify(
    url: Url, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Walk the hash chain from end to end.

    Exit code 0: intact. 1: damaged, with the first bad position. 2: it could not be read.
    """
    run(_verify(url, as_json=as_json))


async def _verify(url: str, *, as_json: bool) -> int:
    found = await _walk(url)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(_as_json(found)) + b"\n")
    else:
        _show(found)
    return DONE if isinstance(found, VerifyReport) and found.ok else ISSUES


async def _walk(url: str) -> VerifyReport | Damage:
    """The report, or the damage alone where it is such that the journal cannot be opened."""
    try:
        async with reading(url) as journal:
            with progress("verifying"):
                return await journal.verify()
    except JournalCorrupt as error:
        first = error.first or 1
        return Damage(first=first, last=error.last or first, reason=error.reason)


def _as_json(found: VerifyReport | Damage) -> dict[str, Any]:
    if isinstance(found, Damage):
        return {"ok": False, "facts": None, "intact": None, "chain": None, "damage": found}
    return {
        "ok": found.ok,
        "facts": found.facts,
        "intact": found.intact,
        "chain": found.head.hex(),
        "damage": found.damage,
    }


def _show(found: VerifyReport | Damage) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if isinstance(found, Damage):
        _show_damage(console, found)
        console.print("it cannot be opened, so nothing more is known")
        return
    facts = counted(found.facts, "fact")
    if found.damage is None:
        console.print(f"[green]intact[/]: {facts}, up to {found.intact:,}")
        console.print(f"[dim]chain {found.head.hex()}[/]")
    else:
        _show_damage(console, found.damage)
        console.print(f"intact before that: {facts}, up to {found.intact:,}")


def _show_damage(console: Console, damage: Damage) -> None:
    first, last = f"{damage.first:,}", f"{damage.last:,}"
    console.print(f"[red]damaged[/] at {first if first == last else f'{first}–{last}'}:", end=" ")
    console.print(harmless(damage.reason), markup=False)
