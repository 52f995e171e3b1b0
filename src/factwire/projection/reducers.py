"""Which reducers an event class has: one row for each class, in the order in which they run.

The end of a turn first closes what is open in it (`turn_closing`), then its messages.
"""

from collections.abc import Callable
from typing import Final

from factwire.facts.classes.class_tables import KNOWN_CLASSES, NO_CLASS, required_fields_of
from factwire.facts.fact import ATTRIBUTES, Fact
from factwire.projection import (
    actions,
    artifacts,
    coding,
    diagnostics,
    history_window,
    messages,
    model_usage,
    reasoning,
    repair,
    subagents,
    tasks,
    team,
    thread_status,
    tools,
    turn_closing,
    turns,
)
from factwire.projection.draft import StateDraft

Reducer = Callable[[StateDraft, Fact], None]

_TURN_END: Final = (
    turn_closing.close_turn_work,
    messages.end_turn_messages,
    reasoning.end_turn_plans,
    actions.end_turn_permissions,
    turns.end_turn,
    team.follow_turn,
    turn_closing.align_entity,
    thread_status.end_turn,
)
_ACTION_END_REDUCERS: Final = (actions.close_action, actions.settle_permission)
_MADE: Final = (artifacts.mention_artifacts,)
_CALL_END: Final = (turn_closing.withdraw_call_work, *_MADE)
_TEAMMATE: Final = (subagents.update_subagent, team.update_member)
_TASK: Final = (tasks.update_task, team.update_work_item)
_ARTIFACT: Final = (artifacts.update_artifacts,)
_COMPACTION: Final = (model_usage.record_compaction,)

_BY_FAMILY: Final[dict[str, tuple[Reducer, ...]]] = {
    "session": (thread_status.update_title,),
    "thread": (thread_status.update_title,),
    "task": _TASK,
    "job": (tasks.update_job,),
    "subagent": _TEAMMATE,
    "worker": _TEAMMATE,
    "agent": _TEAMMATE,
    "channel": _TEAMMATE,
    "handoff": (team.record_handoff,),
    "permission": (actions.record_permission,),
    "artifact": _ARTIFACT,
    "evidence": (artifacts.update_evidence,),
    "review": (artifacts.record_review, team.record_review_event),
    "benchmark": (artifacts.record_benchmark,),
    "process": (coding.update_process,),
    "command": (coding.update_process,),
    "patch": (coding.record_patch,),
    "test": (coding.record_test_run,),
    "hook": (coding.record_hook,),
    "routing": (model_usage.record_routing,),
    "output": (diagnostics.record_diagnostic,),
    "runtime": (diagnostics.record_diagnostic,),
    "project": (),
    "conversation": (),
    "message": (),
    "item": (),
    "runner": (),
    "preview": (),
    "retention": (),
}

