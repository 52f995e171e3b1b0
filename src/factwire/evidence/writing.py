"""`PackWriter`: facts go in one by one, and a pack comes out that is the same every time.

No clock, no random number, nothing of the machine: the same facts and options give the same bytes.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import BinaryIO, Final, Literal, Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire import __version__
from factwire.evidence.archive import Archive, EntryWriter
from factwire.evidence.digest import Digest
from factwire.evidence.limits import LISTED
from factwire.evidence.manifest import (
    BLOBS,
    CASES,
    FACTS,
    FORMAT,
    MANIFEST,
    SEQS,
    SIGNATURE,
    SUMMARY,
    Manifest,
    encode,
)
from factwire.evidence.scratch import Scratch
from factwire.evidence.signatures import sign
from factwire.evidence.summary import BLOB_NOTES, BlobNote, JournalAnchors
from factwire.facts import Fact, parse_ref
from factwire.journal.blobs.references import refs_in

_SPOOLED: Final = 1024 * 1024
_REFS: Final = "refs"
_NOTES: Final = "notes"


class Written(msgspec.Struct, frozen=True, kw_only=True):
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
        self._archive = Archive(target, stored=stored)
        self._digest = Digest(kept=source == "journal")
        self._scratch = Scratch()
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
            self._place(seq)
        if b":sha256:" in line or b"\\u00" in line:
            for ref in refs_in(line):
                self._scratch.note(_REFS, parse_ref(ref)[1], ref.encode())

    def refs(self) -> Iterator[str]:
        """Every blob that facts refer to, once each, in the order in which they first do."""
        return (row.decode() for row in self._scratch.rows(_REFS))

    def end_facts(self) -> None:
        """No more facts come."""
        self._facts.close()
        if self._run is not None:
            self._seqs.write(b"[%d,%d]\n" % self._run)
            self._seqs.seek(0)
            self._copy(SEQS, iter(self._seqs))

    def begin_blob(self, ref: str) -> EntryWriter:
        """Begin the entry of a blob, to be closed when all of it is written."""
        return self._archive.begin(f"{BLOBS}{parse_ref(ref)[1]}")

    def note_blob(self, note: BlobNote) -> None:
        """Say what became of a blob."""
        self._scratch.append(_NOTES, msgspec.json.encode(note))

    def finish(
        self,
        *,
        key: Ed25519PrivateKey | None,
        journal: JournalAnchors | None = None,
        cases: Iterable[bytes] = (),
    ) -> Written:
        """Write what the facts come to, the manifest and the signature."""
        removed = {} if journal is None else journal.removed
        self._digest.close(self._notes(None), removed)
        given = [case + b"\n" for case in cases]
        if given:
            self._copy(CASES, given)
        if self._scratch.count(_NOTES):
            self._copy(BLOB_NOTES, (row + b"\n" for row in self._scratch.rows(_NOTES)))
        for name, lines in self._digest.sections():
            self._copy(name, lines)
        listed = list(self._notes(LISTED))
        summary = self._digest.summary(listed, self._scratch.count(_NOTES), journal)
        self._archive.put(SUMMARY, encode(summary))
        return self._close(key)

    def _close(self, key: Ed25519PrivateKey | None) -> Written:
        manifest = Manifest(
            format=FORMAT,
            producer=__version__,
            source=self._source,
            facts=self.facts,
            entries=tuple(self._archive.entries),
            created_at=self._digest.last_created_at,
            stored=self._stored,
        )
        data = encode(manifest)
        self._archive.put(MANIFEST, data)
        signature = sign(data, key) if key is not None else None
        if signature is not None:
            self._archive.put(SIGNATURE, encode(signature))
        self._archive.close()
        self._open = False
        return Written(
            manifest=manifest,
            digest=sha256(data).hexdigest(),
            bytes=self._archive.size,
            signed_by=signature.public_key if signature is not None else None,
        )

    def _notes(self, limit: int | None) -> Iterator[BlobNote]:
        rows = self._scratch.rows(_NOTES, limit)
        return (msgspec.json.decode(row, type=BlobNote) for row in rows)

    def _place(self, seq: int) -> None:
        if self._run is not None and seq == self._run[1] + 1:
            self._run = self._run[0], seq
            return
        if self._run is not None:
            self._seqs.write(b"[%d,%d]\n" % self._run)
        self._run = seq, seq

    def _copy(self, name: str, pieces: Iterable[bytes]) -> None:
        entry = self._archive.begin(name)
        for piece in pieces:
            entry.write(piece)
        entry.close()
