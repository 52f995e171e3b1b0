"""Tools: calls, how far they are, how they ended, and the files that they changed."""

from typing import Any, Final, Literal

from factwire.facts import Fact
from factwire.facts.classes.payloads import FileChangePayload, ToolCallPayload
from factwire.facts.json_values import finite_number_at
from factwire.facts.outcomes import call_outcome
from factwire.facts.resources import Item, ItemContent
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.payload_fields import read_payload, ref_text, subagent_of, tool_of
from factwire.serving.envelopes import (
    EventMapping,
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    map_both_views,
    run_id_of,
    sent_at,
    thread_id_of,
)


class ToolCall(EventPayload, frozen=True):
    """A call of a tool: pending until its input is whole, in progress once it tells how far."""

    call_id: str
    status: Literal["pending", "started", "in_progress"]
    tool_name: str | None = None
    input: Any = None
    input_delta: str | None = None
    elapsed: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    subagent_id: str | None = None


class ToolResult(EventPayload, frozen=True):
    """How a call ended; what is too long for `content` is behind `ref`."""

    call_id: str
    is_error: bool
    tool_name: str | None = None
    content: Any = None
    ref: str | None = None
    exit_code: int | None = None
    failure_category: str | None = None
    duration_ms: float | None = None
    subagent_id: str | None = None


class FileChange(EventPayload, frozen=True):
    """A file that changed, by its path in the workspace."""

    path: str
    kind: Literal["created", "modified", "deleted", "unknown"]
    diff: str | None = None
    diff_ref: str | None = None
    added_lines: int | None = None
    removed_lines: int | None = None
    call_id: str | None = None


_Status = Literal["pending", "started", "in_progress"]
_Kind = Literal["created", "modified", "deleted", "unknown"]

_FILE_KINDS: Final[dict[str, _Kind]] = {
    "created": "created",
    "create": "created",
    "added": "created",
    "add": "created",
    "modified": "modified",
    "modify": "modified",
    "updated": "modified",
    "update": "modified",
    "edited": "modified",
    "edit": "modified",
    "renamed": "modified",
    "deleted": "deleted",
    "delete": "deleted",
    "removed": "deleted",
    "remove": "deleted",
}


def _call_status(fact: Fact, fields: ToolCallPayload) -> _Status:
    if fact.event_class == "tool.progress":
        return "in_progress"
    return "pending" if fields.args is None else "started"


def _to_tool_call(fact: Fact) -> TypedPayload | None:
    call = tool_of(fact)
    if call is None:
        return None
    fields = read_payload(fact, ToolCallPayload)
    is_input = fact.event_class == "tool.args.delta"
    return "run.agent.tool_call", ToolCall(
        call_id=call,
        status=_call_status(fact, fields),
        tool_name=fields.tool_name,
        input=fields.args,
        input_delta=fields.delta if is_input else None,
        elapsed=finite_number_at(fact.payload, "elapsed", "elapsedSeconds"),
        progress=fields.progress,
        total=fields.total,
        message=fields.message,
        subagent_id=subagent_of(fact),
    )


def _to_tool_result(fact: Fact) -> TypedPayload | None:
    call = tool_of(fact)
    if call is None:
        return None
    fields = read_payload(fact, ToolCallPayload)
    return "run.agent.tool_result", ToolResult(
        call_id=call,
        is_error=call_outcome(fact) in _ITEM_STATUSES,
        tool_name=fields.tool_name,
        content=_result_content(fields),
        ref=ref_text(fields.output_ref),
        exit_code=fields.exit_code,
        failure_category=fields.failure_category,
        duration_ms=fields.duration_ms,
        subagent_id=subagent_of(fact),
    )


def _result_content(fields: ToolCallPayload) -> Any:
    """What a call gave; where that is elsewhere or nothing, what is said about it."""
    return fields.output if fields.output is not None else fields.message or fields.summary


def _to_item_created(fact: Fact) -> TypedPayload | None:
    return _to_call_item(fact, "item.created", read_payload(fact, ToolCallPayload))


def _to_item_updated(fact: Fact) -> TypedPayload | None:
    return _to_call_item(fact, "item.updated", read_payload(fact, ToolCallPayload))


def _to_call_item(fact: Fact, name: str, fields: ToolCallPayload) -> TypedPayload | None:
    call = tool_of(fact)
    if call is None:
        return None
    is_input = fact.event_class == "tool.args.delta"
    content = ItemContent(
        tool_name=fields.tool_name,
        input=fields.args,
        input_delta=fields.delta if is_input else None,
        progress=fields.progress,
        total=fields.total,
        message=fields.message,
    )
    made = sent_at(fact.created_at) if name == "item.created" else None
    return name, _build_tool_item(fact, call, _call_status(fact, fields), content, made)


def _to_result_item(fact: Fact) -> TypedPayload | None:
    call = tool_of(fact)
    if call is None:
        return None
    fields, outcome = read_payload(fact, ToolCallPayload), call_outcome(fact)
    content = ItemContent(
        tool_name=fields.tool_name,
        output=_result_content(fields),
        output_ref=ref_text(fields.output_ref),
        is_error=outcome in _ITEM_STATUSES,
        exit_code=fields.exit_code,
        failure_category=fields.failure_category,
    )
    return "item.updated", _build_tool_item(
        fact, call, _ITEM_STATUSES.get(outcome, "completed"), content
    )


_ITEM_STATUSES: Final = {"failed": "failed", "canceled": "cancelled"}
"""Ends of a call that gave nothing to go on with → the status of its item."""


def _build_tool_item(
    fact: Fact, call: str, status: str, content: ItemContent, made: str | None = None
) -> Item:
    return Item(
        item_id=fact.item_id or call,
        type="tool",
        role="tool",
        status=status,
        project_id=fact.project_id,
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        content=content,
        subagent_id=subagent_of(fact),
        created_at=made,
        updated_at=sent_at(fact.created_at),
    )


def _to_file_change(fact: Fact) -> TypedPayload | None:
    fields = read_payload(fact, FileChangePayload)
    if not fields.path:
        return None
    return "run.agent.file_change", FileChange(
        path=fields.path,
        kind=_FILE_KINDS.get(fields.change or "", UNKNOWN),
        diff=fields.diff,
        diff_ref=ref_text(fields.diff_ref),
        added_lines=fields.added_lines,
        removed_lines=fields.removed_lines,
        call_id=tool_of(fact),
    )


_CALL: Final = EventMapping(_to_tool_call, ("run.agent.tool_call",))
_RESULT: Final = ViewMappings(
    EventMapping(_to_tool_result, ("run.agent.tool_result",)),
    EventMapping(_to_result_item, ("item.updated",)),
)
_UPDATE: Final = ViewMappings(_CALL, EventMapping(_to_item_updated, ("item.updated",)))

TOOL_EVENTS: Final[MappingTable] = {
    "tool.started": ViewMappings(_CALL, EventMapping(_to_item_created, ("item.created",))),
    "tool.args": _UPDATE,
    "tool.args.delta": _UPDATE,
    "tool.progress": _UPDATE,
    "tool.result": _RESULT,
    "tool.failed": _RESULT,
    "file.changed": map_both_views(_to_file_change, "run.agent.file_change"),
}
