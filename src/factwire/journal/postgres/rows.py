"""Rows of the database as the values that the rest of the journal works with, and back."""

from typing import Any, Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import Link, Record
from factwire.journal.chunk import Chunk, ensure_sound
from factwire.journal.errors import JournalCorrupt
from factwire.journal.postgres.driver import Row

CHUNK_COLUMNS: Final = "first, last, data, index, prev, hash, proof, seqs, links, body"

_encode: Final = msgspec.msgpack.encode
_seqs: Final = msgspec.msgpack.Decoder(tuple[int, ...])
_links: Final = msgspec.msgpack.Decoder(tuple[Link, ...])
_record: Final = msgspec.msgpack.Decoder(ThreadRecord)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a journal stands."""

    epoch: str
    head: int
    hash: bytes
    floor: int


def chunk_of(row: Row) -> Chunk:
    """The chunk of a row; raises `JournalCorrupt` when it is not the one that was written."""
    return ensure_sound(unchecked_chunk(row))


def unchecked_chunk(row: Row) -> Chunk:
    """The chunk of a row for a walk, which finds out itself what is wrong with it."""
    seqs, links = row["seqs"], row["links"]
    try:
        return Chunk(
            first=row["first"],
            last=row["last"],
            data=row["data"],
            index=row["index"],
            prev=row["prev"],
            hash=row["hash"],
            check=row["proof"],
            seqs=None if seqs is None else _seqs.decode(seqs),
            links=() if links is None else _links.decode(links),
            body=row["body"],
        )
    except msgspec.MsgspecError as error:
        reason = f"the header of a chunk cannot be read: {error}"
        raise JournalCorrupt(reason, first=row["first"], last=row["last"]) from error


def chunk_values(chunk: Chunk) -> tuple[Any, ...]:
    """A chunk as values for the columns after `journal`, in the order of `CHUNK_COLUMNS`."""
    return (
        chunk.first,
        chunk.last,
        chunk.data,
        chunk.index,
        chunk.prev,
        chunk.hash,
        chunk.check,
        None if chunk.seqs is None else _encode(chunk.seqs),
        _encode(chunk.links) if chunk.links else None,
        chunk.body,
    )


def chunk_size(chunk: Chunk) -> int:
    """What a chunk counts in the figures."""
    return len(chunk.data) + len(chunk.index)


def thread_of_row(row: Row) -> ThreadRecord:
    """The record in a row; retention notes a thread's floor in the column beside it."""
    try:
        record = _record.decode(row["record"])
    except msgspec.MsgspecError as error:
        raise JournalCorrupt(f"the record of a thread cannot be read: {error}") from error
    record.floor = row["floor"]
    return record


def record_bytes(record: ThreadRecord) -> bytes:
    return _encode(record)


def record_of_row(row: Row) -> Record:
    return Record(after=row["after"], prev=row["prev"], hash=row["hash"], body=row["body"])
