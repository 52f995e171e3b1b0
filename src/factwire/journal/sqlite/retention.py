"""Retention, compaction and restore on a live SQLite journal.

Everything is sealed first, so that the ids of what goes stay known. The plan is made beside the
writer; what readers need is looked at again, with no reader beginning, right where the plan is
carried out. A restored piece is one transaction, and the ids of its removed facts are as safe as
the facts beside them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, Protocol

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chunks import (
    GENESIS,
    Chunk,
    RecordBody,
    Truncated,
    build_record,
    decode_line,
    thin_chunk,
)
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.retention import (
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RestorePiece,
    cut_pieces,
    ensure_empty,
    ensure_new,
    list_removed,
)
from factwire.journal.sqlite.handle import SqliteHandle
from factwire.journal.sqlite.indexes import RUN_IDS, digest_ids
from factwire.journal.sqlite.journal_state import (
    JournalEnds,
    WriterState,
    insert_removed,
    list_open_actions,
    save_records,
    sum_retired,
)
from factwire.journal.sqlite.schema import (
    Database,
    insert_chunk,
    insert_record,
    load_chunks_after,
    replace_chunk,
    set_meta,
)
from factwire.journal.sqlite.writer import SqliteWriter
from factwire.journal.thread_catalogue import CatalogueRecord


class PruneResult(msgspec.Struct):
    """What a removal came to, and the ends of the journal after it."""

    removed: int
    freed: int
    place: JournalEnds


def load_facts(connection: Database, base: int, head: int) -> Iterator[tuple[int, Fact]]:
    """Every fact that is left, in order."""
    for chunk in load_chunks_after(connection, base, head):
        yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)


def prune(state: WriterState, plan: RemovalPlan) -> PruneResult:
    """Remove what a plan names, inside the caller's transaction."""
    connection, place = state.connection, state.place
    removed = freed = gone = 0
    contents: list[RecordBody] = []
    last_gone: Chunk | None = None
    top = max(plan.drop, default=plan.floor)
    for chunk in list(load_chunks_after(connection, place.base, max(top, plan.floor))):
        dropped = _retire(connection, chunk, plan)
        if not dropped and chunk.last > plan.floor:
            continue
        removed += dropped
        freed += len(chunk.data)
        if chunk.last <= plan.floor:
            connection.execute("DELETE FROM chunks WHERE first = ?", (chunk.first,))
            last_gone = chunk
            gone += dropped
        else:
            rest, content = thin_chunk(chunk, plan.keeps)
            replace_chunk(connection, rest)
            contents.append(content)
            freed -= len(rest.data)
    if last_gone is not None:
        place = _rebase(connection, place, last_gone)
        contents.append(Truncated(floor=place.base, hash=place.base_hash, dropped=gone))
    place = _record(connection, place, contents)
    place = msgspec.structs.replace(
        place,
        floor=plan.floor,
        removed=place.removed + removed,
        gap=max([place.gap, *plan.thread_floors.values()]),
    )
    set_meta(connection, "floor", place.floor)
    set_meta(connection, "removed", place.removed)
    _raise_floors(state, plan)
    return PruneResult(removed, freed, place)


def _retire(connection: Database, chunk: Chunk, plan: RemovalPlan) -> int:
    gone = list_removed(chunk, plan.keeps)
    insert_removed(connection, gone)
    return len(gone)


def _rebase(connection: Database, place: JournalEnds, gone: Chunk) -> JournalEnds:
    # Records that stood right after the last removed chunk are behind the new beginning too.
    sql = "SELECT hash FROM records WHERE after = ? ORDER BY number DESC LIMIT 1"
    digest = connection.execute(sql, (gone.last,)).get or gone.hash
    connection.execute("DELETE FROM records WHERE after <= ?", (gone.last,))
    connection.execute("DELETE FROM segments WHERE last <= ?", (gone.last,))
    set_meta(connection, "base", gone.last)
    set_meta(connection, "base_hash", digest)
    return msgspec.structs.replace(place, base=gone.last, base_hash=digest)


def _record(connection: Database, place: JournalEnds, contents: list[RecordBody]) -> JournalEnds:
    digest = place.hash
    for content in contents:
        record = build_record(place.head, digest, content)
        insert_record(connection, record)
        digest = record.hash
    return msgspec.structs.replace(place, hash=digest)


def _raise_floors(state: WriterState, plan: RemovalPlan) -> None:
    for thread, floor in plan.thread_floors.items():
        if state.last_sequence(thread) is not None:
            state.threads[thread].floor = floor
            state.dirty.add(thread)
        state.connection.execute("DELETE FROM snapshots WHERE thread = ?", (thread,))
    save_records(state.connection, state.dirty_records())


class Planner(Protocol):
    """A policy that has become a function."""

    def __call__(
        self, facts: Iterable[tuple[int, Fact]], holds: Holds, *, head: int, floor: int
    ) -> RemovalPlan: ...


