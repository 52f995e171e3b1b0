"""`BlobStore`: content under its own hash, put before the fact that names it.

A put returns when the content is durable and whole; before that nothing of it can be seen. What is
read is what was put, or `BlobCorrupt`. Blobs go in one way alone: a collection, which leaves what
is referenced, what is young, and what was put while it ran.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Final, Protocol, TypeVar

import msgspec

from factwire.facts.refs import Ref, RefKind, parse_ref
from factwire.journal.blobs.seal import BLOCK

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


class Collected(msgspec.Struct, frozen=True, kw_only=True):
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

    async def collect_garbage(self, referenced: Referenced, *, grace: float = GRACE) -> Collected:
        """Remove blobs that nothing references and that were last put `grace` seconds ago."""
        ...


def digest_of(ref: Ref | str) -> str:
    """The SHA-256 (hex) under which a ref's content is stored; raises `InvalidRef`."""
    return parse_ref(ref.ref if isinstance(ref, Ref) else ref)[1]


def new_ref(kind: RefKind, digest: str, size: int) -> Ref:
    return Ref(ref=f"{kind}:sha256:{digest}", kind=kind, bytes=size)


async def pieces_of(content: Content) -> AsyncIterator[bytes]:
    """Content as a stream, whichever way it came."""
    if isinstance(content, bytes):
        for at in range(0, len(content), BLOCK):
            yield content[at : at + BLOCK]
    else:
        async for piece in content:
            yield piece


async def spare(old: dict[str, Version], referenced: Referenced) -> dict[str, Version]:
    """What of `old` nothing references; memory grows with the old blobs, not with the refs."""
    async for ref in referenced() if callable(referenced) else referenced:
        old.pop(digest_of(ref), None)
    return old