_BY_CLASS: Final[dict[str, tuple[Reducer, ...]]] = {
    "turn.submitted": (
        messages.add_user_message,
        thread_status.remove_from_queue,
        turns.submit_turn,
        thread_status.submit_turn,
    ),
    "turn.started": (
        messages.add_user_message,
        thread_status.remove_from_queue,
        turns.start_turn,
        team.follow_turn,
        turn_closing.align_entity,
        thread_status.start_turn,
    ),
    "turn.completed": _TURN_END,
    "turn.failed": _TURN_END,
    "turn.canceled": _TURN_END,
    "run.started": (
        turns.start_turn,
        team.follow_turn,
        turn_closing.align_entity,
        thread_status.start_turn,
    ),
    "run.finished": _TURN_END,
    "run.failed": _TURN_END,
    "run.status": (thread_status.update_run_status, team.note_run_status),
    "run.persistence_error": (diagnostics.record_diagnostic,),
    "model.requested": (thread_status.record_model_request,),
    "model.delta": (messages.add_text,),
    "model.completed": (messages.finish_text,),
    "model.failed": (
        messages.add_last_piece,
        thread_status.record_model_failure,
        team.note_run_status,
        diagnostics.record_diagnostic,
    ),
    "text.delta": (messages.add_text,),
    "text.final": (messages.finish_text,),
    "reasoning.started": (reasoning.start_reasoning,),
    "reasoning.delta": (reasoning.add_reasoning,),
    "reasoning.summary": (reasoning.summarize_reasoning,),
    "reasoning.completed": (reasoning.complete_reasoning,),
    "plan.delta": (reasoning.add_plan_text,),
    "plan.final": (reasoning.finish_plan,),
    "messages.snapshot": (history_window.take_messages,),
    "tool.catalog.resolved": (model_usage.set_tool_catalog,),
    "tool.started": (tools.start_tool, *_MADE),
    "tool.args": (tools.set_args,),
    "tool.args.delta": (tools.add_args,),
    "tool.progress": (tools.update_progress,),
    "tool.output.delta": (tools.add_output,),
    "tool.result": (tools.finish_tool, *_CALL_END),
    "tool.failed": (tools.end_tool, *_CALL_END),
    "action.required": (actions.open_action,),
    "action.updated": (actions.update_action,),
    "action.resolved": _ACTION_END_REDUCERS,
    "action.cancelled": _ACTION_END_REDUCERS,
    "action.canceled": _ACTION_END_REDUCERS,
    "action.expired": _ACTION_END_REDUCERS,
    "permission.requested": (actions.request_permission,),
    "permission.resolved": (actions.resolve_permission,),
    "permission.denied": (actions.deny_permission, diagnostics.record_diagnostic),
    "permission.changed": (actions.record_permission,),
    "channel.permission_forwarded": (*_TEAMMATE, actions.record_permission),
    "channel.permission_returned": (*_TEAMMATE, actions.record_permission),
    "sandbox.applied": (actions.apply_sandbox,),
    "sandbox.blocked": (actions.count_sandbox_stop, diagnostics.record_diagnostic),
    "sandbox.violation": (actions.count_sandbox_stop, diagnostics.record_diagnostic),
    "policy.changed": (actions.update_policy,),
    "hook.failed": (coding.record_hook, diagnostics.record_diagnostic),
    "queue.changed": (thread_status.update_queue,),
    "context.resolved": (model_usage.update_context,),
    "context.attached": (model_usage.update_context,),
    "context.changed": (model_usage.update_context,),
    "context.failed": (model_usage.update_context, diagnostics.record_diagnostic),
    "context.compaction.started": _COMPACTION,
    "context.compaction.completed": _COMPACTION,
    "context.compaction.failed": (*_COMPACTION, diagnostics.record_diagnostic),
    "history.compacted": _COMPACTION,
    "history.window.loaded": (history_window.add_history_window,),
    "history.reconstructed": (repair.apply_messages_snapshot,),
    "history.rollback.started": (),
    "history.removed": (),
    "history.rollback.completed": (repair.roll_back_messages,),
    "task.profile.resolved": (tasks.set_task_profile,),
    "task.delegated": (tasks.delegate_task, team.update_work_item),
    "task.dependency.updated": (tasks.update_dependency, team.update_work_item),
    "worker.notification": (team.record_notification,),
    "agent.handoff": (team.record_handoff,),
    "team.changed": (team.update_team,),
    "process.output": (coding.add_output,),
    "command.output": (coding.add_output,),
    "file.read": (coding.record_file,),
    "file.changed": (coding.record_file, *_ARTIFACT),
    "routing.not_possible": (model_usage.record_routing, diagnostics.record_diagnostic),
    "limit.changed": (model_usage.update_limit,),
    "cost.estimated": (model_usage.estimate_cost,),
    "cost.recorded": (model_usage.record_cost,),
    "rate_limit.hit": (model_usage.update_limit, diagnostics.record_diagnostic),
    "quota.low": (model_usage.update_limit, diagnostics.record_diagnostic),
    "quota.blocked": (model_usage.update_limit, diagnostics.record_diagnostic),
    "metrics.changed": (model_usage.update_metrics,),
    "metric.changed": (model_usage.update_metrics,),
    "diagnostic.changed": (diagnostics.record_diagnostic,),
    "state.delta": (repair.patch_shared_state,),
    "state.snapshot": (repair.apply_state_snapshot,),
    "snapshot.updated": (repair.apply_state_snapshot,),
    "snapshot.repaired": (repair.apply_state_snapshot,),
    "stream.gap.detected": (repair.report_gap,),
    "stream.repair.started": (repair.start_repair,),
    "stream.repair.completed": (),
}

STREAMING_PHASES: Final = {name: row.phase for name, row in KNOWN_CLASSES.items() if row.streams}
"""Classes that come in great numbers, and the phase they mean: after the first fact of a subject
they touch nothing but that subject.
"""

_RUN_FAMILIES: Final = frozenset(
    {"turn", "run", "model", "text", "reasoning", "plan", "tool", "action"}
)
"""Families whose phase is the phase of the run."""


_REPAIR_FAMILIES: Final = frozenset({"snapshot", "stream", "state", "messages", "history"})
"""Families that may open or close a doubt about the state."""


def _ignore_fact(draft: StateDraft, fact: Fact) -> None:
    """The reducer of a class that changes no surface of its own."""


class ReducerRow:
    """How one class is reduced; one that streams has a phase, and `streamed` is its reducer."""

    __slots__ = ("_quick", "about", "is_main", "needs", "phase", "reducers", "repairs", "streamed")

    def __init__(self, name: str, reducers: tuple[Reducer, ...]) -> None:
        self.reducers = reducers
        self.about = KNOWN_CLASSES.get(name, NO_CLASS)
        self.needs = required_fields_of(name)
        self.repairs = name.partition(".")[0] in _REPAIR_FAMILIES
        self.phase = STREAMING_PHASES.get(name)
        self.streamed = reducers[0] if reducers else _ignore_fact
        self.is_main = name.partition(".")[0] in _RUN_FAMILIES
        paths = [need.path for need in self.needs]
        is_quick = all(path in ATTRIBUTES for path in paths)
        self._quick = tuple(ATTRIBUTES[path] for path in paths) if is_quick else None

    def has_all(self, fact: Fact) -> bool:
        """Whether a fact carries what its class needs; most have it at the top level."""
        if self._quick is not None:
            for attribute in self._quick:
                if not getattr(fact, attribute):
                    break
            else:
                return True
        return all(need.is_met(fact) for need in self.needs)


def reducers_of(name: str) -> tuple[Reducer, ...]:
    """The reducers of a class; one without any is shown in the timeline alone."""
    found = _BY_CLASS.get(name)
    return _BY_FAMILY.get(name.partition(".")[0], ()) if found is None else found


REDUCER_ROWS: Final = {name: ReducerRow(name, reducers_of(name)) for name in KNOWN_CLASSES}
"""Every class that is known; any other is shown as unknown."""
