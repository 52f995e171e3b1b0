"""Blobs in an object store, through the few calls that every such store has.

There are no locks there, so safety comes from versions: a put of content that is there but no
longer young writes it anew, which gives the object another version, and a collection deletes only
the version that it saw. Content is spooled first, because its name is known only at its end.
"""

import re
from collections.abc import AsyncIterator
from functools import partial
from tempfile import SpooledTemporaryFile
from time import time
from typing import IO, Final, Protocol

import msgspec

from factwire.facts.refs import Ref, RefKind
from factwire.journal.blobs.disk import on_disk
from factwire.journal.blobs.errors import BlobMissing, BlobUnwritable, reading, writing
from factwire.journal.blobs.seal import (
    BLOCK,
    Sealer,
    content_or_all,
    content_size,
    in_blocks,
    opened,
    stored_length,
)
from factwire.journal.blobs.store import (
    GRACE,
    BlobStat,
    Collected,
    Content,
    Referenced,
    digest_of,
    new_ref,
    pieces_of,
    spare,
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
        with SpooledTemporaryFile[bytes](max_size=_SPOOL_IN_MEMORY) as spool:
            sealer = Sealer()
            async for block in in_blocks(pieces_of(content)):
                sealer.feed(block)
                with writing():
                    await on_disk(spool.write, block)
            with writing():
                await on_disk(spool.write, sealer.footer())
                await self._publish(sealer.digest, sealer.size, spool)
        return new_ref(kind, sealer.digest, sealer.size)

    async def get(
        self, ref: Ref | str, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        digest = digest_of(ref)
        fetch = partial(self._client.get_object, self._key(digest))
        with reading(digest):
            head = await self._head(digest)
            async for piece in opened(digest, head.size, fetch, start, end):
                yield piece

    async def stat(self, ref: Ref | str) -> BlobStat:
        digest = digest_of(ref)
        with reading(digest):
            head = await self._head(digest)
        return BlobStat(bytes=content_size(digest, head.size), stored_at=head.modified)

    async def exists(self, ref: Ref | str) -> bool:
        digest = digest_of(ref)
        with reading(digest):
            return await self._client.head(self._key(digest)) is not None

    async def collect_garbage(self, referenced: Referenced, *, grace: float = GRACE) -> Collected:
        if grace < self._refresh:
            raise ValueError(f"expected a grace of at least {self._refresh} seconds, got {grace}")
        old = await self._older(self._clock() - grace)
        removed: list[str] = []
        freed = 0
        for digest, head in sorted((await spare(old, referenced)).items()):
            if await self._client.delete(self._key(digest), head.version):
                removed.append(digest)
                freed += content_or_all(digest, head.size)
        return Collected(removed=tuple(removed), freed=freed, leftovers=0)

    async def _older(self, before: float) -> dict[str, ObjectHead]:
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
        key, length = self._key(digest), stored_length(size)
        for _ in range(_ATTEMPTS):
            head = await self._client.head(key)
            if head and head.size == length and self._clock() - head.modified < self._refresh:
                return
            await on_disk(spool.seek, 0)
            content, new = _pieces(spool), head is None
            if await self._client.put_object(key, content, length, if_none_match=new):
                return
        raise BlobUnwritable("the object is removed and written again all the time")


async def _pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await on_disk(spool.read, BLOCK):
        yield piece
