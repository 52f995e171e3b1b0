"""The digest of a run: everything in a pack that is derived, as a pure function of its facts.

One pass, in constant memory. Because nothing else goes in, anybody who has the facts can derive the
rest again and compare; that is how a false summary over true facts is found.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec

from factwire.evidence.fact_rows import fact_row
from factwire.evidence.gaps import GapFinder, blob_gap, encoded
from factwire.evidence.limits import KNOWN_IDS, LISTED, LISTED_IDS
from factwire.evidence.runs import ThreadRuns
from factwire.evidence.scratch import Scratch
from factwire.evidence.summary import (
    ARTIFACTS,
    CONTEXT,
    DECISIONS,
    EVIDENCE,
    GAPS,
    IDS,
    PACK_VERSION,
    REVIEWS,
    SECTIONS,
    TASKS,
    THREADS,
    TIMELINE,
    TOOLS,
    VERIFICATIONS,
    BlobNote,
    ContextNote,
    CorrelationId,
    DecisionNote,
    EvidencePack,
    JournalAnchors,
    KnownGap,
    ReviewRecord,
    RuntimeSummary,
    Verification,
)
from factwire.facts import Fact
from factwire.facts.ids import ATTRIBUTES, PAYLOAD_NAMES
from factwire.projection.read_models import (
    ArtifactRef,
    EvidenceRef,
    TaskSnapshot,
    ThreadReadModel,
    ToolCallSummary,
)
from factwire.projection.timeline import TimelineEntry

Row = TypeVar("Row")

_NAMES: Final = tuple(ATTRIBUTES)
_ids_of: Final = attrgetter(*ATTRIBUTES.values())
_PAYLOAD_IDS: Final = {key: name for name, keys in PAYLOAD_NAMES.items() for key in keys}
_PAYLOAD_KEYS: Final = frozenset(_PAYLOAD_IDS)
_TURN_ENDS: Final = {"turn.completed": 0, "turn.failed": 0, "turn.canceled": 0}
_STRENGTH: Final = ("failed", "waiting", "blocked", "running", "completed", "canceled", "idle")
_MODELS: Final = 100
_RUNTIMES: Final = 100


class Digest:
    """Takes every fact in order, then writes down what they come to."""

    def __init__(self, *, kept: bool) -> None:
        self.facts = 0
        self.last_created_at: str | None = None
        self._scratch = Scratch()
        self._runs = ThreadRuns(self._scratch, kept=kept)
        self._gaps = GapFinder()
        self._classes: Counter[str] = Counter()
        self._models: dict[str, None] = {}
        self._runtimes: dict[str, None] = {}
        self._known: set[tuple[str, str]] = set()
        self._ids: tuple[str | None, ...] = ()
        self._first_created_at: str | None = None
        self._failures: list[ToolCallSummary] = []
        self._failed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scratch.__exit__(kind, error, trace)

    def take(self, fact: Fact) -> None:
        """Take the next fact."""
        self.facts += 1
        self._classes[fact.event_class or "none"] += 1
        if self._first_created_at is None:
            self._first_created_at = fact.created_at
        self.last_created_at = fact.created_at
        self._note_ids(fact)
        row = fact_row(fact)
        if row is not None:
            self._scratch.append(*row)
        gap = self._gaps.take(fact)
        if gap is not None:
            self._scratch.append(GAPS, encoded(gap))
        if fact.event_class == "model.requested":
            _note(self._models, fact.payload.get("model"), _MODELS)
        _note(self._runtimes, fact.runtime_id, _RUNTIMES)
        self._runs.take(fact)

    def close(self, blobs: Iterable[BlobNote], removed: Mapping[str, int]) -> None:
        """All facts are there; what else is known of the run: its blobs, and removed facts."""
        self._runs.close()
        for gap in self._gaps.rest(removed):
            self._scratch.append(GAPS, encoded(gap))
        for note in blobs:
            gap = blob_gap(note)
            if gap is not None:
                self._scratch.append(GAPS, encoded(gap))
        for row in self._scratch.rows(TOOLS):
            call = msgspec.json.decode(row, type=ToolCallSummary)
            if call.state == "output-error":
                self._failed += 1
                if len(self._failures) < LISTED:
                    self._failures.append(call)

    def sections(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Every section that has rows, with its lines."""
        for name in SECTIONS:
            if self._scratch.count(name):
                yield name, (row + b"\n" for row in self._scratch.rows(name))

    def summary(
        self, blobs: list[BlobNote], blob_count: int, journal: JournalAnchors | None
    ) -> EvidencePack:
        """The summary document."""
        totals = {_plain(name): self._scratch.count(name) for name in SECTIONS}
        return EvidencePack(
            schema_version=PACK_VERSION,
            runtime=self._runtime(),
            totals={name: count for name, count in totals.items() if count}
            | ({"blobs": blob_count} if blob_count else {}),
            threads=self._listed(THREADS, ThreadReadModel),
            timeline=self._listed(TIMELINE, TimelineEntry),
            tool_calls=self._listed(TOOLS, ToolCallSummary),
            tool_failures=self._failures,
            artifacts=self._listed(ARTIFACTS, ArtifactRef),
            context=self._listed(CONTEXT, ContextNote),
            decisions=self._listed(DECISIONS, DecisionNote),
            verifications=self._listed(VERIFICATIONS, Verification),
            reviews=self._listed(REVIEWS, ReviewRecord),
            evidence=self._listed(EVIDENCE, EvidenceRef),
            tasks=self._listed(TASKS, TaskSnapshot),
            known_gaps=self._listed(GAPS, KnownGap),
            runtime_correlation=self._correlation(),
            blobs=blobs,
            journal=journal,
        )

    def _listed(self, name: str, kind: type[Row]) -> list[Row]:
        return [msgspec.json.decode(row, type=kind) for row in self._scratch.rows(name, LISTED)]

    def _runtime(self) -> RuntimeSummary:
        ends, usage = _TURN_ENDS | self._classes, self._runs.usage
        return RuntimeSummary(
            status=self._status(),
            facts=self.facts,
            turns=max(self._classes["turn.submitted"], self._classes["turn.started"]),
            turns_completed=ends["turn.completed"],
            turns_failed=ends["turn.failed"],
            turns_canceled=ends["turn.canceled"],
            tool_calls=self._scratch.count(TOOLS),
            tool_failures=self._failed,
            actions=self._classes["action.required"],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            models=list(self._models),
            runtime_ids=list(self._runtimes),
            classes=dict(sorted(self._classes.items())),
            cost=usage.cost if usage.records else None,
            started_at=self._first_created_at,
            ended_at=self.last_created_at,
        )

    def _status(self) -> str:
        rows = self._scratch.rows(THREADS)
        found = {msgspec.json.decode(row, type=ThreadReadModel).status for row in rows}
        return next((status for status in _STRENGTH if status in found), "idle")

    def _correlation(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in self._scratch.rows(IDS):
            each = msgspec.json.decode(row, type=CorrelationId)
            values = found.setdefault(each.name, [])
            if len(values) < LISTED_IDS:
                values.append(each.value)
        return dict(sorted(found.items()))

    def _note_ids(self, fact: Fact) -> None:
        ids = _ids_of(fact)
        if ids != self._ids:
            self._ids = ids
            for name, value in zip(_NAMES, ids, strict=True):
                if value:
                    self._note_id(name, value, fact.id)
        payload = fact.payload
        if payload and not _PAYLOAD_KEYS.isdisjoint(payload):
            for key in sorted(_PAYLOAD_KEYS & payload.keys()):
                value = payload[key]
                if isinstance(value, str) and value:
                    self._note_id(_PAYLOAD_IDS[key], value, fact.id)

    def _note_id(self, name: str, value: str, fact_id: str) -> None:
        if (name, value) in self._known:
            return
        if len(self._known) >= KNOWN_IDS:
            self._known.clear()
        self._known.add((name, value))
        row = CorrelationId(name=name, value=value, fact_id=fact_id)
        self._scratch.note(IDS, f"{name}\0{value}", msgspec.json.encode(row))


def _note(seen: dict[str, None], value: Any, limit: int) -> None:
    if isinstance(value, str) and value and len(seen) < limit:
        seen[value] = None


def _plain(name: str) -> str:
    return name.removesuffix(".ndjson")
