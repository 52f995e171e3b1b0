"""Messages as AI SDK `UIMessage`s, and back.

A `UIMessage` carries the tool inside its message. Here the message only points at it, so the way
out joins a part with what it points at, and the way back keeps the pointer alone: messages do not
become a second owner of tools, artifacts or evidence.
"""

from collections.abc import Iterable
from typing import Any, Final

from factwire.projection.actions import Action
from factwire.projection.parts import (
    ArtifactCardPart,
    DiagnosticRefPart,
    EvidenceCitationPart,
    Message,
    Part,
    PartState,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
)
from factwire.projection.reading import listed, table, word
from factwire.projection.state import ProjectionState
from factwire.projection.text import Text
from factwire.projection.tools import Tool

_ROLES: Final = ("system", "user", "assistant")
_DENIALS: Final = ("deny", "denied", "rejected", "reject")

_TOOL_STATES: Final = {
    "input-streaming": "input-streaming",
    "input-available": "input-available",
    "running": "input-available",
    "progress": "input-available",
    "output-available": "output-available",
    "output-error": "output-error",
    "cancelled": "output-error",
}
_BACK: Final = {
    "approval-requested": "input-available",
    "approval-responded": "input-available",
    "output-denied": "output-error",
}


def to_ui_messages(
    state: ProjectionState, messages: Iterable[Message] | None = None
) -> list[dict[str, Any]]:
    """The conversation, or these messages of the state, as `UIMessage`s."""
    shown = state.messages if messages is None else messages
    return [_ui_message(state, message) for message in shown if message.status != "retracted"]


def from_ui_messages(rows: Iterable[object]) -> list[Message]:
    """`UIMessage`s as messages; parts of kinds that have no place here are left out."""
    return [_message(fields) for row in rows if (fields := table(row)) is not None]


def _ui_message(state: ProjectionState, message: Message) -> dict[str, Any]:
    metadata = {
        "status": message.status,
        "turnId": message.turn_id,
        "subagentId": message.subagent_id,
        "createdAt": message.created_at,
        "completedAt": message.completed_at,
    }
    return {
        "id": message.message_id,
        "role": message.role if message.role in _ROLES else "assistant",
        "metadata": {name: value for name, value in metadata.items() if value is not None},
        "parts": [
            *(_ui_part(state, part) for part in message.parts),
            *(_data("input", ref) for ref in message.input_refs or ()),
        ],
    }


