"""Finding facts by id and threads by name, in a writing handle and in a read-only one.

The writer keeps the newest of both in memory. A read-only handle has no such memory and replays
what is not sealed yet; that is a bounded number of facts.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from factwire.journal.catalogue import Thread, ThreadRecord, ThreadStatus
from factwire.journal.chunk import decode_line
from factwire.journal.filter import thread_of
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import Runs
from factwire.journal.sqlite.roster import (
    Overlay,
    list_threads,
    load_record,
    note,
    records_after,
    save_records,
)
from factwire.journal.sqlite.state import find_sealed, lines_after, load_place
from factwire.journal.sqlite.store import Store


async def seq_of(store: Store, fact_id: str) -> int | None:
    """The seq of a fact, also of one that has been removed."""
    if store.writer is None:
        return await store.pool.run(partial(_stored_seq, fact_id=fact_id))
    state = store.writer.state
    known = await asyncio.wrap_future(store.writer.look(lambda: state.known(fact_id)))
    return known and known.seq


async def rows(
    store: Store, *, project: str | None, status: ThreadStatus | None, below: int, limit: int
) -> Sequence[Thread]:
    """Threads by last activity, newest first."""
    overlay = await _overlay(store)
    query = partial(
        list_threads, overlay=overlay, project=project, status=status, below=below, limit=limit
    )
    return await store.pool.run(query)


async def row(store: Store, thread_id: str) -> Thread | None:
    """One thread."""
    overlay = await _overlay(store)
    record = overlay.get(thread_id)
    if record is None:
        record = await store.pool.run(partial(load_record, thread_id=thread_id))
    return record and record.row()


async def records(store: Store) -> AsyncIterator[ThreadRecord]:
    """Everything that is kept of each thread."""
    overlay = await _overlay(store)
    for record in overlay.values():
        yield record
    after = ""
    while page := await store.pool.run(partial(records_after, after=after)):
        for record in page:
            if record.thread_id not in overlay:
                yield record
        after = page[-1].thread_id


async def count(store: Store) -> int:
    """How many threads there are."""
    overlay = await _overlay(store)
    return await store.pool.run(partial(_count, overlay=overlay))


async def _overlay(store: Store) -> Overlay:
    """Records that are newer than those on disk; a writer brings the disk up to date instead."""
    if store.writer is None:
        return await store.pool.run(_replayed)
    state = store.writer.state
    if state.dirty:
        flush = partial(save_records, state.connection)
        save = store.writer.call(lambda: flush(state.dirty_records()), state.cleaned)
        await asyncio.wrap_future(save)
    return {}


def _replayed(connection: Database) -> Overlay:
    place = load_place(connection)
    overlay: Overlay = {}
    for seq, line in lines_after(connection, max(place.sealed, place.base), place.head):
        fact = decode_line(line)
        thread = thread_of(fact)
        if thread is not None:
            note(connection, overlay, thread, fact, seq)
    return overlay


def _stored_seq(connection: Database, fact_id: str) -> int | None:
    place = load_place(connection)
    for seq, line in lines_after(connection, max(place.sealed, place.base), place.head):
        if decode_line(line).id == fact_id:
            return seq
    sql = "SELECT seq FROM retired WHERE seq > ? AND id = ?"
    restored: int | None = connection.execute(sql, (place.sealed, fact_id)).get
    if restored is not None:
        return restored
    known = find_sealed(connection, Runs(connection), fact_id, place.base)
    return known and known.seq


def _count(connection: Database, overlay: Overlay) -> int:
    stored: int = connection.execute("SELECT count(*) FROM threads").get
    return stored + sum(load_record(connection, thread) is None for thread in overlay)
