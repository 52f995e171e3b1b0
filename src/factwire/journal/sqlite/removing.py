"""Retention and compaction on a live journal.

Everything is sealed first, so that the ids of what goes stay known. The plan is made beside the
writer; what readers need is looked at again, with no reader beginning, right where the plan is
carried out.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from factwire.facts.fact import Fact
from factwire.journal.cursor import Cursor
from factwire.journal.policy import Removal
from factwire.journal.removal import Holds, Plan
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.pruning import Pruned, facts_of, prune
from factwire.journal.sqlite.roster import open_actions, save_records
from factwire.journal.sqlite.store import Store


class Planner(Protocol):
    """A policy that has become a function."""

    def __call__(
        self, facts: Iterable[tuple[int, Fact]], holds: Holds, *, head: int, floor: int
    ) -> Plan: ...


async def remove(store: Store, planner: Planner, *, scan: bool) -> Removal:
    """Remove what a planner names; `scan` tells whether it looks at facts."""
    writer = store.writing()
    await store.seal()
    state = writer.state
    flush = partial(save_records, state.connection)
    await asyncio.wrap_future(writer.call(lambda: flush(state.dirty_records()), state.cleaned))
    plan = await store.pool.run(partial(_plan, store, planner, scan=scan))
    pruned = await asyncio.wrap_future(writer.look(partial(_carry_out, store, plan)))
    return Removal(
        removed=pruned.removed,
        freed=pruned.freed,
        floor=Cursor(store.epoch, pruned.place.floor),
        held_by=plan.held_by,
    )


def _plan(store: Store, planner: Planner, connection: Database, *, scan: bool) -> Plan:
    place = store.writing().state.place
    facts = facts_of(connection, place.base, place.sealed) if scan else ()
    holds = Holds(readers=store.readers.positions(), actions=open_actions(connection))
    return planner(facts, holds, head=place.sealed, floor=place.floor)


def _carry_out(store: Store, plan: Plan) -> Pruned:
    writer = store.writing()
    state = writer.state
    with store.readers.removing():
        holds = Holds(readers=store.readers.positions(), actions={})
        top = holds.reader_ceiling(state.place.head)
        plan.floor = max(state.place.floor, min(plan.floor, top))
        plan.drop = {seq for seq in plan.drop if plan.floor < seq <= top}
        plan.thread_floors = {
            thread: min(floor, top) for thread, floor in plan.thread_floors.items()
        }
        pruned = writer.transact(lambda: prune(state, plan))
        state.place = pruned.place
        state.cleaned()
        writer.moved()
    return pruned
