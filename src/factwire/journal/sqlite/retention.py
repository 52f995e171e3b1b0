"""Retention, compaction, restore and mirroring on a live SQLite journal.

Everything is sealed first, so that the ids of what goes stay known. The plan is made beside the
writer; what readers need is looked at again, with no reader beginning, right where the plan is
carried out. A restored piece is one transaction, and the ids of its removed facts are as safe as
the facts beside them.

A mirror takes in the chain of another journal as it is: its commits, and the records of what was
removed. What the mirror holds it keeps, because a record only says what the other journal removed.
Records come ahead of the facts that they follow; the chain passes them when it gets there.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, Protocol

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.issues import FactError
from factwire.journal.chain_verifier import Compactions, collect_compactions, find_content_fault
from factwire.journal.chunks import (
    GENESIS,
    ChainBatch,
    ChainPoint,
    ChainStart,
    Chunk,
    MirroredChunk,
    Record,
    RecordBody,
    Truncated,
    build_record,
    decode_line,
    is_record_intact,
    is_withheld,
    rebuild_chunk,
    thin_chunk,
    to_mirrored,
)
from factwire.journal.cursor import Cursor
from factwire.journal.errors import (
    ChainPointUnknown,
    JournalCorrupt,
    MirrorBroken,
    MirrorConflict,
    MirrorGap,
)
from factwire.journal.filter import find_thread_id, list_keys
from factwire.journal.retention import (
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RestorePiece,
    cut_pieces,
    ensure_empty,
    ensure_new,
    list_removed,
)
from factwire.journal.sqlite.handle import SqliteHandle, load_hashes_at
from factwire.journal.sqlite.indexes import RUN_IDS, digest_ids
from factwire.journal.sqlite.journal_state import (
    JournalEnds,
    WriterState,
    insert_removed,
    list_open_actions,
    note_fact,
    save_records,
    sum_retired,
)
from factwire.journal.sqlite.schema import (
    Database,
    get_meta,
    insert_chunk,
    insert_record,
    load_all_records,
    load_chunks_after,
    replace_chunk,
    set_meta,
)
from factwire.journal.sqlite.writer import SqliteWriter
from factwire.journal.thread_catalogue import CatalogueRecord


class PruneResult(msgspec.Struct):
    """What a removal came to, and the ends of the journal after it."""

    removed: int
    freed: int
    place: JournalEnds


def load_facts(connection: Database, base: int, head: int) -> Iterator[tuple[int, Fact]]:
    """Every fact that is left, in order."""
    for chunk in load_chunks_after(connection, base, head):
        yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)


def prune(state: WriterState, plan: RemovalPlan) -> PruneResult:
    """Remove what a plan names, inside the caller's transaction."""
    connection, place = state.connection, state.place
    removed = freed = gone = 0
    contents: list[RecordBody] = []
    last_gone: Chunk | None = None
    top = max(plan.drop, default=plan.floor)
    for chunk in list(load_chunks_after(connection, place.base, max(top, plan.floor))):
        dropped = _retire(connection, chunk, plan)
        if not dropped and chunk.last > plan.floor:
            continue
        removed += dropped
        freed += len(chunk.data)
        if chunk.last <= plan.floor:
            connection.execute("DELETE FROM chunks WHERE first = ?", (chunk.first,))
            last_gone = chunk
            gone += dropped
        else:
            rest, content = thin_chunk(chunk, plan.keeps)
            replace_chunk(connection, rest)
            contents.append(content)
            freed -= len(rest.data)
    if last_gone is not None:
        place = _rebase(connection, place, last_gone)
        contents.append(Truncated(floor=place.base, hash=place.base_hash, dropped=gone))
    place = _record(connection, place, contents)
    place = msgspec.structs.replace(
        place,
        floor=plan.floor,
        removed=place.removed + removed,
        gap=max([place.gap, *plan.thread_floors.values()]),
    )
    set_meta(connection, "floor", place.floor)
    set_meta(connection, "removed", place.removed)
    _raise_floors(state, plan)
    return PruneResult(removed, freed, place)


def _retire(connection: Database, chunk: Chunk, plan: RemovalPlan) -> int:
    gone = list_removed(chunk, plan.keeps)
    insert_removed(connection, gone)
    return len(gone)


