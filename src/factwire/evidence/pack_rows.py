"""Rows of a pack that are derived fact by fact: decisions, context, checks, reviews, known gaps.

A gap is something that a run shows to have happened, and then does not show. It is only named
where its signal applies: a run without artifacts has no gap for them; a tool that started and
never ended has one. What was cancelled with its turn is explained by that.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from factwire.evidence.pack_format import (
    CONTEXT,
    DECISIONS,
    REVIEWS,
    VERIFICATIONS,
    BlobNote,
    ContextNote,
    DecisionNote,
    KnownGap,
    ReviewRecord,
    Verification,
)
from factwire.facts import Fact, id_of, refs_of
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.facts.json_values import text_at
from factwire.journal.filter import find_thread_id
from factwire.projection.artifacts import evidence_ids
from factwire.projection.payload_fields import shorten_detail
from factwire.projection.views import View

RowBuilder = Callable[[Fact], View | None]

_VERIFYING_KINDS: Final = frozenset({"verification", "benchmark"})
_OUTCOMES: Final = ("outcome", "result", "verdict", "status")
_REVIEW_STATUS: Final = {"review.requested": "requested"}


def _to_decision(fact: Fact) -> View:
    return DecisionNote(
        fact_id=fact.id,
        event_class=fact.event_class or "",
        status=fact.status,
        title=fact.title,
        payload=fact.payload,
        sequence=fact.sequence,
        thread_id=id_of(fact, "threadId"),
        turn_id=id_of(fact, "turnId"),
        tool_call_id=id_of(fact, "toolCallId"),
        action_id=id_of(fact, "actionId"),
        created_at=fact.created_at,
    )


def _to_context(fact: Fact) -> View:
    return ContextNote(
        fact_id=fact.id,
        event_class=fact.event_class or "",
        status=fact.status,
        title=fact.title,
        refs=refs_of(fact),
        sequence=fact.sequence,
        turn_id=id_of(fact, "turnId"),
        created_at=fact.created_at,
    )


def _to_verification(fact: Fact) -> View:
    subject = text_at(fact.payload, "testRunId", "trialId", "name") or id_of(fact, "evidenceId")
    return Verification(
        fact_id=fact.id,
        event_class=fact.event_class or "",
        outcome=text_at(fact.payload, *_OUTCOMES) or "unknown",
        subject=subject or id_of(fact, "toolCallId") or fact.id,
        title=text_at(fact.payload, "title") or fact.title,
        sequence=fact.sequence,
        turn_id=id_of(fact, "turnId"),
        tool_call_id=id_of(fact, "toolCallId"),
        summary=shorten_detail(text_at(fact.payload, "summary", "message")),
        created_at=fact.created_at,
    )


def _to_evidence(fact: Fact) -> View | None:
    """Evidence is an outcome only where it is of a kind that verifies."""
    return _to_verification(fact) if text_at(fact.payload, "kind") in _VERIFYING_KINDS else None


def _to_review(fact: Fact) -> View:
    return ReviewRecord(
        fact_id=fact.id,
        review_id=id_of(fact, "reviewId") or "unknown",
        status=_REVIEW_STATUS.get(fact.event_class or "", "completed"),
        evidence_ids=evidence_ids(fact),
        sequence=fact.sequence,
        verdict=text_at(fact.payload, "verdict"),
        reviewer=text_at(fact.payload, "reviewer"),
        summary=shorten_detail(text_at(fact.payload, "summary")),
        created_at=fact.created_at,
    )


_BY_CLASS: Final[dict[str, tuple[str, RowBuilder]]] = {
    "test.completed": (VERIFICATIONS, _to_verification),
    "benchmark.trial.completed": (VERIFICATIONS, _to_verification),
    "benchmark.trial.failed": (VERIFICATIONS, _to_verification),
    "evidence.changed": (VERIFICATIONS, _to_evidence),
}
_BY_FAMILY: Final[dict[str, tuple[str, RowBuilder]]] = {
    "action": (DECISIONS, _to_decision),
    "context": (CONTEXT, _to_context),
    "history": (CONTEXT, _to_context),
    "limit": (DECISIONS, _to_decision),
    "permission": (DECISIONS, _to_decision),
    "policy": (DECISIONS, _to_decision),
    "quota": (DECISIONS, _to_decision),
    "rate_limit": (DECISIONS, _to_decision),
    "review": (REVIEWS, _to_review),
    "routing": (DECISIONS, _to_decision),
    "sandbox": (DECISIONS, _to_decision),
}


def build_fact_row(fact: Fact) -> tuple[str, bytes] | None:
    """The section that a fact belongs to by itself, and its row there."""
    built = _find_builder(fact.event_class or "")
    row = built and built[1](fact)
    return (built[0], msgspec.json.encode(row)) if built and row else None


@lru_cache(maxsize=1024)
def _find_builder(event_class: str) -> tuple[str, RowBuilder] | None:
    family = event_class.partition(".")[0]
    return _BY_CLASS.get(event_class) or _BY_FAMILY.get(family)


HOLES: Final = 1_000
"""Holes in sequences that are listed one by one and can still be filled by a late fact."""


class _Opening(NamedTuple):
    """Facts that begin something, the ids it goes by (best first), and what ends it."""

    openers: tuple[str, ...]
    ids: tuple[str, ...]
    closers: tuple[str, ...]
    code: str
    sentence: str


_OPENINGS: Final = (
    _Opening(
        ("turn.submitted", "turn.started"),
        ("turnId",),
        TURN_TERMINALS,
        "turn_without_terminal",
        "the turn started, but no fact records how it ended",
    ),
    _Opening(
        ("tool.started",),
        ("toolCallId",),
        ("tool.result", "tool.failed"),
        "tool_without_result",
        "the tool ran, but no result or failure was recorded",
    ),
    _Opening(
        ("action.required",),
        ("actionId",),
        tuple(ACTION_CLOSERS),
        "approval_without_decision",
        "a decision was requested, but none was recorded",
    ),
    _Opening(
        ("command.started",),
        ("commandId", "toolCallId"),
        ("command.exited",),
        "command_without_exit",
        "the command ran, but no fact records how it exited",
    ),
    _Opening(
        ("test.started",),
        ("testRunId", "toolCallId"),
        ("test.completed",),
        "test_without_outcome",
        "tests ran, but their outcome was not recorded",
    ),
    _Opening(
        ("patch.started",),
        ("patchId", "toolCallId"),
        ("patch.applied", "patch.failed"),
        "patch_without_outcome",
        "a patch was started, but no fact records whether it was applied",
    ),
    _Opening(
        ("process.started",),
        ("processId",),
        ("process.completed", "process.failed", "process.terminated"),
        "process_without_end",
        "the process ran, but no fact records how it ended",
    ),
    _Opening(
        ("subagent.spawned", "subagent.started"),
        ("subagentId",),
        ("subagent.completed", "subagent.failed", "subagent.closed"),
        "subagent_without_end",
        "the subagent started, but no fact records how it ended",
    ),
    _Opening(
        ("handoff.requested",),
        ("handoffId",),
        ("handoff.accepted", "handoff.rejected", "handoff.completed"),
        "handoff_without_answer",
        "a handoff was requested, but no answer was recorded",
    ),
    _Opening(
        ("review.requested",),
        ("reviewId",),
        ("review.verdict", "review.completed"),
        "review_without_verdict",
        "a review was requested, but no verdict was recorded",
    ),
)
_OPENERS: Final = {name: row for row in _OPENINGS for name in row.openers}
_CLOSERS: Final = {name: row for row in _OPENINGS for name in row.closers}
_WATCHED_CLASSES: Final = frozenset(_OPENERS) | frozenset(_CLOSERS) | {"file.changed"}

_DIFFS: Final = ("diffRef", "diff_ref", "diff", "patch", "patchId", "patch_id")

_BLOBS: Final = {
    "missing": ("blob_missing", "a fact refers to this content, but the store does not have it"),
    "corrupt": ("blob_corrupt", "a fact refers to this content, but the stored copy is damaged"),
    "withheld": ("blob_withheld", "the content contains a secret and was left out"),
    "oversized": ("blob_oversized", "the content is too large for a pack and was left out"),
    "unchecked": ("blob_unchecked", "a fact refers to this content, but no store was available"),
}

GAP_CODES: Final = (
    *(row.code for row in _OPENINGS),
    "sequence_gap",
    "facts_removed",
    "file_change_without_diff",
    *(code for code, _ in _BLOBS.values()),
)


class GapFinder:
    """Takes every fact of a run; memory depends on what is open at once."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], KnownGap] = {}
        self._last: dict[str | None, int] = {}
        self._holes: dict[tuple[str | None, int], int] = {}

    def take(self, fact: Fact) -> KnownGap | None:
        """Note a fact; the gap that this one alone makes certain."""
        if fact.sequence is not None:
            self._place(find_thread_id(fact), fact.sequence)
        name = fact.event_class
        if name not in _WATCHED_CLASSES:
            return None
        self._close(fact, name)
        self._begin(fact, name)
        lacks = name == "file.changed" and not any(fact.payload.get(key) for key in _DIFFS)
        return _build_diff_gap(fact) if lacks else None

    def close(self, removed: Mapping[str, int]) -> Iterator[KnownGap]:
        """What is left open at the end; `removed` maps threads to facts that a journal removed."""
        yield from self._open.values()
        for thread, count in sorted(removed.items()):
            message = f"{count} facts of the thread were removed from the journal on purpose"
            yield KnownGap(code="facts_removed", message=message, subject=thread, thread_id=thread)
        for (thread, first), last in self._holes.items():
            if thread is None or thread not in removed:
                yield _build_hole_gap(thread, first, last)

    def _begin(self, fact: Fact, name: str) -> None:
        row = _OPENERS.get(name)
        subject = row and _find_subject(fact, row)
        if row and subject:
            self._open.setdefault((row.code, subject), _build_gap(fact, row, subject))

    def _close(self, fact: Fact, name: str) -> None:
        row = _CLOSERS.get(name)
        subject = row and _find_subject(fact, row)
        if row and subject:
            self._open.pop((row.code, subject), None)
        if name == "turn.canceled" and subject:
            gone = [key for key, gap in self._open.items() if gap.turn_id == subject]
            for key in gone:
                del self._open[key]

    def _place(self, thread: str | None, sequence: int) -> None:
        last = self._last.get(thread)
        if last is None or sequence == last + 1:
            self._last[thread] = sequence
        elif sequence > last:
            if len(self._holes) < HOLES:
                self._holes[thread, last + 1] = sequence - 1
            self._last[thread] = sequence
        elif self._holes:
            self._fill(thread, sequence)

    def _fill(self, thread: str | None, sequence: int) -> None:
        for (owner, first), last in self._holes.items():
            if owner == thread and first <= sequence <= last:
                del self._holes[owner, first]
                if first < sequence:
                    self._holes[owner, first] = sequence - 1
                if sequence < last:
                    self._holes[owner, sequence + 1] = last
                return


