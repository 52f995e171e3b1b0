"""Verifying a pack: every byte of its contents, who signed it, and whether the rest follows.

Three things are asked apart. Are the contents those of the manifest, and is the manifest the one
that was signed? Does everything that was derived follow from the facts? And is the archive around
them still the one that was written? Only the first two decide; an archive may be packed anew.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import zip_longest
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final, Literal

from factwire import __version__
from factwire.evidence import findings
from factwire.evidence.archive import Archive
from factwire.evidence.container import ContainerState
from factwire.evidence.digest import Digest
from factwire.evidence.errors import ChangedPack, MalformedPack
from factwire.evidence.findings import OF_SIGNER, Finding
from factwire.evidence.keys import TrustList
from factwire.evidence.limits import LISTED, PROGRESS_FACTS
from factwire.evidence.manifest import (
    BLOBS,
    CASES,
    FACTS,
    MANIFEST,
    SEQS,
    SIGNATURE,
    SUMMARY,
    Entry,
    Wire,
    encode,
)
from factwire.evidence.reading import Pack, blob_notes, decoded, pack_in
from factwire.evidence.signatures import fingerprint_of, invalid_signature, is_signed
from factwire.evidence.summary import BLOB_NOTES, SECTIONS

SignerState = Literal["trusted", "unknown", "unsigned", "invalid"]
Progress = Callable[[int], None]

_DERIVED: Final = (*SECTIONS, SUMMARY)
_KNOWN: Final = frozenset({FACTS, SEQS, CASES, BLOB_NOTES, *_DERIVED})


class Signer(Wire, frozen=True):
    """Which key signed, by its fingerprint; `name` is what the reader's trust list calls it."""

    state: SignerState
    key_id: str | None = None
    name: str | None = None


class PackReport(Wire, frozen=True):
    """What a verification found. `digest` is the SHA-256 of the manifest; `derived_again` is
    whether what was derived could be compared: another version may derive otherwise.
    """

    ok: bool
    findings: tuple[Finding, ...]
    signer: Signer
    container: ContainerState
    facts: int
    digest: str
    producer: str
    derived_again: bool
    container_offset: int | None = None
    created_at: str | None = None

    @property
    def contents_ok(self) -> bool:
        """Whether nothing was found but that the signer is not one of those demanded."""
        return _is_unchanged(self.findings)


def verify_pack(
    path: Path,
    *,
    trust: TrustList | None = None,
    demand_trust: bool = False,
    progress: Progress = lambda _: None,
) -> PackReport:
    """Verify a whole pack; raises `PackError` for what cannot be read as one.

    With `demand_trust` a pack fails unless a key of the trust list signed it.
    """
    with path.open("rb") as stream, pack_in(stream) as pack:
        signer = _signer(pack, trust or TrustList())
        found = [*_signature_findings(pack, signer, demand=demand_trust), *_content(pack, progress)]
        again = _is_unchanged(found) and pack.manifest.producer == __version__
        if again:
            found += _derived(pack)
        container = pack.container_state
        return PackReport(
            ok=not found,
            findings=tuple(found),
            signer=signer,
            container=container,
            facts=pack.manifest.facts,
            digest=sha256(pack.manifest_bytes).hexdigest(),
            producer=pack.manifest.producer,
            derived_again=again,
            container_offset=(
                _first_change(pack, stream, container) if _is_unchanged(found) else None
            ),
            created_at=pack.manifest.created_at,
        )


def _is_unchanged(found: Iterable[Finding]) -> bool:
    return all(finding.code in OF_SIGNER for finding in found)


def _signer(pack: Pack, trust: TrustList) -> Signer:
    signature = pack.signature
    if signature is None:
        return Signer(state="unsigned")
    key_id = fingerprint_of(signature)
    if not is_signed(pack.manifest_bytes, signature):
        return Signer(state="invalid", key_id=key_id)
    name = trust.name_of(signature.public_key)
    return Signer(state="unknown" if name is None else "trusted", key_id=key_id, name=name)


def _signature_findings(pack: Pack, signer: Signer, *, demand: bool) -> Iterator[Finding]:
    if signer.state == "invalid" and pack.signature is not None:
        yield invalid_signature(pack.signature)
    elif demand and signer.state == "unsigned":
        message = "the pack is not signed, and a trusted signature is demanded"
        yield Finding(code="signature_missing", entry=SIGNATURE, message=message)
    elif demand and signer.state == "unknown":
        message = f"the pack is signed by {signer.key_id}, which is not among the trusted keys"
        yield Finding(code="signer_untrusted", entry=SIGNATURE, message=message)


