"""Whether a turn that failed is tried again by itself, and when.

Only failures of certain categories are, and never a turn that may have changed something,
unless the configuration allows it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from factwire.facts import Fact
from factwire.projection import ProjectionState
from factwire.projection.tools import Tool
from factwire.runtime.limits import RETRY_SECONDS
from factwire.runtime.policy.policy_request import TOOL_EFFECTS, fold_tool_name

CATEGORIES: Final = (
    "rate_limited",
    "provider_unavailable",
    "endpoint_unreachable",
    "endpoint_error",
    "endpoint_silent",
    "stream_interrupted",
)
"""Failures that pass by themselves, if nobody says otherwise."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a turn is tried in all, and how long is waited in between: `delay_seconds` first,
    then `factor` times as long each time. One attempt is no retry.
    """

    attempts: int = 1
    delay_seconds: float = 1.0
    factor: float = 2.0
    categories: tuple[str, ...] = CATEGORIES
    repeat_effects: bool = False

    def wants(self, terminal: Fact, attempt: int) -> bool:
        """Whether another attempt may follow one that ended so."""
        category = terminal.payload.get("failureCategory")
        failed = terminal.event_class == "turn.failed" and category in self.categories
        return failed and attempt < self.attempts

    def delay(self, attempt: int) -> float:
        """Seconds between this attempt and the next."""
        try:
            return min(self.delay_seconds * self.factor ** (attempt - 1), RETRY_SECONDS)
        except OverflowError:
            return RETRY_SECONDS


_NOT_DONE: Final = frozenset({"permission_denied", "invalid_arguments", "unknown_tool"})
"""Failures of a tool after which it has done nothing."""


def add_seconds(now: str, seconds: float) -> str:
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


def find_effect_of_turn(state: ProjectionState, turn_id: str) -> str | None:
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
    reads = TOOL_EFFECTS.get(fold_tool_name(tool.tool_name or "")) == "read"
    return not reads and tool.failure_category not in _NOT_DONE
