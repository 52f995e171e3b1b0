"""Tools: what an agent called, with which input, and what came of it.

The state of a call is told by its own facts. A turn that is cancelled cancels what was open in it;
after any other end an open call reads `unknown`, because nobody knows how it ended.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import ToolCallPayload
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import text_at
from factwire.facts.outcomes import call_outcome
from factwire.facts.refs import REF_NAME, artifact_refs_of, evidence_refs_of, refs_at, refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.diagnostics import add_remark, record_diagnostic
from factwire.projection.limits import ARGS_CHARACTERS, OUTPUT_CHARACTERS
from factwire.projection.messages import ToolPreviewPart, add_part, find_part, message_beside
from factwire.projection.payload_fields import (
    build_field_checks,
    other_id,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

TOOLS_PATH: Final = "/tools"

ENDED_TOOLS: Final = frozenset({"output-available", "output-error", "cancelled"})
"""States that a call does not leave, unless it begins anew."""


class Tool(View):
    """One call. `args` and `output` are what a person may see; big output is behind a ref.
    `origin_thread_id` is the thread that a fork has it from.
    """

    tool_call_id: str
    state: str
    args_text: Text
    output_text: Text
    output_characters: int
    tool_name: str | None = None
    title: str | None = None
    args: Any = None
    args_truncated: bool | None = None
    output: Any = None
    output_ref: str | None = None
    diff: str | None = None
    diff_ref: str | None = None
    output_truncated: bool | None = None
    summary: str | None = None
    message: str | None = None
    progress: float | None = None
    total: float | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    turn_id: str | None = None
    message_id: str | None = None
    step_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    action_id: str | None = None
    artifact_ids: list[str] | None = None
    ref_ids: list[str] | None = None
    evidence_refs: list[str] | None = None
    unclosed: bool | None = None
    origin_thread_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


_TOOL_FIELDS: Final = build_field_checks(Tool, ToolCallPayload)


def has_ended(tool: Tool) -> bool:
    """Whether a call is over; a read model may know that it is and not since when."""
    return tool.completed_at is not None or tool.state in ENDED_TOOLS


def is_open(tool: Tool) -> bool:
    """Whether the end of a call is still to come."""
    return not tool.unclosed and not has_ended(tool)


def start_tool(draft: "StateDraft", fact: Fact) -> None:
    """A call began; one that had ended begins anew."""
    tool, path = ensure_tool(draft, fact)
    if not is_open(tool):
        _restart_tool(draft, tool, path)
        _move_tool(draft, tool, path, fact)
    draft.put(tool, path, "unclosed", None)
    _enter_state(draft, tool, path, "running")
    draft.fill(tool, path, started_at=fact.created_at)
    draft.memory.open_tool(tool.tool_call_id)
    describe_tool(draft, tool, path, fact)


def add_args(draft: "StateDraft", fact: Fact) -> None:
    tool, path = ensure_tool(draft, fact)
    _enter_state(draft, tool, path, "input-streaming")
    piece = fact.payload.get("delta")
    if type(piece) is str and _append_bounded(
        draft, tool.args_text, f"{path}/argsText", piece, ARGS_CHARACTERS
    ):
        draft.put(tool, path, "args_truncated", value=True)


def set_args(draft: "StateDraft", fact: Fact) -> None:
    tool, path = ensure_tool(draft, fact)
    _enter_state(draft, tool, path, "input-available")
    describe_tool(draft, tool, path, fact)
    # The whole input stands in for the pieces it came in.
    draft.rewrite(tool, path, "args_text", "")
    draft.put(tool, path, "args_truncated", None)


def update_progress(draft: "StateDraft", fact: Fact) -> None:
    tool, path = ensure_tool(draft, fact)
    _enter_state(draft, tool, path, "progress")
    describe_tool(draft, tool, path, fact)


def add_output(draft: "StateDraft", fact: Fact) -> None:
    tool, path = ensure_tool(draft, fact)
    if tool.state != "running":
        _enter_state(draft, tool, path, "running")
    piece = fact.payload.get("delta")
    if type(piece) is str:
        write_output(draft, tool, path, piece)
    if fact.ref_ids or len(fact.payload) > 1:
        refs = refs_of(fact)
        if refs:
            _take_refs(draft, tool, path, fact, refs)


def write_output(draft: "StateDraft", tool: Tool, path: str, piece: str) -> None:
    """Show a piece of output, as far as there is room; all of it is counted."""
    draft.count(tool, path, "output_characters", len(piece))
    if _append_bounded(draft, tool.output_text, f"{path}/outputText", piece, OUTPUT_CHARACTERS):
        draft.put(tool, path, "output_truncated", value=True)


def finish_tool(draft: "StateDraft", fact: Fact) -> None:
    """The result of a call; output that it states whole stands in for its pieces. One that states
    a failure is a failure.
    """
    tool, path = ensure_tool(draft, fact)
    whole = fact.payload.get("output")
    if not isinstance(whole, str):
        whole = fact.payload.get("text")
    if isinstance(whole, str):
        draft.rewrite(tool, path, "output_text", whole[:OUTPUT_CHARACTERS])
        draft.put(tool, path, "output_characters", len(whole))
        cut = len(whole) > OUTPUT_CHARACTERS
        draft.put(tool, path, "output_truncated", cut or None)
    end_tool(draft, fact, has_whole=isinstance(whole, str))


def end_tool(draft: "StateDraft", fact: Fact, *, has_whole: bool = False) -> None:
    """The end of a call, as its fact states it; it may bring the last piece of output."""
    rest = fact.payload.get("delta")
    if isinstance(rest, str) and not has_whole:
        write_output(draft, *ensure_tool(draft, fact), rest)
    state = _END_STATES.get(call_outcome(fact)) or _CLASS_ENDS[fact.event_class or ""]
    _end_tool(draft, fact, state)
    if state == "output-error":
        record_diagnostic(draft, fact)


_END_STATES: Final = {"failed": "output-error", "canceled": "cancelled"}
_CLASS_ENDS: Final = {"tool.result": "output-available", "tool.failed": "output-error"}


def _end_tool(draft: "StateDraft", fact: Fact, state: str) -> None:
    tool, path = ensure_tool(draft, fact)
    describe_tool(draft, tool, path, fact)
    draft.put(tool, path, "state", state)
    draft.put(tool, path, "completed_at", fact.completed_at or fact.created_at)
    draft.put(tool, path, "unclosed", None)
    draft.memory.open_tools.pop(tool.tool_call_id, None)
    _add_preview(draft, tool, fact)


def cancel_tool(draft: "StateDraft", fact: Fact, key: str) -> None:
    """An open call whose turn was cancelled is cancelled with it."""
    tool, path = draft.state.tools[key], _tool_path(key)
    draft.put(tool, path, "state", "cancelled")
    draft.put(tool, path, "completed_at", fact.created_at)
    draft.memory.open_tools.pop(key, None)
    _add_preview(draft, tool, fact)


def leave_unclosed(draft: "StateDraft", fact: Fact, key: str) -> None:
    """An open call whose turn is over: it goes on no longer, and nobody knows how it ended."""
    tool, path = draft.state.tools[key], _tool_path(key)
    draft.put(tool, path, "state", UNKNOWN)
    draft.put(tool, path, "unclosed", value=True)
    draft.memory.open_tools.pop(key, None)
    update_preview(draft, tool)
    message = f"tool {key} was open when its turn ended"
    add_remark(draft, fact, "tool_unclosed_at_turn_end", message, subject=key)


def ensure_tool(draft: "StateDraft", fact: Fact) -> tuple[Tool, str]:
    """The call that a fact is about, created by the first fact that names it."""
    key = tool_of(fact) or ""
    existing = draft.state.tools.get(key)
    if existing is not None:
        return existing, _tool_path(key)
    tool = Tool(
        tool_call_id=key,
        state="running",
        args_text=Text(),
        output_text=Text(),
        output_characters=0,
        turn_id=turn_of(fact),
        step_id=fact.step_id,
        task_id=task_of(fact),
        agent_id=fact.agent_id,
        subagent_id=subagent_of(fact),
    )
    add_tool(draft, tool)
    _add_preview(draft, tool, fact)
    return tool, _tool_path(key)


def add_tool(draft: "StateDraft", tool: Tool) -> None:
    """Put a call into the state, open or ended; its place among the others is kept."""
    draft.create(draft.state.tools, TOOLS_PATH, tool.tool_call_id, tool)
    draft.memory.keep_tool(tool.tool_call_id)
    if is_open(tool):
        draft.memory.open_tool(tool.tool_call_id)


def describe_tool(draft: "StateDraft", tool: Tool, path: str, fact: Fact) -> None:
    """Take over whatever a fact says about its call."""
    draft.take(tool, path, fact.payload, _TOOL_FIELDS)
    if tool.tool_name is None:
        draft.fill(tool, path, tool_name=text_at(fact.payload, "name", "tool_name"))
    refs = refs_of(fact)
    if refs:
        _take_refs(draft, tool, path, fact, refs)
        draft.extend(tool, path, "evidence_refs", evidence_refs_of(fact))


_RESULTS: Final = frozenset({"tool.output.delta", "tool.result", "tool.failed"})


def _take_refs(draft: "StateDraft", tool: Tool, path: str, fact: Fact, refs: list[str]) -> None:
    """Keep the refs of a fact with its call; what a result names without saying what it is, is
    its output.
    """
    output_refs = refs_at(fact.payload, "outputRef", "outputRefs")
    if fact.event_class in _RESULTS and not output_refs and tool.output_ref is None:
        unnamed = (*fact.ref_ids, *refs_at(fact.payload, "refIds"))
        output_refs = [ref for ref in unnamed if not _is_named(fact.payload, ref)]
    draft.fill(tool, path, output_ref=output_refs[0] if output_refs else None)
    named = {tool.output_ref}
    if other_id(fact, "artifactId", "artifact_id") is None:
        named.update(artifact_refs_of(fact))
    others = [ref for ref in refs if ref not in named or ref in fact.ref_ids]
    draft.extend(tool, path, "ref_ids", others)


def _is_named(payload: dict[str, Any], ref: str) -> bool:
    """Whether a field of the payload says what a ref is."""
    others = (name for name in payload if name not in ("refIds", "ref_ids"))
    return any(ref in refs_at(payload, name) for name in others if REF_NAME.search(name))


def link_artifact(draft: "StateDraft", fact: Fact, artifact_id: str) -> None:
    """Tie an artifact to the call that made it."""
    key = tool_of(fact)
    tool = draft.state.tools.get(key) if key else None
    if tool is not None and key is not None:
        draft.extend(tool, _tool_path(key), "artifact_ids", [artifact_id])


def _add_preview(draft: "StateDraft", tool: Tool, fact: Fact) -> None:
    key = tool.tool_call_id
    message_id = tool.message_id or message_beside(draft, fact)
    handle = find_part(draft, fact, message_id, _preview_part_id(tool), "tool-preview")
    if handle is None:
        part = ToolPreviewPart(
            part_id=_preview_part_id(tool),
            message_id=message_id,
            tool_call_id=key,
            status=tool.state,
            output_ref=tool.output_ref,
        )
        add_part(draft, fact, part)
        draft.put(tool, _tool_path(key), "message_id", message_id)
    else:
        draft.put(handle.part, handle.path, "status", tool.state)
        draft.fill(handle.part, handle.path, output_ref=tool.output_ref)


def _enter_state(draft: "StateDraft", tool: Tool, path: str, state: str) -> None:
    """Put a call into a state, and its preview with it; one that has ended stays as it ended."""
    if tool.state == state or tool.unclosed or has_ended(tool):
        return
    draft.put(tool, path, "state", state)
    update_preview(draft, tool)


def update_preview(draft: "StateDraft", tool: Tool) -> None:
    """Bring the preview of a call in line with it."""
    place = draft.memory.message_place(tool.turn_id, tool.message_id or "")
    handle = None
    if place is not None:
        handle = draft.memory.parts_by_id.get((place, "tool-preview", _preview_part_id(tool)))
    if handle is not None:
        draft.put(handle.part, handle.path, "status", tool.state)
        draft.put(handle.part, handle.path, "output_ref", tool.output_ref)


_OF_ONE_RUN: Final = (
    *("completed_at", "exit_code", "failure_category", "recovery_hint", "duration_ms"),
    *("output", "output_ref", "output_truncated", "summary", "message", "progress", "total"),
    "action_id",
)


def _restart_tool(draft: "StateDraft", tool: Tool, path: str) -> None:
    draft.put(tool, path, "state", "running")
    update_preview(draft, tool)
    for field in _OF_ONE_RUN:
        draft.put(tool, path, field, None)
    draft.rewrite(tool, path, "output_text", "")
    draft.put(tool, path, "output_characters", 0)


def _move_tool(draft: "StateDraft", tool: Tool, path: str, fact: Fact) -> None:
    """A call that begins anew in another turn belongs to that one, and is shown there."""
    turn = turn_of(fact)
    if turn is not None and turn != tool.turn_id:
        draft.put(tool, path, "turn_id", turn)
        draft.put(tool, path, "message_id", None)
        _add_preview(draft, tool, fact)


def _preview_part_id(tool: Tool) -> str:
    return f"tool:{tool.tool_call_id}"


def _append_bounded(draft: "StateDraft", text: Text, path: str, piece: str, limit: int) -> bool:
    """Add as much of a piece as there is room for; whether something was left out."""
    left = limit - text.length
    if left > 0 and piece:
        draft.grow(text, path, piece[:left])
    return len(piece) > left


def _tool_path(key: str) -> str:
    return f"{TOOLS_PATH}/{escape_key(key)}"
