"""`PackWriter`: facts go in one by one, and a pack comes out that is the same every time.

No clock, no random number, nothing of the machine: the same facts and options give the same bytes.
A blob that holds a secret stays out, and the pack says so; it is read twice, first to be searched
and then to be copied, because what has been written into an archive cannot be taken back.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import BinaryIO, Final, Literal, Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire import __version__
from factwire.evidence.limits import BLOB_BYTES, LISTED, SCANNED_BYTES, SCANNED_OVERLAP
from factwire.evidence.pack_archive import ArchiveWriter, EntryWriter
from factwire.evidence.pack_digest import PackDigest, ScratchTables
from factwire.evidence.pack_format import (
    BLOB_NOTES,
    BLOBS,
    CASES,
    FACTS,
    FORMAT,
    MANIFEST,
    SEQS,
    SIGNATURE,
    SUMMARY,
    BlobNote,
    JournalAnchors,
    Manifest,
    encode_document,
)
from factwire.evidence.signatures import sign_manifest
from factwire.facts import Fact, parse_ref
from factwire.facts.secret_shapes import find_secrets
from factwire.journal.blobs import BlobCorrupt, BlobMissing, BlobStore
from factwire.journal.blobs.blob_store import find_refs

_SPOOLED: Final = 1024 * 1024
_REFS_TABLE: Final = "refs"
_NOTES_TABLE: Final = "notes"


class WrittenPack(msgspec.Struct, frozen=True, kw_only=True):
    """What came out. `digest` is the SHA-256 of the manifest: a name for the pack's contents."""

    manifest: Manifest
    digest: str
    bytes: int
    signed_by: str | None


class PackWriter:
    """First all facts, then blobs, then `finish`."""

    def __init__(
        self, target: BinaryIO, *, source: Literal["journal", "file"], stored: bool = False
    ) -> None:
        self._source: Literal["journal", "file"] = source
        self._stored = stored
        self._archive = ArchiveWriter(target, stored=stored)
        self._digest = PackDigest(kept=source == "journal")
        self._scratch = ScratchTables()
        self._seqs = SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115
        self._run: tuple[int, int] | None = None
        self._facts: EntryWriter = self._archive.begin(FACTS)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._open:
            self._archive.abandon()
        self._digest.__exit__(kind, error, trace)
        self._scratch.__exit__(kind, error, trace)
        self._seqs.close()

    @property
    def facts(self) -> int:
        return self._digest.facts

    def take(self, fact: Fact, line: bytes, seq: int | None = None) -> None:
        """Take the next fact: what it says, the bytes it is stored in, and its place."""
        self._facts.write(line + b"\n")
        self._digest.take(fact)
        if seq is not None:
            self._note_seq(seq)
        if b":sha256:" in line or b"\\u00" in line:
            for ref in find_refs(line):
                self._scratch.note(_REFS_TABLE, parse_ref(ref)[1], ref.encode())

    def refs(self) -> Iterator[str]:
        """Every blob that facts refer to, once each, in the order in which they first do."""
        return (row.decode() for row in self._scratch.rows(_REFS_TABLE))

    def end_facts(self) -> None:
        """No more facts come."""
        self._facts.close()
        if self._run is not None:
            self._seqs.write(b"[%d,%d]\n" % self._run)
            self._seqs.seek(0)
            self._copy_entry(SEQS, iter(self._seqs))

    def begin_blob(self, ref: str) -> EntryWriter:
        """Begin the entry of a blob, to be closed when all of it is written."""
        return self._archive.begin(f"{BLOBS}{parse_ref(ref)[1]}")

    def note_blob(self, note: BlobNote) -> None:
        """Say what became of a blob."""
        self._scratch.append(_NOTES_TABLE, msgspec.json.encode(note))

    def finish(
        self,
        *,
        key: Ed25519PrivateKey | None,
        journal: JournalAnchors | None = None,
        cases: Iterable[bytes] = (),
    ) -> WrittenPack:
        """Write what the facts come to, the manifest and the signature."""
        removed = {} if journal is None else journal.removed
        self._digest.close(self._read_notes(None), removed)
        case_lines = [case + b"\n" for case in cases]
        if case_lines:
            self._copy_entry(CASES, case_lines)
        if self._scratch.count(_NOTES_TABLE):
            self._copy_entry(BLOB_NOTES, (row + b"\n" for row in self._scratch.rows(_NOTES_TABLE)))
        for name, lines in self._digest.sections():
            self._copy_entry(name, lines)
        listed = list(self._read_notes(LISTED))
        summary = self._digest.summary(listed, self._scratch.count(_NOTES_TABLE), journal)
        self._archive.put(SUMMARY, encode_document(summary))
        return self._close(key)

    def _close(self, key: Ed25519PrivateKey | None) -> WrittenPack:
        manifest = Manifest(
            format=FORMAT,
            producer=__version__,
            source=self._source,
            facts=self.facts,
            entries=tuple(self._archive.entries),
            created_at=self._digest.last_created_at,
            stored=self._stored,
        )
        data = encode_document(manifest)
        self._archive.put(MANIFEST, data)
        signature = sign_manifest(data, key) if key is not None else None
        if signature is not None:
            self._archive.put(SIGNATURE, encode_document(signature))
        self._archive.close()
        self._open = False
        return WrittenPack(
            manifest=manifest,
            digest=sha256(data).hexdigest(),
            bytes=self._archive.size,
            signed_by=signature.public_key if signature is not None else None,
        )

    def _read_notes(self, limit: int | None) -> Iterator[BlobNote]:
        rows = self._scratch.rows(_NOTES_TABLE, limit)
        return (msgspec.json.decode(row, type=BlobNote) for row in rows)

    def _note_seq(self, seq: int) -> None:
        if self._run is not None and seq == self._run[1] + 1:
            self._run = self._run[0], seq
            return
        if self._run is not None:
            self._seqs.write(b"[%d,%d]\n" % self._run)
        self._run = seq, seq

    def _copy_entry(self, name: str, pieces: Iterable[bytes]) -> None:
        entry = self._archive.begin(name)
        for piece in pieces:
            entry.write(piece)
        entry.close()


