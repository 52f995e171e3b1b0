"""A commit being put together: requests admitted one after the other, without any database.

A request that breaks a rule is refused alone and leaves no trace in what the others see.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.admission import Entry, Known
from factwire.journal.catalogue import ThreadRecord, new_record
from factwire.journal.chunk import Chunk, grouped, new_chunk
from factwire.journal.errors import AppendRefused
from factwire.journal.filter import CLASS_MARK
from factwire.journal.group import Expected, Group
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.rows import Place, record_bytes
from factwire.journal.postgres.settings import GROUP_BYTES, GROUP_FACTS
from factwire.journal.protocol import Appended

Answer = Appended | AppendRefused


class Stage:
    """Implements `Lookup` over what the journal has.

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
        self.new_threads = 0
        self.names: set[str] = set()
        """Every filter key of the commit, once it is finished."""
        self._keys = keys
        self._threads = threads
        self._known = known or {}
        self._refuses = False
        self._size = 0
        first = place.head + 1
        self.group = Group(self, epoch=place.epoch, first=first, doubtful=self._known)

    def take(self, entries: Sequence[Entry], expected: Expected | None) -> None:
        """Admit or refuse the next request."""
        start = len(self.group.lines)
        try:
            self.answers.append(self.group.admit(entries, expected))
        except AppendRefused as refusal:
            self.answers.append(refusal)
            self._refuses = True
        # There is time for this now, while the commit before is on its way.
        self._add_from(start)

    def finish(self) -> Chunk | None:
        """The chunk to be written; None where nothing in the requests was new."""
        group = self.group
        if group.lines:
            keys = grouped([entry.keys for entry in group.entries])
            self.chunk = new_chunk(self.place.hash, group.first, group.lines, keys)
            self.names = {name for names in keys for name in names}
        return self.chunk

    def known(self, fact_id: str) -> Known | None:
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        record = self._threads.get(thread_id)
        return record and record.last_sequence

    @property
    def full(self) -> bool:
        """Whether a further batch is better left to the next commit."""
        return self._size > GROUP_BYTES or len(self.group.lines) > GROUP_FACTS

    def knows(self, entries: Sequence[Entry]) -> bool:
        """Whether every thread of a request has been looked up."""
        threads = self._threads
        for entry in entries:
            if entry.thread is not None and entry.thread not in threads:
                return False
        return True

    def refuses(self) -> bool:
        """Whether any request broke a rule."""
        return self._refuses

    def end(self) -> Place:
        """Where the journal stands after the commit."""
        if self.chunk is None:
            return self.place
        return msgspec.structs.replace(self.place, head=self.chunk.last, hash=self.chunk.hash)

    def _add_from(self, start: int) -> None:
        group, touched = self.group, self.touched
        entries = group.entries[start:]
        self._size += sum(map(len, group.lines[start:]))
        self.fact_keys += self._keys.facts([entry.fact.id for entry in entries])
        for place, entry in enumerate(entries, start):
            thread, sequence = entry.thread, group.sequences[place]
            if thread is not None and sequence is not None:
                record = touched.get(thread)
                if record is None:
                    self._touch(thread, entry.fact, group.first + place, sequence)
                else:
                    record.note(entry.fact, group.first + place, sequence)

    def _touch(self, thread: str, fact: Fact, seq: int, sequence: int) -> None:
        """Note the first fact that this commit has of a thread."""
        before = self._threads.get(thread)
        if before is None:
            self.touched[thread] = new_record(thread, fact, seq, sequence)
            self.new_threads += 1
        else:
            record = msgspec.structs.replace(before, open=dict(before.open))
            record.note(fact, seq, sequence)
            self.touched[thread] = record


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
        b"".join(stage.fact_keys),
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
