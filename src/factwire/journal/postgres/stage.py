"""A commit being put together: requests admitted one after the other, without any database.

A request that breaks a rule is refused alone and leaves no trace in what the others see.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from factwire.journal.admission import Entry, Known, Placed, admit, admit_one
from factwire.journal.catalogue import ThreadRecord, new_record
from factwire.journal.chunk import Chunk, new_chunk
from factwire.journal.errors import AppendRefused
from factwire.journal.filter import CLASS_MARK
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.rows import Place, record_bytes
from factwire.journal.postgres.settings import GROUP_BYTES, GROUP_FACTS
from factwire.journal.protocol import Appended

Expected = Mapping[str, int | None]
Answer = Appended | AppendRefused


class Stage:
    """Implements `Lookup` over what the journal has and what this commit adds.

    `known` must have every id of the requests that the journal knows, `threads` every thread they
    touch, None for one that is new. Records are copied before they are changed.
    """

    def __init__(
        self,
        place: Place,
        keys: Keys,
        threads: Mapping[str, ThreadRecord | None],
        known: Mapping[str, Known] | None = None,
    ) -> None:
        self.place = place
        self.answers: list[Answer] = []
        self.touched: dict[str, ThreadRecord] = {}
        self.chunk: Chunk | None = None
        self.fact_keys: list[bytes] = []
        self.size = 0
        self.new_threads = 0
        self.names: set[str] = set()
        """Every filter key of the commit, once it is finished."""
        self._name = keys.fact
        self._threads = threads
        self._known = known or {}
        self._placed: dict[str, Placed] = {}
        self._lines: list[bytes] = []
        self._keys: list[tuple[str, ...]] = []

    def take(self, entries: Sequence[Entry], expected: Expected | None) -> None:
        """Admit or refuse the next request."""
        try:
            if len(entries) == 1 and not expected:
                self.answers.append(self._take_one(entries[0]))
                return
            admitted = admit(entries, self, self.place.head + 1 + len(self._lines), expected)
        except AppendRefused as refusal:
            self.answers.append(refusal)
        else:
            for placed in admitted.new:
                self._add(placed)
            places = (tuple(admitted.seqs), tuple(admitted.sequences), tuple(admitted.repeated))
            self.answers.append(Appended(self.place.epoch, *places))

    def finish(self) -> Chunk | None:
        """The chunk to be written; None where nothing in the requests was new."""
        if self._lines:
            place = self.place
            self.chunk = new_chunk(place.hash, place.head + 1, self._lines, self._keys)
            self.names = {name for keys in self._keys for name in keys}
        return self.chunk

    def known(self, fact_id: str) -> Known | None:
        placed = self._placed.get(fact_id)
        if placed is None:
            return self._known.get(fact_id)
        return Known(placed.seq, placed.sequence, placed.line)

    def last_sequence(self, thread_id: str) -> int | None:
        record = self.touched.get(thread_id) or self._threads.get(thread_id)
        return record and record.last_sequence

    @property
    def full(self) -> bool:
        """Whether a further batch is better left to the next commit."""
        return self.size > GROUP_BYTES or len(self._lines) > GROUP_FACTS

    def knows(self, entries: Sequence[Entry]) -> bool:
        """Whether every thread of a request has been looked up."""
        threads = self._threads
        for entry in entries:
            if entry.thread is not None and entry.thread not in threads:
                return False
        return True

    def refuses(self) -> bool:
        """Whether any request broke a rule."""
        return any(isinstance(answer, AppendRefused) for answer in self.answers)

    def end(self) -> Place:
        """Where the journal stands after the commit."""
        if self.chunk is None:
            return self.place
        return msgspec.structs.replace(self.place, head=self.chunk.last, hash=self.chunk.hash)

    def _take_one(self, entry: Entry) -> Appended:
        placed = admit_one(entry, self, self.place.head + 1 + len(self._lines), {})
        repeated = isinstance(placed, Known)
        if not repeated:
            self._add(placed)
        return Appended(self.place.epoch, (placed.seq,), (placed.sequence,), (repeated,))

    def _add(self, placed: Placed) -> None:
        entry = placed.entry
        fact_id = entry.fact.id
        self._lines.append(placed.line)
        self._keys.append(entry.keys)
        self.size += len(placed.line)
        self.fact_keys.append(self._name(fact_id))
        self._placed[fact_id] = placed
        if entry.thread is not None and placed.sequence is not None:
            self._note(entry.thread, entry, placed.seq, placed.sequence)

    def _note(self, thread: str, entry: Entry, seq: int, sequence: int) -> None:
        record = self.touched.get(thread)
        if record is None:
            before = self._threads.get(thread)
            if before is None:
                self.touched[thread] = new_record(thread, entry.fact, seq, sequence)
                self.new_threads += 1
                return
            record = msgspec.structs.replace(before, open=dict(before.open))
            self.touched[thread] = record
        record.note(entry.fact, seq, sequence)


def commit_arguments(
    journal: int, stage: Stage, chunk: Chunk, keys: Keys, classes: Iterable[str]
) -> tuple[object, ...]:
    """What `factwire.commit` takes; `classes` are those that are noted already."""
    marked = {name for name in stage.names if name.startswith(CLASS_MARK)}
    touched = stage.touched.values()
    return (
        journal,
        stage.place.head,
        stage.place.hash,
        chunk.last,
        chunk.data,
        chunk.index,
        chunk.hash,
        chunk.check,
        chunk.body,
        stage.fact_keys,
        list({keys.posting(name) for name in stage.names}),
        [name.encode("utf-8", "surrogatepass") for name in sorted(marked.difference(classes))],
        [keys.name(record.thread_id) for record in touched],
        [record.last_seq for record in touched],
        [record.project_id and keys.name(record.project_id) for record in touched],
        [record.status for record in touched],
        [min(record.open.values(), default=None) for record in touched],
        [record_bytes(record) for record in touched],
        stage.new_threads,
    )
