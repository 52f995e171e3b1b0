"""One commit in the making: requests admitted one after the other, without any storage.

An id that is known makes a fact a repeat or a conflict. A thread's sequence starts anywhere and
then rises by one. The first broken rule refuses the whole request, which then leaves no trace in
what the others see. Every backend asks this module, so that none of them has rules of its own.

New facts are columns, not objects: a commit has hundreds of them, and all share their first seq.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, Protocol

import msgspec

from factwire.journal.admission import ExistingFact, PreparedFact, encode_line, ensure_same
from factwire.journal.errors import SequenceConflict
from factwire.journal.protocol import AppendResult

Expected = Mapping[str, int | None]

_NEW: Final = (False,)


class AdmissionLookup(Protocol):
    """What admission must know of the journal."""

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        """The fact with this id, if there ever was one."""
        ...

    def last_sequence(self, thread_id: str) -> int | None:
        """The last sequence of a thread; None where there is no such thread."""
        ...


class CommitGroup:
    """The new facts of a commit whose first seq is `first`.

    `doubtful` has every id of the requests that the journal may know; others are not looked up.
    """

    def __init__(
        self, lookup: AdmissionLookup, *, epoch: str, first: int, doubtful: Iterable[str] = ()
    ) -> None:
        self.first = first
        self.entries: list[PreparedFact] = []
        self.lines: list[bytes] = []
        self.sequences: list[int | None] = []
        self._lookup = lookup
        self._epoch = epoch
        self.lasts: dict[str, int] = {}
        """Each thread that has new facts → its last sequence."""
        self._places: dict[str, int | None] = dict.fromkeys(doubtful)

    def admit(
        self, entries: Sequence[PreparedFact], expected: Expected | None = None
    ) -> AppendResult:
        """Promise a request its places; raises `AppendRefused`, having promised nothing."""
        start = len(self.lines)
        if len(entries) == 1 and not expected:
            entry = entries[0]
            if entry.fact.id not in self._places:
                sequence = self._place(entry, self.lasts)
                return AppendResult(self._epoch, (self.first + start,), (sequence,), _NEW)
        try:
            return self._admit_all(entries, expected)
        except BaseException:
            self._take_back(start)
            raise

    def list_placed(self) -> Iterator[tuple[int, PreparedFact, bytes, int | None]]:
        """Seq, entry, line and sequence of each new fact."""
        return zip(count(self.first), self.entries, self.lines, self.sequences)

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        """The fact with this id, in the journal or in this commit."""
        place = self._places.get(fact_id, -1)
        if place is None:
            return self._lookup.find_existing(fact_id)
        if place < 0:
            return None
        return ExistingFact(self.first + place, self.sequences[place], self.lines[place])

    def last_sequence(self, thread_id: str) -> int | None:
        """The last sequence of a thread, after this commit."""
        last = self.lasts.get(thread_id)
        return self._lookup.last_sequence(thread_id) if last is None else last

    def _admit_all(
        self, entries: Sequence[PreparedFact], expected: Expected | None
    ) -> AppendResult:
        seqs: list[int] = []
        sequences: list[int | None] = []
        repeated: list[bool] = []
        lines, places, lasts = self.lines, self._places, dict[str, int]()
        start = len(lines)
        for entry in entries:
            fact_id = entry.fact.id
            existing = self.find_existing(fact_id) if fact_id in places else None
            if existing is None:
                seqs.append(self.first + len(lines))
                sequences.append(self._place(entry, lasts))
            else:
                ensure_same(entry, existing)
                seqs.append(existing.seq)
                sequences.append(existing.sequence)
            repeated.append(existing is not None)
        # A batch that is all repeats is a retry, whose writer could not know that it had succeeded.
        if expected and len(lines) > start:
            self._ensure_expected(expected)
        self.lasts.update(lasts)
        return AppendResult(self._epoch, tuple(seqs), tuple(sequences), tuple(repeated))

    def _place(self, entry: PreparedFact, lasts: dict[str, int]) -> int | None:
        """Put a new fact at the end; answers with its sequence, noted in `lasts`."""
        fact = entry.fact
        sequence = fact.sequence
        line = entry.line
        thread = entry.thread
        if thread is not None:
            last = lasts.get(thread)
            if last is None:
                last = self.last_sequence(thread)
            if sequence is None:
                sequence = 1 if last is None else last + 1
                line = encode_line(msgspec.structs.replace(fact, sequence=sequence))
            elif last is not None and sequence != last + 1:
                raise SequenceConflict(thread, expected=last + 1, got=sequence)
            lasts[thread] = sequence
        lines = self.lines
        self._places[fact.id] = len(lines)
        lines.append(line)
        self.entries.append(entry)
        self.sequences.append(sequence)
        return sequence

    def _ensure_expected(self, expected: Expected) -> None:
        for thread, believed in expected.items():
            actual = self.last_sequence(thread)
            if actual != believed:
                raise SequenceConflict(thread, expected=actual, got=believed)

    def _take_back(self, start: int) -> None:
        for entry in self.entries[start:]:
            # It may have been doubtful; asking the journal once more is right either way.
            self._places[entry.fact.id] = None
        del self.entries[start:], self.lines[start:], self.sequences[start:]
