"""The process in lines: what happened, how tools stand, and what waits for a person."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from factwire.cli.sections.lines import DIM, LINE, NAME, Section, described, newest, shown
from factwire.cli.terminal_text import harmless
from factwire.projection import ProjectionState
from factwire.projection.actions import Action
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import Tool

_CONVERSATION: Final = "text:"
_LOOKED_AT: Final = 4
"""Entries looked at for each one shown, because those of the conversation are passed over."""


def process(state: ProjectionState, last: int) -> Section:
    """The newest of the timeline, without what is conversation."""
    entries = [
        entry
        for entry in state.timeline[-_LOOKED_AT * last :]
        if not entry.entry_id.startswith(_CONVERSATION)
    ]
    return Section("Process", [_entry(state, entry) for entry in entries[-last:]])


def tools(state: ProjectionState, last: int) -> Section:
    def line(key: str, tool: Tool) -> Text:
        return described(tool.state, tool.tool_name or key, tool.title, *_outcome(state, tool))

    return newest("Tools", state.tools, last, line)


def open_actions(state: ProjectionState, last: int) -> Section:
    """What waits for a person, the oldest first."""
    waiting = [action for action in state.actions.values() if action.status == "pending"]
    lines = [line for action in waiting[:last] for line in _action(action)]
    return Section("Open actions", lines, max(0, len(waiting) - last))


def _entry(state: ProjectionState, entry: TimelineEntry) -> Text:
    kind, _, key = entry.entry_id.partition(":")
    tool = state.tools.get(key) if kind == "tool" else None
    if tool is not None:
        details = (tool.tool_name, *_outcome(state, tool), entry.subagent_id)
        return described(tool.state, entry.title, *details)
    missing = "incomplete" if entry.degraded else None
    name = None if entry.title == entry.event_class else entry.event_class
    return described(entry.status, entry.title, name, entry.detail, missing, entry.subagent_id)


def _outcome(state: ProjectionState, tool: Tool) -> Iterator[str | None]:
    """What a call says of itself, how far it is, how it ended, and whether somebody is asked."""
    yield tool.summary or tool.message
    if tool.progress is not None and tool.completed_at is None:
        yield f"{tool.progress:g}" if tool.total is None else f"{tool.progress:g}/{tool.total:g}"
    if tool.exit_code:
        yield f"exit {tool.exit_code}"
    yield tool.failure_category
    action = state.actions.get(tool.action_id or "")
    if action is not None and action.status == "pending":
        yield "waits for a decision"


def _action(action: Action) -> Iterator[Text]:
    asked = action.prompt or action.title or action.action_id
    line = Text.assemble(("? ", "bold yellow"), (harmless(asked, LINE), "bold"))
    if action.severity:
        line.append(f"  {harmless(action.severity, NAME)}", style="red")
    yield line
    who = f"asked by {action.requested_by}" if action.requested_by else "asked by unknown"
    words = (action.action_id, action.action_type, who, action.tool_name, action.rule)
    yield Text("  " + "  ".join(harmless(word, NAME) for word in words if word), style=DIM)
    if action.command:
        place = f"  in {harmless(action.cwd, NAME)}" if action.cwd else ""
        yield Text.assemble("  $ ", (harmless(shown(action.command), LINE), "cyan"), (place, DIM))
