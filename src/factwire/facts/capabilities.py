"""The capability manifest: what an agent can do, said by itself before the first turn.

A screen offers only the controls that the manifest names, and a conformance run tests only what it
claims. What an agent does not say stays unknown; it is not read as no.
"""

from typing import Final, Literal

import msgspec

from factwire.facts.classes.class_tables import KNOWN_CLASSES
from factwire.facts.issues import Issue
from factwire.facts.vocabulary import ACTION_TYPES, CONTROLS, TOPOLOGIES

MANIFEST_VERSION: Final = "factwire-capabilities/v1"

Answer = Literal["yes", "no", "unknown"]
ApprovalStyle = Literal["none", "inline", "interrupt", "unknown"]


class Streaming(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which of its outputs arrive piece by piece."""

    text: Answer = "unknown"
    reasoning: Answer = "unknown"
    tool_args: Answer = "unknown"
    tool_output: Answer = "unknown"


class CapabilityManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one agent offers. `approvals` tells whether a decision is awaited in the stream
    (`inline`) or ends it and resumes from saved state (`interrupt`); `structured_output`, whether
    a turn can be asked for JSON by a schema.
    """

    agent_id: str
    title: str
    schema_version: str = MANIFEST_VERSION
    version: str | None = None
    inputs: tuple[str, ...] = ("text",)
    streaming: Streaming = Streaming()
    approvals: ApprovalStyle = "unknown"
    action_types: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ()
    event_classes: tuple[str, ...] = ()
    cancel: Answer = "unknown"
    steer: Answer = "unknown"
    queue: Answer = "unknown"
    resume: Answer = "unknown"
    subagents: Answer = "unknown"
    artifacts: Answer = "unknown"
    evidence: Answer = "unknown"
    sandbox: Answer = "unknown"
    cost: Answer = "unknown"
    structured_output: Answer = "unknown"
    max_input_characters: int | None = None


INPUT_KINDS: Final = ("text", "image", "audio", "video", "document", "workspace", "capability")

_WORDS: Final = {
    "inputs": INPUT_KINDS,
    "action_types": ACTION_TYPES,
    "controls": CONTROLS,
    "topologies": TOPOLOGIES,
    "event_classes": tuple(KNOWN_CLASSES),
}

_WIRE: Final = {
    field.name: field.encode_name for field in msgspec.structs.fields(CapabilityManifest)
}


def manifest_issues(manifest: CapabilityManifest, path: str = "$") -> list[Issue]:
    """Words outside the vocabulary, as information, and claims that contradict each other."""
    issues = [
        Issue("unknown_event_type", f"{path}.{_WIRE[field]}[{index}]", f"{word!r} is not known")
        for field, vocabulary in _WORDS.items()
        for index, word in enumerate(getattr(manifest, field))
        if word not in vocabulary
    ]
    if manifest.approvals == "none" and "tool_approval" in manifest.action_types:
        message = "approvals are none, yet tool_approval is among the action types"
        issues.append(Issue("schema_mismatch", f"{path}.approvals", message))
    if manifest.cancel == "no" and "stop" in manifest.controls:
        message = "cancel is no, yet stop is among the controls"
        issues.append(Issue("schema_mismatch", f"{path}.cancel", message))
    return issues
