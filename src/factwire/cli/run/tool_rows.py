"""A call of a tool in lines: how it stands, how long it took, and the last that it said."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final, cast

from rich.text import Text

from factwire.cli.sections.lines import DIM, LINE, described, shown
from factwire.cli.terminal_text import harmless_block
from factwire.projection import ProjectionState
from factwire.projection.processes import Process
from factwire.projection.tools import Tool

_LINES: Final = 6
"""Lines of output that are shown, the last ones."""

_CHARACTERS: Final = 4_000
"""Characters of output that are looked at, the last ones."""

_WIDTH: Final = 500
"""Characters of a line of output; what is longer is data, not text."""

_PROCESSES: Final = 64
"""Processes that are looked through for that of a tool, the newest."""

_TELLING: Final = ("command", "argv", "path", "file_path", "url", "query", "pattern")
"""Arguments that tell what a call is about, best first."""


def tool_lines(state: ProjectionState, tool: Tool, now: str | None) -> Iterator[Text]:
    """The row of a call and its output; `now` is for how long one has run that still does."""
    name = tool.tool_name or tool.tool_call_id
    about = tool.title if tool.title and tool.title != name else _about(tool.args)
    outcome = tool.summary or tool.message
    failed = tool.failure_category
    code = f"exit {tool.exit_code}" if tool.exit_code else None
    yield described(tool.state, name, about, outcome, code, failed, _seconds(tool, now))
    process = _process(state, tool.tool_call_id)
    said = str(process.output) if process is not None else str(tool.output_text)
    if not said and isinstance(tool.output, str) and tool.completed_at is not None:
        said = tool.output
    if said != outcome:
        yield from _output(said)


def _about(args: Any) -> str | None:
    if not isinstance(args, dict):
        return None
    known = cast("dict[str, Any]", args)
    value = next((known[name] for name in _TELLING if known.get(name)), known or None)
    return None if value is None else shown(value)[:LINE]


def _output(said: str) -> Iterator[Text]:
    lines = harmless_block(said[-_CHARACTERS:])
    if len(lines) > _LINES or len(said) > _CHARACTERS:
        yield Text("  ⋮", style=DIM)
    for line in lines[-_LINES:]:
        cut = f"{line[:_WIDTH]}…" if len(line) > _WIDTH else line
        yield Text(f"  {cut}", style=DIM)


def _process(state: ProjectionState, call: str) -> Process | None:
    newest = islice(reversed(state.processes.values()), _PROCESSES)
    return next((process for process in newest if process.tool_call_id == call), None)


def _seconds(tool: Tool, now: str | None) -> str | None:
    if tool.duration_ms is not None:
        return f"{tool.duration_ms / 1_000:.1f} s"
    end = tool.completed_at or now
    if tool.started_at is None or end is None:
        return None
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(tool.started_at)
    except (ValueError, TypeError):
        return None
    return f"{max(took.total_seconds(), 0.0):.1f} s"
