"""What may be taken out of a journal, what stays of it, and how a journal with gaps is restored.

Retention removes old facts; cursors from before them expire. Compaction removes increments whose
final text is there too, so that a projection of what remains is the projection of everything;
cursors stay valid. Neither moves a seq, and neither touches what an open follower or action needs.
Where facts of a thread are removed on their own, its snapshots go with them: they show the same.
Of a removed fact enough is kept to tell a repeat from a conflict, for ever, and a restored journal
has the same seqs, the same gaps and the same taken ids. Decided here, carried out by backends.
"""

import asyncio
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from factwire.facts.classes.class_tables import TEXT_ENDS, TEXT_PIECES, TURN_TERMINALS
from factwire.facts.classes.specification import TextPieces
from factwire.facts.fact import Fact, id_of
from factwire.journal.admission import digest_body
from factwire.journal.chunks import (
    GENESIS,
    Chunk,
    Record,
    RecordBody,
    Truncated,
    build_chunk,
    build_gapped_chunk,
    build_record,
    decode_line,
    group_by_keys,
)
from factwire.journal.cursor import Cursor
from factwire.journal.errors import RestoreRefused
from factwire.journal.filter import find_thread_id, list_keys
from factwire.journal.thread_catalogue import CatalogueRecord

if TYPE_CHECKING:
    from factwire.journal.protocol import Journal


class SupersedingRule(msgspec.Struct, frozen=True, kw_only=True):
    """The fact that makes increments redundant: same thread, same turn and the same `same` ids.

    `fields` of the payload count like ids. An increment with a field of `unless` stays: it says
    something that the other does not hold.
    """

    classes: frozenset[str]
    same: tuple[str, ...]
    holds: tuple[str, ...]
    fields: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


def _build_rule(name: str, pieces: TextPieces) -> SupersedingRule | None:
    ends = {by: end for by, end in TEXT_ENDS.items() if end.pieces == name and end.replaces_pieces}
    if not ends:
        return None
    return SupersedingRule(
        classes=frozenset(ends),
        same=(*pieces.ids, *pieces.also_same),
        holds=tuple(dict.fromkeys((*(end.key for end in ends.values()), "text"))),
        fields=pieces.same_fields,
        unless=pieces.unless,
    )


SUPERSEDED: Final[Mapping[str, SupersedingRule]] = {
    name: rule
    for name, pieces in TEXT_PIECES.items()
    if (rule := _build_rule(name, pieces)) is not None
}
"""Class of an increment → what supersedes it; any payload field that `holds` names will do."""


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How much to keep; each bound that is set removes what lies beyond it."""

    max_age: int | None = None
    """Seqs behind the head; older facts go."""
    keep_facts: int | None = None
    """Newest facts of the whole journal."""
    keep_per_thread: int | None = None
    """Newest facts of each thread."""
    threads: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Thread → the seq up to which its facts go."""
    keep_classes: frozenset[str] = frozenset()
    """Classes of facts that stay in `threads`."""

    @property
    def reads_facts(self) -> bool:
        """Whether a plan has to look at the facts."""
        return bool(self.threads) or (self.keep_facts, self.keep_per_thread) != (None, None)


class CompactionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which increments to drop, and how many of the newest facts to leave alone."""

    superseded: Mapping[str, SupersedingRule] = msgspec.field(default_factory=lambda: SUPERSEDED)
    spare: int = 0


class RemovalResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `retain` or `compact` did, and what held it back."""

    removed: int
    freed: int
    """Bytes of lines."""
    floor: Cursor
    """Cursors before this one are expired."""
    held_by: tuple[str, ...] = ()
    """Followers and open actions without which more would have gone."""


class RemovedFact(msgspec.Struct, frozen=True, gc=False):
    """A removed fact: its place, its id, its sequence in its thread and the digest of its body."""

    seq: int
    id: str
    sequence: int | None
    digest: bytes


def list_removed(chunk: Chunk, keeps: Callable[[int], bool]) -> list[RemovedFact]:
    """What will stay of the facts of a chunk that are not kept."""
    found: list[RemovedFact] = []
    for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
        if not keeps(seq):
            fact = decode_line(line)
            found.append(RemovedFact(seq, fact.id, fact.sequence, digest_body(line)))
    return found


PartKey = tuple[str | None, ...]


