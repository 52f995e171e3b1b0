"""Blobs in an object store, through the few calls that every such store has.

The store in memory is the one that the object interface is tested with.
"""

import errno
import re
from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from tempfile import SpooledTemporaryFile
from time import time
from typing import IO, Final, Protocol

import msgspec

from factwire.facts.refs import Ref, RefKind
from factwire.journal.blobs.blob_store import (
    BLOCK,
    GRACE,
    BlobMissing,
    BlobStat,
    BlobUnwritable,
    CollectedBlobs,
    Content,
    Referenced,
    Sealer,
    build_ref,
    compute_content_or_stored_size,
    compute_content_size,
    compute_stored_length,
    cut_blocks,
    drop_referenced,
    parse_digest,
    read_content,
    run_disk_work,
    stream_pieces,
    translate_read_errors,
    translate_write_errors,
    without_own_secrets,
)

REFRESH: Final = 6 * 60 * 60.0
"""Seconds after which a repeated put writes its object anew instead of relying on the old one."""

_SPOOL_IN_MEMORY: Final = 8 * 1024 * 1024
_ATTEMPTS: Final = 10


class ObjectHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of an object; `version` changes whenever the object is written.

    An ETag or a generation will do for it: two writes never hold the same bytes.
    """

    size: int
    modified: float
    version: str


class ObjectClient(Protocol):
    """What an object store has to offer. A failure of the store is raised as an `OSError`."""

    async def put_object(
        self, key: str, content: AsyncIterator[bytes], size: int, *, if_none_match: bool
    ) -> bool:
        """Write an object, whole or not at all; False where `if_none_match` and one is there."""
        ...

    def get_object(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Bytes `start` to `end`; raises `LookupError` where there is no such object."""
        ...

    async def head(self, key: str) -> ObjectHead | None: ...

    def list(self, prefix: str) -> AsyncIterator[tuple[str, ObjectHead]]: ...

    async def delete(self, key: str, version: str) -> bool:
        """Remove an object if it is still of this version; says whether it did."""
        ...


class ObjectBlobs:
    """Implements `BlobStore`; a fact must be appended within `grace - refresh` of its put."""

    def __init__(
        self, client: ObjectClient, *, prefix: str = "blobs/", refresh: float = REFRESH
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._refresh = refresh
        self._clock = time
        self._name = re.compile(re.escape(prefix) + "([0-9a-f]{64})")

    async def put(self, content: Content, *, kind: RefKind) -> Ref:
        content = without_own_secrets(content)
        with SpooledTemporaryFile[bytes](max_size=_SPOOL_IN_MEMORY) as spool:
            sealer = Sealer()
            async for block in cut_blocks(stream_pieces(content)):
                sealer.feed(block)
                with translate_write_errors():
                    await run_disk_work(spool.write, block)
            with translate_write_errors():
                await run_disk_work(spool.write, sealer.footer())
                await self._publish(sealer.digest, sealer.size, spool)
        return build_ref(kind, sealer.digest, sealer.size)

    async def get(
        self, ref: Ref | str, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        digest = parse_digest(ref)
        fetch = partial(self._client.get_object, self._key(digest))
        with translate_read_errors(digest):
            head = await self._head(digest)
            async for piece in read_content(digest, head.size, fetch, start, end):
                yield piece

    async def stat(self, ref: Ref | str) -> BlobStat:
        digest = parse_digest(ref)
        with translate_read_errors(digest):
            head = await self._head(digest)
        return BlobStat(bytes=compute_content_size(digest, head.size), stored_at=head.modified)

    async def exists(self, ref: Ref | str) -> bool:
        digest = parse_digest(ref)
        with translate_read_errors(digest):
            return await self._client.head(self._key(digest)) is not None

    async def collect_garbage(
        self, referenced: Referenced, *, grace: float = GRACE
    ) -> CollectedBlobs:
        if grace < self._refresh:
            raise ValueError(
                f"expected a grace period of at least {self._refresh} seconds, got {grace}"
            )
        old = await self._list_older(self._clock() - grace)
        removed: list[str] = []
        freed = 0
        for digest, head in sorted((await drop_referenced(old, referenced)).items()):
            if await self._client.delete(self._key(digest), head.version):
                removed.append(digest)
                freed += compute_content_or_stored_size(digest, head.size)
        return CollectedBlobs(removed=tuple(removed), freed=freed, leftovers=0)

    async def _list_older(self, before: float) -> dict[str, ObjectHead]:
        """Hash → head of every blob that was last written at or before `before`."""
        return {
            match[1]: head
            async for key, head in self._client.list(self._prefix)
            if head.modified <= before and (match := self._name.fullmatch(key))
        }

    def _key(self, digest: str) -> str:
        return self._prefix + digest

    async def _head(self, digest: str) -> ObjectHead:
        head = await self._client.head(self._key(digest))
        if head is None:
            raise BlobMissing(digest)
        return head

    async def _publish(self, digest: str, size: int, spool: IO[bytes]) -> None:
        key, length = self._key(digest), compute_stored_length(size)
        for _ in range(_ATTEMPTS):
            head = await self._client.head(key)
            if head and head.size == length and self._clock() - head.modified < self._refresh:
                return
            await run_disk_work(spool.seek, 0)
            content, new = _read_spool(spool), head is None
            if await self._client.put_object(key, content, length, if_none_match=new):
                return
        raise BlobUnwritable("the object keeps being removed and rewritten")


async def _read_spool(spool: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_disk_work(spool.read, BLOCK):
        yield piece


_PIECE: Final = 64 * 1024


class MemoryObjects:
    """Implements `ObjectClient`; `capacity` bounds the bytes it holds, like a disk that is full."""

    def __init__(self, capacity: int | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self._heads: dict[str, ObjectHead] = {}
        self._capacity = capacity
        self._versions = count(1)
        self._clock = time

    async def put_object(
        self, key: str, content: AsyncIterator[bytes], size: int, *, if_none_match: bool
    ) -> bool:
        data = b"".join([piece async for piece in content])
        if len(data) != size:
            raise OSError(errno.EIO, f"expected {size} bytes, got {len(data)}")
        if if_none_match and key in self.objects:
            return False
        self._ensure_room(key, size)
        self.objects[key] = data
        self._heads[key] = ObjectHead(
            size=size, modified=self._clock(), version=str(next(self._versions))
        )
        return True

    async def get_object(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        data = self.objects[key]
        for at in range(start, min(end, len(data)), _PIECE):
            yield data[at : min(at + _PIECE, end)]

    async def head(self, key: str) -> ObjectHead | None:
        return self._heads.get(key)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, ObjectHead]]:
        for key, head in sorted(self._heads.items()):
            if key.startswith(prefix):
                yield key, head

    async def delete(self, key: str, version: str) -> bool:
        head = self._heads.get(key)
        if head is None or head.version != version:
            return False
        del self.objects[key], self._heads[key]
        return True

    def _ensure_room(self, key: str, size: int) -> None:
        others = sum(len(data) for name, data in self.objects.items() if name != key)
        if self._capacity is not None and others + size > self._capacity:
            raise OSError(errno.ENOSPC, "No space left in memory")


class MemoryBlobs(ObjectBlobs):
    """A `BlobStore` whose blobs live as long as the object, for tests and for trying things."""

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(MemoryObjects(capacity), refresh=0)
