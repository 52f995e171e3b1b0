"""`BlobStore`: content under its own hash, put before the fact that names it.

What is stored is the content, then the hash of every block, then a seal over them, so that no
changed byte is handed out. Blocking file work runs on a thread and is never abandoned half-way. A
blob is garbage once nothing in the journal, neither a fact nor the newest snapshot of a thread,
names it.

    JournalError
    └── BlobError
        ├── BlobCorrupt      stored bytes do not match their hash; nothing bad was handed out
        ├── BlobMissing      nothing is stored under the ref
        ├── BlobUnreadable   the disk or the object store did not answer; the content may be fine
        └── BlobUnwritable   nothing was stored; the same put may be tried again

Codes are stable; messages may change.
"""

import asyncio
import re
import struct
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from secrets import token_bytes
from typing import Final, ParamSpec, Protocol, TypeVar

import msgspec

from factwire.facts.own_secrets import OWN_SECRETS
from factwire.facts.refs import REF_KINDS, Ref, RefKind, parse_ref
from factwire.journal.errors import JournalError
from factwire.journal.protocol import Journal

P = ParamSpec("P")
Result = TypeVar("Result")


async def run_disk_work(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """What `work` returns; when this is cancelled, it ends only after `work` has."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


class BlobError(JournalError):
    code = "blob_error"


class BlobCorrupt(BlobError):
    """Stored bytes are not the bytes that were put; `digest` names the blob."""

    code = "blob_corrupt"

    def __init__(self, digest: str, reason: str) -> None:
        self.digest = digest
        self.reason = reason
        super().__init__(f"blob sha256:{digest} is damaged: {reason}; store its content again")


class BlobMissing(BlobError):
    code = "blob_missing"

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(f"no blob sha256:{digest} in this store")


class BlobUnreadable(BlobError):
    code = "blob_unreadable"

    def __init__(self, digest: str, reason: str) -> None:
        self.digest = digest
        self.reason = reason
        super().__init__(f"blob sha256:{digest} could not be read: {reason}")


class BlobUnwritable(BlobError):
    """Nothing of the content became visible."""

    code = "blob_unwritable"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the blob could not be stored: {reason}; free some space and try again")


@contextmanager
def translate_write_errors() -> Generator[None]:
    """Turns a failure of the disk or of an object store into `BlobUnwritable`."""
    try:
        yield
    except OSError as error:
        raise BlobUnwritable(error.strerror or str(error)) from error


@contextmanager
def translate_read_errors(digest: str) -> Generator[None]:
    """Turns a failure of the disk or of an object store into `BlobMissing` or `BlobUnreadable`."""
    try:
        yield
    except (FileNotFoundError, LookupError):
        raise BlobMissing(digest) from None
    except OSError as error:
        raise BlobUnreadable(digest, error.strerror or str(error)) from error


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
        seal = _hash_seal(self._whole.digest(), self.size, nonce, digests)
        return digests + _TAIL.pack(_MARK, self.size, nonce, seal)

    def _end_block(self) -> None:
        self._digests.append(self._block.digest())
        self._block = sha256()


class BlobSeal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A footer that was read and found sound."""

    digest: str
    size: int
    digests: bytes

    def fits(self, number: int, block: bytes) -> bool:
        """Whether a block is the one that was written at its place."""
        at = number * _HASH
        return sha256(block).digest() == self.digests[at : at + _HASH]


def compute_content_size(digest: str, length: int) -> int:
    """How much of `length` stored bytes is content; the rest is the footer."""
    size = length - _TAIL.size - _HASH * _count_blocks(length - _TAIL.size, BLOCK + _HASH)
    if size < 0 or compute_stored_length(size) != length:
        raise BlobCorrupt(digest, f"{length} bytes is not a valid length for a stored blob")
    return size


def compute_content_or_stored_size(digest: str, length: int) -> int:
    """The size of the content, or of all that is stored where it is damaged."""
    try:
        return compute_content_size(digest, length)
    except BlobCorrupt:
        return length


def compute_stored_length(size: int) -> int:
    """How many bytes content of `size` takes in a store."""
    return size + _HASH * _count_blocks(size, BLOCK) + _TAIL.size


def read_seal(digest: str, size: int, footer: bytes) -> BlobSeal:
    """The seal of a footer; raises `BlobCorrupt` where it is not the one of this content."""
    if len(footer) != compute_stored_length(size) - size:
        raise BlobCorrupt(digest, "it is truncated")
    mark, written, nonce, seal = _TAIL.unpack(footer[-_TAIL.size :])
    digests = footer[: -_TAIL.size]
    if mark != _MARK or written != size:
        raise BlobCorrupt(digest, "its footer was changed")
    if seal != _hash_seal(bytes.fromhex(digest), size, nonce, digests):
        raise BlobCorrupt(digest, "its seal does not match its content")
    return BlobSeal(digest=digest, size=size, digests=digests)


async def read_content(
    digest: str, length: int, fetch: Fetch, start: int, end: int | None
) -> AsyncIterator[bytes]:
    """Bytes `start` to `end` of the content, each block checked before any of it is given."""
    if start < 0 or (end is not None and end < start):
        raise ValueError(f"expected 0 <= start <= end, got {start} and {end}")
    size = compute_content_size(digest, length)
    footer = b"".join([piece async for piece in fetch(size, length)])
    seal = read_seal(digest, size, footer)
    stop = size if end is None else min(end, size)
    pieces = (
        _read_whole(seal, fetch)
        if (start, stop) == (0, size)
        else _read_range(seal, fetch, start, stop)
    )
    async for piece in pieces:
        yield piece


async def cut_blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
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


async def _read_range(seal: BlobSeal, fetch: Fetch, start: int, stop: int) -> AsyncIterator[bytes]:
    if start >= stop:
        return
    first, last = start // BLOCK, _count_blocks(stop, BLOCK)
    number = first
    async for block in cut_blocks(fetch(first * BLOCK, min(last * BLOCK, seal.size))):
        _ensure_block(seal, number, block)
        at = number * BLOCK
        yield block[max(0, start - at) : stop - at]
        number += 1
    if number != last:
        raise BlobCorrupt(seal.digest, f"it ends in block {number}")


async def _read_whole(seal: BlobSeal, fetch: Fetch) -> AsyncIterator[bytes]:
    """All of it; the last block is held back until the hash of the whole is known to be right."""
    whole, held = sha256(), b""
    async for block in _read_range(seal, fetch, 0, seal.size):
        if held:
            yield held
        whole.update(block)
        held = block
    if whole.hexdigest() != seal.digest:
        raise BlobCorrupt(seal.digest, "its content does not match its hash")
    if held:
        yield held


def _ensure_block(seal: BlobSeal, number: int, block: bytes) -> None:
    if not seal.fits(number, block):
        raise BlobCorrupt(seal.digest, f"block {number} was changed")


def _hash_seal(digest: bytes, size: int, nonce: bytes, digests: bytes) -> bytes:
    return sha256(digest + size.to_bytes(8) + nonce + digests).digest()


def _count_blocks(size: int, block: int) -> int:
    return -(-size // block)


GRACE: Final = 24 * 60 * 60.0
"""Seconds that a blob without a reference is left alone: from a put to the append of its fact, and
whatever clocks are off by."""

Content = bytes | AsyncIterator[bytes]
Referenced = AsyncIterable[str] | Callable[[], AsyncIterable[str]]
"""Every ref in use; asked for, or iterated, only after the old blobs have been listed."""

Version = TypeVar("Version")


class BlobStat(msgspec.Struct, frozen=True, kw_only=True):
    """`stored_at` is when it was last put, in seconds of the store's clock."""

    bytes: int
    stored_at: float


def without_own_secrets(content: Content) -> Content:
    """Content as it may be stored: without what the operator's settings name as secret. What
    arrives in pieces was made of redacted facts and output.
    """
    if OWN_SECRETS.is_active and isinstance(content, bytes):
        return OWN_SECRETS.clean_bytes(content)
    return content


class CollectedBlobs(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection removed."""

    removed: tuple[str, ...]
    """SHA-256 (hex) of each blob, in order."""
    freed: int
    """Bytes of content."""
    leftovers: int
    """Unfinished puts of processes that are gone."""


class BlobStore(Protocol):
    """Content-addressed storage; kinds are labels, the same content is stored once."""

    async def put(self, content: Content, *, kind: RefKind) -> Ref:
        """Store content and return once it is durable; raises `BlobUnwritable`."""
        ...

    def get(
        self, ref: Ref | str, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        """Bytes `start` to `end`, checked; raises `BlobMissing` or `BlobCorrupt`."""
        ...

    async def stat(self, ref: Ref | str) -> BlobStat: ...

    async def exists(self, ref: Ref | str) -> bool: ...

    async def collect_garbage(
        self, referenced: Referenced, *, grace: float = GRACE
    ) -> CollectedBlobs:
        """Remove blobs that nothing references and that were last put `grace` seconds ago."""
        ...


def parse_digest(ref: Ref | str) -> str:
    """The SHA-256 (hex) under which a ref's content is stored; raises `InvalidRef`."""
    return parse_ref(ref.ref if isinstance(ref, Ref) else ref)[1]


def build_ref(kind: RefKind, digest: str, size: int) -> Ref:
    return Ref(ref=f"{kind}:sha256:{digest}", kind=kind, bytes=size)


async def stream_pieces(content: Content) -> AsyncIterator[bytes]:
    """Content as a stream, whichever way it came."""
    if isinstance(content, bytes):
        for at in range(0, len(content), BLOCK):
            yield content[at : at + BLOCK]
    else:
        async for piece in content:
            yield piece


async def drop_referenced(old: dict[str, Version], referenced: Referenced) -> dict[str, Version]:
    """What of `old` nothing references; memory grows with the old blobs, not with the refs."""
    async for ref in referenced() if callable(referenced) else referenced:
        old.pop(parse_digest(ref), None)
    return old


_DIGEST: Final = re.compile(rb":sha256:[0-9a-f]{64}")
"""The end of a ref. An expression that begins with a literal is searched many times as fast."""

_KINDS: Final = tuple(kind.encode() for kind in sorted(REF_KINDS, key=len, reverse=True))
_ESCAPE: Final = b"\\u00"
"""How JSON may spell a character of a ref otherwise, in text that was encoded by somebody else."""

_PAGE: Final = 500


async def find_referenced_blobs(
    journal: Journal, *, snapshots: Sequence[str] = ("projection",)
) -> AsyncIterator[str]:
    """The refs in a journal's facts and snapshots of these kinds, as often as they stand there."""
    async for batch in journal.read():
        for ref in await asyncio.to_thread(list_refs, batch.data):
            yield ref
    async for data in _load_newest_snapshots(journal, snapshots):
        for ref in await asyncio.to_thread(list_refs, data):
            yield ref


def list_refs(data: bytes) -> list[str]:
    """What `find_refs` finds, at once: a snapshot of a long thread has many megabytes."""
    return list(find_refs(data))


def find_refs(data: bytes) -> Iterator[str]:
    """The refs in lines of JSON, however they are escaped."""
    yield from _find_plain_refs(data)
    if _ESCAPE in data:
        for line in data.split(b"\n"):
            if _ESCAPE in line:
                yield from _find_plain_refs(_unescape(line))


def _find_plain_refs(data: bytes) -> Iterator[str]:
    for match in _DIGEST.finditer(data):
        start = match.start()
        head = data[max(0, start - len(_KINDS[0])) : start]
        kind = next((kind for kind in _KINDS if head.endswith(kind)), None)
        if kind is not None:
            yield (kind + match[0]).decode()


def _unescape(line: bytes) -> bytes:
    """The line without needless escapes; what is not JSON has been searched as it is."""
    try:
        return msgspec.json.encode(msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""


async def _load_newest_snapshots(journal: Journal, kinds: Sequence[str]) -> AsyncIterator[bytes]:
    seen: set[str] = set()
    async for thread in list_every_thread(journal):
        for kind in kinds if thread not in seen else ():
            snapshot = await journal.snapshot(thread, kind)
            if snapshot is not None:
                yield snapshot.data
        seen.add(thread)


async def list_every_thread(journal: Journal) -> AsyncIterator[str]:
    """Every thread, at least once.

    One that gets a fact meanwhile moves to the front of the catalogue, past the page being read;
    so whatever moved is listed again, until nothing did.
    """
    listed, head = 0, (await journal.head()).seq
    while listed < head:
        page = await journal.threads(limit=_PAGE)
        rows = list(page.threads)
        while page.after is not None and page.after.seq > listed:
            page = await journal.threads(after=page.after, limit=_PAGE)
            rows += page.threads
        for row in rows:
            yield row.thread_id
        listed, head = head, (await journal.head()).seq
