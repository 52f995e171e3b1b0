"""What the items of a journal's stream say.

    epoch      a life of the journal begins
    chunk      facts were committed
    record     a link of the chain without facts: something was removed
    kept       what a removal left of a range: the facts that stay, and each removed fact's id,
               place and digest, because an id is taken for ever
    floors     cursors below these seqs are expired; the catalogue rows of the threads concerned
    snapshot   derived state was saved

The stream is all there is. Everything else, in memory or in a checkpoint, is derived from it.
"""

from hashlib import sha256
from typing import Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import Record
from factwire.journal.chunk import Chunk
from factwire.journal.errors import JournalCorrupt


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    epoch: str


class Retired(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What stays of a removed fact."""

    id: str
    seq: int
    sequence: int | None
    digest: bytes


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of `first`–`last`; `chunk` is None where no fact is."""

    first: int
    last: int
    chunk: Chunk | None
    retired: tuple[Retired, ...]


class Floors(msgspec.Struct, frozen=True, kw_only=True):
    """Published before anything is removed, so that no reader resumes into a hole."""

    floor: int
    threads: tuple[ThreadRecord, ...]


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as of `seq`."""

    thread_id: str
    kind: str
    seq: int
    data: bytes
    anchor: bytes


Said = Epoch | Chunk | Record | Kept | Floors | Saved

_KINDS: Final[dict[type, str]] = {
    Epoch: "epoch",
    Chunk: "chunk",
    Record: "record",
    Kept: "kept",
    Floors: "floors",
    Saved: "snapshot",
}
_DECODERS: Final[dict[str, msgspec.msgpack.Decoder[Said]]] = {
    name: msgspec.msgpack.Decoder[Said](kind) for kind, name in _KINDS.items()
}
_encoder: Final = msgspec.msgpack.Encoder()
_DIGEST: Final = 32


def encode(said: Said) -> tuple[str, bytes]:
    """The kind of an item and its body; a chunk brings its own hash, all others get one."""
    kind = _KINDS[type(said)]
    body = _encoder.encode(said)
    return kind, body if kind == "chunk" else sha256(body).digest() + body


def decode(kind: str, body: bytes) -> Said | None:
    """What an item says; None for a kind that only a later version knows."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    content = body if kind == "chunk" else body[_DIGEST:]
    if kind != "chunk" and sha256(content).digest() != body[:_DIGEST]:
        raise JournalCorrupt(f"an item of kind {kind} does not match its hash")
    try:
        return decoder.decode(content)
    except msgspec.DecodeError as error:
        raise JournalCorrupt(f"an item of kind {kind} cannot be read: {error}") from error
