"""What `factwire benchmark` does: reads trials, compares them, shows and records the result.

It is a module of its own because it needs evidence, which no other command shall wait for.
"""

import sys
from typing import Any, NamedTuple

import msgspec
from rich.console import Console

from factwire.cli.benchmark.recording import recorded
from factwire.cli.benchmark.view import drawn, listed
from factwire.cli.diff.sides import Side
from factwire.cli.failures import DONE, ISSUES
from factwire.cli.recording import Recording, chosen, note
from factwire.cli.threads import Family
from factwire.evidence.comparison import Trial, compare_trials, trials
from factwire.facts import Fact


class Request(NamedTuple):
    """What to show; `names` are what a person calls the two runs."""

    names: tuple[str, str]
    solved_at: float
    record: str | None
    as_json: bool


async def tried(side: Side, solved_at: float, *, as_json: bool) -> int:
    """Show the trials of one side."""
    found = await _trials(side)
    if as_json:
        _print_json(found)
    else:
        Console(highlight=False).print(listed(found, solved_at))
    return DONE


async def compared(both: tuple[Side, Side], wanted: Request) -> int:
    """Show how trials came out; the exit code says whether they did so differently."""
    one, other = [await _trials(side) for side in both]
    comparison = compare_trials(one, other, solved_at=wanted.solved_at)
    if wanted.record is not None:
        await recorded(wanted.record, comparison, wanted.names)
    if wanted.as_json:
        _print_json(comparison)
    else:
        Console(highlight=False).print(drawn(comparison, wanted.names))
    return DONE if comparison.same else ISSUES


async def _trials(side: Side) -> list[Trial]:
    async with side.open() as recording:
        family = await _family(recording, side.thread)
        told = [fact async for _, fact in recording.facts(family) if _tells(fact)]
        found = trials(told)
    if not found:
        note(f"{recording.name} holds no trials")
    return found


def _tells(fact: Fact) -> bool:
    """Whether a fact tells of trials; a benchmark's others may be too many to hold."""
    return (fact.event_class or "").startswith(("benchmark.", "cost."))


async def _family(recording: Recording, thread: str | None) -> Family:
    """A thread and its children, or all threads together: a benchmark may have one for each."""
    if thread is not None:
        return await chosen(recording, thread)
    known = await recording.kinship(None)
    return Family(thread_id=None, members=frozenset(known.threads), alone=True)


def _print_json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()
