"""Classes of what a model is given and what comes of it: context, history, artifacts, evidence."""

from typing import Final

from factwire.facts.classes.payloads import ArtifactPayload, ContextPayload, EvidencePayload
from factwire.facts.classes.required_fields import ARTIFACT, EVIDENCE, REVIEW
from factwire.facts.classes.specification import Family, row

FAMILIES: Final = (
    Family("context", kind="context", payload=ContextPayload),
    Family("history", payload=ContextPayload),
    Family("artifact", kind="draft", payload=ArtifactPayload, requires=(ARTIFACT,)),
    Family("evidence", kind="evidence", payload=EvidencePayload, requires=(EVIDENCE,)),
    Family("review", kind="evidence", payload=EvidencePayload, requires=(EVIDENCE, REVIEW)),
)  # fmt: skip

CLASSES: Final = (
    # context and history
    row("context.resolved", "context turn preparing runtime_status snapshot", "context.changed",
        is_execution=True),
    row("context.attached", "context turn preparing composer snapshot", "context.changed"),
    row("context.failed", "context turn failed diagnostics diagnostics_log", "context.changed diagnostic.changed"),
    row("context.compaction.started", "context thread preparing inline_process transcript", "context.compaction.started"),
    row("context.compaction.completed", "context thread completed inline_process transcript", "context.compaction.completed"),
    row("context.compaction.failed", "context thread failed diagnostics diagnostics_log", "context.changed diagnostic.changed"),
    row("history.compacted", "context thread completed inline_process transcript", "context.compaction.completed"),
    row("history.window.loaded", "session thread hydrating conversation snapshot", "messages.snapshot"),
    row("history.reconstructed", "session thread hydrating conversation snapshot", "session.hydrated messages.snapshot"),
    row("history.rollback.started", "session thread reconciling runtime_status transcript", "run.status"),
    row("history.rollback.completed", "session thread reconciling conversation transcript", "messages.snapshot"),
    # artifacts and evidence
    row("artifact.changed", "artifact artifact producing artifact_workspace artifact_store", "artifact.changed",
        aliases=("artifact.snapshot",)),
    row("artifact.created", "artifact artifact producing artifact_workspace artifact_store", "artifact.created"),
    row("artifact.updated", "artifact artifact producing artifact_workspace artifact_store", "artifact.updated"),
    row("artifact.versioned", "artifact artifact producing artifact_workspace artifact_store", "artifact.version.created"),
    row("artifact.preview.ready", "artifact artifact producing artifact_workspace artifact_store", "artifact.preview.ready"),
    row("artifact.diff.ready", "artifact artifact producing artifact_workspace artifact_store", "artifact.diff.ready"),
    row("artifact.export.started", "artifact artifact producing artifact_workspace artifact_store", "artifact.export.started"),
    row("artifact.export.completed", "artifact artifact completed artifact_workspace artifact_store", "artifact.export.completed"),
    row("artifact.exported", "artifact artifact completed artifact_workspace artifact_store", "artifact.export.completed"),
    row("artifact.failed", "artifact artifact failed artifact_workspace artifact_store", "artifact.failed"),
    row("artifact.deleted", "artifact artifact archived artifact_workspace artifact_store", "artifact.deleted"),
    row("evidence.changed", "evidence evidence reviewing timeline_evidence evidence_pack", "evidence.changed"),
    row("evidence.exported", "evidence evidence completed timeline_evidence evidence_pack", "evidence.changed"),
    row("review.requested", "evidence evidence reviewing review_lane evidence_pack", "review.requested"),
    row("review.verdict", "evidence evidence completed review_lane evidence_pack", "review.completed evidence.changed"),
    row("review.completed", "evidence evidence completed review_lane evidence_pack", "review.completed"),
)  # fmt: skip