class Holds(msgspec.Struct, frozen=True, kw_only=True):
    """Who needs what: readers by the position they have reached, threads by an open action."""

    readers: Mapping[str, int]
    actions: Mapping[str, int]

    def compute_ceiling(self, head: int) -> int:
        """The last seq that a journal-wide floor may reach."""
        lowest_action = min(self.actions.values(), default=head + 1)
        return max(0, min(self.reader_ceiling(head), lowest_action - 1))

    def reader_ceiling(self, head: int) -> int:
        """The last seq that every reader has behind it."""
        return min(*self.readers.values(), head - 1, head)

    def names(self, above: int) -> tuple[str, ...]:
        """Who stands in the way of removing what lies above a seq."""
        readers = [f"reader {name}" for name, at in self.readers.items() if at <= above]
        actions = [f"open action in {name}" for name, at in self.actions.items() if at <= above + 1]
        return (*sorted(readers), *sorted(actions))


class RemovalPlan(msgspec.Struct, kw_only=True):
    """Remove everything up to `floor` and, above it, the facts at `drop`."""

    floor: int
    drop: set[int] = msgspec.field(default_factory=set[int])
    thread_floors: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    held_by: tuple[str, ...] = ()

    def keeps(self, seq: int) -> bool:
        return seq > self.floor and seq not in self.drop


def plan_retention(
    policy: RetentionPolicy,
    facts: Iterable[tuple[int, Fact]],
    holds: Holds,
    *,
    head: int,
    floor: int,
) -> RemovalPlan:
    """What a retention policy removes from a journal that ends at `head`."""
    seqs = array("q")
    threads: dict[str, array[int]] = {}
    ending: dict[str, array[int]] = {}
    counts = (policy.keep_facts, policy.keep_per_thread) != (None, None)
    last = head if counts else max(policy.threads.values(), default=0)
    for seq, fact in facts:
        if seq > last:
            break
        seqs.append(seq)
        thread = find_thread_id(fact)
        if thread is None:
            continue
        if policy.keep_per_thread is not None:
            threads.setdefault(thread, array("q")).append(seq)
        if seq <= policy.threads.get(thread, 0) and fact.event_class not in policy.keep_classes:
            ending.setdefault(thread, array("q")).append(seq)
    wanted = max(
        floor,
        _find_floor_by_age(policy.max_age, head),
        _find_floor_by_count(policy.keep_facts, seqs),
    )
    ceiling = holds.compute_ceiling(head)
    plan = RemovalPlan(floor=max(floor, min(wanted, ceiling)))
    if wanted > ceiling:
        plan.held_by = holds.names(ceiling)
    if policy.keep_per_thread is not None:
        _drop_by_thread(plan, threads, policy.keep_per_thread, holds, head)
    _drop_by_thread(plan, ending, 0, holds, head)
    return plan


def plan_compaction(
    policy: CompactionPolicy,
    facts: Iterable[tuple[int, Fact]],
    holds: Holds,
    *,
    head: int,
    floor: int,
) -> RemovalPlan:
    """Which increments of finished turns their final fact makes redundant."""
    ceiling = min(holds.reader_ceiling(head), head - policy.spare)
    search = _Increments(policy.superseded)
    for seq, fact in facts:
        search.take(seq, fact)
    drop = {seq for seq in search.redundant if seq <= ceiling}
    held = len(drop) < len(search.redundant)
    return RemovalPlan(floor=floor, drop=drop, held_by=holds.names(ceiling) if held else ())


class _Increments:
    """Increments on their way to being redundant: streamed, then superseded, then turn ended.

    The first increment of a part stays, because it is what gives the part its place.
    """

    def __init__(self, superseded: Mapping[str, SupersedingRule]) -> None:
        self.redundant: set[int] = set()
        self._superseded = superseded
        self._finals = {name: item for item in superseded.items() for name in item[1].classes}
        self._streamed: dict[PartKey, list[int]] = {}
        self._final: dict[PartKey, list[int]] = {}

    def take(self, seq: int, fact: Fact) -> None:
        name = fact.event_class
        turn = fact.turn_id or id_of(fact, "turnId")
        if name is None or turn is None:
            return
        thread = find_thread_id(fact)
        if name in self._superseded:
            if any(field in fact.payload for field in self._superseded[name].unless):
                return
            part = _build_part_key(name, self._superseded[name], fact, thread, turn)
            self._streamed.setdefault(part, []).append(seq)
        elif name in self._finals:
            delta, rule = self._finals[name]
            if any(isinstance(fact.payload.get(field), str) for field in rule.holds):
                streamed = self._streamed.pop(_build_part_key(delta, rule, fact, thread, turn), [])
                self._final.setdefault((thread, turn), []).extend(streamed[1:])
        elif name in TURN_TERMINALS:
            self.redundant.update(self._final.pop((thread, turn), ()))


def _build_part_key(
    name: str, rule: SupersedingRule, fact: Fact, thread: str | None, turn: str
) -> PartKey:
    stated = (fact.payload.get(field) for field in rule.fields)
    fields = (text if isinstance(text, str) else None for text in stated)
    return (name, thread, turn, *(id_of(fact, same) for same in rule.same), *fields)


