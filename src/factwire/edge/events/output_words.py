"""What a run puts out: the text of its programs, and the things that it made."""

from typing import Any, Final

from factwire.edge.events.ids import run_id_of
from factwire.edge.events.run_payloads import OutputChunk, RunOutput, RunOutputBatch
from factwire.edge.events.thing_payloads import Artifact, Preview
from factwire.edge.events.word import Said, Table, alike
from factwire.facts import Fact
from factwire.facts.payloads import Artifact as ArtifactPayload
from factwire.facts.payloads import Process
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.artifacts import artifact_ids
from factwire.projection.reading import listed, other_id, read, ref_text, table, tool_of, word

_ARTIFACT_STATUS: Final = {
    "artifact.created": "created",
    "artifact.failed": "failed",
    "artifact.deleted": "deleted",
    "artifact.export.started": "exporting",
    "artifact.export.completed": "exported",
    "artifact.exported": "exported",
}


def _output(fact: Fact) -> Said | None:
    run, said = run_id_of(fact), read(fact, Process)
    if run is None:
        return None
    ref = ref_text(said.output_ref) or next(iter(fact.ref_ids), None)
    about: dict[str, Any] = {
        "run_id": run,
        "stream": said.stream or UNKNOWN,
        "process_id": other_id(fact, "processId", "process_id"),
        "call_id": tool_of(fact),
        "truncated": said.truncated,
        "max_bytes": said.max_bytes,
        "bytes_written": said.bytes_written,
        "ref": ref,
    }
    chunks = _chunks(fact.payload.get("chunks"))
    if chunks:
        return "run.output.batch", RunOutputBatch(chunks=chunks, **about)
    if said.text is None and ref is None:
        return None
    return "run.output", RunOutput(text=said.text, offset=said.offset, **about)


def _chunks(value: object) -> list[OutputChunk]:
    rows = (row for row in map(table, listed(value) or ()) if row)
    return [
        OutputChunk(text=row["text"], offset=offset if type(offset) is int else None)
        for row in rows
        if type(row.get("text")) is str
        for offset in (row.get("offset"),)
    ]


def _made(fact: Fact) -> Said | None:
    return _artifact(fact, "artifact.created")


def _changed(fact: Fact) -> Said | None:
    return _artifact(fact, "artifact.updated")


def _artifact(fact: Fact, name: str) -> Said | None:
    artifact = next(iter(artifact_ids(fact)), None)
    if artifact is None:
        return None
    said = read(fact, ArtifactPayload)
    return name, Artifact(
        artifact_id=artifact,
        status=said.status or _ARTIFACT_STATUS.get(fact.event_class or "", "updated"),
        run_id=run_id_of(fact),
        kind=said.kind,
        title=said.title,
        version_id=said.version_id,
        media_type=said.media_type,
        content_ref=ref_text(said.content_ref),
        preview_ref=ref_text(said.preview_ref),
        diff_ref=ref_text(said.diff_ref),
        export_ref=ref_text(said.export_ref),
        message=said.message,
        failure_category=said.failure_category,
    )


def _preview(fact: Fact) -> Said | None:
    """The preview of an artifact, which is known by the artifact's id."""
    artifact = next(iter(artifact_ids(fact)), None)
    if artifact is None:
        return None
    return "preview.ready", Preview(
        preview_id=word(fact.payload, "previewId") or artifact,
        status="ready",
        run_id=run_id_of(fact),
        artifact_id=artifact,
        url=word(fact.payload, "url"),
        ref=ref_text(read(fact, ArtifactPayload).preview_ref),
    )


_OUTPUT: Final = alike(_output, "run.output", "run.output.batch")
_CHANGED: Final = alike(_changed, "artifact.updated")

OUTPUT_WORDS: Final[Table] = {
    "process.output": _OUTPUT,
    "command.output": _OUTPUT,
    "artifact.created": alike(_made, "artifact.created"),
    "artifact.preview.ready": alike(_preview, "preview.ready"),
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
