"""`factwire journal compact`: take out what is no longer needed, or say what would go."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal

from factwire.cli.failures import DONE, CliError
from factwire.cli.journal.access import Url, reading, run, writing
from factwire.cli.journal.progress import progress
from factwire.cli.terminal_text import counted, harmless
from factwire.facts import Fact
from factwire.facts.ids import id_of
from factwire.journal import Compaction, Filter, Journal, Retention
from factwire.journal.blobs.references import every_thread
from factwire.journal.catalogue import ACTION_OPENERS
from factwire.journal.chunk import decode_line
from factwire.journal.removal import Holds, Plan, plan_compaction, plan_retention


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the options ask for: retention first, then compaction of what is left."""

    retention: Retention | None
    compaction: Compaction | None


class Done(msgspec.Struct, kw_only=True):
    """What went, or would go."""

    removed: int = 0
    freed: int = 0
    held_by: tuple[str, ...] = ()

    def add(self, removed: int, freed: int, held_by: tuple[str, ...]) -> None:
        self.removed += removed
        self.freed += freed
        self.held_by = tuple(sorted({*self.held_by, *held_by}))


def compact(
    url: Url,
    *,
    keep_deltas: Annotated[
        bool, typer.Option("--keep-deltas", help="Leave increments in; only retention is done.")
    ] = False,
    spare: Annotated[
        int, typer.Option(min=0, help="Leave the increments among so many newest facts in.")
    ] = 0,
    keep_facts: Annotated[
        int | None, typer.Option(min=0, help="Retention: keep so many newest facts.")
    ] = None,
    keep_per_thread: Annotated[
        int | None, typer.Option(min=0, help="Retention: keep so many newest facts a thread.")
    ] = None,
    max_age: Annotated[
        int | None, typer.Option(min=0, help="Retention: keep facts so many seqs behind the head.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
) -> None:
    """Drop increments whose final text is there too and, on request, old facts.

    What an open action or an open follower still needs stays.
    """
    bounds = Retention(max_age=max_age, keep_facts=keep_facts, keep_per_thread=keep_per_thread)
    policy = Policy(
        retention=None if bounds == Retention() else bounds,
        compaction=None if keep_deltas else Compaction(spare=spare),
    )
    if policy == Policy(retention=None, compaction=None):
        raise CliError("--keep-deltas leaves nothing to do; name what to keep, as --keep-facts N")
    run(_would_compact(url, policy) if dry_run else _compact(url, policy))


async def _compact(url: str, policy: Policy) -> int:
    done = Done()
    async with writing(url, create=False) as journal:
        with progress("compacting"):
            if policy.retention:
                removal = await journal.retain(policy.retention)
                done.add(removal.removed, removal.freed, removal.held_by)
            if policy.compaction:
                removal = await journal.compact(policy.compaction)
                done.add(removal.removed, removal.freed, removal.held_by)
    _tell("removed", done)
    return DONE


async def _would_compact(url: str, policy: Policy) -> int:
    async with reading(url) as journal:
        with progress("looking"):
            stats = await journal.stats()
            holds = Holds(readers={}, actions=await _open_actions(journal))
            rehearsal = _Rehearsal(
                journal=journal, holds=holds, head=stats.head.seq, floor=stats.floor.seq
            )
            if policy.retention:
                await rehearsal.act(partial(plan_retention, policy.retention))
            if policy.compaction:
                await rehearsal.act(partial(plan_compaction, policy.compaction))
    _tell("would remove", rehearsal.done)
    return DONE


class _Rehearsal(msgspec.Struct, kw_only=True):
    """Makes the plans that a backend would make, one after the other, and carries out none."""

    journal: Journal
    holds: Holds
    head: int
    floor: int
    gone: set[int] = msgspec.field(default_factory=set[int])
    done: Done = msgspec.field(default_factory=Done)

    async def act(self, plan: Callable[..., Plan]) -> None:
        facts = _Facts(self.journal, self.head, self.gone)
        made = await asyncio.to_thread(plan, facts, self.holds, head=self.head, floor=self.floor)
        freed = {seq: size for seq, size in facts.sizes.items() if not made.keeps(seq)}
        self.done.add(len(freed), sum(freed.values()), made.held_by)
        self.floor = made.floor
        self.gone |= freed.keys()


class _Facts:
    """The facts of a journal for a plan, which is made in a thread and wants a plain iterable."""

    def __init__(self, journal: Journal, head: int, gone: set[int]) -> None:
        self.sizes: dict[int, int] = {}
        self._stretches = aiter(journal.read())
        self._loop = asyncio.get_running_loop()
        self._head = head
        self._gone = gone

    def __iter__(self) -> Iterator[tuple[int, Fact]]:
        while True:
            pending = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            rows = pending.result()
            if rows is None:
                return
            for seq, line in rows:
                if seq <= self._head and seq not in self._gone:
                    self.sizes[seq] = len(line) + 1
                    yield seq, decode_line(line)

    async def _next(self) -> list[tuple[int, bytes]] | None:
        async for stretch in self._stretches:
            return list(zip(stretch.seqs, stretch.lines(), strict=True))
        return None


async def _open_actions(journal: Journal) -> dict[str, int]:
    """Thread → seq of its oldest request that nobody has answered."""
    found: dict[str, int] = {}
    async for thread in every_thread(journal):
        row = await journal.thread(thread)
        if row is not None and row.open_actions and thread not in found:
            seqs = await _requests(journal, thread, set(row.open_actions))
            if seqs:
                found[thread] = min(seqs)
    return found


async def _requests(journal: Journal, thread: str, actions: set[str]) -> list[int]:
    wanted = Filter(thread=thread, classes=tuple(ACTION_OPENERS))
    return [
        seq
        async for stretch in journal.read(filter=wanted)
        for seq, fact in stretch.facts()
        if id_of(fact, "actionId") in actions
    ]


def _tell(verb: str, done: Done) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{verb} {counted(done.removed, 'fact')}, {decimal(done.freed)}")
    for name in done.held_by:
        console.print(f"held back by {harmless(name)}", markup=False)
