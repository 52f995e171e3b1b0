"""Items: what was said and done on a thread, one after the other, from its projection.

Texts that have a part id of their own are items of their own, as in the events about them.
"""

from collections.abc import Iterator

from factwire.edge.events import run_of
from factwire.edge.events.thing_payloads import Item, ItemContent
from factwire.projection import ProjectionState
from factwire.projection.parts import Message, TextPart, ToolPreviewPart
from factwire.projection.tools import Tool

_STATUS = {
    "streaming": "in_progress",
    "final": "completed",
    "interrupted": "interrupted",
    "stale": "stale",
    "retracted": "retracted",
}
_ROLES = {"user": "user_message", "assistant": "agent_message"}


def items_of(state: ProjectionState, project_id: str | None) -> list[Item]:
    """Every item of a thread, oldest first."""
    return [item for message in state.messages for item in _of(state, message, project_id)]


def _of(state: ProjectionState, message: Message, project_id: str | None) -> Iterator[Item]:
    run_id = None if message.turn_id is None else run_of(message.turn_id)
    for part in message.parts:
        if isinstance(part, TextPart):
            own = part.part_id.startswith(f"{message.message_id}:text")
            yield Item(
                item_id=message.message_id if own else f"{message.message_id}/{part.part_id}",
                type=_ROLES.get(message.role, f"{message.role}_message"),
                role=message.role,
                status=_STATUS[part.state],
                project_id=project_id,
                thread_id=state.thread_id,
                run_id=run_id,
                subagent_id=message.subagent_id,
                content=ItemContent(text=str(part.text), refs=message.input_refs),
                created_at=message.created_at,
                updated_at=message.completed_at or message.created_at,
            )
        elif isinstance(part, ToolPreviewPart) and part.tool_call_id in state.tools:
            yield _tool(state, state.tools[part.tool_call_id], project_id, run_id)


def _tool(state: ProjectionState, tool: Tool, project_id: str | None, run_id: str | None) -> Item:
    return Item(
        item_id=tool.tool_call_id,
        type="tool",
        status=tool.state,
        project_id=project_id,
        thread_id=state.thread_id,
        run_id=run_id,
        subagent_id=tool.subagent_id,
        content=ItemContent(
            tool_name=tool.tool_name,
            input=tool.args if tool.args is not None else str(tool.args_text) or None,
            output=tool.output if tool.output is not None else str(tool.output_text) or None,
            output_ref=tool.output_ref,
            is_error=tool.state == "output-error",
            exit_code=tool.exit_code,
            failure_category=tool.failure_category,
            refs=tool.ref_ids,
        ),
        created_at=tool.started_at,
        updated_at=tool.completed_at or tool.started_at,
    )
