"""Threads, and what belongs to them: projects, conversations, artifacts, tasks, previews, packs.

Two threads may use one id, and neither may change the row of the other: the first thread that uses
an id has it as it is; the same id of another thread stands behind that thread's own and a tilde.
Lists name things and where they are; the whole of each is in the projection of its thread.
"""

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from factwire.facts import Fact, id_of, to_person
from factwire.facts.classes import payloads
from factwire.facts.json_values import objects_of, text_at
from factwire.facts.resources import (
    Artifact,
    Conversation,
    EvidenceRow,
    HistoryRemoval,
    Preview,
    Project,
    RetentionRun,
    Task,
    Thread,
    ThreadRow,
    ThreadStatus,
)
from factwire.projection.payload_fields import read_payload, ref_text, subagent_of
from factwire.projection.tasks import TASK_STATES
from factwire.serving.envelopes import ThreadPlace, run_id_of
from factwire.serving.paging import RowTable

if TYPE_CHECKING:
    from factwire.edge.records.edge_records import Records


R = TypeVar("R", bound=ThreadRow)


def own_key(thread_id: str | None, bare: str) -> str:
    """The id that names the row of one thread alone: what is in front of its first tilde is the
    thread.
    """
    thread = (thread_id or "").replace("%", "%25").replace("~", "%7E")
    return f"{thread}~{bare}"


def key_of(table: RowTable[R], thread_id: str | None, bare: str) -> str:
    """The id under which a thread's own row is kept: the one that facts have, unless another thread
    has it too or it could be taken for a row of another thread.
    """
    own = own_key(thread_id, bare)
    if "~" in bare or own in table:
        return own
    row = table.get(bare)
    return bare if row is None or row.thread_id == thread_id else own


def row_of(table: RowTable[R], thread_id: str | None, bare: str | None) -> R | None:
    """A thread's own row, to read."""
    return None if bare is None else table.get(key_of(table, thread_id, bare))


def edit_row(table: RowTable[R], thread_id: str | None, bare: str | None) -> R | None:
    """A thread's own row, to change."""
    return None if bare is None else table.edit(key_of(table, thread_id, bare))


def find_row(table: RowTable[R], name: str) -> R | None:
    """The row with an id as it is listed, or with the id that names a thread's own, to read."""
    row, bare = table.get(name), name.partition("~")[2]
    if row is not None or not bare:
        return row
    row = table.get(bare)
    return row if row is not None and own_key(row.thread_id, bare) == name else None


def bare_id(row: ThreadRow, key: str) -> str:
    """The id that facts have, of a row that is kept under this one."""
    return key.removeprefix(own_key(row.thread_id, ""))


class PlacedThread(msgspec.Struct, kw_only=True):
    """Where a thread belongs, also of one that was deleted: its events stay in the streams."""

    seq: int
    place: ThreadPlace = ThreadPlace()
    is_deleted: bool = False


class PendingRemoval(msgspec.Struct, kw_only=True):
    """What retention is to remove of a thread: its facts up to the seq `through`."""

    seq: int
    through: int


class ShortenedThread(msgspec.Struct, kw_only=True):
    """A thread of which facts were to go by the fact at `seq`."""

    seq: int


class LastRetention(msgspec.Struct, kw_only=True):
    """The last run of retention that removed something."""

    seq: int
    run: RetentionRun


LAST: Final = "last"
"""The key of the one row of `LastRetention`."""


_STATUSES: Final[dict[str, ThreadStatus]] = {"active": "active", "archived": "archived"}


def thread_of(fact: Fact) -> str | None:
    return id_of(fact, "threadId")


def note_thread(records: "Records", seq: int, fact: Fact, thread_id: str | None) -> None:
    """Know a thread from its first fact on, and what each later one says of its place."""
    if thread_id is None or fact.event_class == "thread.deleted":
        return
    row = records.threads.edit(thread_id)
    if row is None:
        row = records.threads.add(
            thread_id,
            Thread(
                seq=seq,
                created_at=fact.created_at,
                updated_at=fact.created_at,
                thread_id=thread_id,
                status="active",
                activity="idle",
                runtime_id=fact.runtime_id,
            ),
        )
    row.updated_at = fact.created_at
    row.project_id = row.project_id or id_of(fact, "projectId")
    row.conversation_id = row.conversation_id or id_of(fact, "conversationId")
    known = records.place_of(thread_id)
    place = known or ThreadPlace()
    if row.project_id != place.project_id:
        place = place._replace(project_id=row.project_id, project_seq=seq)
    if row.conversation_id != place.conversation_id:
        place = place._replace(conversation_id=row.conversation_id, conversation_seq=seq)
    if place != known:
        records.places.add(thread_id, PlacedThread(seq=seq, place=place))