def _find_floor_by_age(max_age: int | None, head: int) -> int:
    return 0 if max_age is None else head - max_age


def _find_floor_by_count(keep: int | None, seqs: "array[int]") -> int:
    if keep is None or keep >= len(seqs):
        return 0
    return seqs[len(seqs) - keep - 1]


def _drop_by_thread(
    plan: RemovalPlan, threads: Mapping[str, "array[int]"], keep: int, holds: Holds, head: int
) -> None:
    readers = holds.reader_ceiling(head)
    held: set[str] = set()
    for thread, seqs in threads.items():
        old = [seq for seq in seqs[: max(0, len(seqs) - keep)] if seq > plan.floor]
        ceiling = min(readers, holds.actions.get(thread, head + 1) - 1)
        gone = [seq for seq in old if seq <= ceiling]
        if gone:
            plan.drop.update(gone)
            plan.thread_floors[thread] = max(gone[-1], plan.thread_floors.get(thread, 0))
        if len(gone) < len(old):
            held.update(holds.names(ceiling))
    plan.held_by = tuple(sorted(held.union(plan.held_by)))


class RemovalTotals(msgspec.Struct, kw_only=True):
    """What went, or would go."""

    removed: int = 0
    freed: int = 0
    held_by: tuple[str, ...] = ()

    def add(self, removed: int, freed: int, held_by: tuple[str, ...]) -> None:
        self.removed += removed
        self.freed += freed
        self.held_by = tuple(sorted({*self.held_by, *held_by}))


class RemovalRehearsal:
    """Makes the plans that a backend would make, one after the other, and carries out none.
    `upcoming` counts facts that would be appended first: the newest fact is never removed.
    """

    def __init__(self, journal: "Journal", upcoming: int = 0) -> None:
        self._journal = journal
        self._upcoming = upcoming
        self._gone: set[int] = set()
        self._floor = 0

    async def retain(self, policy: RetentionPolicy) -> RemovalTotals:
        """What a retention would remove of what is left."""
        return await self._rehearse(partial(plan_retention, policy))

    async def compact(self, policy: CompactionPolicy) -> RemovalTotals:
        """What a compaction would remove of what is left."""
        return await self._rehearse(partial(plan_compaction, policy))

    async def _rehearse(self, plan: Callable[..., RemovalPlan]) -> RemovalTotals:
        stats = await self._journal.stats()
        head, floor = stats.head.seq + self._upcoming, max(self._floor, stats.floor.seq)
        holds = Holds(readers={}, actions=await self._find_open_actions())
        facts = _RehearsedFacts(self._journal, head, self._gone)
        made = await asyncio.to_thread(plan, facts, holds, head=head, floor=floor)
        freed = {seq: size for seq, size in facts.sizes.items() if not made.keeps(seq)}
        self._floor = made.floor
        self._gone |= freed.keys()
        return RemovalTotals(removed=len(freed), freed=sum(freed.values()), held_by=made.held_by)

    async def _find_open_actions(self) -> dict[str, int]:
        """Thread → seq of its oldest request that nobody has answered."""
        return {
            record.thread_id: min(record.open.values())
            async for record in self._journal.records()
            if record.open
        }


class _RehearsedFacts:
    """The facts of a journal for a plan, which is made in a thread and wants a plain iterable."""

    def __init__(self, journal: "Journal", head: int, gone: set[int]) -> None:
        self.sizes: dict[int, int] = {}
        self._batches = aiter(journal.read())
        self._loop = asyncio.get_running_loop()
        self._head = head
        self._gone = gone

    def __iter__(self) -> Iterator[tuple[int, Fact]]:
        while True:
            pending = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            rows = pending.result()
            if rows is None:
                return
            for seq, line in rows:
                if seq <= self._head and seq not in self._gone:
                    self.sizes[seq] = len(line) + 1
                    yield seq, decode_line(line)

    async def _next(self) -> list[tuple[int, bytes]] | None:
        async for batch in self._batches:
            return list(zip(batch.seqs, batch.lines(), strict=True))
        return None


PIECE_SEQS: Final = 1_024
"""Facts, present or removed, of one piece."""

PIECE_BYTES: Final = 512 * 1024
"""Bytes of lines after which a piece is closed."""


class PresentFact(msgspec.Struct, frozen=True, gc=False):
    """A fact that is there, as the line under which it is stored."""

    seq: int
    line: bytes


