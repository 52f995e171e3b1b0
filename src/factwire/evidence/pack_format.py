"""The documents of a pack: the manifest with its signature, and the summary of the run.

The manifest names every entry with its hashes. What is signed is the manifest's bytes, behind a
line that no other Factwire document begins with; everything else is bound to the manifest by
hashes, so that one signature covers the whole pack. The summary is short however long the run
was: every list has an entry of its own with all rows, of which the document repeats the first
and says how many there are. Nothing is in it that facts do not say.
"""

from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from factwire.evidence.errors import MalformedPack
from factwire.evidence.limits import BLOCK_BYTES
from factwire.projection.read_models import (
    ArtifactRef,
    EvidenceRef,
    TaskSnapshot,
    ThreadReadModel,
    ToolCallSummary,
)
from factwire.projection.timeline import TimelineEntry
from factwire.projection.views import View

FORMAT: Final = "factwire-pack/v1"
BUNDLE_FORMAT: Final = "factwire-packs/v1"
"""What the manifest of an archive says that holds several packs."""

SUFFIX: Final = ".factpack.zip"

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
SUMMARY: Final = "summary.json"
FACTS: Final = "facts.ndjson"
SEQS: Final = "seqs.ndjson"
CASES: Final = "cases.ndjson"
BLOBS: Final = "blobs/"

ALGORITHM: Final = "ed25519"
_SIGNED_PREFIX: Final = b"factwire-pack/v1 manifest\n"
_HEX: Final = 64


class PackStruct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value with a camelCase wire form; what is not known is absent."""


class Entry(PackStruct, frozen=True):
    """`blocks` are the SHA-256 of each block of `block_bytes`, joined; only where there are two or
    more. The last block is what remains.
    """

    name: str
    bytes: int
    sha256: str
    blocks: str = ""
    block_bytes: int = BLOCK_BYTES

    def hashes(self) -> tuple[str, ...]:
        """The hash of each block; of an empty entry, none."""
        if not self.blocks:
            return (self.sha256,) if self.bytes else ()
        return tuple(self.blocks[at : at + _HEX] for at in range(0, len(self.blocks), _HEX))


class Manifest(PackStruct, frozen=True):
    """What a pack holds. `producer` is the version of Factwire whose rules derived the rest from
    the facts; `created_at` is when the last of them was created, because a pack knows no clock.
    """

    format: str
    producer: str
    source: Literal["journal", "file"]
    facts: int
    entries: tuple[Entry, ...]
    created_at: str | None = None
    stored: bool = False
    """Whether entries are not compressed."""

    def entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


class Signature(PackStruct, frozen=True):
    """Who signed: the key itself. Whose key that is says a trust list, never the pack."""

    format: str
    algorithm: str
    public_key: str
    signature: str


class EntryHasher:
    """The hashes of an entry, taken while its bytes go by."""

    def __init__(self) -> None:
        self.bytes = 0
        self._whole = sha256()
        self._block = sha256()
        self._left = BLOCK_BYTES
        self._blocks: list[str] = []

    def update(self, data: bytes) -> None:
        self._whole.update(data)
        self.bytes += len(data)
        view = memoryview(data)
        while len(view) >= self._left:
            self._block.update(view[: self._left])
            view = view[self._left :]
            self._close_block()
        self._block.update(view)
        self._left -= len(view)

    def entry(self, name: str) -> Entry:
        if self._left < BLOCK_BYTES:
            self._close_block()
        blocks = "".join(self._blocks) if len(self._blocks) > 1 else ""
        return Entry(name=name, bytes=self.bytes, sha256=self._whole.hexdigest(), blocks=blocks)

    def _close_block(self) -> None:
        self._blocks.append(self._block.hexdigest())
        self._block, self._left = sha256(), BLOCK_BYTES


def bytes_to_sign(manifest: bytes) -> bytes:
    """What a signature is made of and checked against."""
    return _SIGNED_PREFIX + manifest


def encode_document(value: msgspec.Struct) -> bytes:
    """A document of a pack: JSON with its fields in order, and a line end."""
    return msgspec.json.encode(value) + b"\n"


def decode_manifest(data: bytes, expected: str = FORMAT) -> Manifest:
    """The manifest; raises `MalformedPack` for anything that no writer writes."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{MANIFEST}: {error}", code="manifest_malformed") from error
    if found.format != expected:
        excerpt = found.format[:40]
        message = f"{MANIFEST}: expected the format {expected}, got {excerpt!r}"
        if found.format == BUNDLE_FORMAT:
            message = "the file holds several packs; verify it, or take one out of it (unzip)"
            raise MalformedPack(message, code="manifest_version")
        message = f"{message}; use a newer Factwire"
        raise MalformedPack(message, code="manifest_version")
    _ensure_possible(found)
    return found


def decode_signature(data: bytes) -> Signature:
    try:
        found = msgspec.json.decode(data, type=Signature)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{SIGNATURE}: {error}", code="signature_malformed") from error
    if (found.format, found.algorithm) != (FORMAT, ALGORITHM):
        message = f"{SIGNATURE}: expected {FORMAT} by {ALGORITHM}"
        raise MalformedPack(message, code="signature_malformed")
    return found


def _ensure_possible(manifest: Manifest) -> None:
    names = [entry.name for entry in manifest.entries]
    if len(set(names)) != len(names) or {MANIFEST, SIGNATURE} & set(names):
        message = f"{MANIFEST}: an entry is listed twice, or the manifest lists itself"
        raise MalformedPack(message, code="manifest_malformed")
    for entry in manifest.entries:
        if not _is_possible(entry):
            message = f"{MANIFEST}: sizes and hashes of {entry.name[:80]!r} are inconsistent"
            raise MalformedPack(message, code="manifest_malformed")


