"""Tools: calls, how far they are, how they ended, and the files that they changed."""

from typing import Any, Final, Literal

from factwire.edge.events.agent_payloads import FileChange, ToolCall, ToolResult
from factwire.edge.events.ids import run_id_of, sent_at, thread_id_of
from factwire.edge.events.numbers import amount
from factwire.edge.events.thing_payloads import Item, ItemContent
from factwire.edge.events.word import Said, Table, Word, Words, alike
from factwire.facts import Fact
from factwire.facts.payloads import FileChange as FilePayload
from factwire.facts.payloads import ToolCall as ToolPayload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.reading import read, ref_text, subagent_of, tool_of

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


def _status(fact: Fact, said: ToolPayload) -> _Status:
    if fact.event_class == "tool.progress":
        return "in_progress"
    return "pending" if said.args is None else "started"


def _call(fact: Fact) -> Said | None:
    call = tool_of(fact)
    if call is None:
        return None
    said = read(fact, ToolPayload)
    is_input = fact.event_class == "tool.args.delta"
    return "run.agent.tool_call", ToolCall(
        call_id=call,
        status=_status(fact, said),
        tool_name=said.tool_name,
        input=said.args,
        input_delta=said.delta if is_input else None,
        elapsed=amount(fact.payload, "elapsed", "elapsedSeconds"),
        progress=said.progress,
        total=said.total,
        message=said.message,
        subagent_id=subagent_of(fact),
    )


def _result(fact: Fact) -> Said | None:
    call = tool_of(fact)
    if call is None:
        return None
    said = read(fact, ToolPayload)
    return "run.agent.tool_result", ToolResult(
        call_id=call,
        is_error=fact.event_class == "tool.failed",
        tool_name=said.tool_name,
        content=_content(said),
        ref=ref_text(said.output_ref),
        exit_code=said.exit_code,
        failure_category=said.failure_category,
        duration_ms=said.duration_ms,
        subagent_id=subagent_of(fact),
    )


def _content(said: ToolPayload) -> Any:
    """What a call gave; where that is elsewhere or nothing, what is said about it."""
    return said.output if said.output is not None else said.message or said.summary


def _began(fact: Fact) -> Said | None:
    return _item(fact, "item.created", read(fact, ToolPayload))


def _went_on(fact: Fact) -> Said | None:
    return _item(fact, "item.updated", read(fact, ToolPayload))


def _item(fact: Fact, name: str, said: ToolPayload) -> Said | None:
    call = tool_of(fact)
    if call is None:
        return None
    is_input = fact.event_class == "tool.args.delta"
    content = ItemContent(
        tool_name=said.tool_name,
        input=said.args,
        input_delta=said.delta if is_input else None,
        progress=said.progress,
        total=said.total,
        message=said.message,
    )
    made = sent_at(fact.created_at) if name == "item.created" else None
    return name, _tool_item(fact, call, _status(fact, said), content, made)


def _ended(fact: Fact) -> Said | None:
    call = tool_of(fact)
    if call is None:
        return None
    said, failed = read(fact, ToolPayload), fact.event_class == "tool.failed"
    content = ItemContent(
        tool_name=said.tool_name,
        output=_content(said),
        output_ref=ref_text(said.output_ref),
        is_error=failed,
        exit_code=said.exit_code,
        failure_category=said.failure_category,
    )
    return "item.updated", _tool_item(fact, call, "failed" if failed else "completed", content)


def _tool_item(
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


def _file(fact: Fact) -> Said | None:
    said = read(fact, FilePayload)
    if not said.path:
        return None
    return "run.agent.file_change", FileChange(
        path=said.path,
        kind=_FILE_KINDS.get(said.change or "", UNKNOWN),
        diff=said.diff,
        diff_ref=ref_text(said.diff_ref),
        added_lines=said.added_lines,
        removed_lines=said.removed_lines,
        call_id=tool_of(fact),
    )


_CALL: Final = Word(_call, ("run.agent.tool_call",))
_RESULT: Final = Words(Word(_result, ("run.agent.tool_result",)), Word(_ended, ("item.updated",)))
_GOES_ON: Final = Words(_CALL, Word(_went_on, ("item.updated",)))

TOOL_WORDS: Final[Table] = {
    "tool.started": Words(_CALL, Word(_began, ("item.created",))),
    "tool.args": _GOES_ON,
    "tool.args.delta": _GOES_ON,
    "tool.progress": _GOES_ON,
    "tool.result": _RESULT,
    "tool.failed": _RESULT,
    "file.changed": alike(_file, "run.agent.file_change"),
}
