"""What the writer knows of its journal: where it ends, and what is not sealed on disk yet.

Only the writer's thread changes it, and only after a commit. Others may look at single values.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import apsw
import msgspec

from factwire.journal.admission import Known
from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import GENESIS
from factwire.journal.chunk import Chunk, decode_line
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import thread_of
from factwire.journal.group import Group
from factwire.journal.removed import Removed
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import Runs, hashes_of, id_digests
from factwire.journal.sqlite.recent import Recent
from factwire.journal.sqlite.roster import Overlay, load_record, note
from factwire.journal.sqlite.rows import DAMAGE, all_records, chunk_holding, chunks_after
from factwire.journal.sqlite.schema import get_meta

THREADS_CACHED: Final = 65_536
"""Thread records kept in memory once they are on disk."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
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

    def ensure_whole(self) -> "Place":
        """The place itself; raises `JournalCorrupt` where the end of the journal is missing."""
        if self.head < self.reached:
            reason = "facts at the end are missing"
            raise JournalCorrupt(reason, first=self.head + 1, last=self.reached)
        return self


def load_place(connection: Database) -> Place:
    """Where a journal begins and ends, from what is stored."""
    base = _int(connection, "base")
    base_hash = get_meta(connection, "base_hash")
    head, digest = base, base_hash if isinstance(base_hash, bytes) else GENESIS
    start = digest
    row = connection.execute("SELECT last, hash FROM chunks ORDER BY first DESC LIMIT 1").get
    if row is not None:
        head, digest = row
    for record in all_records(connection):
        if record.after == head:
            digest = record.hash
    sealed = _int(connection, "sealed")
    return Place(
        head=head,
        hash=digest,
        base=base,
        base_hash=start,
        floor=_int(connection, "floor"),
        sealed=sealed,
        reached=max(sealed, _int(connection, "reached")),
        removed=_int(connection, "removed"),
        gap=connection.execute("SELECT coalesce(max(floor), 0) FROM threads").get,
    )


class State:
    """Owned by the writer."""

    def __init__(self, connection: Database, epoch: str) -> None:
        self.connection = connection
        self.epoch = epoch
        self.place = load_place(connection).ensure_whole()
        self.runs = Runs(connection)
        self.recent = Recent()
        self.sealing = Recent()
        self.threads: Overlay = {}
        self.dirty: set[str] = set()
        self._replay()

    def known(self, fact_id: str) -> Known | None:
        """The fact with an id, confirmed by what is stored of it."""
        seq = self.recent.seqs.get(fact_id) or self.sealing.seqs.get(fact_id)
        if seq is not None:
            return fact_at(self.connection, fact_id, seq, self.place.base)
        if not self.runs.runs:
            return None
        return find_sealed(self.connection, self.runs, fact_id, self.place.base)

    def doubtful(self, ids: Sequence[str], digests: Sequence[bytes]) -> set[str]:
        """Those among the ids that may be known; every other one is new for sure."""
        found: set[str] = set()
        for held in (self.recent.seqs.keys(), self.sealing.seqs.keys()):
            if not held.isdisjoint(ids):
                found.update(held & ids)
        if self.runs.runs:
            try:
                passing = self.runs.passing(self.connection, hashes_of(digests))
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

    def advance(self, last: Chunk, group: Group) -> None:
        """Take in a group that has been committed, `last` being the last of its chunks."""
        self.place = msgspec.structs.replace(self.place, head=last.last, hash=last.hash)
        self.dirty.update(group.lasts)
        threads = self.threads
        for seq, entry, _, sequence in group.placed():
            thread = entry.thread
            if thread is None or sequence is None:
                continue
            record = threads.get(thread)
            if record is None:
                settled = msgspec.structs.replace(entry.fact, sequence=sequence)
                note(self.connection, threads, thread, settled, seq)
            else:
                record.note(entry.fact, seq, sequence)

    def _replay(self) -> None:
        # Nothing is removed before it is sealed, but what was restored may have been.
        sql = "SELECT id, seq FROM retired WHERE seq > ?"
        for fact_id, seq in self.connection.execute(sql, (self.place.sealed,)):
            self.recent.add([fact_id], id_digests([fact_id]), [seq])
        after = max(self.place.sealed, self.place.base)
        for chunk in chunks_after(self.connection, after, self.place.head):
            facts = [decode_line(line) for line in chunk.lines()]
            ids = [fact.id for fact in facts]
            self.recent.add(ids, id_digests(ids), chunk.places())
            self.recent.keys.append((chunk.first, chunk.groups()))
            for seq, fact in zip(chunk.places(), facts, strict=True):
                thread = thread_of(fact)
                if thread is not None and note(self.connection, self.threads, thread, fact, seq):
                    self.dirty.add(thread)

    def dirty_records(self) -> list[ThreadRecord]:
        """The records that differ from what is on disk."""
        return [self.threads[thread] for thread in self.dirty]

    def cleaned(self) -> None:
        """Note that every record is on disk."""
        self.dirty.clear()
        if len(self.threads) > THREADS_CACHED:
            self.threads.clear()


def lines_after(connection: Database, after: int, upto: int) -> "list[tuple[int, bytes]]":
    """The stored facts past a seq, with their seqs."""
    return [
        (seq, line)
        for chunk in chunks_after(connection, after, upto)
        for seq, line in zip(chunk.places(), chunk.lines(), strict=True)
        if after < seq
    ]


def find_sealed(connection: Database, runs: Runs, fact_id: str, base: int) -> Known | None:
    """The fact with an id among those whose ids lie in runs."""
    for seq in runs.find(connection, hashes_of(id_digests([fact_id]))[0]):
        known = fact_at(connection, fact_id, seq, base)
        if known is not None:
            return known
    return None


def fact_at(connection: Database, fact_id: str, seq: int, base: int) -> Known | None:
    """What stands, or stood, at a seq, if it has the id that is looked for."""
    if seq > base:
        chunk = chunk_holding(connection, seq)
        places = chunk.places()
        if seq in places:
            line = chunk.lines()[places.index(seq)]
            fact = decode_line(line)
            return Known(seq, fact.sequence, line) if fact.id == fact_id else None
    sql = "SELECT id, sequence, digest, sum FROM retired WHERE seq = ?"
    row = connection.execute(sql, (seq,)).get
    if row is None or retired_sum(seq, *row[:3]) != row[3]:
        raise JournalCorrupt("what was kept of a removed fact is missing or was changed", first=seq)
    return Known(seq, row[1], digest=row[2]) if row[0] == fact_id else None


def retired_sum(seq: int, fact_id: str, sequence: int | None, digest: bytes) -> bytes:
    """The checksum of what is kept of a removed fact."""
    return blake2b(
        msgspec.msgpack.encode((seq, fact_id, sequence, digest)), digest_size=16
    ).digest()


def insert_removed(connection: Database, removed: Iterable[Removed]) -> None:
    """Keep what stays of removed facts."""
    kept = ((each.seq, each.id, each.sequence, each.digest) for each in removed)
    rows = ((*each, retired_sum(*each)) for each in kept)
    connection.executemany("INSERT INTO retired VALUES(?, ?, ?, ?, ?)", rows)


def _int(connection: Database, name: str) -> int:
    value = get_meta(connection, name)
    return value if isinstance(value, int) else 0
