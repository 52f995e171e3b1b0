"""Blobs: what is too big for a fact, under its own hash, durable before the fact that names it."""

from factwire.journal.blobs.errors import (
    BlobCorrupt,
    BlobError,
    BlobMissing,
    BlobUnreadable,
    BlobUnwritable,
)
from factwire.journal.blobs.files import FileBlobs
from factwire.journal.blobs.memory import MemoryBlobs, MemoryObjects
from factwire.journal.blobs.objects import ObjectBlobs, ObjectClient, ObjectHead
from factwire.journal.blobs.references import referenced_blobs
from factwire.journal.blobs.store import GRACE, BlobStat, BlobStore, Collected

__all__ = [
    "GRACE",
    "BlobCorrupt",
    "BlobError",
    "BlobMissing",
    "BlobStat",
    "BlobStore",
    "BlobUnreadable",
    "BlobUnwritable",
    "Collected",
    "FileBlobs",
    "MemoryBlobs",
    "MemoryObjects",
    "ObjectBlobs",
    "ObjectClient",
    "ObjectHead",
    "referenced_blobs",
]
