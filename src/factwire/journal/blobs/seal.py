"""The stored form of a blob: its content, then the hash of every block, then a seal over them.

The block hashes let any range be checked without reading the rest, so that a flipped byte is never
handed out, not even from the middle. The seal ties them to the content's own hash, under which the
blob is found. Its nonce makes two writes of one content differ, so that a store's version of an
object changes whenever the object is written.
"""

import struct
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from secrets import token_bytes
from typing import Final

import msgspec

from factwire.journal.blobs.errors import BlobCorrupt

BLOCK: Final = 256 * 1024
"""Bytes that are hashed, written and read at a time: block hashes then take 1/8192 of a blob."""

_MARK: Final = b"fwblob1\n"
_HASH: Final = 32
_TAIL: Final = struct.Struct(f">{len(_MARK)}sQ16s{_HASH}s")

Fetch = Callable[[int, int], AsyncIterator[bytes]]
"""Bytes `start` to `end` of what is stored, in pieces of any size."""


class Sealer:
    """Hashes content on its way into a store; `footer` is to be written behind it."""

    def __init__(self) -> None:
        self.size = 0
        self._whole = sha256()
        self._block = sha256()
        self._digests: list[bytes] = []

    @property
    def digest(self) -> str:
        return self._whole.hexdigest()

    def feed(self, piece: bytes) -> None:
        self._whole.update(piece)
        view = memoryview(piece)
        while view:
            part = view[: BLOCK - self.size % BLOCK]
            self._block.update(part)
            self.size += len(part)
            view = view[len(part) :]
            if self.size % BLOCK == 0:
                self._end_block()

    def footer(self) -> bytes:
        if self.size % BLOCK:
            self._end_block()
        digests = b"".join(self._digests)
        nonce = token_bytes(16)
        seal = _seal(self._whole.digest(), self.size, nonce, digests)
        return digests + _TAIL.pack(_MARK, self.size, nonce, seal)

    def _end_block(self) -> None:
        self._digests.append(self._block.digest())
        self._block = sha256()


class Seal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A footer that was read and found sound."""

    digest: str
    size: int
    digests: bytes

    def fits(self, number: int, block: bytes) -> bool:
        """Whether a block is the one that was written at its place."""
        at = number * _HASH
        return sha256(block).digest() == self.digests[at : at + _HASH]


def content_size(digest: str, length: int) -> int:
    """How much of `length` stored bytes is content; the rest is the footer."""
    size = length - _TAIL.size - _HASH * _blocks(length - _TAIL.size, BLOCK + _HASH)
    if size < 0 or stored_length(size) != length:
        raise BlobCorrupt(digest, f"{length} bytes are not the length of a blob")
    return size


def content_or_all(digest: str, length: int) -> int:
    """The size of the content, or of all that is stored where it is damaged."""
    try:
        return content_size(digest, length)
    except BlobCorrupt:
        return length


def stored_length(size: int) -> int:
    """How many bytes content of `size` takes in a store."""
    return size + _HASH * _blocks(size, BLOCK) + _TAIL.size


def read_seal(digest: str, size: int, footer: bytes) -> Seal:
    """The seal of a footer; raises `BlobCorrupt` where it is not the one of this content."""
    if len(footer) != stored_length(size) - size:
        raise BlobCorrupt(digest, "it is shorter than it was")
    mark, written, nonce, seal = _TAIL.unpack(footer[-_TAIL.size :])
    digests = footer[: -_TAIL.size]
    if mark != _MARK or written != size:
        raise BlobCorrupt(digest, "its footer was changed")
    if seal != _seal(bytes.fromhex(digest), size, nonce, digests):
        raise BlobCorrupt(digest, "its seal is not the one of this content")
    return Seal(digest=digest, size=size, digests=digests)


async def opened(
    digest: str, length: int, fetch: Fetch, start: int, end: int | None
) -> AsyncIterator[bytes]:
    """Bytes `start` to `end` of the content, each block checked before any of it is given."""
    if start < 0 or (end is not None and end < start):
        raise ValueError(f"expected 0 <= start <= end, got {start} and {end}")
    size = content_size(digest, length)
    footer = b"".join([piece async for piece in fetch(size, length)])
    seal = read_seal(digest, size, footer)
    stop = size if end is None else min(end, size)
    pieces = _whole(seal, fetch) if (start, stop) == (0, size) else _range(seal, fetch, start, stop)
    async for piece in pieces:
        yield piece


async def in_blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in blocks, the last one shorter; holds one block and one piece."""
    held = bytearray()
    async for piece in pieces:
        held += piece
        start = 0
        while len(held) - start >= BLOCK:
            yield bytes(held[start : start + BLOCK])
            start += BLOCK
        del held[:start]
    if held:
        yield bytes(held)


async def _range(seal: Seal, fetch: Fetch, start: int, stop: int) -> AsyncIterator[bytes]:
    if start >= stop:
        return
    first, last = start // BLOCK, _blocks(stop, BLOCK)
    number = first
    async for block in in_blocks(fetch(first * BLOCK, min(last * BLOCK, seal.size))):
        _ensure(seal, number, block)
        at = number * BLOCK
        yield block[max(0, start - at) : stop - at]
        number += 1
    if number != last:
        raise BlobCorrupt(seal.digest, f"it ends in block {number}")


async def _whole(seal: Seal, fetch: Fetch) -> AsyncIterator[bytes]:
    """All of it; the last block is held back until the hash of the whole is known to be right."""
    whole, held = sha256(), b""
    async for block in _range(seal, fetch, 0, seal.size):
        if held:
            yield held
        whole.update(block)
        held = block
    if whole.hexdigest() != seal.digest:
        raise BlobCorrupt(seal.digest, "its content has another hash")
    if held:
        yield held


def _ensure(seal: Seal, number: int, block: bytes) -> None:
    if not seal.fits(number, block):
        raise BlobCorrupt(seal.digest, f"block {number} was changed")


def _seal(digest: bytes, size: int, nonce: bytes, digests: bytes) -> bytes:
    return sha256(digest + size.to_bytes(8) + nonce + digests).digest()


def _blocks(size: int, block: int) -> int:
    return -(-size // block)
