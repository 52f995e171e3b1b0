"""Evidence and reviews: citations, traces, verdicts, and who asked for a review."""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Benchmark
from factwire.facts.payloads import Evidence as EvidencePayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.messages import place_for, reference
from factwire.projection.parts import EvidenceCitationPart
from factwire.projection.pointers import escaped
from factwire.projection.reading import (
    detail_of,
    joined,
    other_id,
    read,
    ref_text,
    refs_of,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
    words,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/evidence"
ITEMS: Final = "/evidence/items"
REVIEWS: Final = "/evidence/reviews"
TRIALS: Final = "/evidence/trials"

_STATUS: Final = {"evidence.exported": "exported"}
_REVIEW_STATUS: Final = {
    "review.requested": "requested",
    "review.verdict": "completed",
    "review.completed": "completed",
}
_TRIAL_STATUS: Final = {
    "benchmark.trial.started": "running",
    "benchmark.trial.completed": "completed",
    "benchmark.trial.failed": "failed",
}


class EvidenceItem(View):
    """One piece of evidence, behind its refs; a verdict is only what a fact says."""

    evidence_id: str
    kind: str
    status: str
    title: str | None = None
    verdict: str | None = None
    summary: str | None = None
    summary_ref: str | None = None
    export_ref: str | None = None
    url: str | None = None
    review_ids: list[str] | None = None
    refs: list[str] | None = None
    turn_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    tool_call_id: str | None = None
    trace_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class Review(View):
    """One review: asked for, and perhaps answered."""

    review_id: str
    status: str
    verdict: str | None = None
    reviewer: str | None = None
    summary: str | None = None
    evidence_ids: list[str] | None = None
    turn_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    requested_at: str | None = None
    completed_at: str | None = None


class Trial(View):
    """One trial of a benchmark."""

    trial_id: str
    status: str
    dataset: str | None = None
    task: str | None = None
    configuration: dict[str, Any] | None = None
    reward: float | None = None
    trajectory_ref: str | None = None
    failure_category: str | None = None


class Evidence(View):
    """Evidence, reviews and trials, each by id."""

    items: dict[str, EvidenceItem]
    reviews: dict[str, Review]
    trials: dict[str, Trial]


def nothing() -> Evidence:
    return Evidence(items={}, reviews={}, trials={})


def changed(canvas: "Canvas", fact: Fact) -> None:
    """evidence.*: what is known of each piece that the fact names."""
    said = read(fact, EvidencePayload)
    for evidence_id in evidence_ids(fact):
        item, path = _item(canvas, fact, evidence_id)
        _describe(canvas, item, path, fact, said)
        _cite(canvas, fact, item)


def reviewed(canvas: "Canvas", fact: Fact) -> None:
    """review.*: the review itself, and the verdict on the evidence it is about."""
    said = read(fact, EvidencePayload)
    key = fact.review_id or other_id(fact, "reviewId", "review_id") or ""
    reviews, path = canvas.state.evidence.reviews, f"{REVIEWS}/{escaped(key)}"
    review = reviews.get(key)
    if review is None:
        review = Review(
            review_id=key,
            status=UNKNOWN,
            turn_id=turn_of(fact),
            task_id=task_of(fact),
            subagent_id=subagent_of(fact),
            requested_at=fact.created_at,
        )
        canvas.create(reviews, REVIEWS, key, review)
    status = _REVIEW_STATUS[fact.event_class or ""]
    known = evidence_ids(fact)
    canvas.put(review, path, "status", status)
    if status == "requested":
        canvas.put(review, path, "verdict", None)
        canvas.put(review, path, "completed_at", None)
    canvas.fill(
        review,
        path,
        verdict=said.verdict,
        reviewer=said.reviewer,
        summary=detail_of(said.summary),
        evidence_ids=joined(review.evidence_ids, known),
        completed_at=fact.created_at if status == "completed" else None,
    )
    for evidence_id in known:
        item, place = _item(canvas, fact, evidence_id)
        canvas.fill(item, place, verdict=said.verdict, kind=said.kind)
        canvas.put(item, place, "review_ids", joined(item.review_ids, [key]))
        _cite(canvas, fact, item)


def benchmarked(canvas: "Canvas", fact: Fact) -> None:
    said = read(fact, Benchmark)
    if said.trial_id is not None:
        _trial(canvas, fact, said, said.trial_id)
    if evidence_ids(fact):
        changed(canvas, fact)


def evidence_ids(fact: Fact) -> list[str]:
    """The evidence that a fact is about: its id, or else its refs."""
    named = fact.evidence_id or other_id(fact, "evidenceId", "evidence_id")
    stated = fact.payload.get("evidenceRefs", fact.payload.get("evidence_refs"))
    refs = fact.evidence_refs or tuple(words(stated))
    return [named] if named else list(dict.fromkeys(refs))


def _trial(canvas: "Canvas", fact: Fact, said: Benchmark, key: str) -> None:
    trials, path = canvas.state.evidence.trials, f"{TRIALS}/{escaped(key)}"
    if key not in trials:
        canvas.create(trials, TRIALS, key, Trial(trial_id=key, status=UNKNOWN))
    canvas.fill(
        trials[key],
        path,
        status=_TRIAL_STATUS.get(fact.event_class or ""),
        dataset=said.dataset,
        task=said.task,
        configuration=said.configuration,
        reward=said.reward,
        trajectory_ref=ref_text(said.trajectory_ref),
        failure_category=said.failure_category,
    )


def _item(canvas: "Canvas", fact: Fact, evidence_id: str) -> tuple[EvidenceItem, str]:
    path = f"{ITEMS}/{escaped(evidence_id)}"
    known = canvas.state.evidence.items.get(evidence_id)
    if known is not None:
        return known, path
    item = EvidenceItem(
        evidence_id=evidence_id,
        kind=UNKNOWN,
        status=UNKNOWN,
        turn_id=turn_of(fact),
        run_id=fact.run_id,
        task_id=task_of(fact),
        subagent_id=subagent_of(fact),
        tool_call_id=tool_of(fact),
        trace_id=fact.trace_id,
        created_at=fact.created_at,
    )
    return canvas.create(canvas.state.evidence.items, ITEMS, evidence_id, item), path


def _describe(
    canvas: "Canvas", item: EvidenceItem, path: str, fact: Fact, said: EvidencePayload
) -> None:
    canvas.fill(
        item,
        path,
        kind=said.kind,
        status=_STATUS.get(fact.event_class or "") or said.status or "available",
        title=said.title,
        verdict=said.verdict,
        summary=detail_of(said.summary),
        summary_ref=ref_text(said.summary_ref),
        export_ref=ref_text(said.export_ref),
        url=said.url,
        refs=joined(item.refs, refs_of(fact)),
        updated_at=fact.created_at,
    )


def _cite(canvas: "Canvas", fact: Fact, item: EvidenceItem) -> None:
    if item.turn_id is None:
        return
    part = EvidenceCitationPart(
        part_id=f"evidence:{item.evidence_id}",
        message_id=place_for(canvas, fact),
        evidence_id=item.evidence_id,
        verdict=item.verdict,
    )
    handle = reference(canvas, fact, part)
    canvas.fill(handle.part, handle.path, verdict=item.verdict)
