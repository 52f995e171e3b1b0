"""Messages as AI SDK `UIMessage`s, and back.

A `UIMessage` carries the tool inside its message. Here the message only points at it, so the way
out joins a part with what it points at, and the way back keeps the pointer alone: messages do not
become a second owner of tools, artifacts or evidence.
"""

from collections.abc import Iterable
from typing import Any, Final, cast, get_args

from factwire.facts.json_values import list_at, object_at, text_at
from factwire.projection.actions import Action
from factwire.projection.messages import (
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
from factwire.projection.state import ProjectionState
from factwire.projection.tools import Tool
from factwire.projection.views import Text

_OURS: Final = "factwire"
_ENDED_STATES: Final = frozenset(get_args(PartState)) - {"streaming"}
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
_TOOL_STATE_OF_UI: Final = {
    "approval-requested": "input-available",
    "approval-responded": "input-available",
    "output-denied": "output-error",
}


def to_ui_messages(
    state: ProjectionState, messages: Iterable[Message] | None = None
) -> list[dict[str, Any]]:
    """The conversation, or these messages of the state, as `UIMessage`s."""
    chosen = state.messages if messages is None else messages
    return [_to_ui_message(state, message) for message in chosen if message.status != "retracted"]


def from_ui_messages(rows: Iterable[object]) -> list[Message]:
    """`UIMessage`s as messages; parts of kinds that have no place here are left out."""
    return [_from_ui_message(fields) for row in rows if (fields := object_at(row)) is not None]


def _to_ui_message(state: ProjectionState, message: Message) -> dict[str, Any]:
    metadata = {
        "status": message.status,
        "threadId": message.thread_id,
        "turnId": message.turn_id,
        "agentId": message.agent_id,
        "subagentId": message.subagent_id,
        "taskId": message.task_id,
        "optimisticId": message.optimistic_id,
        "createdAt": message.created_at,
        "completedAt": message.completed_at,
    }
    return {
        "id": message.message_id,
        "role": message.role if message.role in _ROLES else "assistant",
        "metadata": {name: value for name, value in metadata.items() if value is not None},
        "parts": [
            *(_to_ui_part(state, part) for part in message.parts),
            *(_to_data_part("input", ref) for ref in message.input_refs or ()),
        ],
    }


def _to_ui_part(state: ProjectionState, part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": str(part.text), **_to_text_fields(part)}
        case ReasoningPart():
            return {"type": "reasoning", "text": str(part.summary), **_to_text_fields(part)}
        case ToolPreviewPart():
            return _to_tool_part(state, part)
        case ArtifactCardPart():
            return _to_data_part("artifact", part.artifact_id, versionId=part.version_id)
        case EvidenceCitationPart():
            return _to_source_part(state, part)
        case DiagnosticRefPart():
            return _to_data_part("diagnostic", part.diagnostic_id)


def _to_text_fields(part: TextPart | ReasoningPart) -> dict[str, Any]:
    """The AI SDK knows two states of a text, and no id: ours are in the metadata of a provider."""
    return {
        "state": "streaming" if part.state == "streaming" else "done",
        "providerMetadata": {_OURS: {"partId": part.part_id, "state": part.state}},
    }


def _to_data_part(kind: str, key: str, **fields: str | None) -> dict[str, Any]:
    values = {name: value for name, value in fields.items() if value is not None}
    return {"type": f"data-{kind}", "id": key, "data": {f"{kind}Id": key, **values}}


def _to_source_part(state: ProjectionState, part: EvidenceCitationPart) -> dict[str, Any]:
    item = state.evidence.items.get(part.evidence_id)
    if item is None or item.url is None:
        return _to_data_part("evidence", part.evidence_id, verdict=part.verdict)
    made = {"type": "source-url", "sourceId": part.evidence_id, "url": item.url}
    return made if item.title is None else {**made, "title": item.title}


def _to_tool_part(state: ProjectionState, part: ToolPreviewPart) -> dict[str, Any]:
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
    return {**made, **_to_tool_state(tool, action)}


def _to_tool_state(tool: Tool, action: Action | None) -> dict[str, Any]:
    ui_state = _TOOL_STATES.get(tool.state, "input-available")
    approval = _to_approval(action)
    if ui_state == "input-streaming":
        return {"state": ui_state, "input": tool.args, "rawInput": str(tool.args_text)}
    if ui_state == "output-error":
        return _to_tool_error(tool, action, approval)
    if ui_state == "output-available":
        granted = {"approval": approval} if approval and approval.get("approved") else {}
        return {"state": ui_state, "input": tool.args, "output": _read_output(tool), **granted}
    if approval is not None:
        answered = "approval-responded" if "approved" in approval else "approval-requested"
        return {"state": answered, "input": tool.args, "approval": approval}
    return {"state": ui_state, "input": tool.args}


def _to_tool_error(
    tool: Tool, action: Action | None, approval: dict[str, Any] | None
) -> dict[str, Any]:
    if action is not None and approval is not None and approval.get("approved") is False:
        return {"state": "output-denied", "input": tool.args, "approval": approval}
    text = tool.message or tool.failure_category or tool.state
    return {"state": "output-error", "input": tool.args, "errorText": text}


def _read_output(tool: Tool) -> Any:
    """What the tool gave, as far as it is at hand; a ref says where the rest is."""
    if tool.output is not None:
        return tool.output
    if tool.output_ref is not None:
        return {"ref": tool.output_ref, "summary": tool.summary}
    return str(tool.output_text) or tool.summary


def _to_approval(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    if action.status == "pending":
        return {"id": action.action_id}
    made: dict[str, Any] = {
        "id": action.action_id,
        "approved": action.status == "resolved" and action.decision not in _DENIALS,
    }
    return made if action.reason is None else {**made, "reason": action.reason}


def _from_ui_message(row: dict[str, Any]) -> Message:
    message_id = text_at(row, "id") or ""
    metadata = object_at(row.get("metadata")) or {}
    parts = [
        part
        for index, item in enumerate(list_at(row.get("parts")) or ())
        if (part := _from_ui_part(object_at(item) or {}, message_id, index)) is not None
    ]
    refs = [
        ref
        for item in list_at(row.get("parts")) or ()
        if (ref := text_at(object_at((object_at(item) or {}).get("data")) or {}, "inputId"))
        is not None
    ]
    status = text_at(metadata, "status")
    return Message(
        message_id=message_id,
        role=text_at(row, "role") or "assistant",
        status=status if status in ("streaming", "interrupted", "stale") else "final",  # pyright: ignore[reportArgumentType]
        sequence=None,
        parts=parts,
        input_refs=refs or None,
        thread_id=text_at(metadata, "threadId"),
        turn_id=text_at(metadata, "turnId"),
        agent_id=text_at(metadata, "agentId"),
        subagent_id=text_at(metadata, "subagentId"),
        task_id=text_at(metadata, "taskId"),
        optimistic_id=text_at(metadata, "optimisticId"),
        created_at=text_at(metadata, "createdAt"),
        completed_at=text_at(metadata, "completedAt"),
    )


def _from_ui_part(row: dict[str, Any], message_id: str, index: int) -> Part | None:
    kind = text_at(row, "type") or ""
    ours = object_at((object_at(row.get("providerMetadata")) or {}).get(_OURS)) or {}
    own = text_at(ours, "partId") or text_at(row, "id") or f"{message_id}:{index}"
    state: PartState = "streaming" if row.get("state") == "streaming" else "final"
    if state == "final" and (exact := text_at(ours, "state")) in _ENDED_STATES:
        state = cast("PartState", exact)
    text = Text(text_at(row, "text") or "")
    if kind == "text":
        return TextPart(part_id=own, message_id=message_id, text=text, state=state)
    if kind == "reasoning":
        return ReasoningPart(
            part_id=own, message_id=message_id, summary=text, characters=0, state=state
        )
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        return _from_tool_part(row, message_id)
    return _from_data_part(kind, row, message_id)


def _from_tool_part(row: dict[str, Any], message_id: str) -> ToolPreviewPart | None:
    call, state = text_at(row, "toolCallId"), text_at(row, "state") or "unknown"
    if call is None:
        return None
    output = object_at(row.get("output")) or {}
    return ToolPreviewPart(
        part_id=f"tool:{call}",
        message_id=message_id,
        tool_call_id=call,
        status=_TOOL_STATE_OF_UI.get(state, state),
        output_ref=text_at(output, "ref"),
    )


def _from_data_part(kind: str, row: dict[str, Any], message_id: str) -> Part | None:
    data = object_at(row.get("data")) or {}
    artifact, evidence = text_at(data, "artifactId"), text_at(data, "evidenceId")
    if kind == "source-url":
        evidence = text_at(row, "sourceId")
    if artifact is not None:
        return ArtifactCardPart(
            part_id=f"artifact:{artifact}",
            message_id=message_id,
            artifact_id=artifact,
            version_id=text_at(data, "versionId"),
        )
    if evidence is not None:
        return EvidenceCitationPart(
            part_id=f"evidence:{evidence}",
            message_id=message_id,
            evidence_id=evidence,
            verdict=text_at(data, "verdict"),
        )
    diagnostic = text_at(data, "diagnosticId")
    if diagnostic is None:
        return None
    return DiagnosticRefPart(
        part_id=f"diagnostic:{diagnostic}", message_id=message_id, diagnostic_id=diagnostic
    )
