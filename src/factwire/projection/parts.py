"""Messages and their parts: the shapes of what a person reads, and where each part stands.

`settles` is how something ends that cannot be called ended yet, because facts before it are
missing; once they are there or a snapshot stands in for them, it ends so. `stale` is a text of
which pieces may be missing for good: a read model stood in for the facts that carried them.
"""

from typing import Literal

from factwire.projection.text import Text
from factwire.projection.views import View

MessageStatus = Literal["streaming", "final", "interrupted", "stale", "retracted"]
PartState = Literal["streaming", "final", "interrupted", "stale"]


class TextPart(View, tag_field="type", tag="text"):
    """Text to read: the answer, or what the user wrote."""

    part_id: str
    message_id: str
    text: Text
    state: PartState
    settles: PartState | None = None


class ReasoningPart(View, tag_field="type", tag="reasoning"):
    """That the model reasoned, and the summary it gave; the raw chain of thought is not kept."""

    part_id: str
    message_id: str
    summary: Text
    characters: int
    state: PartState
    settles: PartState | None = None
    encrypted_ref: str | None = None


class ToolPreviewPart(View, tag_field="type", tag="tool-preview"):
    """A tool call in its place among the text; the tool itself is in `tools`."""

    part_id: str
    message_id: str
    tool_call_id: str
    status: str
    output_ref: str | None = None


class ArtifactCardPart(View, tag_field="type", tag="artifact-card"):
    """A thing that was made, in its place; the thing itself is in `artifacts`."""

    part_id: str
    message_id: str
    artifact_id: str
    version_id: str | None = None


class EvidenceCitationPart(View, tag_field="type", tag="evidence-citation"):
    """A citation in its place; the evidence itself is in `evidence`."""

    part_id: str
    message_id: str
    evidence_id: str
    verdict: str | None = None


class DiagnosticRefPart(View, tag_field="type", tag="diagnostic-ref"):
    """A way to a diagnostic; its words are in `diagnostics` and not here."""

    part_id: str
    message_id: str
    diagnostic_id: str


Part = (
    TextPart
    | ReasoningPart
    | ToolPreviewPart
    | ArtifactCardPart
    | EvidenceCitationPart
    | DiagnosticRefPart
)


class Message(View):
    """One message of the conversation, with its parts in the order of their first facts."""

    message_id: str
    role: str
    status: MessageStatus
    sequence: int | None
    parts: list[Part]
    turn_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    task_id: str | None = None
    optimistic_id: str | None = None
    input_refs: list[str] | None = None
    created_at: str | None = None
    completed_at: str | None = None
    settles: PartState | None = None


def kind_of_part(part: Part) -> str:
    """The word by which parts of a type go: `text`, `tool-preview` …"""
    return str(part.__struct_config__.tag)


class PartHandle:
    """A part with the places where it stands, so that a delta finds them without a search."""

    __slots__ = ("message", "message_path", "part", "path", "place", "text_path")

    def __init__(self, message: Message, place: int, part: Part, path: str) -> None:
        self.message = message
        self.place = place
        self.message_path = f"/messages/{place}"
        self.part = part
        self.path = path
        self.text_path = f"{path}/text"