class Restoration(msgspec.Struct, frozen=True, kw_only=True):
    """A whole journal, to be written into an empty one.

    `entries` rise by seq; a seq that is missing was removed, and nothing is known of it. All up to
    `floor` were removed. `threads` are the records of the catalogue as of the last entry.
    """

    floor: int
    entries: Iterable[PresentFact | RemovedFact]
    threads: Iterable[CatalogueRecord]


class RestorePiece(msgspec.Struct, frozen=True, kw_only=True):
    """The seqs `first`–`last`: what is there, what is gone, and the records that vouch for it.

    `chunk` is None up to the floor, where nothing is there.
    """

    first: int
    last: int
    chunk: Chunk | None
    records: tuple[Record, ...]
    removed: tuple[RemovedFact, ...]

    def ids(self) -> dict[str, int]:
        """Every id of the piece and its seq; raises `RestoreRefused` where one comes twice."""
        found = {each.id: each.seq for each in self.removed}
        if self.chunk is not None:
            lines = zip(self.chunk.places(), self.chunk.lines(), strict=True)
            found.update((decode_line(line).id, seq) for seq, line in lines)
        facts = 0 if self.chunk is None else self.chunk.facts
        if len(found) != len(self.removed) + facts:
            raise RestoreRefused(f"an id occurs twice in the facts {self.first}–{self.last}")
        return found

    @property
    def end(self) -> bytes:
        """The hash that the chain has after the piece."""
        if self.records:
            return self.records[-1].hash
        return GENESIS if self.chunk is None else self.chunk.hash

    @property
    def removed_count(self) -> int:
        """How many of its seqs hold no fact."""
        return self.last - self.first + 1 - (0 if self.chunk is None else self.chunk.facts)


def cut_pieces(restoration: Restoration) -> Iterator[RestorePiece]:
    """A journal in pieces, from the first seq on."""
    before, end = 0, GENESIS
    for last, group in _group_entries(restoration):
        piece = _build_piece(before + 1, last, group, end, restoration.floor)
        before, end = last, piece.end
        yield piece


def ensure_empty(head: int) -> None:
    """A restore never mixes with facts that are there."""
    if head:
        raise RestoreRefused(
            f"the journal already contains facts up to {head}; restore into an empty one"
        )


def ensure_new(taken: Iterable[str]) -> None:
    """An id is taken once, also in what is restored."""
    for fact_id in taken:
        raise RestoreRefused(f"the id {fact_id!r} occurs twice")


_Group = list[PresentFact | RemovedFact]


def _group_entries(restoration: Restoration) -> Iterator[tuple[int, _Group]]:
    """Entries of adjacent seqs, and the seq that a group reaches to, which may be the floor."""
    group: _Group = []
    size = seq = 0
    for entry in restoration.entries:
        _ensure_order(entry, seq, restoration.floor)
        at_floor = seq <= restoration.floor < entry.seq and restoration.floor > 0
        if at_floor or len(group) == PIECE_SEQS or size >= PIECE_BYTES:
            yield restoration.floor if at_floor else seq, group
            group, size = [], 0
        group.append(entry)
        seq = entry.seq
        size += len(entry.line) if isinstance(entry, PresentFact) else 0
    if group:
        yield seq, group


def _ensure_order(entry: PresentFact | RemovedFact, after: int, floor: int) -> None:
    if entry.seq <= after:
        raise RestoreRefused(f"expected a fact after {after}, got {entry.seq}")
    if entry.seq <= floor and isinstance(entry, PresentFact):
        raise RestoreRefused(
            f"expected no facts up to the floor {floor}, got a fact at {entry.seq}"
        )


def _build_piece(first: int, last: int, group: _Group, prev: bytes, floor: int) -> RestorePiece:
    kept = [(entry.seq, entry.line) for entry in group if isinstance(entry, PresentFact)]
    removed = tuple(entry for entry in group if isinstance(entry, RemovedFact))
    if last <= floor:
        return RestorePiece(first=first, last=last, chunk=None, records=(), removed=removed)
    contents: list[RecordBody] = []
    if len(kept) == last - first + 1:
        keys = [list_keys(decode_line(line)) for _, line in kept]
        chunk = build_chunk(prev, first, [line for _, line in kept], group_by_keys(keys))
    else:
        chunk, content = build_gapped_chunk(prev, first, last, kept)
        contents.append(content)
    if first == floor + 1 and floor:
        contents.append(Truncated(floor=floor, hash=GENESIS, dropped=floor))
    records = tuple(_chain_records(contents, last, chunk.hash))
    return RestorePiece(first=first, last=last, chunk=chunk, records=records, removed=removed)


def _chain_records(contents: Iterable[RecordBody], after: int, prev: bytes) -> Iterator[Record]:
    for content in contents:
        record = build_record(after, prev, content)
        prev = record.hash
        yield record
