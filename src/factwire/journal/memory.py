"""A journal in memory: the whole contract and nothing durable, for tests and for trying things.

It is the plainest reading of the protocol, which makes it the model that other backends are held
against. All of it runs on the caller's event loop, one append after the other.
"""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from types import TracebackType
from typing import Self

from factwire.facts.fact import Fact
from factwire.journal.admission import Entry, Known, prepare
from factwire.journal.catalogue import (
    Thread,
    ThreadPage,
    ThreadRecord,
    ThreadStatus,
    new_record,
    page_of,
)
from factwire.journal.chain import GENESIS, Record, RecordBody, Truncated, record_of
from factwire.journal.chain_point import ChainPoint, ensure_reached, point_in
from factwire.journal.chunk import (
    Chunk,
    Stretch,
    decode_line,
    grouped,
    joined,
    new_chunk,
    nothing,
    spanning,
    stretch_of,
    thinned,
)
from factwire.journal.cursor import Cursor, new_epoch
from factwire.journal.errors import JournalClosed, JournalUrlError
from factwire.journal.filter import Filter
from factwire.journal.group import Group
from factwire.journal.live import Bell, Reader, Readers
from factwire.journal.policy import Compaction, Removal, Retention
from factwire.journal.protocol import Appended, Snapshot, Stats, VerifyReport
from factwire.journal.removal import Holds, Plan, plan_compaction, plan_retention
from factwire.journal.removed import Removed, removed_of
from factwire.journal.restore import Piece, Restoration, ensure_empty, ensure_new, pieces_of
from factwire.journal.resume import Bounds, check_cursor, fact_cursor, page_start, resume_after
from factwire.journal.walk import Walk, snapshot_anchor


