"""`EvidencePack`: what a run came to, in one document that is short however long the run was.

Every list has an entry of its own in the pack, one row to a line, with all rows; the document
repeats the first of them and says how many there are. Nothing is in it that facts do not say.
"""

from typing import Any, Final

import msgspec

from factwire.evidence.errors import MalformedPack
from factwire.evidence.manifest import SUMMARY
from factwire.projection.read_models import (
    ArtifactRef,
    EvidenceRef,
    TaskSnapshot,
    ThreadReadModel,
    ToolCallSummary,
)
from factwire.projection.timeline import TimelineEntry
from factwire.projection.views import View

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
