"""Verifying a whole SQLite journal: the chain, then everything that is derived from it."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import takewhile

import msgspec

from factwire.journal.errors import JournalCorrupt
from factwire.journal.protocol import Damage, VerifyReport
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import ensure_runs
from factwire.journal.sqlite.roster import damaged_thread
from factwire.journal.sqlite.rows import (
    all_records,
    outlines_after,
    raw_chunks,
    reading,
)
from factwire.journal.sqlite.segments import load_segment, segment_covers
from factwire.journal.sqlite.state import Place, load_place, retired_sum
from factwire.journal.walk import Anchor, Walk


def verify(connection: Database, head: int) -> VerifyReport:
    """Walk everything; `head` is how far the journal is known to have come."""
    try:
        with reading():
            place = load_place(connection)
            records = all_records(connection)
    except JournalCorrupt as error:
        return _unreadable(error, head)
    walk = Walk(place.base, place.base_hash, records, _anchors(connection))
    try:
        with reading():
            waiting = list(records)
            for chunk in raw_chunks(connection):
                if not walk.chunk(chunk):
                    break
                for record in list(takewhile(lambda each: each.after <= chunk.last, waiting)):  # noqa: B023
                    walk.record(record)
                    waiting.pop(0)
    except JournalCorrupt as error:
        walk.fail(error.reason, head)
    walk.end(max(head, place.head, place.reached), place.hash)
    report = walk.report()
    return report if report.damage else _derived(connection, place, report)


def _anchors(connection: Database) -> list[Anchor]:
    """Where snapshots say that they stand; whether they can be read at all is asked later."""
    try:
        with reading():
            rows = connection.execute("SELECT seq, anchor, kind, thread FROM snapshots")
            return [
                Anchor(seq, anchor, f"the {kind} snapshot of {thread!r}")
                for seq, anchor, kind, thread in rows
            ]
    except JournalCorrupt:
        return []


def _derived(connection: Database, place: Place, report: VerifyReport) -> VerifyReport:
    try:
        with reading():
            reason = next(_faults(connection, place), None)
    except JournalCorrupt as error:
        reason = str(error)
    if reason is None:
        return report
    damage = Damage(first=place.base + 1, last=place.head, reason=reason)
    return msgspec.structs.replace(report, damage=damage)


def _faults(connection: Database, place: Place) -> Iterator[str]:
    answer: str = connection.execute("PRAGMA integrity_check(1)").get
    if answer != "ok":
        yield f"facts are whole, but SQLite says: {answer}"
    yield from _segment_faults(connection, place)
    ensure_runs(connection)
    thread = damaged_thread(connection)
    if thread is not None:
        yield f"facts are whole, but the catalogue's record of {thread!r} was changed"
    for seq, *kept, check in connection.execute("SELECT * FROM retired"):
        if retired_sum(seq, *kept) != check:
            yield f"what was kept of the removed fact at {seq} was changed"
    for thread, kind, seq, anchor, check, data in connection.execute("SELECT * FROM snapshots"):
        if snapshot_sum(thread, kind, seq, anchor, data) != check:
            yield f"the {kind} snapshot of {thread!r} at {seq} was changed"


def _segment_faults(connection: Database, place: Place) -> Iterator[str]:
    reached = place.base
    for first, last in connection.execute("SELECT first, last FROM segments"):
        if first > reached + 1:
            yield f"the index has no segment from {reached + 1}"
        reached = last
        stored = load_segment(connection, first)
        outlines = outlines_after(connection, max(first - 1, place.base), last)
        if not all(segment_covers(stored, outline) for outline in outlines):
            yield f"the index of {first}–{last} leaves out facts"
    if reached < place.sealed:
        yield f"the index has no segment from {reached + 1}"


def snapshot_sum(thread: str, kind: str, seq: int, anchor: bytes, data: bytes) -> bytes:
    """The checksum of a snapshot."""
    digest = sha256(msgspec.msgpack.encode((thread, kind, seq, anchor)))
    digest.update(data)
    return digest.digest()


def _unreadable(error: JournalCorrupt, head: int) -> VerifyReport:
    damage = Damage(first=1, last=head, reason=error.reason)
    return VerifyReport(facts=0, chunks=0, head=b"", intact=0, damage=damage)
