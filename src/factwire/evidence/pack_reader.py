"""Opening a pack: nothing is handed out that is not what the manifest says.

The manifest is what was signed, where there is a signature. A line is handed out only when all its
bytes have been verified.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from factwire.evidence.errors import BlobNotInPack, MalformedPack
from factwire.evidence.limits import DOCUMENT_BYTES, MANIFEST_BYTES, SIGNATURE_BYTES
from factwire.evidence.pack_archive import ArchiveReader, ArchiveState
from factwire.evidence.pack_format import (
    BLOB_NOTES,
    BLOBS,
    FACTS,
    FORMAT,
    MANIFEST,
    SEQS,
    SIGNATURE,
    SUMMARY,
    BlobNote,
    Entry,
    EvidencePack,
    Manifest,
    Signature,
    decode_manifest,
    decode_signature,
    decode_summary,
)
from factwire.evidence.signatures import ensure_signed
from factwire.facts import Fact, FactError, InvalidFacts, InvalidRef, parse_ref, shape_issues
from factwire.facts.limits import LINE_BYTES
from factwire.facts.shapes import decode_object, decode_plain, read_checked_fact


def split_lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Each line without its end; raises `MalformedPack` where the last one has none."""
    left: list[bytes] = []
    size = 0
    for block in blocks:
        first, *rest = block.split(b"\n")
        left.append(first)
        size += len(first)
        if size > LINE_BYTES:
            message = f"{name}: a line is longer than {LINE_BYTES} bytes"
            raise MalformedPack(message, code="entry_malformed")
        if rest:
            yield b"".join(left)
            yield from rest[:-1]
            left, size = [rest[-1]], len(rest[-1])
    if size:
        raise MalformedPack(f"{name}: the last line is incomplete", code="entry_malformed")


class Pack:
    """An open pack, read in pieces; everything it hands out has been verified."""

    def __init__(
        self, container: ArchiveReader, manifest_bytes: bytes, expected: str = FORMAT
    ) -> None:
        self._container = container
        self.manifest_bytes = manifest_bytes
        self.manifest: Manifest = decode_manifest(manifest_bytes, expected)
        self.signature: Signature | None = _read_signature(container)
        self._summary: EvidencePack | None = None

    @property
    def container(self) -> ArchiveReader:
        return self._container

    @property
    def container_state(self) -> ArchiveState:
        """Whether the archive around the contents is untouched."""
        return self._container.state()

    @property
    def summary(self) -> EvidencePack:
        """The summary document."""
        if self._summary is None:
            self._summary = decode_summary(self.content(SUMMARY))
        return self._summary

    def facts(self) -> Iterator[Fact]:
        """Every fact, in the order in which it was exported."""
        for number, line in enumerate(self.fact_lines(), 1):
            yield decode_pack_fact(line, number)

    def fact_lines(self) -> Iterator[bytes]:
        """The bytes of every fact as they were stored, without the line end."""
        return self.rows(FACTS)

    def placed_lines(self) -> Iterator[tuple[int, bytes]]:
        """Every fact of a journal with its place there; raises `MalformedPack` where there are more
        of one than of the other.
        """
        seqs = (seq for first, last in self._seq_runs() for seq in range(first, last + 1))
        for seq, line in zip_longest(seqs, self.fact_lines()):
            if seq is None or line is None:
                message = f"{SEQS}: expected one place for each of the facts, no more and no fewer"
                raise MalformedPack(message, code="entry_malformed")
            yield seq, line

    def placed_facts(self) -> Iterator[tuple[int, Fact]]:
        """The same, as facts."""
        for number, (seq, line) in enumerate(self.placed_lines(), 1):
            yield seq, decode_pack_fact(line, number)

    def count_places(self) -> int:
        """For how many facts there is a place. A run is a few bytes and may claim any length, so
        that it is not counted one by one.
        """
        return sum(last + 1 - first for first, last in self._seq_runs())

    def _seq_runs(self) -> Iterator[tuple[int, int]]:
        return map(_parse_seq_run, self.rows(SEQS))

    def rows(self, name: str) -> Iterator[bytes]:
        """The lines of an entry; none where the pack does not have it."""
        entry = self.manifest.entry(name)
        return iter(()) if entry is None else split_lines(self._container.read_blocks(entry), name)

    def content(self, name: str) -> bytes:
        """A whole entry, of at most 64 MiB."""
        entry = self._entry(name)
        if entry.bytes > DOCUMENT_BYTES:
            message = f"{name}: expected at most {DOCUMENT_BYTES} bytes, got {entry.bytes}"
            raise MalformedPack(message, code="entry_malformed")
        return b"".join(self._container.read_blocks(entry))

    def blobs(self) -> list[str]:
        """The SHA-256 (hex) of every blob in the pack."""
        names = (entry.name for entry in self.manifest.entries)
        return [name.removeprefix(BLOBS) for name in names if name.startswith(BLOBS)]

    def blob(self, ref: str) -> bytes:
        """A blob's whole content, by its ref or its SHA-256 (hex)."""
        return b"".join(self.blob_pieces(ref))

    def blob_pieces(self, ref: str) -> Iterator[bytes]:
        """The same in pieces; raises `BlobNotInPack` before the first one."""
        digest = _parse_blob_ref(ref)
        entry = self.manifest.entry(f"{BLOBS}{digest}")
        if entry is None:
            raise BlobNotInPack(f"the pack contains no blob sha256:{digest[:80]}")
        return self._container.read_blocks(entry)

    def _entry(self, name: str) -> Entry:
        entry = self.manifest.entry(name)
        if entry is None:
            raise MalformedPack(f"the manifest lists no {name}", code="manifest_malformed")
        return entry


