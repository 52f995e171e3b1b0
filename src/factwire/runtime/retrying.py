"""Retrying: whether a turn that failed is tried again by itself, and when.

An attempt is kept as it was; the next one is a turn of its own that names it. What could have
changed something is not repeated: a second try at half-done work is the person's choice, unless
the policy says that the agent's work may be repeated.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from factwire.projection import ProjectionState
from factwire.projection.tools import Tool
from factwire.runtime.limits import RETRY_SECONDS
from factwire.runtime.policy.requests import TOOL_EFFECTS, lowered

_NOT_DONE: Final = frozenset({"permission_denied", "invalid_arguments", "unknown_tool"})
"""Failures of a tool after which it has done nothing."""


def later(now: str, seconds: float) -> str:
    """A time as facts state it, so many seconds after another."""
    due = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return due.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_until(due: str | None, now: str) -> float:
    """Seconds until a time; a clock that was put back makes nobody wait longer than is ever
    waited.
    """
    if due is None:
        return 0.0
    left = (datetime.fromisoformat(due) - datetime.fromisoformat(now)).total_seconds()
    return min(left, RETRY_SECONDS)


def effect_of_turn(state: ProjectionState, turn_id: str) -> str | None:
    """The first thing that a turn may have changed, in words; None if it only looked."""
    return next(_effects(state, turn_id), None)


def _effects(state: ProjectionState, turn_id: str) -> Iterator[str]:
    for tool in state.tools.values():
        if tool.turn_id == turn_id and _may_have_changed(tool):
            yield f"the tool {tool.tool_name or tool.tool_call_id}"
    for file in state.coding.files.values():
        if file.turn_id == turn_id and file.changes:
            yield f"the file {file.path}"
    for process in state.processes.values():
        if process.turn_id == turn_id and process.tool_call_id is None:
            yield f"the program {process.process_id}"
    for subagent in state.subagents.threads.values():
        if subagent.turn_id == turn_id:
            yield f"the subagent {subagent.name or subagent.subagent_id}"


def _may_have_changed(tool: Tool) -> bool:
    reads = TOOL_EFFECTS.get(lowered(tool.tool_name or "")) == "read"
    return not reads and tool.failure_category not in _NOT_DONE
