"""What the writer knows of its journal, and the thread catalogue on disk.

Only the writer's thread changes the state, and only after a commit. Others may look at single
values. Thread records are written behind the facts; what a stored record has not seen yet is known
from its `last_seq`, so that replaying the newest facts over it is always right.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import apsw
import msgspec

from factwire.facts.fact import Fact
from factwire.journal.admission import ExistingFact
from factwire.journal.chunks import GENESIS, Chunk, decode_line
from factwire.journal.commit_group import CommitGroup
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import find_thread_id, id_key
from factwire.journal.retention import RemovedFact
from factwire.journal.sqlite.indexes import IdRuns, UnindexedFacts, digest_ids, to_hashes
from factwire.journal.sqlite.schema import (
    DAMAGE,
    Database,
    get_meta,
    load_all_records,
    load_chunk_holding,
    load_chunks_after,
)
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadStatus,
    build_catalogue_record,
)

_decoder: Final = msgspec.msgpack.Decoder[CatalogueRecord](CatalogueRecord)
_encode: Final = msgspec.msgpack.Encoder().encode

Overlay = dict[str, CatalogueRecord]


def load_record(connection: Database, thread_id: str) -> CatalogueRecord | None:
    row = connection.execute("SELECT sum, record FROM threads WHERE id = ?", (thread_id,)).get
    return None if row is None else _decode_record(*row)


def save_records(connection: Database, records: Iterable[CatalogueRecord]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO threads VALUES(?, ?, ?, ?, ?, ?, ?, ?)", map(_build_row, records)
    )


def note_fact(
    connection: Database, overlay: Overlay, thread: str, fact: Fact, seq: int
) -> CatalogueRecord | None:
    """Take a fact into the record that an overlay has of its thread, unless it is in there."""
    sequence = fact.sequence
    if sequence is None:
        return None
    record = overlay.get(thread) or load_record(connection, thread)
    if record is None:
        record = build_catalogue_record(thread, fact, seq, sequence)
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
) -> list[CatalogueThread]:
    """Up to `limit` threads last active before `below`, newest first, the overlay's included."""
    rows = [
        record.to_thread()
        for record in overlay.values()
        if record.last_seq < below
        and project in (None, record.project_id)
        and status in (None, record.status)
    ]
    named = {"project": project, "status": status}
    columns = [(column, value) for column, value in named.items() if value is not None]
    conditions = "".join(f" AND {column} = ?" for column, _ in columns)
    sql = f"SELECT id, sum, record FROM threads WHERE last < ?{conditions} ORDER BY last DESC"  # noqa: S608 - our own columns
    wanted = limit
    for thread_id, check, blob in connection.execute(
        sql, (below, *(value for _, value in columns))
    ):
        if wanted == 0:
            break
        if thread_id not in overlay:
            rows.append(_decode_record(check, blob).to_thread())
            wanted -= 1
    rows.sort(key=lambda row: -row.last_seq)
    return rows[:limit]


def load_records_after(connection: Database, after: str) -> list[CatalogueRecord]:
    """The next records in the order of their threads' names."""
    sql = "SELECT sum, record FROM threads WHERE id > ? ORDER BY id LIMIT 1000"
    return [_decode_record(*row) for row in connection.execute(sql, (after,))]


def list_open_actions(connection: Database) -> dict[str, int]:
    """Thread → the seq of its earliest open action, as of the last save."""
    return dict(connection.execute("SELECT id, opened FROM threads WHERE opened IS NOT NULL"))


def find_damaged_thread(connection: Database) -> str | None:
    """The first thread whose record does not match its checksum."""
    for thread_id, *stored in connection.execute(
        "SELECT id, sum, record, last, project, status, floor, opened FROM threads"
    ):
        check, blob, *columns = stored
        try:
            record = _decode_record(check, blob)
        except (JournalCorrupt, msgspec.MsgspecError):
            return thread_id
        if (record.thread_id, *columns) != (thread_id, *_build_columns(record)):
            return thread_id
    return None


def _build_columns(record: CatalogueRecord) -> tuple[int, str | None, str, int, int | None]:
    opened = min(record.open.values(), default=None)
    return (record.last_seq, record.project_id, record.status, record.floor, opened)


def _build_row(record: CatalogueRecord) -> tuple[str | int | bytes | None, ...]:
    blob = _encode(record)
    return (record.thread_id, *_build_columns(record), _sum_record(blob), blob)