@contextmanager
def open_pack(path: Path) -> Generator[Pack]:
    """Open a pack; raises `PackError` for what is none or was changed.

    A signature, where there is one, has to be right. Whose it is says `verify_pack`.
    """
    with path.open("rb") as stream, open_pack_stream(stream) as pack:
        ensure_signed(pack.manifest_bytes, pack.signature)
        yield pack


@contextmanager
def open_pack_stream(stream: BinaryIO, expected: str = FORMAT) -> Generator[Pack]:
    """The pack in an open file, its signature not yet looked at."""
    container = ArchiveReader(stream)
    try:
        data = container.read_document(MANIFEST, MANIFEST_BYTES)
        if data is None:
            message = f"the archive has no {MANIFEST}: it is not a pack, or an incomplete one"
            raise MalformedPack(message, code="manifest_missing")
        yield Pack(container, data, expected)
    finally:
        container.close()


def decode_pack_fact(line: bytes, number: int) -> Fact:
    """The fact of a line of a pack."""
    try:
        return decode_plain(line) or _check_fact(decode_object(line))
    except FactError as error:
        message = f"{FACTS}: line {number} is not a fact: {error}"
        raise MalformedPack(message, code="facts_malformed") from error


def _check_fact(value: dict[str, Any]) -> Fact:
    """A fact as a journal stores it, which may lack a sequence and nothing else."""
    issues = shape_issues({"sequence": 0, **value}, "facts")
    if issues:
        raise InvalidFacts(issues)
    return read_checked_fact(value, "facts")


def _read_signature(container: ArchiveReader) -> Signature | None:
    data = container.read_document(SIGNATURE, SIGNATURE_BYTES)
    return None if data is None else decode_signature(data)


def _parse_seq_run(line: bytes) -> tuple[int, int]:
    try:
        first, last = msgspec.json.decode(line, type=tuple[int, int])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{SEQS}: expected [first, last] on each line: {error}"
        raise MalformedPack(message, code="entry_malformed") from error
    if not 0 < first <= last:
        message = f"{SEQS}: expected [first, last] in this order, got [{first}, {last}]"
        raise MalformedPack(message, code="entry_malformed")
    return first, last


def _parse_blob_ref(ref: str) -> str:
    try:
        return parse_ref(ref)[1]
    except InvalidRef:
        return ref


def read_blob_notes(pack: Pack) -> Iterator[BlobNote]:
    """What became of every blob that facts refer to."""
    for line in pack.rows(BLOB_NOTES):
        try:
            yield msgspec.json.decode(line, type=BlobNote)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedPack(f"{BLOB_NOTES}: {error}", code="entry_malformed") from error