def _describe_thread(records: "Records", _: int, fact: Fact) -> None:
    row = records.threads.edit(thread_of(fact) or "")
    if row is None:
        return
    payload = fact.payload
    row.title = text_at(payload, "title") or row.title
    row.agent_id = text_at(payload, "agentId") or row.agent_id
    row.parent_thread_id = text_at(payload, "parentThreadId") or row.parent_thread_id
    row.from_item_id = text_at(payload, "fromItemId") or row.from_item_id
    row.status = _STATUSES.get(text_at(payload, "status") or "", row.status)
    row.private = row.private or payload.get("private") is True
    if fact.event_class != "thread.updated":
        row.by = to_person(payload.get("by")) or row.by


def _delete_thread(records: "Records", seq: int, fact: Fact) -> None:
    thread_id = thread_of(fact)
    if thread_id is None:
        return
    place = records.place_of(thread_id) or ThreadPlace()
    records.places.add(thread_id, PlacedThread(seq=seq, place=place, is_deleted=True))
    remove_rows(records, thread_id)


def remove_rows(records: "Records", thread_id: str) -> None:
    """Take a thread and all that belongs to it off the lists."""
    records.threads.remove(thread_id)
    records.marked_turns.remove(thread_id)
    for table in (
        records.runs,
        records.approvals,
        records.artifacts,
        records.tasks,
        records.previews,
        records.evidence,
    ):
        for place, _ in list(table.newest_by_key(thread_id=thread_id)):
            table.remove(place.key)


def _note_removal(records: "Records", seq: int, fact: Fact) -> None:
    """The beginning of a thread goes; its row stays as it was listed."""
    payload = read_payload(fact, payloads.HistoryRemovalPayload)
    thread_id = payload.about_thread
    if thread_id is None:
        return
    records.removals.add(thread_id, PendingRemoval(seq=seq, through=payload.through or 0))
    records.shortened.add(thread_id, ShortenedThread(seq=seq))
    if records.is_deleted(thread_id) or payload.thread is None:
        return
    row = msgspec.convert(payload.thread, Thread)
    row.history_removed = msgspec.convert(payload.removal, HistoryRemoval)
    records.threads.add(thread_id, row)
    place = ThreadPlace(
        project_id=row.project_id,
        project_seq=row.seq,
        conversation_id=row.conversation_id,
        conversation_seq=row.seq,
    )
    records.places.add(thread_id, PlacedThread(seq=seq, place=place))


def _note_retention(records: "Records", seq: int, fact: Fact) -> None:
    payload = read_payload(fact, payloads.RetentionPayload)
    pending = payload.pending or ()
    for thread_id in records.pending_removals():
        if thread_id not in pending:
            records.removals.remove(thread_id)
    if payload.run is not None:
        run = msgspec.convert(payload.run, RetentionRun)
        records.retention_runs.add(LAST, LastRetention(seq=seq, run=run))


REMOVAL_HANDLERS = {"history.removed": _note_removal, "retention.completed": _note_retention}

THREAD_HANDLERS = {
    "thread.created": _describe_thread,
    "thread.started": _describe_thread,
    "thread.updated": _describe_thread,
    "thread.forked": _describe_thread,
    "thread.deleted": _delete_thread,
}


def _update_project(records: "Records", seq: int, fact: Fact) -> None:
    project_id = id_of(fact, "projectId")
    if project_id is None:
        return
    payload = fact.payload
    row = records.projects.edit(project_id) or records.projects.add(
        project_id,
        Project(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            project_id=project_id,
            name=text_at(payload, "name") or project_id,
            by=to_person(payload.get("by")),
        ),
    )
    row.updated_at = fact.created_at
    row.name = text_at(payload, "name") or row.name
    row.work_dir = text_at(payload, "workDir") or row.work_dir


def _remove_project(records: "Records", _: int, fact: Fact) -> None:
    project_id = id_of(fact, "projectId")
    if project_id is not None:
        records.projects.remove(project_id)


def _add_conversation(records: "Records", seq: int, fact: Fact) -> None:
    conversation_id = id_of(fact, "conversationId")
    if conversation_id is None or records.conversations.get(conversation_id) is not None:
        return
    records.conversations.add(
        conversation_id,
        Conversation(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            conversation_id=conversation_id,
            title=text_at(fact.payload, "title"),
            project_id=id_of(fact, "projectId"),
            by=to_person(fact.payload.get("by")),
        ),
    )


def _add_member(records: "Records", _: int, fact: Fact) -> None:
    row = records.conversations.edit(id_of(fact, "conversationId") or "")
    member_id = text_at(fact.payload, "memberId")
    if row is not None and member_id is not None:
        row.members[member_id] = text_at(fact.payload, "memberType") or "unknown"
        row.updated_at = fact.created_at