def find_blob_gap(note: BlobNote) -> KnownGap | None:
    """The gap that a blob's state makes."""
    row = _BLOBS.get(note.state)
    return row and KnownGap(code=row[0], message=row[1], subject=note.ref)


def encode_gap(gap: KnownGap) -> bytes:
    return msgspec.json.encode(gap)


def _find_subject(fact: Fact, row: _Opening) -> str | None:
    for name in row.ids:
        value = fact.payload.get(name) if name in _PAYLOAD_ONLY else id_of(fact, name)
        if isinstance(value, str) and value:
            return value
    return None


_PAYLOAD_ONLY: Final = frozenset({"commandId", "testRunId", "patchId"})


def _build_gap(fact: Fact, row: _Opening, subject: str) -> KnownGap:
    return KnownGap(
        code=row.code,
        message=row.sentence,
        subject=subject,
        fact_id=fact.id,
        sequence=fact.sequence,
        thread_id=find_thread_id(fact),
        turn_id=id_of(fact, "turnId"),
    )


def _build_diff_gap(fact: Fact) -> KnownGap:
    path = fact.payload.get("path")
    return KnownGap(
        code="file_change_without_diff",
        message="the file was changed, but no fact records what changed in it",
        subject=path if isinstance(path, str) else None,
        fact_id=fact.id,
        sequence=fact.sequence,
        thread_id=find_thread_id(fact),
        turn_id=id_of(fact, "turnId"),
    )


def _build_hole_gap(thread: str | None, first: int, last: int) -> KnownGap:
    numbers = f"{first}" if first == last else f"{first}–{last}"
    return KnownGap(
        code="sequence_gap",
        message=f"facts {numbers} of the thread are missing, and nothing explains why",
        subject=thread,
        sequence=first,
        thread_id=thread,
    )
