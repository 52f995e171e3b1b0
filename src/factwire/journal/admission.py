"""Which facts of a batch are new, and where they go: the rules of `append`, without any storage.

A known id is a repeat if its body is the same and a conflict if it is not. A thread's sequence
starts anywhere and then rises by one. The first broken rule refuses the whole batch. Every backend
asks this module, so that none of them has rules of its own.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.shapes import encode_fact
from factwire.journal.errors import ConflictingFact, SequenceConflict, UnstorableFact
from factwire.journal.filter import keys_of, thread_of

_encoder: Final = msgspec.json.Encoder(order="deterministic")


class Entry(msgspec.Struct, gc=False):
    """A fact on its way in; `line` is None while its sequence is not known."""

    fact: Fact
    keys: tuple[str, ...]
    thread: str | None
    line: bytes | None


class Known(msgspec.Struct, frozen=True, gc=False):
    """A fact that the journal has, or had: its line, or the digest that outlived the line."""

    seq: int
    sequence: int | None
    line: bytes | None = None
    digest: bytes | None = None


class Lookup(Protocol):
    """What admission must know of the journal."""

    def known(self, fact_id: str) -> Known | None:
        """The fact with this id, if there ever was one."""
        ...

    def last_sequence(self, thread_id: str) -> int | None:
        """The last sequence of a thread; None where there is no such thread."""
        ...


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A new fact with the place it gets."""

    seq: int
    entry: Entry
    line: bytes
    sequence: int | None


class Admitted(msgspec.Struct, gc=False):
    """The answer to a batch: a place for each of its facts, and what is to be written."""

    seqs: list[int]
    sequences: list[int | None]
    repeated: list[bool]
    new: list[Placed]
    last_sequences: dict[str, int]


def prepare(fact: Fact) -> Entry:
    """Everything about a fact that does not depend on the journal."""
    thread = thread_of(fact)
    settled = fact.sequence is not None or thread is None
    return Entry(fact, keys_of(fact), thread, line_of(fact) if settled else None)


def line_of(fact: Fact) -> bytes:
    """The line under which a fact is stored, without its line end."""
    try:
        line = encode_fact(fact)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnstorableFact(fact.id, str(error)) from error
    # Only pre-encoded JSON inside a payload can bring a raw line end along.
    return _encoder.encode(msgspec.json.decode(line)) if b"\n" in line else line


def admit(
    entries: Sequence[Entry],
    lookup: Lookup,
    next_seq: int,
    expected: Mapping[str, int | None] | None = None,
) -> Admitted:
    """Place a batch, its first new fact at `next_seq`, or raise `AppendRefused`."""
    answer = Admitted([], [], [], [], {})
    within: dict[str, Placed] = {}
    for entry in entries:
        known = _known(entry, within, lookup)
        if known is None:
            placed = _place(entry, next_seq + len(answer.new), answer.last_sequences, lookup)
            within[entry.fact.id] = placed
            answer.new.append(placed)
            _answer(answer, placed.seq, placed.sequence, repeated=False)
        else:
            _ensure_same(entry, known)
            _answer(answer, known.seq, known.sequence, repeated=True)
    # A batch that is all repeats is a retry, whose writer could not know that it had succeeded.
    if expected and answer.new:
        _ensure_expected(expected, lookup)
    return answer


def admit_one(
    entry: Entry, lookup: Lookup, next_seq: int, last_sequences: dict[str, int]
) -> Placed | Known:
    """The same for a single fact: its new place, noted in `last_sequences`, or its old one."""
    known = lookup.known(entry.fact.id)
    if known is None:
        return _place(entry, next_seq, last_sequences, lookup)
    _ensure_same(entry, known)
    return known


def body_digest(line: bytes) -> bytes:
    """What stays of a body after its fact has been removed: enough to tell a repeat."""
    return sha256(_body(line)).digest()


def _known(entry: Entry, within: dict[str, Placed], lookup: Lookup) -> Known | None:
    earlier = within.get(entry.fact.id)
    if earlier is not None:
        return Known(earlier.seq, earlier.sequence, earlier.line)
    return lookup.known(entry.fact.id)


def _place(entry: Entry, seq: int, lasts: dict[str, int], lookup: Lookup) -> Placed:
    sequence = entry.fact.sequence
    thread = entry.thread
    if thread is None:
        return Placed(seq, entry, entry.line or line_of(entry.fact), sequence)
    last = lasts.get(thread)
    if last is None:
        last = lookup.last_sequence(thread)
    line = entry.line
    if sequence is None:
        sequence = 1 if last is None else last + 1
        line = line_of(msgspec.structs.replace(entry.fact, sequence=sequence))
    elif last is not None and sequence != last + 1:
        raise SequenceConflict(thread, expected=last + 1, got=sequence)
    lasts[thread] = sequence
    return Placed(seq, entry, line or line_of(entry.fact), sequence)


def _answer(answer: Admitted, seq: int, sequence: int | None, *, repeated: bool) -> None:
    answer.seqs.append(seq)
    answer.sequences.append(sequence)
    answer.repeated.append(repeated)


def _ensure_expected(expected: Mapping[str, int | None], lookup: Lookup) -> None:
    for thread, believed in expected.items():
        actual = lookup.last_sequence(thread)
        if actual != believed:
            raise SequenceConflict(thread, expected=actual, got=believed)


def _ensure_same(entry: Entry, known: Known) -> None:
    if entry.line is not None and entry.line == known.line:
        return
    sequence = entry.fact.sequence
    line = entry.line or line_of(entry.fact)
    same = sequence is None or sequence == known.sequence
    if same and known.line is not None:
        same = _body(line) == _body(known.line)
    elif same:
        same = body_digest(line) == known.digest
    if not same:
        raise ConflictingFact(entry.fact.id, known.seq)


def _body(line: bytes) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(line)
    fields.pop("sequence", None)
    return _encoder.encode(fields)