def _decode_record(check: bytes, blob: bytes) -> CatalogueRecord:
    if _sum_record(blob) != check:
        raise JournalCorrupt("a thread in the catalogue was changed")
    return _decoder.decode(blob)


def _sum_record(blob: bytes) -> bytes:
    return blake2b(blob, digest_size=16).digest()


THREADS_CACHED: Final = 65_536
"""Thread records kept in memory once they are on disk."""


class JournalEnds(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of a journal.

    Chunks begin after `base`, readers after `floor`; up to `gap` some threads have lost facts, and
    `removed` counts what is gone in all. Ids and keys up to `sealed` are indexed on disk. The head
    has at least once been noted to be at `reached`.
    """

    head: int
    hash: bytes
    base: int
    base_hash: bytes
    floor: int
    sealed: int
    removed: int
    gap: int
    reached: int

    def ensure_whole(self) -> "JournalEnds":
        """The place itself; raises `JournalCorrupt` where the end of the journal is missing."""
        if self.head < self.reached:
            reason = "facts at the end are missing"
            raise JournalCorrupt(reason, first=self.head + 1, last=self.reached)
        return self


def load_ends(connection: Database) -> JournalEnds:
    """Where a journal begins and ends, from what is stored."""
    base = _load_int(connection, "base")
    base_hash = get_meta(connection, "base_hash")
    head, digest = base, base_hash if isinstance(base_hash, bytes) else GENESIS
    start = digest
    row = connection.execute("SELECT last, hash FROM chunks ORDER BY first DESC LIMIT 1").get
    if row is not None:
        head, digest = row
    for record in load_all_records(connection):
        if record.after == head:
            digest = record.hash
    sealed = _load_int(connection, "sealed")
    return JournalEnds(
        head=head,
        hash=digest,
        base=base,
        base_hash=start,
        floor=_load_int(connection, "floor"),
        sealed=sealed,
        reached=max(sealed, _load_int(connection, "reached")),
        removed=_load_int(connection, "removed"),
        gap=connection.execute("SELECT coalesce(max(floor), 0) FROM threads").get,
    )


def load_private_threads(connection: Database) -> dict[str, int]:
    """The threads whose facts stay in this journal, each with the seq after which they do."""
    return dict(connection.execute("SELECT id, after FROM private_threads"))  # pyright: ignore[reportArgumentType, reportCallIssue]


def insert_private_threads(connection: Database, threads: Mapping[str, int]) -> None:
    """Write down that threads are private, each after a seq, unless they are already."""
    connection.executemany("INSERT OR IGNORE INTO private_threads VALUES(?, ?)", threads.items())


class WriterState:
    """Owned by the writer."""

    def __init__(self, connection: Database, epoch: str) -> None:
        self.connection = connection
        self.epoch = epoch
        self.place = load_ends(connection).ensure_whole()
        self.runs = IdRuns(connection)
        self.recent = UnindexedFacts()
        self.sealing = UnindexedFacts()
        self.threads: Overlay = {}
        self.dirty: set[str] = set()
        self.private: dict[str, int] = {}
        self.private_keys: set[str] = set()
        self.note_private(load_private_threads(connection))
        self._replay()

    def note_private(self, threads: Mapping[str, int]) -> None:
        """Take in that threads are private, each after a seq."""
        self.private.update(threads)
        self.private_keys.update(id_key("thread", thread) for thread in threads)

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        """The fact with an id, confirmed by what is stored of it."""
        seq = self.recent.seqs.get(fact_id) or self.sealing.seqs.get(fact_id)
        if seq is not None:
            return load_fact_at(self.connection, fact_id, seq, self.place)
        if not self.runs.runs:
            return None
        return find_sealed(self.connection, self.runs, fact_id, self.place)

    def doubtful(self, ids: Sequence[str], digests: Sequence[bytes]) -> set[str]:
        """Those among the ids that may be known; every other one is new for sure."""
        found: set[str] = set()
        for held in (self.recent.seqs.keys(), self.sealing.seqs.keys()):
            if not held.isdisjoint(ids):
                found.update(held & ids)
        if self.runs.runs:
            try:
                passing = self.runs.filter_hashes(self.connection, to_hashes(digests))
            except (JournalCorrupt, apsw.Error, *DAMAGE):
                # Then each is looked up by itself, and fails by itself.
                return set(ids)
            found.update([ids[place] for place in passing])
        return found

    def last_sequence(self, thread_id: str) -> int | None:
        """The last sequence of a thread; None where there is no such thread."""
        record = self.threads.get(thread_id)
        if record is None:
            record = load_record(self.connection, thread_id)
            if record is None:
                return None
            self.threads[thread_id] = record
        return record.last_sequence

    def advance(self, last: Chunk, group: CommitGroup) -> None:
        """Take in a group that has been committed, `last` being the last of its chunks."""
        self.place = msgspec.structs.replace(self.place, head=last.last, hash=last.hash)
        self.dirty.update(group.lasts)
        threads = self.threads
        for seq, entry, _, sequence in group.list_placed():
            thread = entry.thread
            if thread is None or sequence is None:
                continue
            record = threads.get(thread)
            if record is None:
                settled = msgspec.structs.replace(entry.fact, sequence=sequence)
                note_fact(self.connection, threads, thread, settled, seq)
            else:
                record.note(entry.fact, seq, sequence)

    def _replay(self) -> None:
        # Nothing is removed before it is sealed, but what was restored may have been.
        sql = "SELECT id, seq FROM retired WHERE seq > ?"
        for fact_id, seq in self.connection.execute(sql, (self.place.sealed,)):
            self.recent.add([fact_id], digest_ids([fact_id]), [seq])
        after = max(self.place.sealed, self.place.base)
        for chunk in load_chunks_after(self.connection, after, self.place.head):
            facts = [decode_line(line) for line in chunk.lines()]
            ids = [fact.id for fact in facts]
            self.recent.add(ids, digest_ids(ids), chunk.places())
            self.recent.keys.append((chunk.first, chunk.groups()))
            for seq, fact in zip(chunk.places(), facts, strict=True):
                thread = find_thread_id(fact)
                if thread is not None and note_fact(
                    self.connection, self.threads, thread, fact, seq
                ):
                    self.dirty.add(thread)

    def dirty_records(self) -> list[CatalogueRecord]:
        """The records that differ from what is on disk."""
        return [self.threads[thread] for thread in self.dirty]

    def mark_clean(self) -> None:
        """Note that every record is on disk."""
        self.dirty.clear()
        if len(self.threads) > THREADS_CACHED:
            self.threads.clear()


def load_lines_after(connection: Database, after: int, upto: int) -> "list[tuple[int, bytes]]":
    """The stored facts past a seq, with their seqs."""
    return [
        (seq, line)
        for chunk in load_chunks_after(connection, after, upto)
        for seq, line in zip(chunk.places(), chunk.lines(), strict=True)
        if after < seq
    ]


def find_sealed(
    connection: Database, runs: IdRuns, fact_id: str, place: JournalEnds
) -> ExistingFact | None:
    """The fact with an id among those whose ids lie in runs."""
    for seq in runs.find(connection, to_hashes(digest_ids([fact_id]))[0]):
        known = load_fact_at(connection, fact_id, seq, place)
        if known is not None:
            return known
    return None


def load_fact_at(
    connection: Database, fact_id: str, seq: int, place: JournalEnds
) -> ExistingFact | None:
    """What stands, or stood, at a seq, if it has the id that is looked for."""
    # A mirror is told what was removed ahead of the chain that leaves it out.
    if place.base < seq <= place.head:
        chunk = load_chunk_holding(connection, seq)
        places = chunk.places()
        if seq in places:
            line = chunk.lines()[places.index(seq)]
            fact = decode_line(line)
            return ExistingFact(seq, fact.sequence, line) if fact.id == fact_id else None
    sql = "SELECT id, sequence, digest, sum FROM retired WHERE seq = ?"
    row = connection.execute(sql, (seq,)).get
    if row is None or sum_retired(seq, *row[:3]) != row[3]:
        raise JournalCorrupt("the record of a removed fact is missing or was changed", first=seq)
    return ExistingFact(seq, row[1], digest=row[2]) if row[0] == fact_id else None


def sum_retired(seq: int, fact_id: str, sequence: int | None, digest: bytes) -> bytes:
    """The checksum of what is kept of a removed fact."""
    return blake2b(
        msgspec.msgpack.encode((seq, fact_id, sequence, digest)), digest_size=16
    ).digest()


def insert_removed(connection: Database, removed: Iterable[RemovedFact]) -> None:
    """Keep what stays of removed facts."""
    kept = ((each.seq, each.id, each.sequence, each.digest) for each in removed)
    rows = ((*each, sum_retired(*each)) for each in kept)
    connection.executemany("INSERT INTO retired VALUES(?, ?, ?, ?, ?)", rows)


def _load_int(connection: Database, name: str) -> int:
    value = get_meta(connection, name)
    return value if isinstance(value, int) else 0
