"""Blobs on their way into a pack: looked at by the same eyes that keep secrets out of facts.

A blob that holds a secret stays out, and the pack says so. It is read twice, first to be searched
and then to be copied, because what has been written into an archive cannot be taken back.
"""

from collections.abc import AsyncIterator
from hashlib import sha256

from factwire.evidence.limits import BLOB_BYTES, SCANNED_BYTES, SCANNED_OVERLAP
from factwire.evidence.summary import BlobNote
from factwire.evidence.writing import PackWriter
from factwire.facts import parse_ref
from factwire.facts.secrets import find_secrets
from factwire.journal.blobs import BlobCorrupt, BlobMissing, BlobStore


async def take_blobs(writer: PackWriter, store: BlobStore | None, *, include: bool) -> None:
    """Note every blob that facts refer to, and put it into the pack where that is asked for."""
    for ref in writer.refs():
        writer.note_blob(await _taken(writer, store, ref, include=include))


async def _taken(
    writer: PackWriter, store: BlobStore | None, ref: str, *, include: bool
) -> BlobNote:
    if store is None:
        return BlobNote(ref=ref, state="unchecked")
    try:
        note = await _looked_at(store, ref, include=include)
    except BlobMissing:
        return BlobNote(ref=ref, state="missing")
    except BlobCorrupt:
        return BlobNote(ref=ref, state="corrupt")
    if note.state == "included":
        await _copy(writer, ref, store.get(ref))
    return note


async def _looked_at(store: BlobStore, ref: str, *, include: bool) -> BlobNote:
    size = (await store.stat(ref)).bytes
    if not include:
        return BlobNote(ref=ref, state="present", bytes=size)
    if size > BLOB_BYTES:
        return BlobNote(ref=ref, state="oversized", bytes=size)
    rules = await _secrets(store.get(ref))
    if rules:
        return BlobNote(ref=ref, state="withheld", bytes=size, rules=rules)
    return BlobNote(ref=ref, state="included", bytes=size)


async def _copy(writer: PackWriter, ref: str, pieces: AsyncIterator[bytes]) -> None:
    entry = writer.begin_blob(ref)
    digest = sha256()
    async for piece in pieces:
        digest.update(piece)
        entry.write(piece)
    entry.close()
    wanted = parse_ref(ref)[1]
    if digest.hexdigest() != wanted:
        # It was whole a moment ago; a store that now hands out something else cannot be used.
        raise BlobCorrupt(wanted, "it changed while it was exported")


async def _secrets(pieces: AsyncIterator[bytes]) -> list[str]:
    """The rules that found a secret; none where there is none."""
    found: dict[str, None] = {}
    held = b""
    async for piece in pieces:
        held += piece
        while len(held) >= SCANNED_BYTES + SCANNED_OVERLAP:
            found.update(dict.fromkeys(secret_rules(held[: SCANNED_BYTES + SCANNED_OVERLAP])))
            held = held[SCANNED_BYTES:]
    found.update(dict.fromkeys(secret_rules(held)))
    return list(found)


def secret_rules(data: bytes) -> list[str]:
    """The rules by which some bytes hold a secret, whatever kind of file they are of."""
    return sorted({secret.rule for secret in find_secrets(data.decode("utf-8", "replace"))})