def _is_possible(entry: Entry) -> bool:
    if entry.bytes < 0 or entry.block_bytes != BLOCK_BYTES or len(entry.sha256) != _HEX:
        return False
    blocks = -(-entry.bytes // BLOCK_BYTES)
    return len(entry.blocks) == (blocks * _HEX if blocks > 1 else 0)


PACK_VERSION: Final = "factwire-evidence-pack/v1"

THREADS: Final = "threads.ndjson"
TIMELINE: Final = "timeline.ndjson"
TOOLS: Final = "tools.ndjson"
ARTIFACTS: Final = "artifacts.ndjson"
CONTEXT: Final = "context.ndjson"
DECISIONS: Final = "decisions.ndjson"
VERIFICATIONS: Final = "verifications.ndjson"
REVIEWS: Final = "reviews.ndjson"
EVIDENCE: Final = "evidence.ndjson"
TASKS: Final = "tasks.ndjson"
GAPS: Final = "gaps.ndjson"
IDS: Final = "correlation.ndjson"
BLOB_NOTES: Final = "blobs.ndjson"

SECTIONS: Final = (
    THREADS,
    TIMELINE,
    TOOLS,
    ARTIFACTS,
    CONTEXT,
    DECISIONS,
    VERIFICATIONS,
    REVIEWS,
    EVIDENCE,
    TASKS,
    GAPS,
    IDS,
)
"""Entries with rows that were derived from facts, in the order of the archive; those without rows
are left out."""


class RuntimeSummary(View):
    """The run as figures. `status` is the strongest that a thread ended in."""

    status: str
    facts: int
    turns: int
    turns_completed: int
    turns_failed: int
    turns_canceled: int
    tool_calls: int
    tool_failures: int
    actions: int
    input_tokens: int
    output_tokens: int
    models: list[str]
    runtime_ids: list[str]
    classes: dict[str, int]
    """Class → how many facts of it there are."""
    cost: float | None = None
    started_at: str | None = None
    ended_at: str | None = None


class DecisionNote(View):
    """A fact about permission, sandbox, routing or a limit, as it was."""

    fact_id: str
    event_class: str
    status: str
    title: str
    payload: dict[str, Any]
    sequence: int | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    created_at: str | None = None


class ContextNote(View):
    """Context that was given to a model, behind its refs."""

    fact_id: str
    event_class: str
    status: str
    title: str
    refs: list[str]
    sequence: int | None = None
    turn_id: str | None = None
    created_at: str | None = None


class Verification(View):
    """The outcome of a check: a test run, a benchmark's trial or evidence of that kind."""

    fact_id: str
    event_class: str
    outcome: str
    subject: str
    title: str
    sequence: int | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    summary: str | None = None
    created_at: str | None = None


class ReviewRecord(View):
    """One fact of a review: asked for, or answered."""

    fact_id: str
    review_id: str
    status: str
    evidence_ids: list[str]
    sequence: int | None = None
    verdict: str | None = None
    reviewer: str | None = None
    summary: str | None = None
    created_at: str | None = None


class KnownGap(View):
    """Something that applies to this run and is not there. `code` is stable."""

    code: str
    message: str
    subject: str | None = None
    fact_id: str | None = None
    sequence: int | None = None
    thread_id: str | None = None
    turn_id: str | None = None


class CorrelationId(View):
    """An id, and the first fact that carries it."""

    name: str
    value: str
    fact_id: str


class ChainAnchor(View):
    """The journal's chain at a commit that holds facts of the pack: up to `seq` it had `hash`."""

    seq: int
    hash: str


class JournalAnchors(View):
    """What a reader needs to check the pack against the journal that it came from.

    `first_seq` and `last_seq` are of the pack's own facts; `until` is where an export was told to
    stop. Each anchor vouches for everything before it, of all threads. `removed` counts, by thread,
    the facts that the journal had removed on purpose.
    """

    epoch: str
    first_seq: int
    last_seq: int
    anchors: list[ChainAnchor]
    removed: dict[str, int]
    threads: list[str] | None = None
    """The threads that were asked for; absent where all of the journal was."""
    until: int | None = None


class BlobNote(View):
    """A blob that facts refer to: `included`, `present` in the store, `missing` from it, `corrupt`
    there, `withheld` because it holds a secret, or `oversized`.
    """

    ref: str
    state: str
    bytes: int | None = None
    rules: list[str] | None = None


class EvidencePack(View):
    """The summary of a pack; `totals` says how many rows each section has."""

    schema_version: str
    runtime: RuntimeSummary
    totals: dict[str, int]
    threads: list[ThreadReadModel]
    timeline: list[TimelineEntry]
    tool_calls: list[ToolCallSummary]
    tool_failures: list[ToolCallSummary]
    artifacts: list[ArtifactRef]
    context: list[ContextNote]
    decisions: list[DecisionNote]
    verifications: list[Verification]
    reviews: list[ReviewRecord]
    evidence: list[EvidenceRef]
    tasks: list[TaskSnapshot]
    known_gaps: list[KnownGap]
    runtime_correlation: dict[str, list[str]]
    blobs: list[BlobNote]
    journal: JournalAnchors | None = None


def decode_summary(data: bytes) -> EvidencePack:
    """The summary of a pack; raises `MalformedPack`."""
    try:
        return msgspec.json.decode(data, type=EvidencePack)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedPack(f"{SUMMARY}: {error}", code="summary_malformed") from error