PROJECT_HANDLERS = {
    "project.created": _update_project,
    "project.updated": _update_project,
    "project.deleted": _remove_project,
    "conversation.created": _add_conversation,
    "conversation.member.added": _add_member,
}


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


def _update_artifact(records: "Records", seq: int, fact: Fact) -> None:
    bare, thread_id = id_of(fact, "artifactId"), thread_of(fact)
    if bare is None:
        return
    artifact_id = key_of(records.artifacts, thread_id, bare)
    fields = read_payload(fact, payloads.ArtifactPayload)
    row = records.artifacts.edit(artifact_id)
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
    row.status = fields.status or _ARTIFACT_STATUS.get(fact.event_class or "", "updated")
    row.kind = fields.kind or ("file" if fact.event_class == "file.changed" else row.kind)
    row.title = fields.title or row.title
    row.version_id = fields.version_id or row.version_id
    row.media_type = fields.media_type or row.media_type
    row.content_ref = ref_text(fields.content_ref) or row.content_ref


def _add_forked_artifacts(records: "Records", seq: int, fact: Fact) -> None:
    """The artifacts that a fork has from its parent are listed with the fork, too."""
    if text_at(fact.payload, "originThreadId") is None:
        return
    thread_id = thread_of(fact)
    for fields in objects_of(fact.payload.get("artifacts")):
        bare = text_at(fields, "artifactId")
        if bare is None:
            continue
        artifact_id = key_of(records.artifacts, thread_id, bare)
        if records.artifacts.get(artifact_id) is None:
            records.artifacts.add(
                artifact_id,
                Artifact(
                    seq=seq,
                    created_at=text_at(fields, "createdAt") or fact.created_at,
                    updated_at=text_at(fields, "updatedAt") or fact.created_at,
                    artifact_id=artifact_id,
                    status=text_at(fields, "status") or "updated",
                    thread_id=thread_id,
                    project_id=fact.project_id,
                    kind=text_at(fields, "kind") or "unknown",
                    title=text_at(fields, "title"),
                    version_id=text_at(fields, "versionId"),
                    media_type=text_at(fields, "mediaType"),
                    content_ref=text_at(fields, "contentRef"),
                ),
            )


def _update_task(records: "Records", seq: int, fact: Fact) -> None:
    bare, thread_id = id_of(fact, "taskId"), thread_of(fact)
    if bare is None:
        return
    task_id = key_of(records.tasks, thread_id, bare)
    fields = read_payload(fact, payloads.TaskPayload)
    row = records.tasks.edit(task_id)
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
    row.status = TASK_STATES.get(fact.event_class or "") or fields.status or row.status
    row.title = fields.title or fields.objective or row.title
    row.parent_task_id = id_of(fact, "parentTaskId") or row.parent_task_id
    row.subagent_id = subagent_of(fact) or row.subagent_id


def _update_preview(records: "Records", seq: int, fact: Fact) -> None:
    bare = text_at(fact.payload, "previewId")
    if bare is None:
        return
    preview_id = key_of(records.previews, thread_of(fact), bare)
    row = records.previews.edit(preview_id) or records.previews.add(
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
            by=to_person(fact.payload.get("by")),
        ),
    )
    row.updated_at = fact.created_at
    row.status = "ready" if fact.event_class == "preview.ready" else "stopped"
    row.url = text_at(fact.payload, "url") if row.status == "ready" else None


def _update_evidence(records: "Records", seq: int, fact: Fact) -> None:
    bare, fields = id_of(fact, "evidenceId"), read_payload(fact, payloads.EvidencePayload)
    if bare is None or fields.export_ref is None:
        return
    thread_id = thread_of(fact) or text_at(fact.payload, "aboutThread")
    evidence_id = key_of(records.evidence, thread_id, bare)
    row = records.evidence.edit(evidence_id) or records.evidence.add(
        evidence_id,
        EvidenceRow(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            evidence_id=evidence_id,
            status="exported",
            thread_id=thread_id,
            project_id=fact.project_id,
            by=to_person(fact.payload.get("by")),
        ),
    )
    row.updated_at = fact.created_at
    row.status = fields.status or "exported"
    row.export_ref = ref_text(fields.export_ref)


def _run_key(records: "Records", fact: Fact) -> str | None:
    run_id = run_id_of(fact)
    return None if run_id is None else key_of(records.runs, thread_of(fact), run_id)


ARTIFACT_HANDLERS = {
    **dict.fromkeys(_ARTIFACT_CLASSES, _update_artifact),
    "history.window.loaded": _add_forked_artifacts,
    **dict.fromkeys(TASK_STATES, _update_task),
    "preview.ready": _update_preview,
    "preview.stopped": _update_preview,
    "evidence.exported": _update_evidence,
}
