"""Blobs in memory, through the in-memory object store that the object interface is tested with."""

import errno
from collections.abc import AsyncIterator
from itertools import count
from time import time
from typing import Final

from factwire.journal.blobs.objects import ObjectBlobs, ObjectHead

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
