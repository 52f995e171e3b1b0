"""Snapshots, each anchored in the chain, and verifying the chain with what is derived from it."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import takewhile

import msgspec

from factwire.journal.chain_verifier import ChainVerifier, SnapshotAnchor
from factwire.journal.chunks import (
    GENESIS,
    ChainBatch,
    ChainPoint,
    ChainStart,
    Chunk,
    MirroredChunk,
    find_anchor,
    find_chain_point,
    to_mirrored,
    withhold_facts,
)
from factwire.journal.cursor import Cursor
from factwire.journal.errors import ChainPointUnknown, JournalCorrupt
from factwire.journal.filter import id_key
from factwire.journal.protocol import Damage, StoredSnapshot, VerifyReport
from factwire.journal.sqlite.handle import is_mirror, load_hashes_at
from factwire.journal.sqlite.indexes import ensure_runs, is_covered, load_segment
from factwire.journal.sqlite.journal_state import (
    JournalEnds,
    WriterState,
    find_damaged_thread,
    load_ends,
    load_private_threads,
    sum_retired,
)
from factwire.journal.sqlite.schema import (
    Database,
    load_all_records,
    load_chunk_holding,
    load_chunks_after,
    load_outlines_after,
    load_raw_chunks,
    translate_damage,
)


def verify(connection: Database, head: int) -> VerifyReport:
    """Walk everything; `head` is how far the journal is known to have come."""
    try:
        with translate_damage():
            place = load_ends(connection)
            records = load_all_records(connection)
    except JournalCorrupt as error:
        return _report_unreadable(error, head)
    walk = ChainVerifier(
        place.base,
        place.base_hash,
        records,
        _load_anchors(connection),
        is_mirror=is_mirror(connection),
    )
    try:
        with translate_damage():
            waiting = list(records)
            for chunk in load_raw_chunks(connection):
                if not walk.take_chunk(chunk):
                    break
                for record in list(takewhile(lambda each: each.after <= chunk.last, waiting)):  # noqa: B023
                    walk.take_record(record)
                    waiting.pop(0)
    except JournalCorrupt as error:
        walk.fail(error.reason, head)
    walk.finish(max(head, place.head, place.reached), place.hash)
    report = walk.report()
    return report if report.damage else _check_derived(connection, place, report)


def _load_anchors(connection: Database) -> list[SnapshotAnchor]:
    """Where snapshots say that they stand; whether they can be read at all is asked later."""
    try:
        with translate_damage():
            rows = connection.execute("SELECT seq, anchor, kind, thread FROM snapshots")
            return [
                SnapshotAnchor(seq, anchor, f"the {kind} snapshot of {thread!r}")
                for seq, anchor, kind, thread in rows
            ]
    except JournalCorrupt:
        return []


def _check_derived(connection: Database, place: JournalEnds, report: VerifyReport) -> VerifyReport:
    try:
        with translate_damage():
            reason = next(_find_faults(connection, place), None)
    except JournalCorrupt as error:
        reason = str(error)
    if reason is None:
        return report
    damage = Damage(first=place.base + 1, last=place.head, reason=reason)
    return msgspec.structs.replace(report, damage=damage)


def _find_faults(connection: Database, place: JournalEnds) -> Iterator[str]:
    answer: str = connection.execute("PRAGMA integrity_check(1)").get
    if answer != "ok":
        yield f"the facts are intact, but SQLite reports: {answer}"
    yield from _find_segment_faults(connection, place)
    ensure_runs(connection)
    thread = find_damaged_thread(connection)
    if thread is not None:
        yield f"the facts are intact, but the catalogue's record of {thread!r} was changed"
    for seq, *kept, check in connection.execute("SELECT * FROM retired"):
        if sum_retired(seq, *kept) != check:
            yield f"the record of the removed fact at {seq} was changed"
    for thread, kind, seq, anchor, check, data in connection.execute("SELECT * FROM snapshots"):
        if sum_snapshot(thread, kind, seq, anchor, data) != check:
            yield f"the {kind} snapshot of {thread!r} at {seq} was changed"


def _find_segment_faults(connection: Database, place: JournalEnds) -> Iterator[str]:
    reached = place.base
    for first, last in connection.execute("SELECT first, last FROM segments"):
        if first > reached + 1:
            yield f"the index has no segment from {reached + 1}"
        reached = last
        stored = load_segment(connection, first)
        outlines = load_outlines_after(connection, max(first - 1, place.base), last)
        if not all(is_covered(stored, outline) for outline in outlines):
            yield f"the index of {first}–{last} is missing facts"
    if reached < place.sealed:
        yield f"the index has no segment from {reached + 1}"


def sum_snapshot(thread: str, kind: str, seq: int, anchor: bytes, data: bytes) -> bytes:
    """The checksum of a snapshot."""
    digest = sha256(msgspec.msgpack.encode((thread, kind, seq, anchor)))
    digest.update(data)
    return digest.digest()


def _report_unreadable(error: JournalCorrupt, head: int) -> VerifyReport:
    damage = Damage(first=1, last=head, reason=error.reason)
    return VerifyReport(facts=0, chunks=0, head=b"", intact=0, damage=damage)


def save_snapshot(
    state: WriterState, thread_id: str, kind: str, cursor: Cursor, data: bytes
) -> StoredSnapshot:
    """Store a snapshot, in place of one for the same thread, kind and cursor."""
    seq, place = cursor.seq, state.place
    anchor = place.base_hash if seq else GENESIS
    if seq > place.base:
        anchor = find_anchor(load_chunk_holding(state.connection, seq), seq)
    check = sum_snapshot(thread_id, kind, seq, anchor, data)
    state.connection.execute(
        "INSERT OR REPLACE INTO snapshots VALUES(?, ?, ?, ?, ?, ?)",
        (thread_id, kind, seq, anchor, check, data),
    )
    return StoredSnapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)


def load_snapshot(
    connection: Database, *, epoch: str, thread_id: str, kind: str, top: int
) -> StoredSnapshot | None:
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
    if sum_snapshot(thread_id, kind, seq, anchor, data) != check:
        raise JournalCorrupt(f"the {kind} snapshot of {thread_id!r} was changed", first=seq)
    cursor = Cursor(epoch, seq)
    return StoredSnapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)


def load_chain_point(connection: Database, *, seq: int) -> ChainPoint:
    """Where the chain stands behind the commit of a seq, or where what is left of it begins."""
    place = load_ends(connection)
    if seq <= place.base:
        return ChainPoint(place.base, place.base_hash)
    return find_chain_point(load_chunk_holding(connection, seq), seq)


def load_chain(connection: Database, *, after: ChainPoint, record: bytes, size: int) -> ChainBatch:
    """What follows a point, about `size` bytes of lines, and the records that came after the one
    with the hash `record`, or all. Seq 0 stands for the beginning, wherever that is now.
    """
    place, records = load_ends(connection), load_all_records(connection)
    seq = after.seq or place.base
    if after.seq and after.hash not in load_hashes_at(connection, after.seq):
        raise ChainPointUnknown(f"the chain does not pass the given point at {after.seq}")
    hashes = [each.hash for each in records]
    had = hashes.index(record) + 1 if record in hashes else 0
    private = load_private_threads(connection)
    chunks: list[MirroredChunk] = []
    for chunk in load_chunks_after(connection, seq, place.head):
        part = to_mirrored(chunk, seq)
        chunks += withhold_facts(part, find_private_seqs(chunk, private)) if private else (part,)
        size -= len(chunk.data)
        if size <= 0:
            break
    return ChainBatch(
        start=ChainStart(place.base, place.base_hash, place.floor),
        records=tuple(records[had:]),
        chunks=tuple(chunks),
    )


def find_private_seqs(chunk: Chunk, private: Mapping[str, int]) -> set[int]:
    """The seqs of a chunk that belong to private threads, from where those are private on."""
    places = chunk.places()
    marks = {id_key("thread", thread): after for thread, after in private.items()}
    return {
        places[position]
        for keys, positions in chunk.groups().items()
        for key in marks.keys() & keys
        for position in positions
        if places[position] > marks[key]
    }


def find_newest_snapshot(connection: Database, *, thread: str | None) -> int | None:
    """The seq of the newest snapshot, of one thread or of all."""
    sql = "SELECT max(seq) FROM snapshots WHERE ?1 IS NULL OR thread = ?1"
    return connection.execute(sql, (thread,)).get