async def add_blobs(writer: PackWriter, store: BlobStore | None, *, include: bool) -> None:
    """Note every blob that facts refer to, and put it into the pack where that is asked for."""
    for ref in writer.refs():
        writer.note_blob(await _add_blob(writer, store, ref, include=include))


async def _add_blob(
    writer: PackWriter, store: BlobStore | None, ref: str, *, include: bool
) -> BlobNote:
    if store is None:
        return BlobNote(ref=ref, state="unchecked")
    try:
        note = await _inspect_blob(store, ref, include=include)
    except BlobMissing:
        return BlobNote(ref=ref, state="missing")
    except BlobCorrupt:
        return BlobNote(ref=ref, state="corrupt")
    if note.state == "included":
        await _copy_blob(writer, ref, store.get(ref))
    return note


async def _inspect_blob(store: BlobStore, ref: str, *, include: bool) -> BlobNote:
    size = (await store.stat(ref)).bytes
    if not include:
        return BlobNote(ref=ref, state="present", bytes=size)
    if size > BLOB_BYTES:
        return BlobNote(ref=ref, state="oversized", bytes=size)
    rules = await _find_secrets(store.get(ref))
    if rules:
        return BlobNote(ref=ref, state="withheld", bytes=size, rules=rules)
    return BlobNote(ref=ref, state="included", bytes=size)


async def _copy_blob(writer: PackWriter, ref: str, pieces: AsyncIterator[bytes]) -> None:
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


async def _find_secrets(pieces: AsyncIterator[bytes]) -> list[str]:
    """The rules that found a secret; none where there is none."""
    found: dict[str, None] = {}
    held = b""
    async for piece in pieces:
        held += piece
        while len(held) >= SCANNED_BYTES + SCANNED_OVERLAP:
            found.update(dict.fromkeys(find_secret_rules(held[: SCANNED_BYTES + SCANNED_OVERLAP])))
            held = held[SCANNED_BYTES:]
    found.update(dict.fromkeys(find_secret_rules(held)))
    return list(found)


def find_secret_rules(data: bytes) -> list[str]:
    """The rules by which some bytes hold a secret, whatever kind of file they are of."""
    return sorted({secret.rule for secret in find_secrets(data.decode("utf-8", "replace"))})
