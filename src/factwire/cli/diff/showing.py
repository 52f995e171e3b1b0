"""What `factwire diff` does: reads both runs, compares them, and shows what was asked for.

It is a module of its own because it needs evidence, which no other command shall wait for.
"""

import sys
from typing import NamedTuple, cast

import msgspec
from rich.console import Console

from factwire.cli.diff.sides import Side
from factwire.cli.diff.view import drawn
from factwire.cli.failures import DONE, ISSUES, CliError
from factwire.cli.recording import chosen, note
from factwire.cli.terminal_text import harmless
from factwire.evidence.comparison import (
    ASPECTS,
    Account,
    Accountant,
    Aspect,
    Comparison,
    compare,
    narrowed,
)


class Request(NamedTuple):
    """What to show; `names` are what a person calls the two runs."""

    names: tuple[str, str]
    aspects: frozenset[Aspect] | None
    turn: int | None
    as_json: bool


def aspects_of(only: list[str] | None) -> frozenset[Aspect] | None:
    """The aspects that an option lists, None for all; raises `CliError` for any other word."""
    if only is None:
        return None
    words = [word.strip() for each in only for word in each.split(",") if word.strip()]
    known = ", ".join(ASPECTS)
    if not words:
        raise CliError(f"--only names no aspect; there are {known}")
    for word in words:
        if word not in ASPECTS:
            raise CliError(f"there is no aspect {harmless(word, 40)!r}; there are {known}")
    return frozenset(cast("list[Aspect]", words))


async def compared(both: tuple[Side, Side], wanted: Request) -> int:
    """Show how two runs differ; the exit code says whether they do."""
    one, other = [await _account(side) for side in both]
    comparison = narrowed(compare(one, other), aspects=wanted.aspects, turn=wanted.turn)
    if wanted.turn is not None and not comparison.turns:
        most = max(one.side.turns, other.side.turns)
        raise CliError(f"neither run has a turn {wanted.turn}; there are turns 1 to {most}")
    _show(comparison, wanted)
    return DONE if comparison.same else ISSUES


async def _account(side: Side) -> Account:
    async with side.open() as recording:
        family = await chosen(recording, side.thread, side.how)
        accountant = Accountant(family.thread_id, kept=recording.kept)
        async for _, fact in recording.facts(family):
            accountant.take(fact)
    account = accountant.account()
    if not account.side.facts:
        note(f"{recording.name} holds no facts")
    return account


def _show(comparison: Comparison, wanted: Request) -> None:
    if wanted.as_json:
        sys.stdout.buffer.write(msgspec.json.encode(comparison) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(drawn(comparison, wanted.names))
