"""The hash chain: what makes a changed byte show.

Every commit is a link, `sha256(previous hash ‖ header ‖ data)`. Retention and compaction, which
remove facts, append a record to the same chain, `sha256(previous hash ‖ header ‖ body)`, that says
exactly which bytes they left; a walk accepts a rewritten stretch only where a record vouches.
"""

from hashlib import sha256
from typing import Final

import msgspec

GENESIS: Final = sha256(b"factwire journal").digest()
"""What the first link follows."""


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit inside a chunk into which several were merged."""

    facts: int
    size: int
    hash: bytes


class Compacted(msgspec.Struct, frozen=True, kw_only=True, tag="compacted"):
    """The facts of `first`–`last` were thinned out; what is left hashes to `digest`."""

    first: int
    last: int
    prev: bytes
    hash: bytes
    digest: bytes
    dropped: int


class Truncated(msgspec.Struct, frozen=True, kw_only=True, tag="truncated"):
    """Everything up to `floor` was removed; the chain stood at `hash` there."""

    floor: int
    hash: bytes
    dropped: int


RecordBody = Compacted | Truncated


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A link without facts, standing after the fact at `after`."""

    after: int
    prev: bytes
    hash: bytes
    body: bytes

    def content(self) -> RecordBody:
        return _decoder.decode(self.body)


_decoder: Final = msgspec.msgpack.Decoder[RecordBody](RecordBody)


def link_hash(prev: bytes, first: int, facts: int, data: bytes | memoryview) -> bytes:
    """The hash of a commit of `facts` facts from `first` on, whose lines are `data`."""
    digest = sha256(prev)
    digest.update(b"link %d %d %d\n" % (first, facts, len(data)))
    digest.update(data)
    return digest.digest()


def record_of(after: int, prev: bytes, content: RecordBody) -> Record:
    """The record that says `content`, to be appended after `prev`."""
    body = msgspec.msgpack.encode(content)
    return Record(after=after, prev=prev, hash=_record_hash(prev, after, body), body=body)


def record_holds(record: Record) -> bool:
    """Whether a record's hash is the one its content has."""
    return record.hash == _record_hash(record.prev, record.after, record.body)


def remains_digest(seqs: tuple[int, ...], data: bytes) -> bytes:
    """The digest of what a compaction left."""
    digest = sha256(b"remains %d %d\n" % (len(seqs), len(data)))
    digest.update(msgspec.msgpack.encode(seqs))
    digest.update(data)
    return digest.digest()


def _record_hash(prev: bytes, after: int, body: bytes) -> bytes:
    return sha256(prev + b"record %d %d\n" % (after, len(body)) + body).digest()
