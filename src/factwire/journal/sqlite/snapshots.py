"""Snapshots beside the facts they were made from, each anchored in the chain."""

from factwire.journal.chain import GENESIS
from factwire.journal.chain_point import ChainPoint, point_in
from factwire.journal.chunk import anchor_in
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.protocol import Snapshot
from factwire.journal.sqlite.checks import snapshot_sum
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.rows import chunk_holding
from factwire.journal.sqlite.state import State, load_place


def save(state: State, thread_id: str, kind: str, cursor: Cursor, data: bytes) -> Snapshot:
    """Store a snapshot, in place of one for the same thread, kind and cursor."""
    seq, place = cursor.seq, state.place
    anchor = place.base_hash if seq else GENESIS
    if seq > place.base:
        anchor = anchor_in(chunk_holding(state.connection, seq), seq)
    check = snapshot_sum(thread_id, kind, seq, anchor, data)
    state.connection.execute(
        "INSERT OR REPLACE INTO snapshots VALUES(?, ?, ?, ?, ?, ?)",
        (thread_id, kind, seq, anchor, check, data),
    )
    return Snapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)


def load(
    connection: Database, *, epoch: str, thread_id: str, kind: str, top: int
) -> Snapshot | None:
    """The newest snapshot of a thread that is no newer than `top`."""
    sql = (
        "SELECT seq, anchor, sum, data FROM snapshots "
        "WHERE thread = ? AND kind = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
    )
    row: tuple[int, bytes, bytes, bytes] | None
    row = connection.execute(sql, (thread_id, kind, top)).get
    if row is None:
        return None
    seq, anchor, check, data = row
    if snapshot_sum(thread_id, kind, seq, anchor, data) != check:
        raise JournalCorrupt(f"the {kind} snapshot of {thread_id!r} was changed", first=seq)
    cursor = Cursor(epoch, seq)
    return Snapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)


def point(connection: Database, *, seq: int) -> ChainPoint:
    """Where the chain stands behind the commit of a seq, or where what is left of it begins."""
    place = load_place(connection)
    if seq <= place.base:
        return ChainPoint(place.base, place.base_hash)
    return point_in(chunk_holding(connection, seq), seq)


def newest(connection: Database, *, thread: str | None) -> int | None:
    """The seq of the newest snapshot, of one thread or of all."""
    sql = "SELECT max(seq) FROM snapshots WHERE ?1 IS NULL OR thread = ?1"
    return connection.execute(sql, (thread,)).get
