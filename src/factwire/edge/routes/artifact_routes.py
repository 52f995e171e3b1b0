"""Things that runs make: artifacts, blobs, tasks, evidence; always by id, never by a path."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from litestar.status_codes import HTTP_201_CREATED

from factwire.edge.edge_context import EdgeContext
from factwire.edge.operations import evidence_operations
from factwire.edge.operations.evidence_operations import PackCheck
from factwire.edge.records.thread_records import bare_id, find_row
from factwire.edge.routes.api_types import (
    BlobBody,
    EvidenceBody,
)
from factwire.edge.routes.request_context import EdgeRequest, edge_of, new_id, person_of, states_of
from factwire.facts import InvalidRef, parse_ref
from factwire.facts.resources import (
    Artifact,
    ArtifactAnswer,
    EvidenceRow,
    ExportProgress,
    Page,
    StoredBlob,
    Task,
    TaskAnswer,
)
from factwire.journal.blobs import BlobMissing
from factwire.projection import TaskSnapshot, task_snapshot
from factwire.projection.artifacts import ArtifactState
from factwire.serving.asgi import Problem
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit, build_page
from factwire.serving.rest import declare_bytes, trace_of

InThread = Annotated[str | None, QueryParameter(name="threadId")]


@get("/v1/artifacts", tags=["artifacts"])
async def list_artifacts(
    request: EdgeRequest,
    thread_id: InThread = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Artifact]:
    """List artifacts, newest first."""
    edge = edge_of(request)
    return build_page(
        edge.cursor, edge.records.artifacts, after, limit, thread_id=thread_id, run_id=run_id
    )


@get("/v1/artifacts/{artifact_id:str}", tags=["artifacts"])
async def read_artifact(
    request: EdgeRequest, artifact_id: FromPath[str]
) -> ArtifactAnswer[ArtifactState]:
    """Get an artifact with its versions, from the projection of its thread."""
    row = _find_artifact(edge_of(request), artifact_id)
    seen = await states_of(request).now(row.thread_id or "")
    whole = seen.projection.state.artifacts.get(bare_id(row, artifact_id))
    return ArtifactAnswer(artifact=row, as_of=str(seen.cursor), details=whole)


@get("/v1/artifacts/{artifact_id:str}/content", tags=["artifacts"], opt=declare_bytes())
async def read_artifact_content(
    request: EdgeRequest,
    artifact_id: FromPath[str],
    version_id: Annotated[str | None, QueryParameter(name="versionId")] = None,
) -> Stream:
    """Download the content of an artifact; the newest version by default."""
    edge = edge_of(request)
    row = _find_artifact(edge, artifact_id)
    ref = row.content_ref
    if version_id is not None:
        seen = await states_of(request).now(row.thread_id or "")
        whole = seen.projection.state.artifacts.get(bare_id(row, artifact_id))
        versions = whole.versions if whole is not None else []
        ref = next((each.content_ref for each in versions if each.version_id == version_id), None)
    if ref is None:
        raise Problem(404, "content_unavailable", "the content of this artifact was not kept")
    return await _stream_attachment(edge, ref, f"artifact-{artifact_id}")


@post("/v1/blobs", status_code=HTTP_201_CREATED, tags=["artifacts"])
async def create_blob(request: EdgeRequest, data: JSONBody[BlobBody]) -> StoredBlob:
    """Store an attachment for a message, which refers to it by its ref; unused ones may be removed
    after a day.
    """
    stored = await edge_of(request).blobs.put(data.content, kind="artifact")
    return StoredBlob(ref=stored.ref, bytes=stored.bytes)


@get("/v1/blobs/{ref:str}", tags=["artifacts"], opt=declare_bytes())
async def read_blob(request: EdgeRequest, ref: FromPath[str]) -> Stream:
    """Download the content behind a ref."""
    return await _stream_attachment(edge_of(request), ref, ref.rpartition(":")[2][:16])


@get("/v1/tasks", tags=["tasks"])
async def list_tasks(
    request: EdgeRequest,
    thread_id: InThread = None,
    status: FromQuery[str | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Task]:
    """List the tasks of all threads, newest first."""
    edge = edge_of(request)
    return build_page(
        edge.cursor, edge.records.tasks, after, limit, thread_id=thread_id, status=status
    )


@get("/v1/tasks/{task_id:str}", tags=["tasks"])
async def read_task(request: EdgeRequest, task_id: FromPath[str]) -> TaskAnswer[TaskSnapshot]:
    """Get a task with its attempts, dependencies and progress."""
    row = find_row(edge_of(request).records.tasks, task_id)
    if row is None:
        raise Problem(404, "unknown_task", "no task has this id")
    seen = await states_of(request).now(row.thread_id or "")
    state = seen.projection.state
    bare = bare_id(row, task_id)
    whole = task_snapshot(state, bare) if bare in state.tasks else None
    return TaskAnswer(task=row, as_of=str(seen.cursor), snapshot=whole)


@post("/v1/evidence", status_code=HTTP_201_CREATED, tags=["evidence"])
async def export_evidence(request: EdgeRequest, data: JSONBody[EvidenceBody]) -> EvidenceRow:
    """Create a signed evidence pack of a thread."""
    return await evidence_operations.export_pack(
        edge_of(request),
        new_id(request, "evd"),
        data.thread_id,
        with_blobs=data.with_blobs,
        by=person_of(request),
        trace_id=trace_of(request),
    )


@get("/v1/threads/{thread_id:str}/evidence-progress", tags=["evidence"])
async def read_evidence_progress(request: EdgeRequest, thread_id: FromPath[str]) -> ExportProgress:
    """Get the progress of the evidence pack being created for a thread; idle if there is none."""
    edge = edge_of(request)
    return edge.exports.progress_of(edge.find_thread(thread_id).thread_id)


@get("/v1/evidence", tags=["evidence"])
async def list_evidence(
    request: EdgeRequest,
    thread_id: InThread = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[EvidenceRow]:
    """List evidence packs, newest first."""
    edge = edge_of(request)
    return build_page(edge.cursor, edge.records.evidence, after, limit, thread_id=thread_id)


@get("/v1/evidence/{evidence_id:str}", tags=["evidence"])
async def read_evidence(request: EdgeRequest, evidence_id: FromPath[str]) -> EvidenceRow:
    """Get an evidence pack."""
    return evidence_operations.find_pack(edge_of(request), evidence_id)


@get("/v1/evidence/{evidence_id:str}/content", tags=["evidence"], opt=declare_bytes())
async def read_pack(request: EdgeRequest, evidence_id: FromPath[str]) -> Stream:
    """Download an evidence pack; verify it with `factwire evidence verify`."""
    edge = edge_of(request)
    row = evidence_operations.find_pack(edge, evidence_id)
    if row.export_ref is None:
        raise Problem(404, "content_unavailable", "the content of this pack was not kept")
    return await _stream_attachment(edge, row.export_ref, f"{evidence_id}.factpack.zip")


@get("/v1/evidence/{evidence_id:str}/verification", tags=["evidence"])
async def verify_evidence(request: EdgeRequest, evidence_id: FromPath[str]) -> PackCheck:
    """Verify every byte of a pack and its signature, and compare it with the journal."""
    return await evidence_operations.check_pack(edge_of(request), evidence_id)


def _find_artifact(edge: EdgeContext, artifact_id: FromPath[str]) -> Artifact:
    row = find_row(edge.records.artifacts, artifact_id)
    if row is None:
        raise Problem(404, "unknown_artifact", "no artifact has this id")
    return row


async def _stream_attachment(edge: EdgeContext, ref: FromPath[str], name: str) -> Stream:
    """Content to be saved, never to be shown: what an agent made runs in nobody's page."""
    try:
        parse_ref(ref)
        known = await edge.blobs.stat(ref)
    except InvalidRef as error:
        raise Problem(404, "unknown_blob", str(error)) from error
    except BlobMissing as error:
        raise Problem(404, "unknown_blob", "no content is stored under this ref") from error
    safe = "".join(letter for letter in name if letter.isalnum() or letter in "-._")
    pieces: AsyncIterator[bytes] = edge.blobs.get(ref)
    headers = {
        "content-disposition": f'attachment; filename="{safe or "content"}"',
        "content-length": str(known.bytes),
    }
    return Stream(pieces, media_type="application/octet-stream", headers=headers)


ROUTES: list[Any] = [
    list_artifacts,
    read_artifact,
    read_artifact_content,
    create_blob,
    read_blob,
    list_tasks,
    read_task,
    export_evidence,
    read_evidence_progress,
    list_evidence,
    read_evidence,
    read_pack,
    verify_evidence,
]