async def remove(store: SqliteHandle, planner: Planner, *, scan: bool) -> RemovalResult:
    """Remove what a planner names; `scan` tells whether it looks at facts."""
    writer = store.require_writer()
    await store.seal()
    state = writer.state
    flush = partial(save_records, state.connection)
    await asyncio.wrap_future(writer.call(lambda: flush(state.dirty_records()), state.mark_clean))
    plan = await store.pool.run(partial(_plan, store, planner, scan=scan))
    pruned = await asyncio.wrap_future(writer.inspect(partial(_carry_out, store, plan)))
    return RemovalResult(
        removed=pruned.removed,
        freed=pruned.freed,
        floor=Cursor(store.epoch, pruned.place.floor),
        held_by=plan.held_by,
    )


def _plan(
    store: SqliteHandle, planner: Planner, connection: Database, *, scan: bool
) -> RemovalPlan:
    place = store.require_writer().state.place
    facts = load_facts(connection, place.base, place.sealed) if scan else ()
    holds = Holds(readers=store.readers.positions(), actions=list_open_actions(connection))
    return planner(facts, holds, head=place.sealed, floor=place.floor)


def _carry_out(store: SqliteHandle, plan: RemovalPlan) -> PruneResult:
    writer = store.require_writer()
    state = writer.state
    with store.readers.hold_readers():
        holds = Holds(readers=store.readers.positions(), actions={})
        top = holds.reader_ceiling(state.place.head)
        plan.floor = max(state.place.floor, min(plan.floor, top))
        plan.drop = {seq for seq in plan.drop if plan.floor < seq <= top}
        plan.thread_floors = {
            thread: min(floor, top) for thread, floor in plan.thread_floors.items()
        }
        pruned = writer.transact(lambda: prune(state, plan))
        state.place = pruned.place
        state.mark_clean()
        writer.note_chain_change()
    return pruned


ROWS: Final = 1_000
"""Rows of removed facts or threads that are read or written at once."""


async def restore(store: SqliteHandle, restoration: Restoration) -> Cursor:
    """Write what is given; the journal must be empty until then."""
    writer = store.require_writer()
    state, before = writer.state, 0
    for piece in cut_pieces(restoration):
        write = partial(_write, state, piece, restoration.floor, before)
        await asyncio.wrap_future(
            writer.call(write, partial(_advance, writer, piece, restoration.floor))
        )
        before = 0 if piece.chunk is None else piece.last
        if len(state.recent.seqs) >= RUN_IDS:
            await store.seal()
    threads = iter(restoration.threads)
    while records := tuple(islice(threads, ROWS)):
        save = partial(save_records, state.connection, records)
        await asyncio.wrap_future(writer.call(save, partial(_note_floors, state, records)))
    floor = partial(set_meta, state.connection, "floor", restoration.floor)
    await asyncio.wrap_future(writer.call(floor, partial(_raise_floor, state, restoration.floor)))
    store.bell.notify()
    return Cursor(store.epoch, state.place.head)


async def stream_removed(store: SqliteHandle) -> AsyncIterator[RemovedFact]:
    """What is kept of each removed fact, in order."""
    after = 0
    while rows := await store.pool.run(partial(_load_removed_after, after=after)):
        for each in rows:
            yield each
        after = rows[-1].seq


def _load_removed_after(connection: Database, after: int) -> list[RemovedFact]:
    sql = "SELECT seq, id, sequence, digest, sum FROM retired WHERE seq > ? ORDER BY seq LIMIT ?"
    found: list[RemovedFact] = []
    for seq, fact_id, sequence, digest, check in connection.execute(sql, (after, ROWS)):
        if sum_retired(seq, fact_id, sequence, digest) != check:
            raise JournalCorrupt("the record of a removed fact was changed", first=seq)
        found.append(RemovedFact(seq, fact_id, sequence, digest))
    return found


def _write(state: WriterState, piece: RestorePiece, floor: int, before: int) -> None:
    connection, place = state.connection, state.place
    if place.head != before:
        ensure_empty(place.head)
    ensure_new(fact_id for fact_id in piece.ids() if state.find_existing(fact_id) is not None)
    insert_removed(connection, piece.removed)
    set_meta(connection, "removed", place.removed + piece.removed_count)
    if piece.chunk is not None:
        insert_chunk(connection, piece.chunk)
        set_meta(connection, "base", floor)
        set_meta(connection, "base_hash", GENESIS)
    for record in piece.records:
        insert_record(connection, record)


def _advance(writer: SqliteWriter, piece: RestorePiece, floor: int) -> None:
    state = writer.state
    ids = piece.ids()
    state.recent.add(ids, digest_ids(ids), ids.values())
    state.place = msgspec.structs.replace(
        state.place, removed=state.place.removed + piece.removed_count
    )
    if piece.chunk is not None:
        state.recent.keys.append((piece.first, piece.chunk.groups()))
        ends = {"head": piece.last, "hash": piece.end, "base": floor, "base_hash": GENESIS}
        state.place = msgspec.structs.replace(state.place, **ends)
        writer.note_chain_change()


def _note_floors(state: WriterState, records: tuple[CatalogueRecord, ...]) -> None:
    gap = max(record.floor for record in records)
    state.place = msgspec.structs.replace(state.place, gap=max(state.place.gap, gap))


def _raise_floor(state: WriterState, floor: int) -> None:
    state.place = msgspec.structs.replace(state.place, floor=floor)