def _ui_part(state: ProjectionState, part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": str(part.text), "state": _done(part.state)}
        case ReasoningPart():
            return {"type": "reasoning", "text": str(part.summary), "state": _done(part.state)}
        case ToolPreviewPart():
            return _tool_part(state, part)
        case ArtifactCardPart():
            return _data("artifact", part.artifact_id, versionId=part.version_id)
        case EvidenceCitationPart():
            return _source_part(state, part)
        case DiagnosticRefPart():
            return _data("diagnostic", part.diagnostic_id)


def _done(state: PartState) -> str:
    return "streaming" if state == "streaming" else "done"


def _data(kind: str, key: str, **fields: str | None) -> dict[str, Any]:
    known = {name: value for name, value in fields.items() if value is not None}
    return {"type": f"data-{kind}", "id": key, "data": {f"{kind}Id": key, **known}}


def _source_part(state: ProjectionState, part: EvidenceCitationPart) -> dict[str, Any]:
    item = state.evidence.items.get(part.evidence_id)
    if item is None or item.url is None:
        return _data("evidence", part.evidence_id, verdict=part.verdict)
    made = {"type": "source-url", "sourceId": part.evidence_id, "url": item.url}
    return made if item.title is None else {**made, "title": item.title}


def _tool_part(state: ProjectionState, part: ToolPreviewPart) -> dict[str, Any]:
    tool = state.tools.get(part.tool_call_id)
    made: dict[str, Any] = {
        "type": "dynamic-tool",
        "toolName": (tool.tool_name if tool else None) or "unknown",
        "toolCallId": part.tool_call_id,
    }
    if tool is None:
        return {**made, "state": "input-available", "input": None}
    if tool.title is not None:
        made["title"] = tool.title
    action = state.actions.get(tool.action_id or "")
    return {**made, **_tool_state(tool, action)}


def _tool_state(tool: Tool, action: Action | None) -> dict[str, Any]:
    shown = _TOOL_STATES.get(tool.state, "input-available")
    asked = _approval(action)
    if shown == "input-streaming":
        return {"state": shown, "input": tool.args, "rawInput": str(tool.args_text)}
    if shown == "output-error":
        return _error(tool, action, asked)
    if shown == "output-available":
        granted = {"approval": asked} if asked and asked.get("approved") else {}
        return {"state": shown, "input": tool.args, "output": _output(tool), **granted}
    if asked is not None:
        answered = "approval-responded" if "approved" in asked else "approval-requested"
        return {"state": answered, "input": tool.args, "approval": asked}
    return {"state": shown, "input": tool.args}


def _error(tool: Tool, action: Action | None, asked: dict[str, Any] | None) -> dict[str, Any]:
    if action is not None and asked is not None and asked.get("approved") is False:
        return {"state": "output-denied", "input": tool.args, "approval": asked}
    text = tool.message or tool.failure_category or tool.state
    return {"state": "output-error", "input": tool.args, "errorText": text}


def _output(tool: Tool) -> Any:
    """What the tool gave, as far as it is at hand; a ref says where the rest is."""
    if tool.output is not None:
        return tool.output
    if tool.output_ref is not None:
        return {"ref": tool.output_ref, "summary": tool.summary}
    return str(tool.output_text) or tool.summary


def _approval(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    if action.status == "pending":
        return {"id": action.action_id}
    made: dict[str, Any] = {
        "id": action.action_id,
        "approved": action.status == "resolved" and action.decision not in _DENIALS,
    }
    return made if action.reason is None else {**made, "reason": action.reason}


def _message(row: dict[str, Any]) -> Message:
    message_id = word(row, "id") or ""
    metadata = table(row.get("metadata")) or {}
    parts = [
        part
        for index, item in enumerate(listed(row.get("parts")) or ())
        if (part := _part(table(item) or {}, message_id, index)) is not None
    ]
    refs = [
        ref
        for item in listed(row.get("parts")) or ()
        if (ref := word(table((table(item) or {}).get("data")) or {}, "inputId")) is not None
    ]
    status = word(metadata, "status")
    return Message(
        message_id=message_id,
        role=word(row, "role") or "assistant",
        status=status if status in ("streaming", "interrupted") else "final",  # pyright: ignore[reportArgumentType]
        sequence=None,
        parts=parts,
        input_refs=refs or None,
        turn_id=word(metadata, "turnId"),
        subagent_id=word(metadata, "subagentId"),
        created_at=word(metadata, "createdAt"),
        completed_at=word(metadata, "completedAt"),
    )


def _part(row: dict[str, Any], message_id: str, index: int) -> Part | None:
    kind = word(row, "type") or ""
    own = word(row, "id") or f"{message_id}:{index}"
    state: PartState = "streaming" if row.get("state") == "streaming" else "final"
    text = Text(word(row, "text") or "")
    if kind == "text":
        return TextPart(part_id=own, message_id=message_id, text=text, state=state)
    if kind == "reasoning":
        return ReasoningPart(
            part_id=own, message_id=message_id, summary=text, characters=0, state=state
        )
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        return _preview(row, message_id)
    return _pointer(kind, row, message_id)


def _preview(row: dict[str, Any], message_id: str) -> ToolPreviewPart | None:
    call, state = word(row, "toolCallId"), word(row, "state") or "unknown"
    if call is None:
        return None
    output = table(row.get("output")) or {}
    return ToolPreviewPart(
        part_id=f"tool:{call}",
        message_id=message_id,
        tool_call_id=call,
        status=_BACK.get(state, state),
        output_ref=word(output, "ref"),
    )


def _pointer(kind: str, row: dict[str, Any], message_id: str) -> Part | None:
    data = table(row.get("data")) or {}
    artifact, evidence = word(data, "artifactId"), word(data, "evidenceId")
    if kind == "source-url":
        evidence = word(row, "sourceId")
    if artifact is not None:
        return ArtifactCardPart(
            part_id=f"artifact:{artifact}",
            message_id=message_id,
            artifact_id=artifact,
            version_id=word(data, "versionId"),
        )
    if evidence is not None:
        return EvidenceCitationPart(
            part_id=f"evidence:{evidence}",
            message_id=message_id,
            evidence_id=evidence,
            verdict=word(data, "verdict"),
        )
    diagnostic = word(data, "diagnosticId")
    if diagnostic is None:
        return None
    return DiagnosticRefPart(
        part_id=f"diagnostic:{diagnostic}", message_id=message_id, diagnostic_id=diagnostic
    )
