"""What a process knows of a journal in NATS: all of it derived from the stream, item after item.

`apply` is the only way in, for what this process wrote as for what others wrote, so that every
process comes to the same state. The facts themselves stay on the server. Of every id that was ever
taken there is a fingerprint, which only says where to look: whoever finds one reads the stored fact
and compares the whole id.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from sys import byteorder
from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chunks import GENESIS, Chunk, Record, Truncated, decode_line, ensure_sound
from factwire.journal.cursor import Bounds, Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter, Groups, find_thread_id
from factwire.journal.nats.segments import SegmentDirectory, SegmentKeys, StreamSegment
from factwire.journal.nats.stream_log import (
    EpochStart,
    ItemBody,
    KeptRange,
    RaisedFloors,
    SavedSnapshot,
    StreamItem,
    decode_item,
)
from factwire.journal.retention import Holds
from factwire.journal.thread_catalogue import CatalogueRecord, build_catalogue_record

_SHARDS: Final = 64
"""Tables of which one grows at a time, so that growing is never a long pause."""

_SMALLEST: Final = 64
_blank: Final = blake2b(digest_size=8)


def compute_fingerprints(ids: Iterable[str]) -> list[int]:
    """64 bits of each id, the same in every process; never 0, which stands for an empty place."""
    digests: list[bytes] = []
    for fact_id in ids:
        # A copy spares reading the parameters again, which is half of what a short id costs.
        digest = _blank.copy()
        digest.update(fact_id.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    marks = array("Q", b"".join(digests))
    if byteorder == "big":
        marks.byteswap()
    return [mark or 1 for mark in marks]


class FingerprintTable:
    """Seqs by the fingerprint of their fact's id."""

    def __init__(self) -> None:
        self.prints = array("Q")
        self._tables = [array("Q", bytes(8 * _SMALLEST)) for _ in range(_SHARDS)]
        self._used = [0] * _SHARDS

    def put(self, seq: int, mark: int) -> None:
        """Note the id of a seq out of turn; noting it again changes nothing."""
        self.skip(seq + 1)
        if self.prints[seq - 1]:
            return
        self.prints[seq - 1] = mark
        self._place(mark % _SHARDS, seq, mark)

    def skip(self, seq: int) -> None:
        """Leave the seqs up to this one open, where they are not noted yet."""
        missing = seq - 1 - len(self.prints)
        if missing > 0:
            self.prints.frombytes(bytes(8 * missing))

    def extend(self, marks: Iterable[int]) -> None:
        """Note the ids of the seqs that come next; 0 where one is not known."""
        tables, used, add = self._tables, self._used, self.prints.append
        seq = len(self.prints)
        for mark in marks:
            seq += 1
            add(mark)
            if not mark:
                continue
            shard = mark % _SHARDS
            table = tables[shard]
            mask = len(table) - 1
            slot = (mark // _SHARDS) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = seq
            used[shard] += 1
            if used[shard] * 3 > mask * 2:
                self._grow(shard)

    def find_taken(self, marks: Sequence[int]) -> list[tuple[int, int]]:
        """(place in `marks`, seq) of each that is noted; most writes find none."""
        tables, prints = self._tables, self.prints
        hits: list[tuple[int, int]] = []
        for place, mark in enumerate(marks):
            table = tables[mark % _SHARDS]
            mask = len(table) - 1
            slot = (mark // _SHARDS) & mask
            while seq := table[slot]:
                if prints[seq - 1] == mark:
                    hits.append((place, seq))
                slot = (slot + 1) & mask
        return hits

    def find(self, mark: int) -> list[int]:
        """The seqs whose id may be the one with this fingerprint; nearly always none or one."""
        return [seq for _, seq in self.find_taken((mark,))]

    def _place(self, shard: int, seq: int, mark: int) -> None:
        table = self._tables[shard]
        mask = len(table) - 1
        slot = (mark // _SHARDS) & mask
        while table[slot]:
            slot = (slot + 1) & mask
        table[slot] = seq
        self._used[shard] += 1
        if self._used[shard] * 3 > mask * 2:
            self._grow(shard)

    def _grow(self, shard: int) -> None:
        held = [seq for seq in self._tables[shard] if seq]
        table = self._tables[shard] = array("Q", bytes(16 * len(self._tables[shard])))
        mask = len(table) - 1
        for seq in held:
            slot = (self.prints[seq - 1] // _SHARDS) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = seq


CatalogueEntry = tuple[str | None, Fact, int, int | None]
"""Thread, fact, seq and sequence: what the catalogue needs of a fact."""


class ChunkContents(msgspec.Struct, frozen=True, gc=False):
    """The facts of a chunk, with the fingerprints of their ids, and all keys they have."""

    facts: Iterable[CatalogueEntry]
    marks: Sequence[int]
    keys: Iterable[str]


class PlacedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of the chain, with the place of its item."""

    at: int
    record: Record


class StreamState:
    """Everything but the facts; `at` is the last stream sequence that was taken in."""

    def __init__(self) -> None:
        self.at = 0
        self.epoch = ""
        self.epoch_at = 0
        self.hash = GENESIS
        self.floor = 0
        self.base = 0
        self.base_hash = GENESIS
        self.broken: str | None = None
        self.ids = FingerprintTable()
        self.directory = SegmentDirectory()
        self.keys = SegmentKeys()
        self.threads: dict[str, CatalogueRecord] = {}
        self.thread_floors: dict[str, int] = {}
        self.links: list[PlacedRecord] = []
        self.snapshots: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
        # Items that others took the place of, as (at, parts), until this process has deleted them.
        self.replaced_chunks = array("Q")
        self.replaced_snapshots = array("Q")
        self.awaited = ""
        self.arrived = False

    @property
    def head(self) -> int:
        return self.directory.head

    def await_item(self, name: str) -> None:
        """Set `arrived` once an item of this name is taken in."""
        self.awaited, self.arrived = name, False

    def apply(self, item: StreamItem) -> ItemBody | None:
        """Take in the next item as it was read; answers what it says."""
        item_body = decode_item(item.kind, item.body)
        self.take(item_body, item)
        return item_body

    def take(
        self, item_body: ItemBody | None, item: StreamItem, contents: ChunkContents | None = None
    ) -> None:
        """Take in the next item; `contents` are those of a chunk that this process made."""
        if isinstance(item_body, Chunk):
            self._commit(item_body, item, contents or _read_contents(ensure_sound(item_body)))
        else:
            self._take_other(item_body, item)
        self._note_seen(item)

    def _commit(self, chunk: Chunk, item: StreamItem, contents: ChunkContents) -> None:
        self._ensure_follows(chunk)
        self.ids.skip(chunk.first)
        self.ids.extend(contents.marks)
        self.directory.add(_build_segment(chunk.first, chunk.last, item, chunk))
        self.keys.add(chunk.first, contents.keys)
        threads = self.threads
        for thread, fact, seq, sequence in contents.facts:
            if thread is None or sequence is None:
                continue
            record = threads.get(thread)
            if record is None:
                threads[thread] = build_catalogue_record(thread, fact, seq, sequence)
            else:
                record.note(fact, seq, sequence)
        self.hash = chunk.hash

    def last_sequence(self, thread_id: str) -> int | None:
        record = self.threads.get(thread_id)
        return record and record.last_sequence

    def list_snapshots_of(self, thread_id: str) -> list[tuple[str, str]]:
        """The keys of a thread's snapshots."""
        return [key for key in self.snapshots if key[0] == thread_id]

    def floor_of(self, wanted: Filter | None) -> int:
        """Cursors below this seq are expired for a reader with this filter."""
        if wanted is not None and wanted.thread is not None:
            return max(self.floor, self.thread_floors.get(wanted.thread, 0))
        return max(self.floor, *self.thread_floors.values(), 0)

    def bounds(self, wanted: Filter | None = None) -> Bounds:
        thread = wanted.thread if wanted else None
        saved = (
            seq
            for (owner, _), seqs in self.snapshots.items()
            if thread is None or owner == thread
            for seq in seqs
        )
        nearest = max(saved, default=None)
        return Bounds(
            epoch=self.epoch,
            head=self.head,
            floor=self.floor_of(wanted),
            oldest=self.floor,
            nearest=None if nearest is None else Cursor(self.epoch, nearest),
        )

    def holds(self, readers: dict[str, int]) -> Holds:
        """What removal must leave alone, given where readers stand."""
        actions = {
            record.thread_id: min(record.open.values())
            for record in self.threads.values()
            if record.open
        }
        return Holds(readers=readers, actions=actions)

    def records(self) -> list[Record]:
        return [link.record for link in self.links]

    def damage(self) -> JournalCorrupt | None:
        """Why nothing may be appended, if so: ids that are lost could be taken twice."""
        if self.directory.missing:
            lost = next(each for each in self.directory if not each.at)
            return JournalCorrupt("the stream lost facts", first=lost.first, last=lost.last)
        return None if self.broken is None else JournalCorrupt(self.broken)

    def _take_other(self, item_body: ItemBody | None, item: StreamItem) -> None:
        match item_body:
            case EpochStart():
                self.epoch, self.epoch_at = item_body.epoch, item.at
            case Record():
                self._link(item_body, item)
            case KeptRange():
                self._keep(item_body, item)
            case RaisedFloors():
                self.floor = max(self.floor, item_body.floor)
                for record in item_body.threads:
                    self.threads[record.thread_id] = record
                    if record.floor > self.thread_floors.get(record.thread_id, 0):
                        self.thread_floors[record.thread_id] = record.floor
                        for key in self.list_snapshots_of(record.thread_id):
                            for place in self.snapshots.pop(key).values():
                                self.replaced_snapshots.extend(place)
            case SavedSnapshot():
                saved = self.snapshots.setdefault((item_body.thread_id, item_body.kind), {})
                self.replaced_snapshots.extend(saved.get(item_body.seq, ()))
                saved[item_body.seq] = (item.at, item.parts)
            case _:
                pass

    def _note_seen(self, item: StreamItem) -> None:
        self.at = item.end
        if item.name == self.awaited:
            self.arrived = True

    def _ensure_follows(self, chunk: Chunk) -> None:
        if chunk.first <= self.head:
            raise JournalCorrupt("facts are stored twice", first=chunk.first, last=chunk.last)
        if chunk.first == self.head + 1 and chunk.prev != self.hash and self.broken is None:
            self.broken = f"the commit at {chunk.first} does not follow the one before it"

    def _link(self, record: Record, item: StreamItem) -> None:
        self.links.append(PlacedRecord(item.at, record))
        self.hash = record.hash
        content = record.content()
        if isinstance(content, Truncated):
            self.base, self.base_hash = content.floor, content.hash
            self.links = [link for link in self.links if link.record.after >= self.base]
            self.keys.forget(self.base)

    def _keep(self, kept: KeptRange, item: StreamItem) -> None:
        chunk = kept.chunk
        recorded = self.links[-1].record.after if self.links else 0
        if chunk is not None and kept.last >= max(self.head, recorded + 1):
            # The chunks of which this was merged are gone, and with them who said where they end.
            self.hash = chunk.hash
        for old in self.directory.cover(_build_segment(kept.first, kept.last, item, chunk)):
            if old.at:
                self.replaced_chunks.extend((old.at, old.parts))
        gone = compute_fingerprints(retired.id for retired in kept.retired)
        for retired, mark in zip(kept.retired, gone, strict=True):
            self.ids.put(retired.seq, mark)
        if chunk is not None:
            self.keys.cover(kept.first, kept.last, chunk.positions())
            marks = compute_fingerprints(fact.id for _, fact, _, _ in _read_entries(chunk))
            for seq, mark in zip(chunk.places(), marks, strict=True):
                self.ids.put(seq, mark)


def _read_contents(chunk: Chunk) -> ChunkContents:
    facts = list(_read_entries(chunk))
    marks = compute_fingerprints([fact.id for _, fact, _, _ in facts])
    return ChunkContents(facts, marks, list_keys_in(chunk.groups()))


def list_keys_in(groups: Groups) -> set[str]:
    """Every key that facts have."""
    return {key for keys in groups for key in keys}


def _read_entries(chunk: Chunk) -> Iterator[CatalogueEntry]:
    for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
        fact = decode_line(line)
        yield find_thread_id(fact), fact, seq, fact.sequence


def _build_segment(first: int, last: int, item: StreamItem, chunk: Chunk | None) -> StreamSegment:
    size = 0 if chunk is None else len(chunk.data) + len(chunk.index)
    facts = 0 if chunk is None else chunk.facts
    return StreamSegment(first, last, item.at, item.parts, facts, size)
