"""The thread catalogue on disk: records with a checksum, in order of last activity.

Records are written behind the facts; what a stored record has not seen yet is known from its
`last_seq`, so that replaying the newest facts over it is always right.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.catalogue import Thread, ThreadRecord, ThreadStatus, new_record
from factwire.journal.errors import JournalCorrupt
from factwire.journal.sqlite.database import Database

_decoder: Final = msgspec.msgpack.Decoder[ThreadRecord](ThreadRecord)
_encode: Final = msgspec.msgpack.Encoder().encode

Overlay = dict[str, ThreadRecord]


def load_record(connection: Database, thread_id: str) -> ThreadRecord | None:
    row = connection.execute("SELECT sum, record FROM threads WHERE id = ?", (thread_id,)).get
    return None if row is None else _record(*row)


def save_records(connection: Database, records: Iterable[ThreadRecord]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO threads VALUES(?, ?, ?, ?, ?, ?, ?, ?)", map(_row, records)
    )


def note(
    connection: Database, overlay: Overlay, thread: str, fact: Fact, seq: int
) -> ThreadRecord | None:
    """Take a fact into the record that an overlay has of its thread, unless it is in there."""
    sequence = fact.sequence
    if sequence is None:
        return None
    record = overlay.get(thread) or load_record(connection, thread)
    if record is None:
        record = new_record(thread, fact, seq, sequence)
    elif seq > record.last_seq:
        record.note(fact, seq, sequence)
    overlay[thread] = record
    return record


def list_threads(
    connection: Database,
    overlay: Overlay,
    *,
    project: str | None,
    status: ThreadStatus | None,
    below: int,
    limit: int,
) -> list[Thread]:
    """Up to `limit` threads last active before `below`, newest first, the overlay's included."""
    rows = [
        record.row()
        for record in overlay.values()
        if record.last_seq < below
        and project in (None, record.project_id)
        and status in (None, record.status)
    ]
    sql = (
        "SELECT id, sum, record FROM threads WHERE last < ?1 AND (?2 IS NULL OR project = ?2) "
        "AND (?3 IS NULL OR status = ?3) ORDER BY last DESC"
    )
    wanted = limit
    for thread_id, check, blob in connection.execute(sql, (below, project, status)):
        if wanted == 0:
            break
        if thread_id not in overlay:
            rows.append(_record(check, blob).row())
            wanted -= 1
    rows.sort(key=lambda row: -row.last_seq)
    return rows[:limit]


def records_after(connection: Database, after: str) -> list[ThreadRecord]:
    """The next records in the order of their threads' names."""
    sql = "SELECT sum, record FROM threads WHERE id > ? ORDER BY id LIMIT 1000"
    return [_record(*row) for row in connection.execute(sql, (after,))]


def open_actions(connection: Database) -> dict[str, int]:
    """Thread → the seq of its earliest open action, as of the last save."""
    return dict(connection.execute("SELECT id, opened FROM threads WHERE opened IS NOT NULL"))


def damaged_thread(connection: Database) -> str | None:
    """The first thread whose record does not match its checksum."""
    for thread_id, *stored in connection.execute(
        "SELECT id, sum, record, last, project, status, floor, opened FROM threads"
    ):
        check, blob, *columns = stored
        try:
            record = _record(check, blob)
        except (JournalCorrupt, msgspec.MsgspecError):
            return thread_id
        if (record.thread_id, *columns) != (thread_id, *_columns(record)):
            return thread_id
    return None


def _columns(record: ThreadRecord) -> tuple[int, str | None, str, int, int | None]:
    opened = min(record.open.values(), default=None)
    return (record.last_seq, record.project_id, record.status, record.floor, opened)


def _row(record: ThreadRecord) -> tuple[str | int | bytes | None, ...]:
    blob = _encode(record)
    return (record.thread_id, *_columns(record), _sum(blob), blob)


def _record(check: bytes, blob: bytes) -> ThreadRecord:
    if _sum(blob) != check:
        raise JournalCorrupt("a thread of the catalogue was changed")
    return _decoder.decode(blob)


def _sum(blob: bytes) -> bytes:
    return blake2b(blob, digest_size=16).digest()
