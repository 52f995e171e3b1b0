"""Several packs in one file that verifies as one: those of journals that belong together.

A bundle is an archive of whole packs under one manifest, which has the hashes of each and can be
signed like that of a pack; `bundle.json` says which threads of which journal each pack holds, and
what was left out. Packs in it are not compressed again, so that no bomb hides in a bomb, and no
bundle is in a bundle.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire import __version__
from factwire.evidence import errors
from factwire.evidence.errors import (
    ChangedPack,
    MalformedPack,
    PackError,
    PackTooBig,
    VerificationFinding,
)
from factwire.evidence.limits import BUNDLE_PACKS, DOCUMENT_BYTES, MANIFEST_BYTES
from factwire.evidence.pack_archive import ArchiveReader, ArchiveWriter
from factwire.evidence.pack_format import (
    BUNDLE_FORMAT,
    MANIFEST,
    SIGNATURE,
    SUFFIX,
    Entry,
    Manifest,
    PackStruct,
    encode_document,
)
from factwire.evidence.pack_reader import Pack, open_pack, open_pack_stream
from factwire.evidence.signatures import TrustList, sign_manifest
from factwire.evidence.verification import (
    PackReport,
    VerifyProgress,
    check_signature,
    identify_signer,
    verify_pack,
)

BUNDLE: Final = "bundle.json"
PACKS: Final = "packs/"
_PIECE: Final = 256 * 1024


class BundledPack(PackStruct, frozen=True):
    """A pack in a bundle: the threads of one journal, which `source` names."""

    entry: str
    source: str
    threads: tuple[str, ...]
    facts: int


class LeftOut(PackStruct, frozen=True):
    """A thread that belongs here and is not in the bundle; `reason` is a stable word."""

    source: str
    thread_id: str
    reason: str


class BundleDocument(PackStruct, frozen=True):
    """What a bundle is about, and what is in it."""

    title: str
    packs: tuple[BundledPack, ...]
    left_out: tuple[LeftOut, ...] = ()


class PackFile(msgspec.Struct, frozen=True, kw_only=True):
    """A pack that goes into a bundle."""

    source: str
    threads: tuple[str, ...]
    path: Path


def write_bundle(
    target: BinaryIO,
    title: str,
    packs: Sequence[PackFile],
    left_out: Sequence[LeftOut],
    key: Ed25519PrivateKey | None,
) -> BundleDocument:
    """Write packs into one archive, signed where there is a key."""
    archive = ArchiveWriter(target, stored=True)
    listed: list[BundledPack] = []
    for number, pack in enumerate(packs, 1):
        name = f"{PACKS}{number:03d}{SUFFIX}"
        with open_pack(pack.path) as opened:
            facts = opened.manifest.facts
        entry = archive.begin(name)
        with pack.path.open("rb") as file:
            while piece := file.read(_PIECE):
                entry.write(piece)
        entry.close()
        listed.append(
            BundledPack(entry=name, source=pack.source, threads=pack.threads, facts=facts)
        )
    document = BundleDocument(title=title, packs=tuple(listed), left_out=tuple(left_out))
    archive.put(BUNDLE, encode_document(document))
    manifest = Manifest(
        format=BUNDLE_FORMAT,
        producer=__version__,
        source="journal",
        facts=sum(pack.facts for pack in listed),
        entries=tuple(archive.entries),
        stored=True,
    )
    data = encode_document(manifest)
    archive.put(MANIFEST, data)
    if key is not None:
        archive.put(SIGNATURE, encode_document(sign_manifest(data, key)))
    archive.close()
    return document


class _Format(msgspec.Struct):
    format: str = ""


def is_bundle(path: Path) -> bool:
    """Whether a file says that it holds several packs; raises `PackError` for what is no pack."""
    with path.open("rb") as stream:
        container = ArchiveReader(stream)
        try:
            data = container.read_document(MANIFEST, MANIFEST_BYTES)
        finally:
            container.close()
    try:
        return data is not None and msgspec.json.decode(data, type=_Format).format == BUNDLE_FORMAT
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def verify_file(
    path: Path,
    *,
    trust: TrustList | None = None,
    demand_trust: bool = False,
    progress: VerifyProgress = lambda _: None,
) -> PackReport:
    """Verify a pack, or a bundle with all packs in it; raises `PackError` like `verify_pack`."""
    if not is_bundle(path):
        return verify_pack(path, trust=trust, demand_trust=demand_trust, progress=progress)
    known = trust or TrustList()
    with path.open("rb") as stream, open_pack_stream(stream, BUNDLE_FORMAT) as bundle:
        signer = identify_signer(bundle, known)
        found = [*check_signature(bundle, signer, demand=demand_trust), *_check_entries(bundle)]
        again = True
        document = read_bundle(bundle)
        for member in document.packs:
            report = _verify_member(bundle, member, known, progress)
            found += report.findings
            again = again and report.derived_again
        return PackReport(
            ok=not found,
            findings=tuple(found),
            signer=signer,
            container=bundle.container_state,
            facts=bundle.manifest.facts,
            digest=sha256(bundle.manifest_bytes).hexdigest(),
            producer=bundle.manifest.producer,
            derived_again=again,
        )


def read_bundle(bundle: Pack) -> BundleDocument:
    """What a bundle says of itself; raises `MalformedPack` or `PackTooBig`."""
    entry = bundle.manifest.entry(BUNDLE)
    if entry is None or entry.bytes > DOCUMENT_BYTES:
        raise MalformedPack(f"the manifest lists no usable {BUNDLE}", code="manifest_malformed")
    data = b"".join(bundle.container.read_blocks(entry))
    try:
        document = msgspec.json.decode(data, type=BundleDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{BUNDLE}: {error}", code="entry_malformed") from error
    if len(document.packs) > BUNDLE_PACKS:
        raise PackTooBig(f"expected at most {BUNDLE_PACKS} packs, got {len(document.packs)}")
    return document


def _check_entries(bundle: Pack) -> list[VerificationFinding]:
    """What is in the archive and in no list, or in a list and not in the archive."""
    listed = {member.entry for member in read_bundle(bundle).packs} | {BUNDLE}
    named = {entry.name for entry in bundle.manifest.entries}
    container = bundle.container
    found = [
        errors.report_added(name, container.size_of(name))
        for name in container.names()
        if name not in (listed & named) | {MANIFEST, SIGNATURE}
    ]
    return [*found, *(errors.report_missing(name, 0) for name in sorted(listed - named))]


def _verify_member(
    bundle: Pack, member: BundledPack, trust: TrustList, progress: VerifyProgress
) -> PackReport:
    """Verify one pack of a bundle, and that it holds what the bundle says."""
    entry = bundle.manifest.entry(member.entry)
    if entry is None:
        return _report_broken(bundle, errors.report_missing(member.entry, 0))
    with TemporaryDirectory(prefix="factwire-bundle-") as folder:
        path = Path(folder, "pack.zip")
        try:
            _extract(bundle, entry, path)
            report = verify_pack(path, trust=trust, progress=progress)
            with open_pack(path) as pack:
                held = pack.summary.journal
        except ChangedPack as changed:
            return _report_broken(bundle, changed.finding)
        except PackError as error:
            broken = VerificationFinding(
                code="entry_changed", entry=member.entry, message=f"{member.entry}: {error}"
            )
            return _report_broken(bundle, broken)
    findings = [_place_finding(member, finding) for finding in report.findings]
    threads = () if held is None else tuple(held.threads or ())
    if (report.facts, sorted(threads)) != (member.facts, sorted(member.threads)):
        message = f"{member.entry}: the pack holds other threads or facts than {BUNDLE} says"
        findings.append(VerificationFinding(code="derived_differs", entry=BUNDLE, message=message))
    return msgspec.structs.replace(report, findings=tuple(findings))


def _place_finding(member: BundledPack, finding: VerificationFinding) -> VerificationFinding:
    entry = f"{member.entry}/{finding.entry or ''}".rstrip("/")
    message = f"{member.entry}: {finding.message}"
    return msgspec.structs.replace(finding, entry=entry, message=message)


def _extract(bundle: Pack, entry: Entry, path: Path) -> None:
    if entry.name in bundle.container.names() and not bundle.container.is_stored(entry.name):
        message = f"{entry.name}: a pack in a bundle is not compressed again"
        raise MalformedPack(message, code="entry_malformed")
    with path.open("wb") as file:
        for block in bundle.container.read_blocks(entry):
            file.write(block)


def _report_broken(bundle: Pack, finding: VerificationFinding) -> PackReport:
    """A report about a pack that cannot be looked at."""
    return PackReport(
        ok=False,
        findings=(finding,),
        signer=identify_signer(bundle, TrustList()),
        container="changed",
        facts=0,
        digest="",
        producer=bundle.manifest.producer,
        derived_again=False,
    )
