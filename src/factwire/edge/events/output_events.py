"""What a run puts out: the text of its programs, and the things that it made."""

from typing import Any, Final

from factwire.edge.events.resource_events import PreviewEvent
from factwire.facts import Fact
from factwire.facts.classes.payloads import ArtifactPayload, ProcessPayload
from factwire.facts.json_values import objects_of, text_at
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids
from factwire.projection.payload_fields import other_id, read_payload, ref_text, tool_of
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    View,
    ViewMappings,
    map_both_views,
    run_id_of,
)

CHUNKS: Final = 100
"""Chunks of one batch of output; the lines of a longer one end in one chunk."""


class OutputChunk(EventPayload, frozen=True):
    """A piece of output; `offset` counts the bytes before it in its stream."""

    text: str
    offset: int | None = None


class RunOutput(EventPayload, frozen=True):
    """Output of a program. Offsets count bytes of one stream of one process; past `max_bytes` the
    rest is behind `ref`.
    """

    run_id: str
    stream: str
    text: str | None = None
    offset: int | None = None
    process_id: str | None = None
    call_id: str | None = None
    truncated: bool | None = None
    max_bytes: int | None = None
    bytes_written: int | None = None
    ref: str | None = None


class RunOutputBatch(EventPayload, frozen=True):
    """Several pieces of output of one stream, in order."""

    run_id: str
    stream: str
    chunks: list[OutputChunk]
    process_id: str | None = None
    call_id: str | None = None
    truncated: bool | None = None
    max_bytes: int | None = None
    bytes_written: int | None = None
    ref: str | None = None


class ArtifactEvent(EventPayload, frozen=True):
    """A thing that a run made; its content is behind refs. `status` is what its facts say."""

    artifact_id: str
    status: str
    run_id: str | None = None
    kind: str | None = None
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None
    preview_ref: str | None = None
    diff_ref: str | None = None
    export_ref: str | None = None
    message: str | None = None
    failure_category: str | None = None


_ARTIFACT_STATUS: Final = {
    "artifact.created": "created",
    "artifact.failed": "failed",
    "artifact.deleted": "deleted",
    "artifact.export.started": "exporting",
    "artifact.export.completed": "exported",
    "artifact.exported": "exported",
}


def _to_single_output(fact: Fact) -> TypedPayload | None:
    return _to_run_output(fact, "runtime")


def _to_output_batch(fact: Fact) -> TypedPayload | None:
    return _to_run_output(fact, "conversation")


def _to_run_output(fact: Fact, view: View) -> TypedPayload | None:
    run, fields = run_id_of(fact), read_payload(fact, ProcessPayload)
    if run is None:
        return None
    ref = ref_text(fields.output_ref) or next(iter(fact.ref_ids), None)
    about: dict[str, Any] = {
        "run_id": run,
        "stream": fields.stream or UNKNOWN,
        "process_id": other_id(fact, "processId", "process_id"),
        "call_id": tool_of(fact),
        "truncated": fields.truncated,
        "max_bytes": fields.max_bytes,
        "bytes_written": fields.bytes_written,
        "ref": ref,
    }
    chunks = _read_chunks(fact.payload.get("chunks"))
    if not chunks and fields.text is None and ref is None:
        return None
    if not chunks and view == "runtime":
        return "run.output", RunOutput(text=fields.text, offset=fields.offset, **about)
    chunks = chunks or _split_lines(fields.text or "", fields.offset)
    return "run.output.batch", RunOutputBatch(chunks=chunks, **about)


def _split_lines(text: str, offset: int | None) -> list[OutputChunk]:
    """A text by its lines, each with its place in the stream; of very many, the last are one."""
    lines = text.splitlines(keepends=True)
    if len(lines) > CHUNKS:
        lines[CHUNKS - 1 :] = ["".join(lines[CHUNKS - 1 :])]
    chunks: list[OutputChunk] = []
    for line in lines:
        chunks.append(OutputChunk(text=line, offset=offset))
        offset = None if offset is None else offset + len(line.encode("utf-8", "surrogatepass"))
    return chunks


def _read_chunks(value: object) -> list[OutputChunk]:
    return [
        OutputChunk(text=row["text"], offset=offset if type(offset) is int else None)
        for row in objects_of(value)
        if type(row.get("text")) is str
        for offset in (row.get("offset"),)
    ]


def _to_artifact_created(fact: Fact) -> TypedPayload | None:
    return _to_artifact(fact, "artifact.created")


def _to_artifact_updated(fact: Fact) -> TypedPayload | None:
    return _to_artifact(fact, "artifact.updated")


def _to_artifact(fact: Fact, name: str) -> TypedPayload | None:
    artifact = next(iter(artifact_ids(fact)), None)
    if artifact is None:
        return None
    fields = read_payload(fact, ArtifactPayload)
    return name, ArtifactEvent(
        artifact_id=artifact,
        status=fields.status or _ARTIFACT_STATUS.get(fact.event_class or "", "updated"),
        run_id=run_id_of(fact),
        kind=fields.kind,
        title=fields.title,
        version_id=fields.version_id,
        media_type=fields.media_type,
        content_ref=ref_text(fields.content_ref),
        preview_ref=ref_text(fields.preview_ref),
        diff_ref=ref_text(fields.diff_ref),
        export_ref=ref_text(fields.export_ref),
        message=fields.message,
        failure_category=fields.failure_category,
    )


def _to_artifact_preview(fact: Fact) -> TypedPayload | None:
    """The preview of an artifact, which is known by the artifact's id."""
    artifact = next(iter(artifact_ids(fact)), None)
    if artifact is None:
        return None
    return "preview.ready", PreviewEvent(
        preview_id=text_at(fact.payload, "previewId") or artifact,
        status="ready",
        run_id=run_id_of(fact),
        artifact_id=artifact,
        url=text_at(fact.payload, "url"),
        ref=ref_text(read_payload(fact, ArtifactPayload).preview_ref),
    )


_OUTPUT: Final = ViewMappings(
    EventMapping(_to_single_output, ("run.output", "run.output.batch")),
    EventMapping(_to_output_batch, ("run.output.batch",)),
)
_CHANGED: Final = map_both_views(_to_artifact_updated, "artifact.updated")

OUTPUT_EVENTS: Final[MappingTable] = {
    "process.output": _OUTPUT,
    "command.output": _OUTPUT,
    "artifact.created": map_both_views(_to_artifact_created, "artifact.created"),
    "artifact.preview.ready": map_both_views(_to_artifact_preview, "preview.ready"),
    **dict.fromkeys(
        (
            "artifact.updated",
            "artifact.changed",
            "artifact.versioned",
            "artifact.version.created",
            "artifact.diff.ready",
            "artifact.export.started",
            "artifact.export.completed",
            "artifact.exported",
            "artifact.failed",
            "artifact.deleted",
        ),
        _CHANGED,
    ),
}