def _rebase(connection: Database, place: JournalEnds, gone: Chunk) -> JournalEnds:
    # Records that stood right after the last removed chunk are behind the new beginning too.
    sql = "SELECT hash FROM records WHERE after = ? ORDER BY number DESC LIMIT 1"
    digest = connection.execute(sql, (gone.last,)).get or gone.hash
    connection.execute("DELETE FROM records WHERE after <= ?", (gone.last,))
    connection.execute("DELETE FROM segments WHERE last <= ?", (gone.last,))
    set_meta(connection, "base", gone.last)
    set_meta(connection, "base_hash", digest)
    return msgspec.structs.replace(place, base=gone.last, base_hash=digest)


def _record(connection: Database, place: JournalEnds, contents: list[RecordBody]) -> JournalEnds:
    digest = place.hash
    for content in contents:
        record = build_record(place.head, digest, content)
        insert_record(connection, record)
        digest = record.hash
    return msgspec.structs.replace(place, hash=digest)


def _raise_floors(state: WriterState, plan: RemovalPlan) -> None:
    for thread, floor in plan.thread_floors.items():
        if state.last_sequence(thread) is not None:
            state.threads[thread].floor = floor
            state.dirty.add(thread)
        state.connection.execute("DELETE FROM snapshots WHERE thread = ?", (thread,))
    save_records(state.connection, state.dirty_records())


class Planner(Protocol):
    """A policy that has become a function."""

    def __call__(
        self, facts: Iterable[tuple[int, Fact]], holds: Holds, *, head: int, floor: int
    ) -> RemovalPlan: ...


async def remove(store: SqliteHandle, planner: Planner, *, scan: bool) -> RemovalResult:
    """Remove what a planner names; `scan` tells whether it looks at facts."""
    writer = store.require_author()
    await store.seal()
    state = writer.state
    flush = partial(save_records, state.connection)
    await asyncio.wrap_future(writer.call(lambda: flush(state.dirty_records()), state.mark_clean))
    plan = await store.pool.run(partial(_plan, store, planner, scan=scan))
    pruned = await asyncio.wrap_future(writer.inspect(partial(_carry_out, store, plan)))
    return RemovalResult(
        removed=pruned.removed,
        freed=pruned.freed,
        floor=Cursor(store.epoch, pruned.place.floor),
        held_by=plan.held_by,
    )


def _plan(
    store: SqliteHandle, planner: Planner, connection: Database, *, scan: bool
) -> RemovalPlan:
    place = store.require_writer().state.place
    facts = load_facts(connection, place.base, place.sealed) if scan else ()
    holds = Holds(readers=store.readers.positions(), actions=list_open_actions(connection))
    return planner(facts, holds, head=place.sealed, floor=place.floor)


def _carry_out(store: SqliteHandle, plan: RemovalPlan) -> PruneResult:
    writer = store.require_writer()
    state = writer.state
    with store.readers.hold_readers():
        holds = Holds(readers=store.readers.positions(), actions={})
        top = holds.reader_ceiling(state.place.head)
        for position in store.readers.list_commit_positions():
            top = min(top, _find_whole_end(state.connection, position))
        plan.floor = max(state.place.floor, min(plan.floor, top))
        plan.drop = {seq for seq in plan.drop if plan.floor < seq <= top}
        plan.thread_floors = {
            thread: min(floor, top) for thread, floor in plan.thread_floors.items()
        }
        pruned = writer.transact(lambda: prune(state, plan))
        state.place = pruned.place
        state.mark_clean()
        writer.note_chain_change()
    return pruned


def _find_whole_end(connection: Database, position: int) -> int:
    """The end of the last chunk that a reader of commits has behind it: a thinned chunk no longer
    knows where the commits inside of it end.
    """
    sql = "SELECT first, last FROM chunks WHERE first <= ? ORDER BY first DESC LIMIT 1"
    row: tuple[int, int] | None = connection.execute(sql, (position,)).get
    return position if row is None or row[1] <= position else row[0] - 1


ROWS: Final = 1_000
"""Rows of removed facts or threads that are read or written at once."""


