"""Which reducers a class has: one row a class, in the order in which they run."""

from collections.abc import Callable
from typing import Final

from factwire.facts.class_rows import ClassRow
from factwire.facts.classification import KNOWN_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.ids import ATTRIBUTES
from factwire.facts.needs import needs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import (
    actions,
    artifacts,
    coding,
    context,
    diagnostics,
    endings,
    evidence,
    messages,
    metrics,
    permissions,
    processes,
    queue,
    reasoning,
    repair,
    runtime,
    session,
    subagents,
    tasks,
    team,
    tools,
)
from factwire.projection.canvas import Canvas

Reducer = Callable[[Canvas, Fact], None]

NO_ROW: Final = ClassRow("", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

_TURN_END: Final = (
    endings.cut_off,
    tools.end_turn,
    messages.end_turn,
    permissions.end_turn,
    runtime.turn_ended,
)
_ACTION_END: Final = (actions.closed, permissions.settled)
_TOOL_END: Final = (artifacts.mentioned,)
_TEAMMATE: Final = (subagents.changed, team.member_changed)
_TASK: Final = (tasks.changed, team.work_changed)
_ARTIFACT: Final = (artifacts.changed,)
_COMPACTION: Final = (context.compacted,)

_BY_FAMILY: Final[dict[str, tuple[Reducer, ...]]] = {
    "session": (session.changed,),
    "thread": (session.changed,),
    "task": _TASK,
    "job": (tasks.job_changed,),
    "subagent": _TEAMMATE,
    "worker": _TEAMMATE,
    "agent": _TEAMMATE,
    "channel": _TEAMMATE,
    "handoff": (team.handed_off,),
    "permission": (permissions.decided,),
    "artifact": _ARTIFACT,
    "evidence": (evidence.changed,),
    "review": (evidence.reviewed, team.reviewed),
    "benchmark": (evidence.benchmarked,),
    "process": (processes.changed,),
    "command": (processes.changed,),
    "patch": (coding.patched,),
    "test": (coding.tested,),
    "hook": (processes.hooked,),
    "routing": (metrics.routed,),
    "output": (diagnostics.stated,),
    "runtime": (diagnostics.stated,),
    "project": (),
    "conversation": (),
    "message": (),
    "item": (),
    "runner": (),
    "preview": (),
}

_BY_CLASS: Final[dict[str, tuple[Reducer, ...]]] = {
    "turn.submitted": (messages.user_turn, queue.left, runtime.turn_submitted),
    "turn.started": (messages.user_turn, queue.left, runtime.turn_started),
    "turn.completed": _TURN_END,
    "turn.failed": _TURN_END,
    "turn.canceled": _TURN_END,
    "run.started": (runtime.turn_started,),
    "run.finished": _TURN_END,
    "run.failed": _TURN_END,
    "run.status": (runtime.run_status,),
    "run.persistence_error": (diagnostics.stated,),
    "model.requested": (runtime.model_requested,),
    "model.delta": (messages.text_delta,),
    "model.completed": (messages.text_final,),
    "model.failed": (runtime.model_failed, diagnostics.stated),
    "text.delta": (messages.text_delta,),
    "text.final": (messages.text_final,),
    "reasoning.started": (reasoning.started,),
    "reasoning.delta": (reasoning.delta,),
    "reasoning.summary": (reasoning.summarised,),
    "reasoning.completed": (reasoning.completed,),
    "plan.delta": (reasoning.plan_delta,),
    "plan.final": (reasoning.plan_final,),
    "messages.snapshot": (repair.messages_snapshot,),
    "tool.catalog.resolved": (context.catalog_resolved,),
    "tool.started": (tools.started, *_TOOL_END),
    "tool.args": (tools.args,),
    "tool.args.delta": (tools.args_delta,),
    "tool.progress": (tools.progress,),
    "tool.output.delta": (tools.output_delta,),
    "tool.result": (tools.result, *_TOOL_END),
    "tool.failed": (tools.failed, *_TOOL_END),
    "action.required": (actions.required,),
    "action.updated": (actions.updated,),
    "action.resolved": _ACTION_END,
    "action.cancelled": _ACTION_END,
    "action.canceled": _ACTION_END,
    "action.expired": _ACTION_END,
    "permission.requested": (permissions.requested,),
    "permission.resolved": (permissions.resolved,),
    "permission.denied": (permissions.denied, diagnostics.stated),
    "permission.changed": (permissions.decided,),
    "channel.permission_forwarded": (*_TEAMMATE, permissions.decided),
    "channel.permission_returned": (*_TEAMMATE, permissions.decided),
    "sandbox.applied": (permissions.sandbox_applied,),
    "sandbox.blocked": (permissions.sandbox_stopped, diagnostics.stated),
    "sandbox.violation": (permissions.sandbox_stopped, diagnostics.stated),
    "policy.changed": (permissions.policy_changed,),
    "hook.failed": (processes.hooked, diagnostics.stated),
    "queue.changed": (queue.changed,),
    "context.resolved": (context.changed,),
    "context.attached": (context.changed,),
    "context.changed": (context.changed,),
    "context.failed": (context.changed, diagnostics.stated),
    "context.compaction.started": _COMPACTION,
    "context.compaction.completed": _COMPACTION,
    "context.compaction.failed": (*_COMPACTION, diagnostics.stated),
    "history.compacted": _COMPACTION,
    "history.window.loaded": (repair.window_loaded,),
    "history.reconstructed": (repair.messages_snapshot,),
    "history.rollback.started": (),
    "history.rollback.completed": (repair.rolled_back,),
    "task.profile.resolved": (tasks.profile_resolved,),
    "task.delegated": (tasks.delegated, team.work_changed),
    "task.dependency.updated": (tasks.dependency_updated, team.work_changed),
    "worker.notification": (team.notified,),
    "agent.handoff": (team.handed_off,),
    "team.changed": (team.changed,),
    "process.output": (processes.output,),
    "command.output": (processes.output,),
    "file.read": (coding.file_touched,),
    "file.changed": (coding.file_touched, *_ARTIFACT),
    "routing.not_possible": (metrics.routed, diagnostics.stated),
    "limit.changed": (metrics.limited,),
    "cost.estimated": (metrics.cost_estimated,),
    "cost.recorded": (metrics.cost_recorded,),
    "rate_limit.hit": (metrics.limited, diagnostics.stated),
    "quota.low": (metrics.limited, diagnostics.stated),
    "quota.blocked": (metrics.limited, diagnostics.stated),
    "metrics.changed": (metrics.measured,),
    "metric.changed": (metrics.measured,),
    "diagnostic.changed": (diagnostics.stated,),
    "state.delta": (repair.state_delta,),
    "state.snapshot": (repair.state_snapshot,),
    "snapshot.updated": (repair.state_snapshot,),
    "snapshot.repaired": (repair.state_snapshot,),
    "stream.gap.detected": (repair.gap_reported,),
    "stream.repair.started": (repair.repair_started,),
    "stream.repair.completed": (),
}

STREAMING: Final = {
    "model.delta": "producing",
    "text.delta": "producing",
    "reasoning.delta": "reasoning",
    "plan.delta": "planning",
    "tool.args.delta": "acting",
    "tool.output.delta": "acting",
    "tool.progress": "acting",
    "process.output": "acting",
    "command.output": "acting",
}
"""Classes that come in great numbers, and the phase they mean: after the first fact of a subject
they touch nothing but that subject.
"""

_MAIN: Final = frozenset({"turn", "run", "model", "text", "reasoning", "plan", "tool", "action"})
"""Families whose phase is the phase of the run."""


_REPAIRING: Final = frozenset({"snapshot", "stream", "state", "messages", "history"})
"""Families that may open or close a doubt about the state."""


def _nothing(canvas: Canvas, fact: Fact) -> None:
    """The reducer of a class that changes no surface of its own."""


class Row:
    """How one class is reduced; one that streams has a phase, and `streamed` is its reducer."""

    __slots__ = ("_quick", "about", "is_main", "needs", "phase", "reducers", "repairs", "streamed")

    def __init__(self, name: str, reducers: tuple[Reducer, ...]) -> None:
        self.reducers = reducers
        self.about = KNOWN_CLASSES.get(name, NO_ROW)
        self.needs = needs_of(name)
        self.repairs = name.partition(".")[0] in _REPAIRING
        self.phase = STREAMING.get(name)
        self.streamed = reducers[0] if reducers else _nothing
        self.is_main = name.partition(".")[0] in _MAIN
        paths = [need.path for need in self.needs]
        known = all(path in ATTRIBUTES for path in paths)
        self._quick = tuple(ATTRIBUTES[path] for path in paths) if known else None

    def has_all(self, fact: Fact) -> bool:
        """Whether a fact carries what its class needs; most have it at the top level."""
        if self._quick is not None:
            for attribute in self._quick:
                if not getattr(fact, attribute):
                    break
            else:
                return True
        return all(need.met(fact) for need in self.needs)


def reducers_of(name: str) -> tuple[Reducer, ...]:
    """The reducers of a known class."""
    found = _BY_CLASS.get(name)
    return _BY_FAMILY[name.partition(".")[0]] if found is None else found


ROWS: Final = {name: Row(name, reducers_of(name)) for name in KNOWN_CLASSES}
"""Every class that is known; any other is shown as unknown."""
