"""A fact on its way in: what is known of it before the journal is asked, and when two are the same.

A known id is a repeat if its body is the same and a conflict if it is not. `group` places what is
new; no backend has rules of its own.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.shapes import encode_fact
from factwire.journal.errors import ConflictingFact, UnstorableFact
from factwire.journal.filter import (
    KEYS_OF_IDS,
    PAYLOAD_KEYS,
    Keys,
    build_keys,
    key_ids,
    list_keys_and_thread,
)

UNSTORABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoding raises for a fact that has no JSON."""

_encoder: Final = msgspec.json.Encoder(order="deterministic")
_encode: Final = msgspec.json.Encoder().encode


class PreparedFact(msgspec.Struct, gc=False):
    """A fact on its way in; `line` is empty while its sequence is not known."""

    fact: Fact
    keys: Keys
    thread: str | None
    line: bytes


class ExistingFact(msgspec.Struct, frozen=True, gc=False):
    """A fact that the journal has, or had: its line, or the digest that outlived the line."""

    seq: int
    sequence: int | None
    line: bytes | None = None
    digest: bytes | None = None


def prepare_facts(batch: Sequence[Fact]) -> list[PreparedFact]:
    """Everything about a batch that does not depend on the journal."""
    entries: list[PreparedFact] = []
    for fact in batch:
        if fact.sequence is None or fact.extra:
            entries.append(_prepare_fact(fact))
            continue
        # Every fact comes by here, and most go straight on: no call that can be spared.
        try:
            line = _encode(fact)
        except UNSTORABLE as error:
            raise UnstorableFact(fact.id, str(error)) from error
        if b"\n" in line:
            line = _to_one_line(line)
        ids = key_ids(fact)
        keys, thread = KEYS_OF_IDS.get(ids) or build_keys(ids)
        if fact.payload and not PAYLOAD_KEYS.isdisjoint(fact.payload):
            keys, thread = list_keys_and_thread(fact)
        entries.append(PreparedFact(fact, keys, thread, line))
    return entries


def encode_line(fact: Fact) -> bytes:
    """The line under which a fact is stored, without its line end."""
    try:
        line = encode_fact(fact)
    except UNSTORABLE as error:
        raise UnstorableFact(fact.id, str(error)) from error
    return _to_one_line(line) if b"\n" in line else line


def digest_body(line: bytes) -> bytes:
    """What stays of a body after its fact has been removed: enough to tell a repeat."""
    return sha256(_encode_body(line)).digest()


def ensure_same(entry: PreparedFact, existing: ExistingFact) -> None:
    """Raise `ConflictingFact` unless an entry repeats what is known under its id."""
    if entry.line and entry.line == existing.line:
        return
    sequence = entry.fact.sequence
    line = entry.line or encode_line(entry.fact)
    same = sequence is None or sequence == existing.sequence
    if same and existing.line is not None:
        same = _encode_body(line) == _encode_body(existing.line)
    elif same:
        same = digest_body(line) == existing.digest
    if not same:
        raise ConflictingFact(entry.fact.id, existing.seq)


def _prepare_fact(fact: Fact) -> PreparedFact:
    keys, thread = list_keys_and_thread(fact)
    settled = fact.sequence is not None or thread is None
    return PreparedFact(fact, keys, thread, encode_line(fact) if settled else b"")


def _to_one_line(line: bytes) -> bytes:
    """A line without the raw line ends that pre-encoded JSON in a payload can bring along."""
    return _encoder.encode(msgspec.json.decode(line))


def _encode_body(line: bytes) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(line)
    fields.pop("sequence", None)
    return _encoder.encode(fields)
