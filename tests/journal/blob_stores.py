"""The stores that the blob contract is run over, each with a clock that tests move by hand."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from factwire.journal.blobs import BlobStore, FileBlobs, MemoryBlobs, MemoryObjects, ObjectBlobs

GRACE = 10.0
REFRESH = 5.0
STORES = ("files", "memory", "objects")


class Opened:
    """A store, and a way around it to what it keeps."""

    def __init__(self, name: str, folder: Path, capacity: int | None = None) -> None:
        self.now = 1_000_000.0
        self.folder = folder
        self.client = MemoryObjects(capacity)
        self.store = self._open(name)

    def _open(self, name: str) -> BlobStore:
        self.client._clock = lambda: self.now
        if name == "files":
            files = FileBlobs(self.folder)
            files._clock = lambda: round(self.now * 1_000_000_000)
            return files
        if name == "memory":
            memory = MemoryBlobs()
            memory._client = self.client
            memory._clock = lambda: self.now
            return memory
        objects = ObjectBlobs(self.client, refresh=REFRESH)
        objects._clock = lambda: self.now
        return objects

    def stored_bytes(self) -> dict[str, bytes]:
        """Name → stored bytes of every blob."""
        if isinstance(self.store, FileBlobs):
            return {path.name: path.read_bytes() for path in self.folder.glob("??/??/*")}
        return {key.rpartition("/")[2]: data for key, data in self.client.objects.items()}

    def overwrite(self, digest: str, data: bytes) -> None:
        """Change what is stored behind the store's back."""
        if isinstance(self.store, FileBlobs):
            (self.folder / digest[:2] / digest[2:4] / digest).write_bytes(data)
            return
        key = f"blobs/{digest}"
        self.client.objects[key] = data
        head: Any = self.client._heads[key]
        self.client._heads[key] = type(head)(
            size=len(data), modified=head.modified, version=head.version
        )


async def whole(store: BlobStore, ref: Any, **span: Any) -> bytes:
    return b"".join([piece async for piece in store.get(ref, **span)])


async def in_pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def refs(found: Iterable[str] = ()) -> AsyncIterator[str]:
    for ref in found:
        yield ref
