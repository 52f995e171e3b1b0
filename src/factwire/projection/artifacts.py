"""Artifacts: what an agent made, its versions, and how far preview, diff and export are.

Only refs are kept, never content. What no fact says about an artifact reads `unknown`.
"""

from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Artifact as ArtifactPayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import tools
from factwire.projection.messages import place_for, reference
from factwire.projection.parts import ArtifactCardPart
from factwire.projection.pointers import escaped
from factwire.projection.reading import (
    other_id,
    read,
    ref_text,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
    word,
    words,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/artifacts"

_STATUS: Final = {
    "artifact.created": "created",
    "artifact.failed": "failed",
    "artifact.deleted": "deleted",
}
_EXPORT: Final = {
    "artifact.export.started": "running",
    "artifact.export.completed": "completed",
    "artifact.exported": "completed",
}
_CHANGES: Final = frozenset({"artifact.changed", "artifact.versioned", "file.changed"})


_MENTIONS: Final = frozenset({"artifactId", "artifact_id", "artifactRefs", "artifact_refs"})
"""Payload keys that name an artifact."""


class ArtifactVersion(View):
    """One version; what it holds is behind its refs."""

    version_id: str
    event_id: str
    content_ref: str | None = None
    preview_ref: str | None = None
    diff_ref: str | None = None
    created_at: str | None = None


class Artifact(View):
    """One thing that was made. `kind` is what its facts say, else `unknown`."""

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
    diff_ref: str | None = None
    export_status: str | None = None
    export_ref: str | None = None
    source: str | None = None
    message: str | None = None
    failure_category: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


def changed(canvas: "Canvas", fact: Fact) -> None:
    """Any artifact fact, and any other that names an artifact it made."""
    for artifact_id in artifact_ids(fact):
        artifact, path = _artifact(canvas, fact, artifact_id)
        _describe(canvas, artifact, path, fact)
        _card(canvas, fact, artifact)
        tools.link_artifact(canvas, fact, artifact_id)


def mentioned(canvas: "Canvas", fact: Fact) -> None:
    """A tool fact that names an artifact makes its card appear; it says nothing else about it."""
    for artifact_id in artifact_ids(fact):
        artifact, _ = _artifact(canvas, fact, artifact_id)
        _card(canvas, fact, artifact)
        tools.link_artifact(canvas, fact, artifact_id)


def artifact_ids(fact: Fact) -> list[str]:
    """The artifacts that a fact is about: its id, or else its refs."""
    if not (fact.artifact_id or fact.artifact_refs or _MENTIONS & fact.payload.keys()):
        return []
    named = fact.artifact_id or other_id(fact, "artifactId", "artifact_id")
    stated = fact.payload.get("artifactRefs", fact.payload.get("artifact_refs"))
    refs = fact.artifact_refs or tuple(words(stated))
    return [named] if named else list(dict.fromkeys(refs))


def _artifact(canvas: "Canvas", fact: Fact, artifact_id: str) -> tuple[Artifact, str]:
    path = f"{PATH}/{escaped(artifact_id)}"
    known = canvas.state.artifacts.get(artifact_id)
    if known is not None:
        return known, path
    artifact = Artifact(
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
    return canvas.create(canvas.state.artifacts, PATH, artifact_id, artifact), path


def _describe(canvas: "Canvas", artifact: Artifact, path: str, fact: Fact) -> None:
    said, name = read(fact, ArtifactPayload), fact.event_class or ""
    status = _STATUS.get(name) or said.status or _plain_status(artifact, name)
    if artifact.status == "failed" and status is not None:
        canvas.put(artifact, path, "message", None)
        canvas.put(artifact, path, "failure_category", None)
    canvas.fill(
        artifact,
        path,
        kind=said.kind or ("file" if name.startswith("file.") else None),
        status=status,
        title=said.title,
        owner=fact.agent_id,
        media_type=said.media_type,
        path=word(fact.payload, "path"),
        content_ref=ref_text(said.content_ref),
        preview_ref=ref_text(said.preview_ref),
        diff_ref=ref_text(said.diff_ref),
        export_status=_EXPORT.get(name),
        export_ref=ref_text(said.export_ref),
        source=said.source,
        message=said.message,
        failure_category=said.failure_category,
        updated_at=fact.created_at,
    )
    if name == "artifact.failed" and artifact.export_status == "running":
        canvas.put(artifact, path, "export_status", "failed")
    if said.version_id is not None:
        _version(canvas, artifact, path, fact, said)


def _plain_status(artifact: Artifact, name: str) -> str | None:
    """A change without a status of its own: it is there again, whatever became of it before."""
    if not name.startswith(("artifact.", "file.")) or name in _EXPORT:
        return None
    gone = artifact.status in ("deleted", "failed") and name in _CHANGES
    if gone or artifact.status == UNKNOWN or name == "artifact.updated":
        return "updated" if name in ("artifact.updated", "artifact.versioned") else "changed"
    return None


def _version(
    canvas: "Canvas", artifact: Artifact, path: str, fact: Fact, said: ArtifactPayload
) -> None:
    canvas.put(artifact, path, "version_id", said.version_id)
    refs = {
        "content_ref": ref_text(said.content_ref),
        "preview_ref": ref_text(said.preview_ref),
        "diff_ref": ref_text(said.diff_ref),
    }
    for index, version in enumerate(artifact.versions):
        if version.version_id == said.version_id:
            canvas.fill(version, f"{path}/versions/{index}", **refs)
            return
    version = ArtifactVersion(
        version_id=said.version_id or "", event_id=fact.id, created_at=fact.created_at, **refs
    )
    canvas.push(artifact.versions, f"{path}/versions", version)


def _card(canvas: "Canvas", fact: Fact, artifact: Artifact) -> None:
    if artifact.turn_id is None:
        return
    part = ArtifactCardPart(
        part_id=f"artifact:{artifact.artifact_id}",
        message_id=place_for(canvas, fact),
        artifact_id=artifact.artifact_id,
        version_id=artifact.version_id,
    )
    handle = reference(canvas, fact, part)
    canvas.fill(handle.part, handle.path, version_id=artifact.version_id)
