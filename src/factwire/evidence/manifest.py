"""The manifest: every entry of a pack with its hashes, and the signature over it.

What is signed is the manifest's bytes, behind a line that no other Factwire document begins with.
Everything else is bound to the manifest by hashes, so that one signature covers the whole pack.
"""

from hashlib import sha256
from typing import Final, Literal

import msgspec

from factwire.evidence.errors import MalformedPack
from factwire.evidence.limits import BLOCK_BYTES

FORMAT: Final = "factwire-pack/v1"
SUFFIX: Final = ".factpack.zip"

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
SUMMARY: Final = "summary.json"
FACTS: Final = "facts.ndjson"
SEQS: Final = "seqs.ndjson"
CASES: Final = "cases.ndjson"
BLOBS: Final = "blobs/"

ALGORITHM: Final = "ed25519"
_SIGNED: Final = b"factwire-pack/v1 manifest\n"
_HEX: Final = 64


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value with a camelCase wire form; what is not known is absent."""


class Entry(Wire, frozen=True):
    """`blocks` are the SHA-256 of each block of `block_bytes`, joined; only where there are two or
    more. The last block is what remains.
    """

    name: str
    bytes: int
    sha256: str
    blocks: str = ""
    block_bytes: int = BLOCK_BYTES

    def hashes(self) -> tuple[str, ...]:
        """The hash of each block; of an empty entry, none."""
        if not self.blocks:
            return (self.sha256,) if self.bytes else ()
        return tuple(self.blocks[at : at + _HEX] for at in range(0, len(self.blocks), _HEX))


class Manifest(Wire, frozen=True):
    """What a pack holds. `producer` is the version of Factwire whose rules derived the rest from
    the facts; `created_at` is when the last of them was created, because a pack knows no clock.
    """

    format: str
    producer: str
    source: Literal["journal", "file"]
    facts: int
    entries: tuple[Entry, ...]
    created_at: str | None = None
    stored: bool = False
    """Whether entries are not compressed."""

    def entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


class Signature(Wire, frozen=True):
    """Who signed: the key itself. Whose key that is says a trust list, never the pack."""

    format: str
    algorithm: str
    public_key: str
    signature: str


class Sums:
    """The hashes of an entry, taken while its bytes go by."""

    def __init__(self) -> None:
        self.bytes = 0
        self._whole = sha256()
        self._block = sha256()
        self._left = BLOCK_BYTES
        self._blocks: list[str] = []

    def update(self, data: bytes) -> None:
        self._whole.update(data)
        self.bytes += len(data)
        view = memoryview(data)
        while len(view) >= self._left:
            self._block.update(view[: self._left])
            view = view[self._left :]
            self._close_block()
        self._block.update(view)
        self._left -= len(view)

    def entry(self, name: str) -> Entry:
        if self._left < BLOCK_BYTES:
            self._close_block()
        blocks = "".join(self._blocks) if len(self._blocks) > 1 else ""
        return Entry(name=name, bytes=self.bytes, sha256=self._whole.hexdigest(), blocks=blocks)

    def _close_block(self) -> None:
        self._blocks.append(self._block.hexdigest())
        self._block, self._left = sha256(), BLOCK_BYTES


def signed_bytes(manifest: bytes) -> bytes:
    """What a signature is made of and checked against."""
    return _SIGNED + manifest


def encode(value: msgspec.Struct) -> bytes:
    """A document of a pack: JSON with its fields in order, and a line end."""
    return msgspec.json.encode(value) + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """The manifest; raises `MalformedPack` for anything that no writer writes."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{MANIFEST}: {error}", code="manifest_malformed") from error
    if found.format != FORMAT:
        shown = found.format[:40]
        message = f"{MANIFEST}: expected the format {FORMAT}, got {shown!r}; use a newer Factwire"
        raise MalformedPack(message, code="manifest_version")
    _ensure_possible(found)
    return found


def decode_signature(data: bytes) -> Signature:
    try:
        found = msgspec.json.decode(data, type=Signature)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{SIGNATURE}: {error}", code="signature_malformed") from error
    if (found.format, found.algorithm) != (FORMAT, ALGORITHM):
        message = f"{SIGNATURE}: expected {FORMAT} by {ALGORITHM}"
        raise MalformedPack(message, code="signature_malformed")
    return found


def _ensure_possible(manifest: Manifest) -> None:
    names = [entry.name for entry in manifest.entries]
    if len(set(names)) != len(names) or {MANIFEST, SIGNATURE} & set(names):
        message = f"{MANIFEST}: it lists an entry twice, or itself"
        raise MalformedPack(message, code="manifest_malformed")
    for entry in manifest.entries:
        if not _is_possible(entry):
            message = f"{MANIFEST}: sizes and hashes of {entry.name[:80]!r} do not fit each other"
            raise MalformedPack(message, code="manifest_malformed")


def _is_possible(entry: Entry) -> bool:
    if entry.bytes < 0 or entry.block_bytes != BLOCK_BYTES or len(entry.sha256) != _HEX:
        return False
    blocks = -(-entry.bytes // BLOCK_BYTES)
    return len(entry.blocks) == (blocks * _HEX if blocks > 1 else 0)
