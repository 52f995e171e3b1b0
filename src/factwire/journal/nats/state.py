"""What a process knows of a journal in NATS: all of it derived from the stream, item after item.

`apply` is the only way in, for what this process wrote as for what others wrote, so that every
process comes to the same state. The facts themselves stay on the server.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.catalogue import ThreadRecord, new_record
from factwire.journal.chain import GENESIS, Record, Truncated
from factwire.journal.chunk import Chunk, decode_line, ensure_sound
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter, Groups, thread_of
from factwire.journal.nats.directory import Directory, Keys, Segment
from factwire.journal.nats.ids import Ids, fingerprints
from factwire.journal.nats.log import Item
from factwire.journal.nats.wire import Epoch, Floors, Kept, Said, Saved, decode
from factwire.journal.removal import Holds
from factwire.journal.resume import Bounds

Noted = tuple[str | None, Fact, int, int | None]
"""Thread, fact, seq and sequence: what the catalogue needs of a fact."""


class Contents(msgspec.Struct, frozen=True, gc=False):
    """The facts of a chunk, with the fingerprints of their ids, and all keys they have."""

    facts: Iterable[Noted]
    marks: Sequence[int]
    keys: Iterable[str]


class Link(msgspec.Struct, frozen=True, gc=False):
    """A record of the chain, with the place of its item."""

    at: int
    record: Record


class State:
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
        self.ids = Ids()
        self.directory = Directory()
        self.keys = Keys()
        self.threads: dict[str, ThreadRecord] = {}
        self.thread_floors: dict[str, int] = {}
        self.links: list[Link] = []
        self.snapshots: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
        self.awaited = ""
        self.arrived = False

    @property
    def head(self) -> int:
        return self.directory.head

    def await_item(self, name: str) -> None:
        """Set `arrived` once an item of this name is taken in."""
        self.awaited, self.arrived = name, False

    def apply(self, item: Item) -> Said | None:
        """Take in the next item as it was read; answers what it says."""
        said = decode(item.kind, item.body)
        self.take(said, item)
        return said

    def take(self, said: Said | None, item: Item, contents: Contents | None = None) -> None:
        """Take in the next item; `contents` are those of a chunk that this process made."""
        if isinstance(said, Chunk):
            self._commit(said, item, contents or _contents(ensure_sound(said)))
        else:
            self._say(said, item)
        self._seen(item)

    def _commit(self, chunk: Chunk, item: Item, contents: Contents) -> None:
        self._ensure_follows(chunk)
        self.ids.skip(chunk.first)
        self.ids.extend(contents.marks)
        self.directory.add(_segment(chunk.first, chunk.last, item, chunk))
        self.keys.add(chunk.first, contents.keys)
        threads = self.threads
        for thread, fact, seq, sequence in contents.facts:
            if thread is None or sequence is None:
                continue
            record = threads.get(thread)
            if record is None:
                threads[thread] = new_record(thread, fact, seq, sequence)
            else:
                record.note(fact, seq, sequence)
        self.hash = chunk.hash

    def last_sequence(self, thread_id: str) -> int | None:
        record = self.threads.get(thread_id)
        return record and record.last_sequence

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

    def _say(self, said: Said | None, item: Item) -> None:
        match said:
            case Epoch():
                self.epoch, self.epoch_at = said.epoch, item.at
            case Record():
                self._link(said, item)
            case Kept():
                self._keep(said, item)
            case Floors():
                self.floor = max(self.floor, said.floor)
                for record in said.threads:
                    self.threads[record.thread_id] = record
                    if record.floor:
                        self.thread_floors[record.thread_id] = record.floor
            case Saved():
                saved = self.snapshots.setdefault((said.thread_id, said.kind), {})
                saved[said.seq] = (item.at, item.parts)
            case _:
                pass

    def _seen(self, item: Item) -> None:
        self.at = item.end
        if item.name == self.awaited:
            self.arrived = True

    def _ensure_follows(self, chunk: Chunk) -> None:
        if chunk.first <= self.head:
            raise JournalCorrupt("facts stand twice", first=chunk.first, last=chunk.last)
        if chunk.first == self.head + 1 and chunk.prev != self.hash and self.broken is None:
            self.broken = f"the commit at {chunk.first} does not follow the one before it"

    def _link(self, record: Record, item: Item) -> None:
        self.links.append(Link(item.at, record))
        self.hash = record.hash
        content = record.content()
        if isinstance(content, Truncated):
            self.base, self.base_hash = content.floor, content.hash
            self.links = [link for link in self.links if link.record.after >= self.base]
            self.keys.forget(self.base)

    def _keep(self, kept: Kept, item: Item) -> None:
        chunk = kept.chunk
        recorded = self.links[-1].record.after if self.links else 0
        if chunk is not None and kept.last >= max(self.head, recorded + 1):
            # The chunks of which this was merged are gone, and with them who said where they end.
            self.hash = chunk.hash
        self.directory.cover(_segment(kept.first, kept.last, item, chunk))
        gone = fingerprints(retired.id for retired in kept.retired)
        for retired, mark in zip(kept.retired, gone, strict=True):
            self.ids.put(retired.seq, mark)
        if chunk is not None:
            self.keys.cover(kept.first, kept.last, chunk.positions())
            marks = fingerprints(fact.id for _, fact, _, _ in _noted(chunk))
            for seq, mark in zip(chunk.places(), marks, strict=True):
                self.ids.put(seq, mark)


def _contents(chunk: Chunk) -> Contents:
    facts = list(_noted(chunk))
    marks = fingerprints([fact.id for _, fact, _, _ in facts])
    return Contents(facts, marks, keys_in(chunk.groups()))


def keys_in(groups: Groups) -> set[str]:
    """Every key that facts have."""
    return {key for keys in groups for key in keys}


def _noted(chunk: Chunk) -> Iterator[Noted]:
    for seq, line in zip(chunk.places(), chunk.lines(), strict=True):
        fact = decode_line(line)
        yield thread_of(fact), fact, seq, fact.sequence


def _segment(first: int, last: int, item: Item, chunk: Chunk | None) -> Segment:
    size = 0 if chunk is None else len(chunk.data) + len(chunk.index)
    facts = 0 if chunk is None else chunk.facts
    return Segment(first, last, item.at, item.parts, facts, size)
