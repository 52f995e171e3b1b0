"""Blobs: what is too big for a fact, under its own hash, durable before the fact that names it."""

from factwire.journal.blobs.blob_store import (
    GRACE,
    BlobCorrupt,
    BlobError,
    BlobMissing,
    BlobStat,
    BlobStore,
    BlobUnreadable,
    BlobUnwritable,
    CollectedBlobs,
    find_referenced_blobs,
)
from factwire.journal.blobs.file_blobs import FileBlobs
from factwire.journal.blobs.object_blobs import (
    MemoryBlobs,
    MemoryObjects,
    ObjectBlobs,
    ObjectClient,
    ObjectHead,
)

__all__ = [
    "GRACE",
    "BlobCorrupt",
    "BlobError",
    "BlobMissing",
    "BlobStat",
    "BlobStore",
    "BlobUnreadable",
    "BlobUnwritable",
    "CollectedBlobs",
    "FileBlobs",
    "MemoryBlobs",
    "MemoryObjects",
    "ObjectBlobs",
    "ObjectClient",
    "ObjectHead",
    "find_referenced_blobs",
]
