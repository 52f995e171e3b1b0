"""Artifacts and evidence: what an agent made, and what vouches for it: citations, reviews and
trials.

Content is kept as refs; only a diff that a fact states inline is shown as it is, as far as there is
room. What no fact says reads `unknown`; a verdict is only what a fact states.
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import ArtifactPayload, BenchmarkPayload, EvidencePayload
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import text_at
from factwire.facts.refs import artifact_refs_of, evidence_refs_of, ref_at, refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import tools
from factwire.projection.limits import DIFF_CHARACTERS
from factwire.projection.messages import (
    ArtifactCardPart,
    EvidenceCitationPart,
    add_reference,
    message_beside,
)
from factwire.projection.payload_fields import (
    other_id,
    read_payload,
    shorten_detail,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


ARTIFACTS_PATH: Final = "/artifacts"

_ARTIFACT_STATUS: Final = {
    "artifact.created": "created",
    "artifact.failed": "failed",
    "artifact.deleted": "deleted",
}
_EXPORT_STATUS: Final = {
    "artifact.export.started": "running",
    "artifact.export.completed": "completed",
    "artifact.exported": "completed",
}
_ARTIFACT_REFS: Final = {
    "content_ref": "contentRef",
    "preview_ref": "previewRef",
    "diff_ref": "diffRef",
    "export_ref": "exportRef",
}
_BARE_REFS: Final = {
    "artifact.preview.ready": "preview_ref",
    "artifact.diff.ready": "diff_ref",
    "artifact.export.started": "export_ref",
    "artifact.export.completed": "export_ref",
    "artifact.exported": "export_ref",
}
"""What a field that is just called `ref` is; of any other class it is the content."""

_REF_KEYS: Final = frozenset({"ref", *_ARTIFACT_REFS, *_ARTIFACT_REFS.values()})
_CHANGES: Final = frozenset({"artifact.changed", "artifact.versioned", "file.changed"})


_MENTIONS: Final = frozenset({"artifactId", "artifact_id", "artifactRefs", "artifact_refs"})
"""Payload keys that name an artifact."""


class ArtifactVersion(View):
    """One version; what it holds is behind its refs."""

    version_id: str
    event_id: str
    content_ref: str | None = None
    preview_ref: str | None = None
    diff: str | None = None
    diff_ref: str | None = None
    diff_truncated: bool | None = None
    created_at: str | None = None


class ArtifactState(View):
    """One thing that was made. `kind` is what its facts say, else `unknown`. An inline diff is with
    its version, and here where its fact names none. `origin_thread_id` is the thread that a fork
    has it from.
    """

    artifact_id: str
    kind: str
    status: str
    versions: list[ArtifactVersion]
    title: str | None = None
    owner: str | None = None
    media_type: str | None = None
    version_id: str | None = None
    path: str | None = None
    content_ref: str | None = None
    preview_ref: str | None = None
    diff: str | None = None
    diff_ref: str | None = None
    diff_truncated: bool | None = None
    export_status: str | None = None
    export_ref: str | None = None
    refs: list[str] | None = None
    source: str | None = None
    message: str | None = None
    failure_category: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    origin_thread_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


def update_artifacts(draft: "StateDraft", fact: Fact) -> None:
    """Any artifact fact, and any other that names an artifact it made."""
    for artifact_id in artifact_ids(fact):
        artifact, path = _ensure_artifact(draft, fact, artifact_id)
        _describe_artifact(draft, artifact, path, fact)
        _add_card(draft, fact, artifact)
        tools.link_artifact(draft, fact, artifact_id)


def mention_artifacts(draft: "StateDraft", fact: Fact) -> None:
    """A tool fact that names an artifact makes its card appear; it says nothing else about it."""
    for artifact_id in artifact_ids(fact):
        artifact, _ = _ensure_artifact(draft, fact, artifact_id)
        _add_card(draft, fact, artifact)
        tools.link_artifact(draft, fact, artifact_id)


def artifact_ids(fact: Fact) -> list[str]:
    """The artifacts that a fact is about: its id, or else its refs."""
    if not (fact.artifact_id or fact.artifact_refs or _MENTIONS & fact.payload.keys()):
        return []
    named = fact.artifact_id or other_id(fact, "artifactId", "artifact_id")
    return [named] if named else list(dict.fromkeys(artifact_refs_of(fact)))


def set_diff(
    draft: "StateDraft", view: View, path: str, fact: Fact, ref: str | None = None
) -> None:
    """Show the diff that a fact states, inline or behind a ref, in place of the one before; `ref`
    is for a fact that states it in another field. A fact without a diff changes nothing.
    """
    text, ref = text_at(fact.payload, "diff"), ref or ref_at(fact.payload, "diffRef")
    if text is None and ref is None:
        return
    is_cut = text is not None and len(text) > DIFF_CHARACTERS
    if text is not None and is_cut:
        lines, _, _ = text[:DIFF_CHARACTERS].rpartition("\n")
        text = f"{lines}\n"
    draft.put(view, path, "diff", text)
    draft.put(view, path, "diff_ref", ref)
    draft.put(view, path, "diff_truncated", is_cut or None)


def _ensure_artifact(
    draft: "StateDraft", fact: Fact, artifact_id: str
) -> tuple[ArtifactState, str]:
    path = f"{ARTIFACTS_PATH}/{escape_key(artifact_id)}"
    existing = draft.state.artifacts.get(artifact_id)
    if existing is not None:
        _add_makers(draft, existing, path, fact)
        return existing, path
    artifact = ArtifactState(
        artifact_id=artifact_id,
        kind=UNKNOWN,
        status=UNKNOWN,
        versions=[],
        tool_call_id=tool_of(fact),
        turn_id=turn_of(fact),
        task_id=task_of(fact),
        subagent_id=subagent_of(fact),
        created_at=fact.created_at,
    )
    return draft.create(draft.state.artifacts, ARTIFACTS_PATH, artifact_id, artifact), path


def _add_makers(draft: "StateDraft", artifact: ArtifactState, path: str, fact: Fact) -> None:
    """Who made an artifact, where the facts before did not say."""
    if artifact.task_id is None:
        draft.fill(artifact, path, task_id=task_of(fact))
    if artifact.subagent_id is None:
        draft.fill(artifact, path, subagent_id=subagent_of(fact))
    if artifact.tool_call_id is None:
        draft.fill(artifact, path, tool_call_id=tool_of(fact))


def _describe_artifact(draft: "StateDraft", artifact: ArtifactState, path: str, fact: Fact) -> None:
    payload, name = read_payload(fact, ArtifactPayload), fact.event_class or ""
    status = _ARTIFACT_STATUS.get(name) or payload.status or _status_of_change(artifact, name)
    if artifact.status == "failed" and status is not None:
        draft.put(artifact, path, "message", None)
        draft.put(artifact, path, "failure_category", None)
    refs = _refs_by_field(fact)
    draft.fill(
        artifact,
        path,
        kind=payload.kind or ("file" if name.startswith("file.") else None),
        status=status,
        title=payload.title,
        owner=fact.agent_id,
        media_type=payload.media_type,
        path=text_at(fact.payload, "path"),
        export_status=_EXPORT_STATUS.get(name),
        **refs,
        source=payload.source,
        message=payload.message,
        failure_category=payload.failure_category,
        updated_at=fact.created_at,
    )
    if name == "artifact.failed" and artifact.export_status == "running":
        draft.put(artifact, path, "export_status", "failed")
    named = {*refs.values(), *artifact_ids(fact)}
    draft.extend(artifact, path, "refs", [ref for ref in refs_of(fact) if ref not in named])
    if payload.version_id is None:
        set_diff(draft, artifact, path, fact, refs["diff_ref"])
    else:
        draft.put(artifact, path, "version_id", payload.version_id)
        _add_version(draft, artifact, path, fact, refs)


def _refs_by_field(fact: Fact) -> dict[str, str | None]:
    """The refs of an artifact fact by the field that shows each."""
    if _REF_KEYS.isdisjoint(fact.payload):
        return dict.fromkeys(_ARTIFACT_REFS)
    refs = {field: ref_at(fact.payload, name) for field, name in _ARTIFACT_REFS.items()}
    field = _BARE_REFS.get(fact.event_class or "", "content_ref")
    return refs if refs[field] else {**refs, field: ref_at(fact.payload, "ref")}


def _status_of_change(artifact: ArtifactState, name: str) -> str | None:
    """A change without a status of its own: it is there again, whatever became of it before."""
    if not name.startswith(("artifact.", "file.")) or name in _EXPORT_STATUS:
        return None
    gone = artifact.status in ("deleted", "failed") and name in _CHANGES
    if gone or artifact.status == UNKNOWN or name == "artifact.updated":
        return "updated" if name in ("artifact.updated", "artifact.versioned") else "changed"
    return None


def _add_version(
    draft: "StateDraft",
    artifact: ArtifactState,
    path: str,
    fact: Fact,
    refs: dict[str, str | None],
) -> None:
    version_id, rows = artifact.version_id or "", artifact.versions
    places = draft.memory.index_list(f"{path}/versions", rows, attrgetter("version_id"))
    index = places.setdefault(version_id, len(rows))
    if index == len(rows):
        version = ArtifactVersion(
            version_id=version_id, event_id=fact.id, created_at=fact.created_at
        )
        draft.push(artifact.versions, f"{path}/versions", version)
    version, place = artifact.versions[index], f"{path}/versions/{index}"
    draft.fill(version, place, content_ref=refs["content_ref"], preview_ref=refs["preview_ref"])
    set_diff(draft, version, place, fact, refs["diff_ref"])


def _add_card(draft: "StateDraft", fact: Fact, artifact: ArtifactState) -> None:
    if artifact.turn_id is None:
        return
    part = ArtifactCardPart(
        part_id=f"artifact:{artifact.artifact_id}",
        message_id=message_beside(draft, fact),
        artifact_id=artifact.artifact_id,
        version_id=artifact.version_id,
    )
    handle = add_reference(draft, fact, part)
    draft.fill(handle.part, handle.path, version_id=artifact.version_id)


EVIDENCE_PATH: Final = "/evidence"
EVIDENCE_ITEMS_PATH: Final = "/evidence/items"
REVIEWS_PATH: Final = "/evidence/reviews"
TRIALS_PATH: Final = "/evidence/trials"

_EVIDENCE_STATUS: Final = {"evidence.exported": "exported"}
_EVIDENCE_REFS: Final = {
    "summary_ref": "summaryRef",
    "export_ref": "exportRef",
    "replay_ref": "replayRef",
    "review_ref": "reviewRef",
    "pack_ref": "packRef",
}
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
    replay_ref: str | None = None
    review_ref: str | None = None
    pack_ref: str | None = None
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
    summary_ref: str | None = None
    review_ref: str | None = None
    refs: list[str] | None = None
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
    refs: list[str] | None = None
    failure_category: str | None = None


class Evidence(View):
    """Evidence, reviews and trials, each by id."""

    items: dict[str, EvidenceItem]
    reviews: dict[str, Review]
    trials: dict[str, Trial]


def empty_evidence() -> Evidence:
    return Evidence(items={}, reviews={}, trials={})


def update_evidence(draft: "StateDraft", fact: Fact) -> None:
    """evidence.*: what is known of each piece that the fact names."""
    payload = read_payload(fact, EvidencePayload)
    for evidence_id in evidence_ids(fact):
        item, path = _ensure_evidence(draft, fact, evidence_id)
        _describe_evidence(draft, item, path, fact, payload)
        _cite_evidence(draft, fact, item)


def record_review(draft: "StateDraft", fact: Fact) -> None:
    """review.*: the review itself, and the verdict on the evidence it is about."""
    payload = read_payload(fact, EvidencePayload)
    key = fact.review_id or other_id(fact, "reviewId", "review_id") or ""
    reviews, path = draft.state.evidence.reviews, f"{REVIEWS_PATH}/{escape_key(key)}"
    review = reviews.get(key)
    if review is None:
        review = Review(
            review_id=key,
            status=UNKNOWN,
            turn_id=turn_of(fact),
            task_id=task_of(fact),
            subagent_id=subagent_of(fact),
        )
        draft.create(reviews, REVIEWS_PATH, key, review)
    status = _REVIEW_STATUS[fact.event_class or ""]
    existing = evidence_ids(fact)
    draft.put(review, path, "status", status)
    if status == "requested":
        draft.put(review, path, "verdict", None)
        draft.put(review, path, "completed_at", None)
        draft.put(review, path, "requested_at", fact.created_at)
    draft.fill(
        review,
        path,
        verdict=payload.verdict,
        reviewer=payload.reviewer,
        summary=shorten_detail(payload.summary),
        summary_ref=ref_at(fact.payload, "summaryRef"),
        review_ref=ref_at(fact.payload, "reviewRef"),
        completed_at=fact.created_at if status == "completed" else None,
    )
    draft.extend(review, path, "refs", refs_of(fact))
    draft.extend(review, path, "evidence_ids", existing)
    for evidence_id in existing:
        item, place = _ensure_evidence(draft, fact, evidence_id)
        draft.fill(item, place, verdict=payload.verdict, kind=payload.kind, **_evidence_refs(fact))
        draft.extend(item, place, "review_ids", [key])
        _cite_evidence(draft, fact, item)


def record_benchmark(draft: "StateDraft", fact: Fact) -> None:
    payload = read_payload(fact, BenchmarkPayload)
    if payload.trial_id is not None:
        _record_trial(draft, fact, payload, payload.trial_id)
    if evidence_ids(fact):
        update_evidence(draft, fact)


def evidence_ids(fact: Fact) -> list[str]:
    """The evidence that a fact is about: its id, or else its refs."""
    named = fact.evidence_id or other_id(fact, "evidenceId", "evidence_id")
    return [named] if named else list(dict.fromkeys(evidence_refs_of(fact)))


def _evidence_refs(fact: Fact) -> dict[str, str | None]:
    """The refs of an evidence or review fact by the field that shows each; a bare `ref` is an
    export.
    """
    refs = {field: ref_at(fact.payload, name) for field, name in _EVIDENCE_REFS.items()}
    return {**refs, "export_ref": refs["export_ref"] or ref_at(fact.payload, "ref")}


def _record_trial(draft: "StateDraft", fact: Fact, payload: BenchmarkPayload, key: str) -> None:
    trials, path = draft.state.evidence.trials, f"{TRIALS_PATH}/{escape_key(key)}"
    if key not in trials:
        draft.create(trials, TRIALS_PATH, key, Trial(trial_id=key, status=UNKNOWN))
    draft.fill(
        trials[key],
        path,
        status=_TRIAL_STATUS.get(fact.event_class or ""),
        dataset=payload.dataset,
        task=payload.task,
        configuration=payload.configuration,
        reward=payload.reward,
        trajectory_ref=ref_at(fact.payload, "trajectoryRef"),
        failure_category=payload.failure_category,
    )
    draft.extend(trials[key], path, "refs", refs_of(fact))


def _ensure_evidence(draft: "StateDraft", fact: Fact, evidence_id: str) -> tuple[EvidenceItem, str]:
    path = f"{EVIDENCE_ITEMS_PATH}/{escape_key(evidence_id)}"
    existing = draft.state.evidence.items.get(evidence_id)
    if existing is not None:
        return existing, path
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
    return draft.create(draft.state.evidence.items, EVIDENCE_ITEMS_PATH, evidence_id, item), path


def _describe_evidence(
    draft: "StateDraft", item: EvidenceItem, path: str, fact: Fact, payload: EvidencePayload
) -> None:
    draft.fill(
        item,
        path,
        kind=payload.kind,
        status=_EVIDENCE_STATUS.get(fact.event_class or "") or payload.status or "available",
        title=payload.title,
        verdict=payload.verdict,
        summary=shorten_detail(payload.summary),
        url=payload.url,
        **_evidence_refs(fact),
        updated_at=fact.created_at,
    )
    draft.extend(item, path, "refs", refs_of(fact))


def _cite_evidence(draft: "StateDraft", fact: Fact, item: EvidenceItem) -> None:
    if item.turn_id is None:
        return
    part = EvidenceCitationPart(
        part_id=f"evidence:{item.evidence_id}",
        message_id=message_beside(draft, fact),
        evidence_id=item.evidence_id,
        verdict=item.verdict,
    )
    handle = add_reference(draft, fact, part)
    draft.fill(handle.part, handle.path, verdict=item.verdict)