def _content(pack: Pack, progress: Progress) -> Iterator[Finding]:
    """What is wrong with the entries themselves, in the order of the manifest."""
    for entry in pack.manifest.entries:
        try:
            yield from _entry_findings(pack, entry, progress)
        except ChangedPack as changed:
            yield changed.finding
        except MalformedPack as malformed:
            yield Finding(code=malformed.code, entry=entry.name, message=str(malformed))
    known = {entry.name for entry in pack.manifest.entries} | {MANIFEST, SIGNATURE}
    for name in pack.container.names():
        if name not in known:
            yield findings.added(name, pack.container.size_of(name))


def _entry_findings(pack: Pack, entry: Entry, progress: Progress) -> Iterator[Finding]:
    if not entry.name.startswith(BLOBS) and entry.name not in _KNOWN:
        # The manifest lists it, but a pack has no such entry: it came in with a forged manifest.
        yield findings.added(entry.name, entry.bytes)
    whole = sha256()
    for block in pack.container.blocks(entry):
        whole.update(block)
    if not matches_whole(whole.hexdigest(), entry.sha256):
        yield findings.changed(entry.name, 0, max(0, entry.bytes - 1))
    elif entry.name.startswith(BLOBS) and entry.name.removeprefix(BLOBS) != whole.hexdigest():
        message = f"{entry.name}: the contents are those of blob {whole.hexdigest()}"
        yield Finding(code="blob_misnamed", entry=entry.name, message=message)
    elif entry.name == FACTS:
        yield from _fact_findings(pack, progress)


def matches_whole(found: str, expected: str) -> bool:
    """Whether the hash of a whole entry is the one that the manifest has."""
    return found == expected


def _fact_findings(pack: Pack, progress: Progress) -> Iterator[Finding]:
    count = 0
    for count, line in enumerate(pack.fact_lines(), 1):
        decoded(line, count)
        if count % PROGRESS_FACTS == 0:
            progress(PROGRESS_FACTS)
    places = sum(1 for _ in pack.seqs()) if pack.manifest.source == "journal" else count
    if count != pack.manifest.facts or places != count:
        message = f"the manifest counts {pack.manifest.facts} facts, {count} are there"
        yield Finding(code="count_differs", entry=FACTS, message=f"{message}, at {places} places")


def _derived(pack: Pack) -> Iterator[Finding]:
    """Derive everything from the facts again, and compare."""
    summary = pack.summary
    removed = {} if summary.journal is None else summary.journal.removed
    with Digest(kept=pack.manifest.source == "journal") as digest:
        for fact in pack.facts():
            digest.take(fact)
        digest.close(blob_notes(pack), removed)
        lines = dict(digest.sections())
        for name in SECTIONS:
            yield from _difference(pack, name, lines.get(name))
        notes = list(blob_notes(pack))
        again = digest.summary(notes[:LISTED], len(notes), summary.journal)
        yield from _difference(pack, SUMMARY, iter((encode(again),)))


def _difference(pack: Pack, name: str, lines: Iterator[bytes] | None) -> Iterator[Finding]:
    entry = pack.manifest.entry(name)
    stored = () if entry is None else (row + b"\n" for row in pack.rows(name))
    at = 0
    for there, follows in zip_longest(stored, lines or (), fillvalue=b""):
        if there != follows:
            last = at + max(len(there), 1) - 1
            message = f"{name}: bytes {at}–{last} do not follow from the facts"
            yield Finding(code="derived_differs", entry=name, first=at, last=last, message=message)
            return
        at += len(there)


def _first_change(pack: Pack, stream: BinaryIO, container: ContainerState) -> int | None:
    """Where an archive whose contents are right differs from the one that was written.

    It is written once more, and compared byte by byte.
    """
    if container != "changed":
        return None
    compared = _Compared(stream)
    archive = Archive(compared, stored=pack.manifest.stored)  # pyright: ignore[reportArgumentType]
    try:
        for entry in pack.manifest.entries:
            writer = archive.begin(entry.name)
            for block in pack.container.blocks(entry):
                writer.write(block)
            writer.close()
        archive.put(MANIFEST, pack.manifest_bytes)
        if pack.signature is not None:
            archive.put(SIGNATURE, encode(pack.signature))
        archive.close()
    except BaseException:
        archive.abandon()
        raise
    return compared.result()


class _Compared:
    """Takes the bytes that should be in a file, and remembers the first that is another one."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._at = 0
        self._first: int | None = None

    def write(self, data: bytes) -> int:
        if self._first is None:
            self._stream.seek(self._at)
            there = self._stream.read(len(data))
            if there != data:
                pairs = enumerate(zip_longest(there, data))
                self._first = self._at + next(place for place, (a, b) in pairs if a != b)
        self._at += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def result(self) -> int | None:
        """The first byte that is another one, or one too many."""
        if self._first is None and self._stream.seek(0, SEEK_END) > self._at:
            return self._at
        return self._first