class MemoryJournal:
    """Implements `Journal`; its facts live as long as the object, across being closed."""

    def __init__(self) -> None:
        self._epoch = new_epoch()
        self._chunks: list[Chunk] = []
        self._records: list[Record] = []
        self._head = 0
        self._hash = GENESIS
        self._floor = 0
        self._base = 0
        self._base_hash = GENESIS
        self._known: dict[str, Known] = {}
        self._threads: dict[str, ThreadRecord] = {}
        self._snapshots: dict[tuple[str, str, int], Snapshot] = {}
        self._bell = Bell()
        self._readers = Readers()
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        self._bell.ring()

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> Appended:
        self._ensure_open()
        entries = prepare(batch)
        known = [entry.fact.id for entry in entries if entry.fact.id in self._known]
        group = Group(self, epoch=self._epoch, first=self._head + 1, doubtful=known)
        answer = group.admit(entries, expected)
        if group.lines:
            self._commit(group)
            self._bell.ring()
        return answer

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[Stretch]:
        self._ensure_open()
        start = self._resume(after, filter)
        with self._readers.reading(start, follows=False) as reader:
            for stretch in self._replay(reader, filter, limit):
                yield stretch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[Stretch]:
        self._ensure_open()
        start = self._resume(after, filter)
        with self._readers.reading(start, follows=True) as reader:
            for stretch in self._replay(reader, filter, None):
                yield stretch
            covered = reader.position
            while True:
                seen = self._bell.count
                self._ensure_open()
                live = [
                    stretch_of(chunk, self._epoch, after=reader.position, wanted=filter)
                    for chunk in self._chunks[self._chunk_after(reader.position) :]
                ]
                reader.position = max(reader.position, self._head)
                if any(stretch.seqs for stretch in live):
                    yield spanning(joined(live), covered + 1)
                    covered = live[-1].last
                elif not live:
                    await self._bell.wait(seen)

    async def head(self) -> Cursor:
        self._ensure_open()
        return Cursor(self._epoch, self._head)

    async def position(self, fact_id: str) -> Cursor:
        self._ensure_open()
        known = self._known.get(fact_id)
        return fact_cursor(fact_id, known.seq if known else None, self._bounds(None))

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        self._ensure_open()
        below = page_start(after, self._bounds(None))
        rows = sorted(
            (
                record.row()
                for record in self._threads.values()
                if record.last_seq < below
                and project in (None, record.project_id)
                and status in (None, record.status)
            ),
            key=lambda row: -row.last_seq,
        )
        return page_of(rows, limit, self._epoch)

    async def thread(self, thread_id: str) -> Thread | None:
        self._ensure_open()
        record = self._threads.get(thread_id)
        return record and record.row()

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> Snapshot:
        self._ensure_open()
        seq = check_cursor(cursor, self._bounds(None))
        anchor = (await self.chain_point(seq)).hash if seq else GENESIS
        snapshot = Snapshot(thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor)
        self._snapshots[thread_id, kind, seq] = snapshot
        return snapshot

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> Snapshot | None:
        self._ensure_open()
        top = self._head if at is None else check_cursor(at, self._bounds(None))
        found = (
            each
            for each in self._snapshots.values()
            if (each.thread_id, each.kind) == (thread_id, kind) and each.cursor.seq <= top
        )
        return max(found, key=lambda each: each.cursor.seq, default=None)

    async def retain(self, policy: Retention) -> Removal:
        self._ensure_open()
        place = {"head": self._head, "floor": self._floor}
        return self._remove(plan_retention(policy, self._facts(), self._holds(), **place))

    async def compact(self, policy: Compaction | None = None) -> Removal:
        self._ensure_open()
        place = {"head": self._head, "floor": self._floor}
        plan = plan_compaction(policy or Compaction(), self._facts(), self._holds(), **place)
        return self._remove(plan)

    async def verify(self) -> VerifyReport:
        self._ensure_open()
        anchors = map(snapshot_anchor, self._snapshots.values())
        walk = Walk(self._base, self._base_hash, self._records, anchors)
        records = iter(self._records)
        record = next(records, None)
        for chunk in self._chunks:
            walk.chunk(chunk)
            while record and record.after <= chunk.last:
                walk.record(record)
                record = next(records, None)
        walk.end(self._head, self._hash)
        return walk.report()

    async def chain_point(self, seq: int) -> ChainPoint:
        self._ensure_open()
        if ensure_reached(seq, self._bounds(None)) <= self._base:
            return ChainPoint(self._base, self._base_hash)
        return point_in(self._chunks[self._chunk_after(seq - 1)], seq)

    async def removed(self) -> AsyncIterator[Removed]:
        self._ensure_open()
        for fact_id, known in sorted(self._known.items(), key=lambda item: item[1].seq):
            if known.digest is not None:
                yield Removed(known.seq, fact_id, known.sequence, known.digest)

    async def records(self) -> AsyncIterator[ThreadRecord]:
        self._ensure_open()
        for record in tuple(self._threads.values()):
            yield deepcopy(record)

    async def restore(self, given: Restoration) -> Cursor:
        self._ensure_open()
        ensure_empty(self._head)
        for piece in pieces_of(given):
            self._put(piece)
        self._floor = self._base = given.floor
        self._threads = {record.thread_id: record for record in given.threads}
        self._bell.ring()
        return Cursor(self._epoch, self._head)

    async def stats(self) -> Stats:
        self._ensure_open()
        return Stats(
            bytes=sum(len(chunk.data) + len(chunk.index) for chunk in self._chunks),
            facts=sum(chunk.facts for chunk in self._chunks),
            threads=len(self._threads),
            head=Cursor(self._epoch, self._head),
            floor=Cursor(self._epoch, self._floor),
            followers=self._readers.stats(self._head),
        )

    def known(self, fact_id: str) -> Known | None:
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        record = self._threads.get(thread_id)
        return record and record.last_sequence

    def _ensure_open(self) -> None:
        if not self._open:
            raise JournalClosed("the journal is not open; use `async with`")

    def _commit(self, group: Group) -> None:
        keys = grouped(entry.keys for entry in group.entries)
        chunk = new_chunk(self._hash, group.first, group.lines, keys)
        self._chunks.append(chunk)
        self._head, self._hash = chunk.last, chunk.hash
        for seq, entry, line, sequence in group.placed():
            self._known[entry.fact.id] = Known(seq, sequence, line)
            self._note(entry, seq, sequence)

    def _put(self, piece: Piece) -> None:
        ensure_new(piece.ids().keys() & self._known.keys())
        self._retire(piece.removed)
        if piece.chunk is not None:
            self._chunks.append(piece.chunk)
            for seq, line in zip(piece.chunk.places(), piece.chunk.lines(), strict=True):
                fact = decode_line(line)
                self._known[fact.id] = Known(seq, fact.sequence, line)
        self._records += piece.records
        self._head, self._hash = piece.last, piece.end

    def _note(self, entry: Entry, seq: int, sequence: int | None) -> None:
        thread = entry.thread
        if thread is None or sequence is None:
            return
        record = self._threads.get(thread)
        if record is None:
            self._threads[thread] = new_record(thread, entry.fact, seq, sequence)
        else:
            record.note(entry.fact, seq, sequence)

    def _bounds(self, wanted: Filter | None) -> Bounds:
        thread = wanted.thread if wanted else None
        gaps = [
            record.floor
            for record in self._threads.values()
            if thread is None or record.thread_id == thread
        ]
        cursors = [
            each.cursor
            for each in self._snapshots.values()
            if thread is None or each.thread_id == thread
        ]
        return Bounds(
            epoch=self._epoch,
            head=self._head,
            floor=max([self._floor, *gaps]),
            oldest=self._floor,
            nearest=max(cursors, default=None),
        )

    def _resume(self, after: Cursor | str | None, wanted: Filter | None) -> int:
        return resume_after(after, self._bounds(wanted), self._seq_of)

    def _seq_of(self, fact_id: str) -> int | None:
        known = self._known.get(fact_id)
        return known and known.seq

    def _chunk_after(self, seq: int) -> int:
        return bisect_left(self._chunks, seq + 1, key=lambda chunk: chunk.last)

    def _replay(
        self, reader: Reader, wanted: Filter | None, limit: int | None
    ) -> Iterator[Stretch]:
        head, covered, left = self._head, reader.position, limit
        while reader.position < head and left != 0:
            chunk = self._chunks[self._chunk_after(reader.position)]
            position = reader.position
            stretch = stretch_of(chunk, self._epoch, after=position, wanted=wanted, limit=left)
            reader.position = stretch.last
            left = left and left - len(stretch.seqs)
            if stretch.seqs:
                yield spanning(stretch, covered + 1)
                covered = stretch.last
        if covered < reader.position:
            yield nothing(self._epoch, covered + 1, reader.position)

    def _facts(self) -> Iterator[tuple[int, Fact]]:
        for chunk in self._chunks:
            yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)

    def _holds(self) -> Holds:
        waiting = [record for record in self._threads.values() if record.open]
        actions = {record.thread_id: min(record.open.values()) for record in waiting}
        return Holds(readers=self._readers.positions(), actions=actions)

    def _remove(self, plan: Plan) -> Removal:
        before = sum(len(chunk.data) for chunk in self._chunks)
        removed = gone = 0
        for thread, floor in plan.thread_floors.items():
            self._threads[thread].floor = floor
        kept: list[Chunk] = []
        contents: list[RecordBody] = []
        for chunk in self._chunks:
            dropped = removed_of(chunk, plan.keeps)
            self._retire(dropped)
            removed += len(dropped)
            if chunk.last <= plan.floor:
                gone += chunk.facts
                self._rebase(chunk)
            elif dropped:
                rest, content = thinned(chunk, plan.keeps)
                kept.append(rest)
                contents.append(content)
            else:
                kept.append(chunk)
        self._chunks = kept
        self._floor = plan.floor
        if gone:
            contents.append(Truncated(floor=self._base, hash=self._base_hash, dropped=gone))
        for content in contents:
            record = record_of(self._head, self._hash, content)
            self._records.append(record)
            self._hash = record.hash
        freed = before - sum(len(chunk.data) for chunk in self._chunks)
        floor = Cursor(self._epoch, self._floor)
        return Removal(removed=removed, freed=freed, floor=floor, held_by=plan.held_by)

    def _rebase(self, gone: Chunk) -> None:
        behind = [each for each in self._records if each.after <= gone.last]
        after = [each.hash for each in behind if each.after == gone.last]
        self._base, self._base_hash = gone.last, after[-1] if after else gone.hash
        self._records = self._records[len(behind) :]

    def _retire(self, removed: Iterable[Removed]) -> None:
        for each in removed:
            self._known[each.id] = Known(each.seq, each.sequence, digest=each.digest)


def open_memory(url: str) -> MemoryJournal:
    """A new, empty journal; `memory:` names no place, so that no two share one."""
    if url != "memory:":
        raise JournalUrlError(f"expected memory: with nothing after it, got {url!r}")
    return MemoryJournal()
