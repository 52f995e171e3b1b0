"""Things that runs make: artifacts, blobs, previews, tasks and evidence, by id."""

from factwire.client.address import path_of, query_of
from factwire.client.call import Call, get, given, json, nothing, post
from factwire.client.pack_checks import PackCheck
from factwire.client.resources import (
    Artifact,
    ArtifactDetails,
    EvidencePack,
    EvidenceProgress,
    Page,
    Preview,
    PreviewStatus,
    StoredBlob,
    Task,
    TaskDetails,
)


def artifacts(
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Artifact]]:
    """What runs made, newest first."""
    query = query_of(thread_id=thread_id, run_id=run_id, cursor=cursor, limit=limit)
    return get(path_of("artifacts"), json(Page[Artifact]), query)


def artifact(artifact_id: str) -> Call[ArtifactDetails]:
    """An artifact with its versions."""
    return get(path_of("artifacts", artifact_id), json(ArtifactDetails))


def artifact_content(artifact_id: str, *, version_id: str | None = None) -> Call[None]:
    """What an artifact holds; its newest version, where none is named."""
    query = query_of(version_id=version_id)
    return get(path_of("artifacts", artifact_id, "content"), nothing, query)


def blob(ref: str) -> Call[None]:
    """The bytes behind a ref."""
    return get(path_of("blobs", ref), nothing)


def upload(content: bytes) -> Call[StoredBlob]:
    """Store an attachment; a message names it by its ref."""
    return post(path_of("blobs"), json(StoredBlob), given(content=content))


def previews(
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    status: PreviewStatus | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Preview]]:
    """Previews, newest first; one that has stopped has no address any more."""
    query = query_of(thread_id=thread_id, run_id=run_id, status=status, cursor=cursor, limit=limit)
    return get(path_of("previews"), json(Page[Preview]), query)


def create_preview(run_id: str, *, path: str = ".") -> Call[Preview]:
    """Serve a folder of a run on an origin of its own; its address opens it to whoever has it."""
    return post(path_of("previews"), json(Preview), given(runId=run_id, path=path))


def preview(preview_id: str) -> Call[Preview]:
    """One preview, with its address while it is served."""
    return get(path_of("previews", preview_id), json(Preview))


def stop_preview(preview_id: str) -> Call[Preview]:
    """Serve a preview no longer."""
    return post(f"{path_of('previews', preview_id)}:stop", json(Preview))


def tasks(
    *,
    thread_id: str | None = None,
    status: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Task]]:
    """Tasks of all threads, newest first."""
    query = query_of(thread_id=thread_id, status=status, cursor=cursor, limit=limit)
    return get(path_of("tasks"), json(Page[Task]), query)


def task(task_id: str) -> Call[TaskDetails]:
    """A task with its attempts, dependencies and progress."""
    return get(path_of("tasks", task_id), json(TaskDetails))


def evidence(
    *, thread_id: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[Page[EvidencePack]]:
    """Packs that were made, newest first."""
    query = query_of(thread_id=thread_id, cursor=cursor, limit=limit)
    return get(path_of("evidence"), json(Page[EvidencePack]), query)


def export_evidence(thread_id: str, *, with_blobs: bool = False) -> Call[EvidencePack]:
    """Make a signed pack of a thread."""
    body = given(threadId=thread_id, withBlobs=with_blobs)
    return post(path_of("evidence"), json(EvidencePack), body)


def evidence_progress(thread_id: str) -> Call[EvidenceProgress]:
    """How far the pack of a thread is that is being made; idle where none is."""
    return get(path_of("threads", thread_id, "evidence-progress"), json(EvidenceProgress))


def evidence_pack(evidence_id: str) -> Call[EvidencePack]:
    """One pack."""
    return get(path_of("evidence", evidence_id), json(EvidencePack))


def evidence_content(evidence_id: str) -> Call[None]:
    """The pack itself, to be checked with `factwire evidence verify`."""
    return get(path_of("evidence", evidence_id, "content"), nothing)


def verify_evidence(evidence_id: str) -> Call[PackCheck]:
    """Have the Edge check every byte of a pack, its signature, and compare it with the journal."""
    return get(path_of("evidence", evidence_id, "verification"), json(PackCheck))
