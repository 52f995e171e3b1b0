"""A whole day on one thread: the scenes of other stories, one after another."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from .answers import interleaved_parts, plan_approved, reasoning_summary, text_turn, turn_failed
from .recorder import Recorder, Story
from .repairs import rolled_back
from .surroundings import context_compacted, diagnostics_noted, routing_and_cost
from .tasks import job_items, task_endings, task_retried
from .team import approval_delegated, subagents_parallel, team_at_work, teammates_away
from .tools import approval_denied, approval_granted, tool_failure, tool_success
from .work import (
    artifact_troubles,
    artifact_versions,
    benchmark_trials,
    coding_failed,
    coding_fixed,
    evidence_reviewed,
    hooks_and_processes,
)

SCENES: Final = (
    text_turn,
    reasoning_summary,
    tool_success,
    tool_failure,
    interleaved_parts,
    approval_granted,
    context_compacted,
    coding_failed,
    coding_fixed,
    plan_approved,
    task_retried,
    hooks_and_processes,
    artifact_versions,
    evidence_reviewed,
    rolled_back,
    turn_failed,
    routing_and_cost,
    subagents_parallel,
    approval_denied,
    team_at_work,
    teammates_away,
    task_endings,
    artifact_troubles,
    job_items,
    diagnostics_noted,
    benchmark_trials,
    approval_delegated,
)
"""Scenes that end what they begin, in the order of the day; the last one is under way."""

_BREAK: Final = 17 * 60
_OF_ITS_TURN: Final = frozenset({"failure", "says", "blocked"})
"""What a screen shows only until the next turn."""


def _together(told: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What a screen shows after all of it: everything that each part shows, in order."""
    shown: dict[str, Any] = {}
    for name, found in (item for part in told for item in part.items()):
        known = shown.get(name)
        if name == "counts":
            shown[name] = dict(Counter[str](known) + Counter[str](found))
        elif isinstance(known, dict | list):
            shown[name] = {**known, **found} if isinstance(known, dict) else [*known, *found]
        elif name not in _OF_ITS_TURN:
            shown[name] = found
    return {**shown, "unfinished": sorted(shown["unfinished"])}


def _day(told: Recorder) -> None:
    for part in SCENES:
        part.scene(told)
        told.wait(_BREAK)


STORIES = (
    Story(
        name="whole_day",
        shows="A working day of one thread, with something on nearly every surface.",
        scene=_day,
        expected=_together(part.expected for part in SCENES),
    ),
)
