"""Things that runs make and work on: artifacts, tasks, previews, evidence packs.

Lists name them and where they are; the whole of each is in the projection of its thread.
"""

from typing import TYPE_CHECKING, Final

from factwire.edge.events.ids import run_id_of
from factwire.edge.records.belonging import key_of
from factwire.edge.records.rows import Artifact, EvidenceRow, Preview, Task
from factwire.edge.records.threads import thread_of
from factwire.facts import Fact, id_of, payloads
from factwire.projection.reading import read, ref_text, subagent_of, word
from factwire.projection.tasks import STATES

if TYPE_CHECKING:
    from factwire.edge.records.records import Records

_ARTIFACT_STATUS: Final = {
    "artifact.created": "created",
    "artifact.failed": "failed",
    "artifact.deleted": "deleted",
}
_ARTIFACT_CLASSES: Final = (
    "artifact.changed",
    "artifact.created",
    "artifact.updated",
    "artifact.versioned",
    "artifact.preview.ready",
    "artifact.diff.ready",
    "artifact.export.started",
    "artifact.export.completed",
    "artifact.exported",
    "artifact.failed",
    "artifact.deleted",
    "file.changed",
)


def _artifact(records: "Records", seq: int, fact: Fact) -> None:
    bare, thread_id = id_of(fact, "artifactId"), thread_of(fact)
    if bare is None:
        return
    artifact_id = key_of(records.artifacts, thread_id, bare)
    said = read(fact, payloads.Artifact)
    row = records.artifacts.get(artifact_id)
    if row is None:
        row = records.artifacts.add(
            artifact_id,
            Artifact(
                seq=seq,
                created_at=fact.created_at,
                updated_at=fact.created_at,
                artifact_id=artifact_id,
                status="updated",
                thread_id=thread_id,
                project_id=fact.project_id,
                run_id=_run_key(records, fact),
            ),
        )
    row.updated_at = fact.created_at
    row.status = said.status or _ARTIFACT_STATUS.get(fact.event_class or "", "updated")
    row.kind = said.kind or ("file" if fact.event_class == "file.changed" else row.kind)
    row.title = said.title or row.title
    row.version_id = said.version_id or row.version_id
    row.media_type = said.media_type or row.media_type
    row.content_ref = ref_text(said.content_ref) or row.content_ref


def _task(records: "Records", seq: int, fact: Fact) -> None:
    bare, thread_id = id_of(fact, "taskId"), thread_of(fact)
    if bare is None:
        return
    task_id = key_of(records.tasks, thread_id, bare)
    said = read(fact, payloads.Task)
    row = records.tasks.get(task_id)
    if row is None:
        row = records.tasks.add(
            task_id,
            Task(
                seq=seq,
                created_at=fact.created_at,
                updated_at=fact.created_at,
                task_id=task_id,
                status="unknown",
                thread_id=thread_id,
                project_id=fact.project_id,
                run_id=_run_key(records, fact),
            ),
        )
    row.updated_at = fact.created_at
    row.status = STATES.get(fact.event_class or "") or said.status or row.status
    row.title = said.title or said.objective or row.title
    row.parent_task_id = id_of(fact, "parentTaskId") or row.parent_task_id
    row.subagent_id = subagent_of(fact) or row.subagent_id


def _preview(records: "Records", seq: int, fact: Fact) -> None:
    bare = word(fact.payload, "previewId")
    if bare is None:
        return
    preview_id = key_of(records.previews, thread_of(fact), bare)
    row = records.previews.get(preview_id) or records.previews.add(
        preview_id,
        Preview(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            preview_id=preview_id,
            status="ready",
            thread_id=thread_of(fact),
            project_id=fact.project_id,
            run_id=_run_key(records, fact),
            edge_id=fact.edge_id,
        ),
    )
    row.updated_at = fact.created_at
    row.status = "ready" if fact.event_class == "preview.ready" else "stopped"
    row.url = word(fact.payload, "url") if row.status == "ready" else None


def _pack(records: "Records", seq: int, fact: Fact) -> None:
    bare, said = id_of(fact, "evidenceId"), read(fact, payloads.Evidence)
    if bare is None or said.export_ref is None:
        return
    thread_id = thread_of(fact) or word(fact.payload, "aboutThread")
    evidence_id = key_of(records.evidence, thread_id, bare)
    row = records.evidence.get(evidence_id) or records.evidence.add(
        evidence_id,
        EvidenceRow(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            evidence_id=evidence_id,
            status="exported",
            thread_id=thread_id,
            project_id=fact.project_id,
        ),
    )
    row.updated_at = fact.created_at
    row.status = said.status or "exported"
    row.export_ref = ref_text(said.export_ref)


def _run_key(records: "Records", fact: Fact) -> str | None:
    run_id = run_id_of(fact)
    return None if run_id is None else key_of(records.runs, thread_of(fact), run_id)


HANDLERS = {
    **dict.fromkeys(_ARTIFACT_CLASSES, _artifact),
    **dict.fromkeys(STATES, _task),
    "preview.ready": _preview,
    "preview.stopped": _preview,
    "evidence.exported": _pack,
}