async def restore(store: SqliteHandle, restoration: Restoration) -> Cursor:
    """Write what is given; the journal must be empty until then."""
    writer = store.require_author()
    state, before = writer.state, 0
    for piece in cut_pieces(restoration):
        write = partial(_write, state, piece, restoration.floor, before)
        await asyncio.wrap_future(
            writer.call(write, partial(_advance, writer, piece, restoration.floor))
        )
        before = 0 if piece.chunk is None else piece.last
        if len(state.recent.seqs) >= RUN_IDS:
            await store.seal()
    threads = iter(restoration.threads)
    while records := tuple(islice(threads, ROWS)):
        save = partial(save_records, state.connection, records)
        await asyncio.wrap_future(writer.call(save, partial(_note_floors, state, records)))
    floor = partial(set_meta, state.connection, "floor", restoration.floor)
    await asyncio.wrap_future(writer.call(floor, partial(_raise_floor, state, restoration.floor)))
    store.bell.notify()
    return Cursor(store.epoch, state.place.head)


async def stream_removed(store: SqliteHandle) -> AsyncIterator[RemovedFact]:
    """What is kept of each removed fact, in order."""
    after = 0
    while rows := await store.pool.run(partial(_load_removed_after, after=after)):
        for each in rows:
            yield each
        after = rows[-1].seq


def _load_removed_after(connection: Database, after: int) -> list[RemovedFact]:
    sql = "SELECT seq, id, sequence, digest, sum FROM retired WHERE seq > ? ORDER BY seq LIMIT ?"
    found: list[RemovedFact] = []
    for seq, fact_id, sequence, digest, check in connection.execute(sql, (after, ROWS)):
        if sum_retired(seq, fact_id, sequence, digest) != check:
            raise JournalCorrupt("the record of a removed fact was changed", first=seq)
        found.append(RemovedFact(seq, fact_id, sequence, digest))
    return found


def _write(state: WriterState, piece: RestorePiece, floor: int, before: int) -> None:
    connection, place = state.connection, state.place
    if place.head != before:
        ensure_empty(place.head)
    ensure_new(fact_id for fact_id in piece.ids() if state.find_existing(fact_id) is not None)
    insert_removed(connection, piece.removed)
    set_meta(connection, "removed", place.removed + piece.removed_count)
    if piece.chunk is not None:
        insert_chunk(connection, piece.chunk)
        set_meta(connection, "base", floor)
        set_meta(connection, "base_hash", GENESIS)
    for record in piece.records:
        insert_record(connection, record)


def _advance(writer: SqliteWriter, piece: RestorePiece, floor: int) -> None:
    state = writer.state
    ids = piece.ids()
    state.recent.add(ids, digest_ids(ids), ids.values())
    state.place = msgspec.structs.replace(
        state.place, removed=state.place.removed + piece.removed_count
    )
    if piece.chunk is not None:
        state.recent.keys.append((piece.first, piece.chunk.groups()))
        ends = {"head": piece.last, "hash": piece.end, "base": floor, "base_hash": GENESIS}
        state.place = msgspec.structs.replace(state.place, **ends)
        writer.note_chain_change()


def _note_floors(state: WriterState, records: tuple[CatalogueRecord, ...]) -> None:
    gap = max(record.floor for record in records)
    state.place = msgspec.structs.replace(state.place, gap=max(state.place.gap, gap))


def _raise_floor(state: WriterState, floor: int) -> None:
    state.place = msgspec.structs.replace(state.place, floor=floor)


WITHHELD: Final = "withheld"
"""Under this name, a mirror counts the facts of private threads that it was not given."""


class MirrorEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How far a mirror has come: the end of its chain, and the hash of the last record it has."""

    point: ChainPoint
    record: bytes = b""


class MirroredPart(msgspec.Struct, frozen=True):
    """A chunk to be taken in, with what is to be noted of its facts."""

    chunk: Chunk
    facts: list[Fact]
    ids: list[str]
    digests: list[bytes]


def count_withheld(connection: Database) -> int:
    """How many facts of private threads a mirror was not given."""
    found = get_meta(connection, WITHHELD)
    return found if isinstance(found, int) else 0


def load_mirror_end(state: WriterState) -> MirrorEnd:
    """How far a mirror has come."""
    last = state.connection.execute("SELECT hash FROM records ORDER BY number DESC LIMIT 1").get
    return MirrorEnd(point=ChainPoint(state.place.head, state.place.hash), record=last or b"")


async def take_chain(store: SqliteHandle, batch: ChainBatch) -> MirrorEnd:
    """Take in what follows in the chain of another journal."""
    writer = store.require_writer()
    if not store.mirrored:
        raise MirrorBroken(f"{store.path} is no mirror")
    parts = await asyncio.to_thread(_prepare_parts, batch)
    intake = MirrorIntake(writer, batch, parts)
    await asyncio.wrap_future(writer.call(intake.write, intake.advance))
    if len(writer.state.recent.seqs) >= RUN_IDS:
        await store.seal()
    return await asyncio.wrap_future(writer.inspect(partial(load_mirror_end, writer.state)))


async def take_removed(
    store: SqliteHandle, removed: Sequence[RemovedFact], threads: Sequence[CatalogueRecord]
) -> None:
    """Take in what another journal keeps of removed facts, as far as they are not held here, and
    of threads. The chain is behind what a thread's record says until it has passed its last fact.
    """
    writer = store.require_writer()
    state = writer.state

    def write() -> None:
        if not store.mirrored:
            raise MirrorBroken(f"{store.path} is no mirror")
        ends = (min(seqs, default=0), max(seqs, default=0))
        sql = "SELECT seq FROM retired WHERE seq BETWEEN ? AND ?"
        known = {seq for (seq,) in state.connection.execute(sql, ends)}
        new.extend(seqs[seq] for seq in seqs if seq > state.place.head and seq not in known)
        ids = [each.id for each in new]
        if _has_known_ids(state, ids, digest_ids(ids)):
            raise MirrorBroken("an id occurs twice among what was removed, or stands elsewhere")
        insert_removed(state.connection, new)
        save_records(state.connection, threads)

    def advance() -> None:
        ids = {each.id: each.seq for each in new}
        state.recent.add(ids, digest_ids(ids), ids.values())
        for record in threads:
            state.threads.pop(record.thread_id, None)
            state.dirty.discard(record.thread_id)
        if threads:
            _note_floors(state, tuple(threads))

    seqs = {each.seq: each for each in removed}
    new: list[RemovedFact] = []
    await asyncio.wrap_future(writer.call(write, advance))


def _has_known_ids(state: WriterState, ids: Sequence[str], digests: Sequence[bytes]) -> bool:
    """Whether an id occurs twice, or is one that the journal has."""
    doubtful = state.doubtful(ids, digests)
    known = any(state.find_existing(fact_id) is not None for fact_id in doubtful)
    return known or len(set(ids)) < len(ids)


def _prepare_parts(batch: ChainBatch) -> list[MirroredPart]:
    """Everything about a batch that does not depend on the mirror; raises `MirrorBroken`."""
    return [_prepare_part(chunk) for chunk in batch.chunks]


def _prepare_part(part: MirroredChunk) -> MirroredPart:
    try:
        facts = [decode_line(line) for line in part.data.split(b"\n")[:-1]]
    except (FactError, msgspec.MsgspecError) as error:
        raise MirrorBroken(f"a line of {part.first}–{part.last} is not a fact: {error}") from error
    chunk = rebuild_chunk(part, map(list_keys, facts))
    if len(facts) != chunk.facts or not part.data.endswith(b"\n" if facts else b""):
        raise MirrorBroken(f"expected {chunk.facts} facts at {part.first}–{part.last}")
    if chunk.seqs is None:
        _ensure_sound(chunk, {})
    ids = [fact.id for fact in facts]
    return MirroredPart(chunk, facts, ids, digest_ids(ids))


def _ensure_sound(chunk: Chunk, compacted: Compactions) -> None:
    fault = find_content_fault(chunk, compacted)
    if fault is not None:
        raise MirrorBroken(f"{chunk.first}–{chunk.last}: {fault}")


class MirrorIntake:
    """One batch on its way into a mirror; both steps are the writer's, in one transaction."""

    def __init__(
        self, writer: SqliteWriter, batch: ChainBatch, parts: Sequence[MirroredPart]
    ) -> None:
        self._writer = writer
        self._state = writer.state
        self._batch = batch
        self._parts = parts
        self._taken: list[MirroredPart] = []
        self._withheld = 0

    def write(self) -> None:
        """Store what is new of the batch; raises `MirrorRefused`."""
        connection = self._state.connection
        # Not before the writer's turn: a seal that was queued ahead moves the place as well.
        self._place = self._state.place
        if self._place.head == 0:
            self._begin(self._batch.start)
        held = load_all_records(connection)
        hashes = {record.hash for record in held}
        for record in self._batch.records:
            if record.hash not in hashes:
                self._add_record(record, held)
        compacted = collect_compactions(held)
        for part in self._parts:
            if part.chunk.last <= self._place.head:
                self._ensure_repeated(part.chunk)
            else:
                self._add_part(part, compacted)
                self._pass_records(held)
        set_meta(connection, "removed", self._place.removed)
        if self._withheld:
            set_meta(connection, WITHHELD, count_withheld(connection) + self._withheld)

    def advance(self) -> None:
        """Take in what has been committed."""
        state, chunks = self._state, [part.chunk for part in self._taken]
        state.place = self._place
        for part in self._taken:
            seqs = part.chunk.places()
            state.recent.add(part.ids, part.digests, seqs)
            state.recent.keys.append((part.chunk.first, part.chunk.groups()))
            for seq, fact in zip(seqs, part.facts, strict=True):
                thread = find_thread_id(fact)
                if thread is not None and note_fact(
                    state.connection, state.threads, thread, fact, seq
                ):
                    state.dirty.add(thread)
        self._writer.note_chunks(chunks)

    def _begin(self, start: ChainStart) -> None:
        connection = self._state.connection
        for name, value in (("base", start.base), ("floor", start.floor)):
            set_meta(connection, name, value)
        set_meta(connection, "base_hash", start.hash)
        self._place = msgspec.structs.replace(
            self._place,
            head=start.base,
            hash=start.hash,
            base=start.base,
            base_hash=start.hash,
            floor=start.floor,
            removed=start.base,
        )

    def _add_record(self, record: Record, held: list[Record]) -> None:
        last = held[-1] if held else None
        follows = last is None or last.after < record.after or last.hash == record.prev
        if record.after < self._place.head or not follows or not is_record_intact(record):
            raise MirrorBroken("a record of removed facts does not continue the chain")
        insert_record(self._state.connection, record)
        held.append(record)
        if record.after == self._place.head:
            self._pass_record(record)

    def _pass_records(self, held: Sequence[Record]) -> None:
        for record in held:
            if record.after == self._place.head:
                self._pass_record(record)

    def _pass_record(self, record: Record) -> None:
        if record.prev != self._place.hash:
            raise MirrorBroken(f"the record behind {record.after} does not continue the chain")
        self._place = msgspec.structs.replace(self._place, hash=record.hash)

    def _ensure_repeated(self, chunk: Chunk) -> None:
        """Raise `MirrorConflict` unless the mirror holds the same; what lies before its beginning
        it cannot compare.
        """
        if chunk.last <= self._place.base:
            return
        if chunk.hash not in load_hashes_at(self._state.connection, chunk.last):
            raise MirrorConflict(first=chunk.first, last=chunk.last)

    def _add_part(self, part: MirroredPart, compacted: Compactions) -> None:
        chunk, place = part.chunk, self._place
        if chunk.first > place.head + 1:
            raise MirrorGap(expected=place.head + 1, got=chunk.first)
        if chunk.first <= place.head:
            part = self._trim(part)
            chunk = part.chunk
        if chunk.prev != place.hash:
            raise MirrorBroken(f"the facts from {chunk.first} on do not continue the chain")
        if chunk.seqs is not None:
            _ensure_sound(chunk, compacted)
        self._ensure_new(part)
        insert_chunk(self._state.connection, chunk)
        self._taken.append(part)
        lacking = chunk.last - chunk.first + 1 - chunk.facts
        if is_withheld(chunk):
            self._withheld += lacking
        removed = place.removed + lacking
        self._place = msgspec.structs.replace(
            place, head=chunk.last, hash=chunk.hash, removed=removed
        )

    def _trim(self, part: MirroredPart) -> MirroredPart:
        """The commits of a chunk that are new; raises `MirrorConflict` where the others are not
        those that the mirror has.
        """
        chunk, head = part.chunk, self._place.head
        try:
            rest = to_mirrored(chunk, head)
        except ChainPointUnknown:
            raise MirrorConflict(first=chunk.first, last=head) from None
        if head > self._place.base and rest.prev not in load_hashes_at(
            self._state.connection, head
        ):
            raise MirrorConflict(first=chunk.first, last=head)
        return _prepare_part(rest)

    def _ensure_new(self, part: MirroredPart) -> None:
        """Raise `MirrorBroken` where an id stands at two places."""
        taken = {fact_id for each in self._taken for fact_id in each.ids}
        known = _has_known_ids(self._state, part.ids, part.digests)
        if known or not taken.isdisjoint(part.ids):
            raise MirrorBroken(f"an id occurs twice in {part.chunk.first}–{part.chunk.last}")
