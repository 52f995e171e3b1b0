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
from factwire.journal.admission import ExistingFact, PreparedFact, prepare_facts
from factwire.journal.chain_verifier import ChainVerifier, build_anchor
from factwire.journal.chunks import (
    GENESIS,
    ChainPoint,
    Chunk,
    FactBatch,
    Record,
    RecordBody,
    Truncated,
    build_chunk,
    build_record,
    decode_line,
    empty_batch,
    ensure_reached,
    find_chain_point,
    group_by_keys,
    join_batches,
    select_batch,
    thin_chunk,
    widen_batch,
)
from factwire.journal.commit_group import CommitGroup
from factwire.journal.cursor import (
    Bounds,
    Cursor,
    check_cursor,
    new_epoch,
    require_fact_cursor,
    resolve_page_start,
    resolve_start,
)
from factwire.journal.errors import JournalClosed, JournalUrlError
from factwire.journal.filter import Filter
from factwire.journal.followers import CommitSignal, ReaderPosition, ReaderRegistry
from factwire.journal.protocol import AppendResult, JournalStats, StoredSnapshot, VerifyReport
from factwire.journal.retention import (
    CompactionPolicy,
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RestorePiece,
    RetentionPolicy,
    cut_pieces,
    ensure_empty,
    ensure_new,
    list_removed,
    plan_compaction,
    plan_retention,
)
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadPage,
    ThreadStatus,
    build_catalogue_record,
    build_page,
)


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
        self._known: dict[str, ExistingFact] = {}
        self._threads: dict[str, CatalogueRecord] = {}
        self._snapshots: dict[tuple[str, str, int], StoredSnapshot] = {}
        self._bell = CommitSignal()
        self._readers = ReaderRegistry()
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
        self._bell.notify()

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        self._ensure_open()
        entries = prepare_facts(batch)
        known = [entry.fact.id for entry in entries if entry.fact.id in self._known]
        group = CommitGroup(self, epoch=self._epoch, first=self._head + 1, doubtful=known)
        answer = group.admit(entries, expected)
        if group.lines:
            self._commit(group)
            self._bell.notify()
        return answer

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        self._ensure_open()
        start = self._resume(after, filter)
        with self._readers.open_reader(start, follows=False) as reader:
            for batch in self._replay(reader, filter, limit):
                yield batch

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[FactBatch]:
        self._ensure_open()
        start = self._resume(after, filter)
        with self._readers.open_reader(start, follows=True) as reader:
            for batch in self._replay(reader, filter, None):
                yield batch
            covered = reader.position
            while True:
                seen = self._bell.count
                self._ensure_open()
                live = [
                    select_batch(chunk, self._epoch, after=reader.position, wanted=filter)
                    for chunk in self._chunks[self._chunk_after(reader.position) :]
                ]
                reader.position = max(reader.position, self._head)
                if any(batch.seqs for batch in live):
                    yield widen_batch(join_batches(live), covered + 1)
                    covered = live[-1].last
                elif not live:
                    await self._bell.wait(seen)

    async def head(self) -> Cursor:
        self._ensure_open()
        return Cursor(self._epoch, self._head)

    async def position(self, fact_id: str) -> Cursor:
        self._ensure_open()
        known = self._known.get(fact_id)
        return require_fact_cursor(fact_id, known.seq if known else None, self._bounds(None))

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        self._ensure_open()
        below = resolve_page_start(after, self._bounds(None))
        rows = sorted(
            (
                record.to_thread()
                for record in self._threads.values()
                if record.last_seq < below
                and project in (None, record.project_id)
                and status in (None, record.status)
            ),
            key=lambda row: -row.last_seq,
        )
        return build_page(rows, limit, self._epoch)

    async def thread(self, thread_id: str) -> CatalogueThread | None:
        self._ensure_open()
        record = self._threads.get(thread_id)
        return record and record.to_thread()

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> StoredSnapshot:
        self._ensure_open()
        seq = check_cursor(cursor, self._bounds(None))
        anchor = (await self.chain_point(seq)).hash if seq else GENESIS
        snapshot = StoredSnapshot(
            thread_id=thread_id, kind=kind, cursor=cursor, data=data, anchor=anchor
        )
        self._snapshots[thread_id, kind, seq] = snapshot
        return snapshot

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> StoredSnapshot | None:
        self._ensure_open()
        top = self._head if at is None else check_cursor(at, self._bounds(None))
        found = (
            each
            for each in self._snapshots.values()
            if (each.thread_id, each.kind) == (thread_id, kind) and each.cursor.seq <= top
        )
        return max(found, key=lambda each: each.cursor.seq, default=None)

    async def retain(self, policy: RetentionPolicy) -> RemovalResult:
        self._ensure_open()
        place = {"head": self._head, "floor": self._floor}
        return self._remove(plan_retention(policy, self._facts(), self._holds(), **place))

    async def compact(self, policy: CompactionPolicy | None = None) -> RemovalResult:
        self._ensure_open()
        place = {"head": self._head, "floor": self._floor}
        plan = plan_compaction(policy or CompactionPolicy(), self._facts(), self._holds(), **place)
        return self._remove(plan)

    async def verify(self) -> VerifyReport:
        self._ensure_open()
        anchors = map(build_anchor, self._snapshots.values())
        walk = ChainVerifier(self._base, self._base_hash, self._records, anchors)
        records = iter(self._records)
        record = next(records, None)
        for chunk in self._chunks:
            walk.take_chunk(chunk)
            while record and record.after <= chunk.last:
                walk.take_record(record)
                record = next(records, None)
        walk.finish(self._head, self._hash)
        return walk.report()

    async def chain_point(self, seq: int) -> ChainPoint:
        self._ensure_open()
        if ensure_reached(seq, self._bounds(None)) <= self._base:
            return ChainPoint(self._base, self._base_hash)
        return find_chain_point(self._chunks[self._chunk_after(seq - 1)], seq)

    async def read_removed(self) -> AsyncIterator[RemovedFact]:
        self._ensure_open()
        for fact_id, known in sorted(self._known.items(), key=lambda item: item[1].seq):
            if known.digest is not None:
                yield RemovedFact(known.seq, fact_id, known.sequence, known.digest)

    async def records(self) -> AsyncIterator[CatalogueRecord]:
        self._ensure_open()
        for record in tuple(self._threads.values()):
            yield deepcopy(record)

    async def restore(self, restoration: Restoration) -> Cursor:
        self._ensure_open()
        ensure_empty(self._head)
        for piece in cut_pieces(restoration):
            self._put(piece)
        self._floor = self._base = restoration.floor
        self._threads = {record.thread_id: record for record in restoration.threads}
        self._bell.notify()
        return Cursor(self._epoch, self._head)

    async def stats(self) -> JournalStats:
        self._ensure_open()
        return JournalStats(
            bytes=sum(len(chunk.data) + len(chunk.index) for chunk in self._chunks),
            facts=sum(chunk.facts for chunk in self._chunks),
            threads=len(self._threads),
            head=Cursor(self._epoch, self._head),
            floor=Cursor(self._epoch, self._floor),
            followers=self._readers.stats(self._head),
        )

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        record = self._threads.get(thread_id)
        return record and record.last_sequence

    def _ensure_open(self) -> None:
        if not self._open:
            raise JournalClosed("the journal is not open; use `async with`")

    def _commit(self, group: CommitGroup) -> None:
        keys = group_by_keys(entry.keys for entry in group.entries)
        chunk = build_chunk(self._hash, group.first, group.lines, keys)
        self._chunks.append(chunk)
        self._head, self._hash = chunk.last, chunk.hash
        for seq, entry, line, sequence in group.list_placed():
            self._known[entry.fact.id] = ExistingFact(seq, sequence, line)
            self._note(entry, seq, sequence)

    def _put(self, piece: RestorePiece) -> None:
        ensure_new(piece.ids().keys() & self._known.keys())
        self._retire(piece.removed)
        if piece.chunk is not None:
            self._chunks.append(piece.chunk)
            for seq, line in zip(piece.chunk.places(), piece.chunk.lines(), strict=True):
                fact = decode_line(line)
                self._known[fact.id] = ExistingFact(seq, fact.sequence, line)
        self._records += piece.records
        self._head, self._hash = piece.last, piece.end

    def _note(self, entry: PreparedFact, seq: int, sequence: int | None) -> None:
        thread = entry.thread
        if thread is None or sequence is None:
            return
        record = self._threads.get(thread)
        if record is None:
            self._threads[thread] = build_catalogue_record(thread, entry.fact, seq, sequence)
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
        return resolve_start(after, self._bounds(wanted), self._seq_of)

    def _seq_of(self, fact_id: str) -> int | None:
        known = self._known.get(fact_id)
        return known and known.seq

    def _chunk_after(self, seq: int) -> int:
        return bisect_left(self._chunks, seq + 1, key=lambda chunk: chunk.last)

    def _replay(
        self, reader: ReaderPosition, wanted: Filter | None, limit: int | None
    ) -> Iterator[FactBatch]:
        head, covered, left = self._head, reader.position, limit
        while reader.position < head and left != 0:
            chunk = self._chunks[self._chunk_after(reader.position)]
            position = reader.position
            batch = select_batch(chunk, self._epoch, after=position, wanted=wanted, limit=left)
            reader.position = batch.last
            left = left and left - len(batch.seqs)
            if batch.seqs:
                yield widen_batch(batch, covered + 1)
                covered = batch.last
        if covered < reader.position:
            yield empty_batch(self._epoch, covered + 1, reader.position)

    def _facts(self) -> Iterator[tuple[int, Fact]]:
        for chunk in self._chunks:
            yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)

    def _holds(self) -> Holds:
        waiting = [record for record in self._threads.values() if record.open]
        actions = {record.thread_id: min(record.open.values()) for record in waiting}
        return Holds(readers=self._readers.positions(), actions=actions)

    def _remove(self, plan: RemovalPlan) -> RemovalResult:
        before = sum(len(chunk.data) for chunk in self._chunks)
        removed = gone = 0
        for thread, floor in plan.thread_floors.items():
            self._threads[thread].floor = floor
            for key in [key for key in self._snapshots if key[0] == thread]:
                del self._snapshots[key]
        kept: list[Chunk] = []
        contents: list[RecordBody] = []
        for chunk in self._chunks:
            dropped = list_removed(chunk, plan.keeps)
            self._retire(dropped)
            removed += len(dropped)
            if chunk.last <= plan.floor:
                gone += chunk.facts
                self._rebase(chunk)
            elif dropped:
                rest, content = thin_chunk(chunk, plan.keeps)
                kept.append(rest)
                contents.append(content)
            else:
                kept.append(chunk)
        self._chunks = kept
        self._floor = plan.floor
        if gone:
            contents.append(Truncated(floor=self._base, hash=self._base_hash, dropped=gone))
        for content in contents:
            record = build_record(self._head, self._hash, content)
            self._records.append(record)
            self._hash = record.hash
        freed = before - sum(len(chunk.data) for chunk in self._chunks)
        floor = Cursor(self._epoch, self._floor)
        return RemovalResult(removed=removed, freed=freed, floor=floor, held_by=plan.held_by)

    def _rebase(self, gone: Chunk) -> None:
        behind = [each for each in self._records if each.after <= gone.last]
        after = [each.hash for each in behind if each.after == gone.last]
        self._base, self._base_hash = gone.last, after[-1] if after else gone.hash
        self._records = self._records[len(behind) :]

    def _retire(self, removed: Iterable[RemovedFact]) -> None:
        for each in removed:
            self._known[each.id] = ExistingFact(each.seq, each.sequence, digest=each.digest)


def open_memory(url: str) -> MemoryJournal:
    """A new, empty journal; `memory:` names no place, so that no two share one."""
    if url != "memory:":
        raise JournalUrlError(f"expected memory: with nothing after it, got {url!r}")
    return MemoryJournal()
