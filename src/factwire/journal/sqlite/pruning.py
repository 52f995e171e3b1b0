"""Carrying out a removal: chunks go or are thinned out, and the chain records exactly that."""

from collections.abc import Iterator

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chain import RecordBody, Truncated, record_of
from factwire.journal.chunk import Chunk, decode_line, thinned
from factwire.journal.removal import Plan
from factwire.journal.removed import removed_of
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.roster import save_records
from factwire.journal.sqlite.rows import chunks_after, insert_record, replace_chunk
from factwire.journal.sqlite.schema import set_meta
from factwire.journal.sqlite.state import Place, State, insert_removed


class Pruned(msgspec.Struct):
    """What a removal came to, and the ends of the journal after it."""

    removed: int
    freed: int
    place: Place


def facts_of(connection: Database, base: int, head: int) -> Iterator[tuple[int, Fact]]:
    """Every fact that is left, in order."""
    for chunk in chunks_after(connection, base, head):
        yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)


def prune(state: State, plan: Plan) -> Pruned:
    """Remove what a plan names, inside the caller's transaction."""
    connection, place = state.connection, state.place
    removed = freed = gone = 0
    contents: list[RecordBody] = []
    last_gone: Chunk | None = None
    top = max(plan.drop, default=plan.floor)
    for chunk in list(chunks_after(connection, place.base, max(top, plan.floor))):
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
            rest, content = thinned(chunk, plan.keeps)
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
    return Pruned(removed, freed, place)


def _retire(connection: Database, chunk: Chunk, plan: Plan) -> int:
    gone = removed_of(chunk, plan.keeps)
    insert_removed(connection, gone)
    return len(gone)


def _rebase(connection: Database, place: Place, gone: Chunk) -> Place:
    # Records that stood right after the last removed chunk are behind the new beginning too.
    sql = "SELECT hash FROM records WHERE after = ? ORDER BY number DESC LIMIT 1"
    digest = connection.execute(sql, (gone.last,)).get or gone.hash
    connection.execute("DELETE FROM records WHERE after <= ?", (gone.last,))
    connection.execute("DELETE FROM segments WHERE last <= ?", (gone.last,))
    set_meta(connection, "base", gone.last)
    set_meta(connection, "base_hash", digest)
    return msgspec.structs.replace(place, base=gone.last, base_hash=digest)


def _record(connection: Database, place: Place, contents: list[RecordBody]) -> Place:
    digest = place.hash
    for content in contents:
        record = record_of(place.head, digest, content)
        insert_record(connection, record)
        digest = record.hash
    return msgspec.structs.replace(place, hash=digest)


def _raise_floors(state: State, plan: Plan) -> None:
    for thread, floor in plan.thread_floors.items():
        if state.last_sequence(thread) is not None:
            state.threads[thread].floor = floor
            state.dirty.add(thread)
    save_records(state.connection, state.dirty_records())
