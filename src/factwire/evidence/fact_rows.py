"""Rows of the summary that one fact makes by itself: decisions, context, verification, reviews."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.evidence.summary import (
    CONTEXT,
    DECISIONS,
    REVIEWS,
    VERIFICATIONS,
    ContextNote,
    DecisionNote,
    ReviewRecord,
    Verification,
)
from factwire.facts import Fact, id_of
from factwire.projection.evidence import evidence_ids
from factwire.projection.reading import detail_of, refs_of
from factwire.projection.views import View

Build = Callable[[Fact], View | None]

_VERIFYING_KINDS: Final = frozenset({"verification", "benchmark"})
_OUTCOMES: Final = ("outcome", "result", "verdict", "status")
_REVIEW_STATUS: Final = {"review.requested": "requested"}


def _decision(fact: Fact) -> View:
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


def _context(fact: Fact) -> View:
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


def _verification(fact: Fact) -> View:
    subject = _text(fact.payload, ("testRunId", "trialId", "name")) or id_of(fact, "evidenceId")
    return Verification(
        fact_id=fact.id,
        event_class=fact.event_class or "",
        outcome=_text(fact.payload, _OUTCOMES) or "unknown",
        subject=subject or id_of(fact, "toolCallId") or fact.id,
        title=_text(fact.payload, ("title",)) or fact.title,
        sequence=fact.sequence,
        turn_id=id_of(fact, "turnId"),
        tool_call_id=id_of(fact, "toolCallId"),
        summary=detail_of(_text(fact.payload, ("summary", "message"))),
        created_at=fact.created_at,
    )


def _evidence(fact: Fact) -> View | None:
    """Evidence is an outcome only where it is of a kind that verifies."""
    return _verification(fact) if _text(fact.payload, ("kind",)) in _VERIFYING_KINDS else None


def _review(fact: Fact) -> View:
    return ReviewRecord(
        fact_id=fact.id,
        review_id=id_of(fact, "reviewId") or "unknown",
        status=_REVIEW_STATUS.get(fact.event_class or "", "completed"),
        evidence_ids=evidence_ids(fact),
        sequence=fact.sequence,
        verdict=_text(fact.payload, ("verdict",)),
        reviewer=_text(fact.payload, ("reviewer",)),
        summary=detail_of(_text(fact.payload, ("summary",))),
        created_at=fact.created_at,
    )


_BY_CLASS: Final[dict[str, tuple[str, Build]]] = {
    "test.completed": (VERIFICATIONS, _verification),
    "benchmark.trial.completed": (VERIFICATIONS, _verification),
    "benchmark.trial.failed": (VERIFICATIONS, _verification),
    "evidence.changed": (VERIFICATIONS, _evidence),
}
_BY_FAMILY: Final[dict[str, tuple[str, Build]]] = {
    "action": (DECISIONS, _decision),
    "context": (CONTEXT, _context),
    "history": (CONTEXT, _context),
    "limit": (DECISIONS, _decision),
    "permission": (DECISIONS, _decision),
    "policy": (DECISIONS, _decision),
    "quota": (DECISIONS, _decision),
    "rate_limit": (DECISIONS, _decision),
    "review": (REVIEWS, _review),
    "routing": (DECISIONS, _decision),
    "sandbox": (DECISIONS, _decision),
}


def fact_row(fact: Fact) -> tuple[str, bytes] | None:
    """The section that a fact belongs to by itself, and its row there."""
    built = _builder(fact.event_class or "")
    row = built and built[1](fact)
    return (built[0], msgspec.json.encode(row)) if built and row else None


@lru_cache(maxsize=1024)
def _builder(event_class: str) -> tuple[str, Build] | None:
    family = event_class.partition(".")[0]
    return _BY_CLASS.get(event_class) or _BY_FAMILY.get(family)


def _text(payload: dict[str, Any], names: tuple[str, ...]) -> str | None:
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)
