"""What a fork brings along from its parent: messages, calls and artifacts from before it began.

Each row keeps the thread that it comes from as `origin_thread_id`, so that nobody takes it for work
of the fork. Content stays behind its refs, which are as readable from the fork as from the parent.
A call that was open in the parent ends there; in the fork it is `stale` and unclosed.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_values import objects_of, text_at
from factwire.projection import artifacts, repair, tools
from factwire.projection.artifacts import ArtifactState
from factwire.projection.diagnostics import add_remark
from factwire.projection.messages import ArtifactCardPart, Message, ToolPreviewPart
from factwire.projection.read_model_rows import (
    STALE,
    MessageSnapshot,
    TextSnapshot,
    copy_fields,
    restore_message,
    take_snapshot,
)
from factwire.projection.read_models import ToolCallSummary
from factwire.projection.state import ProjectionState
from factwire.projection.tools import Tool
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

Row = TypeVar("Row", bound=View)

_PARENT_IDS: Final = ("turn_id", "step_id", "task_id", "subagent_id", "action_id")
"""Ids of what stays in the parent."""

_FORKED_PARTS: Final = (TextSnapshot, ToolPreviewPart, ArtifactCardPart)


class ForkedHistory(View):
    """What a fork begins with."""

    messages: list[MessageSnapshot]
    tool_calls: list[ToolCallSummary]
    artifacts: list[ArtifactState]


def build_forked_history(state: ProjectionState, kept: list[Message]) -> ForkedHistory:
    """The messages that a fork keeps, with the calls and artifacts that they show; of a fork that
    keeps all, with all of the thread's own.
    """
    messages = [_fork_message(message, state) for message in kept]
    parts = [part for message in messages for part in message.parts]
    if kept and kept[-1] is _last_message(state):
        calls = {key for key, tool in state.tools.items() if tool.subagent_id is None}
        made = {key for key, each in state.artifacts.items() if each.subagent_id is None}
    else:
        calls, made = set[str](), set[str]()
    calls |= {part.tool_call_id for part in parts if isinstance(part, ToolPreviewPart)}
    made |= {part.artifact_id for part in parts if isinstance(part, ArtifactCardPart)}
    for key in calls & state.tools.keys():
        made.update(state.tools[key].artifact_ids or ())
    return ForkedHistory(
        messages=[message for message in messages if message.parts],
        tool_calls=[_fork_call(tool) for key, tool in state.tools.items() if key in calls],
        artifacts=[_fork_artifact(row) for key, row in state.artifacts.items() if key in made],
    )


def _last_message(state: ProjectionState) -> Message | None:
    own = [message for message in state.messages if message.subagent_id is None]
    return next((each for each in reversed(own) if each.status != "retracted"), None)


def _fork_message(message: Message, state: ProjectionState) -> MessageSnapshot:
    """A message as a fork has it: what was still being written was cut off by the fork."""
    snapshot = take_snapshot(message, state.hydration)
    parts = [part for part in snapshot.parts if isinstance(part, _FORKED_PARTS)]
    for part in parts:
        if isinstance(part, TextSnapshot) and part.state == "streaming":
            part.state = "interrupted"
        elif isinstance(part, ToolPreviewPart) and part.tool_call_id in state.tools:
            part.status = _fork_call(state.tools[part.tool_call_id]).state
    status = "interrupted" if snapshot.status == "streaming" else snapshot.status
    fields = {"turn_id": None, "task_id": None, "thread_id": None, "sequence": None}
    return msgspec.structs.replace(snapshot, parts=parts, status=status, **fields)


def _fork_call(tool: Tool) -> ToolCallSummary:
    call = copy_fields(tool, ToolCallSummary, **dict.fromkeys(_PARENT_IDS))
    if not tools.has_ended(tool):
        call.state, call.unclosed = STALE, True
    return call


def _fork_artifact(artifact: ArtifactState) -> ArtifactState:
    stays = {name: None for name in _PARENT_IDS if name in artifact.__struct_fields__}
    return msgspec.structs.replace(artifact, **stays)


def add_history_window(draft: "StateDraft", fact: Fact) -> None:
    """Older messages that were fetched, or what a fork brings along."""
    origin = text_at(fact.payload, "originThreadId", "origin_thread_id")
    if origin is None:
        is_older = fact.event_class == "history.window.loaded" or fact.phase == "hydrating"
        (repair.add_older_messages if is_older else repair.merge_messages)(draft, fact)
        return
    for call in _read_rows(draft, fact, "toolCalls", ToolCallSummary):
        if call.tool_call_id not in draft.state.tools:
            tools.add_tool(draft, _restore_call(call, origin))
    for artifact in _read_rows(draft, fact, "artifacts", ArtifactState):
        if artifact.artifact_id not in draft.state.artifacts:
            artifact.origin_thread_id = artifact.origin_thread_id or origin
            draft.create(
                draft.state.artifacts, artifacts.ARTIFACTS_PATH, artifact.artifact_id, artifact
            )
    rows = _read_rows(draft, fact, "messages", MessageSnapshot)
    _put_first(draft, fact, [row for row in rows if row.message_id not in draft.memory.names])


def take_messages(draft: "StateDraft", fact: Fact) -> None:
    """All messages as they are, or a window of them as a UI has it."""
    if repair.is_window(fact):
        repair.retract_named(draft, fact)
        add_history_window(draft, fact)
    else:
        repair.apply_messages_snapshot(draft, fact)


def _restore_call(call: ToolCallSummary, origin: str) -> Tool:
    tool = copy_fields(
        call,
        Tool,
        args_text=Text(),
        output_text=Text(),
        output_truncated=True if call.output_characters else None,
        origin_thread_id=call.origin_thread_id or origin,
    )
    if not tools.has_ended(tool):
        tool.state, tool.unclosed = STALE, True
    return tool


def _put_first(draft: "StateDraft", fact: Fact, rows: Iterable[MessageSnapshot]) -> None:
    """Put messages before those that are there."""
    origin = text_at(fact.payload, "originThreadId", "origin_thread_id")
    older = [restore_message(row) for row in rows]
    for message in older:
        message.thread_id = fact.thread_id
        message.origin_thread_id = message.origin_thread_id or origin
    if older:
        draft.put(draft.state, "", "messages", [*older, *draft.state.messages])
        draft.memory.index_messages(draft.state.messages)


def _read_rows(draft: "StateDraft", fact: Fact, name: str, kind: type[Row]) -> Iterator[Row]:
    """The rows of a list of the payload; one that cannot be read is remarked."""
    rows: list[dict[str, Any]] = objects_of(fact.payload.get(name))
    for row in rows:
        try:
            yield msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            add_remark(draft, fact, "unreadable_row", f"a row of {name} is unreadable: {error}")
