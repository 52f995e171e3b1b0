"""A whole journal written into an empty file, and read out of one: seqs, gaps and removed ids.

A piece is one transaction. The ids of removed facts are as safe as the facts beside them: until
they are sealed they are found again, when the file is opened, in what is kept of removed facts.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import GENESIS
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.removed import Removed
from factwire.journal.restore import (
    Piece,
    Restoration,
    ensure_empty,
    ensure_new,
    pieces_of,
)
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import RUN_IDS, id_digests
from factwire.journal.sqlite.roster import save_records
from factwire.journal.sqlite.rows import insert_chunk, insert_record
from factwire.journal.sqlite.schema import set_meta
from factwire.journal.sqlite.state import State, insert_removed, retired_sum
from factwire.journal.sqlite.store import Store
from factwire.journal.sqlite.writer import Writer

ROWS: Final = 1_000
"""Rows of removed facts or threads that are read or written at once."""


async def restore(store: Store, given: Restoration) -> Cursor:
    """Write what is given; the journal must be empty until then."""
    writer = store.writing()
    state, before = writer.state, 0
    for piece in pieces_of(given):
        write = partial(_write, state, piece, given.floor, before)
        await asyncio.wrap_future(writer.call(write, partial(_advance, writer, piece, given.floor)))
        before = 0 if piece.chunk is None else piece.last
        if len(state.recent.seqs) >= RUN_IDS:
            await store.seal()
    threads = iter(given.threads)
    while records := tuple(islice(threads, ROWS)):
        save = partial(save_records, state.connection, records)
        await asyncio.wrap_future(writer.call(save, partial(_note_floors, state, records)))
    floor = partial(set_meta, state.connection, "floor", given.floor)
    await asyncio.wrap_future(writer.call(floor, partial(_raise_floor, state, given.floor)))
    store.bell.ring()
    return Cursor(store.epoch, state.place.head)


async def removed(store: Store) -> AsyncIterator[Removed]:
    """What is kept of each removed fact, in order."""
    after = 0
    while rows := await store.pool.run(partial(_removed_after, after=after)):
        for each in rows:
            yield each
        after = rows[-1].seq


def _removed_after(connection: Database, after: int) -> list[Removed]:
    sql = "SELECT seq, id, sequence, digest, sum FROM retired WHERE seq > ? ORDER BY seq LIMIT ?"
    found: list[Removed] = []
    for seq, fact_id, sequence, digest, check in connection.execute(sql, (after, ROWS)):
        if retired_sum(seq, fact_id, sequence, digest) != check:
            raise JournalCorrupt("what was kept of a removed fact was changed", first=seq)
        found.append(Removed(seq, fact_id, sequence, digest))
    return found


def _write(state: State, piece: Piece, floor: int, before: int) -> None:
    connection, place = state.connection, state.place
    if place.head != before:
        ensure_empty(place.head)
    ensure_new(fact_id for fact_id in piece.ids() if state.known(fact_id) is not None)
    insert_removed(connection, piece.removed)
    set_meta(connection, "removed", place.removed + piece.gone)
    if piece.chunk is not None:
        insert_chunk(connection, piece.chunk)
        set_meta(connection, "base", floor)
        set_meta(connection, "base_hash", GENESIS)
    for record in piece.records:
        insert_record(connection, record)


def _advance(writer: Writer, piece: Piece, floor: int) -> None:
    state = writer.state
    ids = piece.ids()
    state.recent.add(ids, id_digests(ids), ids.values())
    state.place = msgspec.structs.replace(state.place, removed=state.place.removed + piece.gone)
    if piece.chunk is not None:
        state.recent.keys.append((piece.first, piece.chunk.groups()))
        ends = {"head": piece.last, "hash": piece.end, "base": floor, "base_hash": GENESIS}
        state.place = msgspec.structs.replace(state.place, **ends)
        writer.moved()


def _note_floors(state: State, records: tuple[ThreadRecord, ...]) -> None:
    gap = max(record.floor for record in records)
    state.place = msgspec.structs.replace(state.place, gap=max(state.place.gap, gap))


def _raise_floor(state: State, floor: int) -> None:
    state.place = msgspec.structs.replace(state.place, floor=floor)
