"""Screen: what a person could read off a state, as one small dict.

It shows each surface in a few words, so that an expectation can be written by hand and compared
whole. A surface on which there is nothing is not there.
"""

from typing import Any, Final, cast

from factwire.facts.vocabulary import TASK_STATES, TOOL_STATES
from factwire.projection import ProjectionState
from factwire.projection.messages import (
    ArtifactCardPart,
    DiagnosticRefPart,
    EvidenceCitationPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
)

_ENDED: Final = {"output-available", "output-error", "cancelled", "timed_out", "failed", "lost"} | {
    "completed",
    "archived",
}
OPEN_TOOLS: Final = frozenset(TOOL_STATES) - _ENDED
OPEN_TASKS: Final = frozenset(TASK_STATES) - _ENDED


def screen(state: ProjectionState) -> dict[str, Any]:
    """Everything that is on the screen."""
    surfaces = {
        "status": state.runtime.status,
        "hydration": state.hydration.status,
        "counts": counts(state),
        **_run(state),
        **_conversation(state),
        **_work(state),
        **_team(state),
        **_around(state),
    }
    return {name: shown for name, shown in surfaces.items() if shown}


def counts(state: ProjectionState) -> dict[str, int]:
    """How much there is of what; what there is none of is left out."""
    found = {
        "messages": len(state.messages),
        "parts": sum(len(message.parts) for message in state.messages),
        "timeline": len(state.timeline),
        "nodes": len(state.graph.nodes),
        "edges": len(state.graph.edges),
        "pending": sum(action.status == "pending" for action in state.actions.values()),
        "artifacts": len(state.artifacts),
        "evidence": len(state.evidence.items),
        "degraded": sum(bool(entry.degraded) for entry in state.timeline),
    }
    return {name: count for name, count in found.items() if count}


def _run(state: ProjectionState) -> dict[str, Any]:
    run, whole = state.runtime, state.hydration
    return {
        "title": state.title,
        "says": run.message,
        "model": run.model,
        "failure": _words(run.failure_category, run.recovery_hint),
        "blocked": run.blocked_reason,
        "gaps": [f"{gap.from_sequence}-{gap.to_sequence}" for gap in whole.gaps],
        "held": whole.held,
        "unfinished": _unfinished(state),
    }


_SPINNING: Final = frozenset({"pending", "running", "blocked"})
_OPEN: Final = frozenset({"unknown", *_SPINNING, *OPEN_TOOLS, *OPEN_TASKS})


def _unfinished(state: ProjectionState) -> list[str]:
    """What timeline and graph still show as under way, apart from what only happened once."""
    entries = [
        entry.entry_id
        for entry in state.timeline
        if entry.status in _SPINNING and not entry.entry_id.startswith("fact:")
    ]
    nodes = [key for key, node in state.graph.nodes.items() if node.status in _OPEN]
    return sorted({*entries, *nodes})


def _conversation(state: ProjectionState) -> dict[str, Any]:
    return {
        "conversation": [_message(message) for message in state.messages],
        "plans": {
            key: _words(plan.state, plan.decision, str(plan.text))
            for key, plan in state.plans.items()
        },
        "tools": {
            key: _words(tool.state, tool.failure_category, tool.output_ref)
            for key, tool in state.tools.items()
        },
        "actions": {
            key: _words(action.status, action.decision, action.subagent_id)
            for key, action in state.actions.items()
        },
        "queue": [turn.prompt for turn in state.queue.turns],
        "steers": [steer.text for steer in state.queue.steers],
    }


def _message(message: Message) -> str:
    speaker = _words(message.role, message.subagent_id)
    status = "" if message.status == "final" else f" ({message.status})"
    return _words(f"{speaker}{status}:", " | ".join(map(_part, message.parts)), message.input_refs)


def _part(part: Part) -> str:
    match part:
        case TextPart():
            return str(part.text)
        case ReasoningPart():
            return _words("thought", str(part.summary), f"({part.characters} unseen)")
        case ToolPreviewPart():
            return _words("tool", part.tool_call_id, part.status)
        case ArtifactCardPart():
            return _words("artifact", part.artifact_id, part.version_id)
        case EvidenceCitationPart():
            return _words("evidence", part.evidence_id, part.verdict)
        case DiagnosticRefPart():
            return "diagnostic"


def _work(state: ProjectionState) -> dict[str, Any]:
    evidence, coding = state.evidence, state.coding
    return {
        "artifacts": {
            key: _words(made.kind, made.status, made.version_id, made.export_status)
            for key, made in state.artifacts.items()
        },
        "evidence": {
            key: _words(item.kind, item.status, item.verdict)
            for key, item in evidence.items.items()
        },
        "reviews": {
            key: _words(review.status, review.verdict, review.reviewer)
            for key, review in evidence.reviews.items()
        },
        "trials": {
            key: _words(trial.status, trial.reward, trial.failure_category)
            for key, trial in evidence.trials.items()
        },
        "files": {
            key: f"read {file.reads}, changed {file.changes}, +{file.added_lines} "
            f"-{file.removed_lines}"
            for key, file in coding.files.items()
        },
        "patches": {
            key: _words(patch.status, patch.failure_category)
            for key, patch in coding.patches.items()
        },
        "tests": {
            key: _words(run.status, run.passed, run.failed) for key, run in coding.tests.items()
        },
        "tasks": {
            key: _words(
                task.status,
                task.reason,
                task.failure_category,
                _steps(task.completed_steps, task.total_steps),
                [f"{attempt.number}:{attempt.status}" for attempt in task.attempts],
            )
            for key, task in state.tasks.items()
        },
        "jobs": {
            key: _words(
                job.status,
                f"{job.items_completed} done, {job.items_failed} failed, "
                f"{job.items_running} running of {job.total_items}",
            )
            for key, job in state.jobs.items()
        },
    }


def _team(state: ProjectionState) -> dict[str, Any]:
    team, threads = state.team_workbench, state.subagents.threads
    return {
        "team": _words(team.team_name, team.team_phase, team.topology, team.active_agent),
        "policy": team.policy,
        "roster": {
            key: _words(node.kind, node.status, f"lineage {threads[key].lineage}")
            for key, node in team.roster_nodes.items()
        },
        "active": state.subagents.active_thread_ids,
        "board": {
            key: _words(item.status, item.assignee, item.blocked_by)
            for key, item in team.work_items.items()
            if item.assignee or item.blocked_by
        },
        "handoffs": {
            key: _words(handoff.status, handoff.from_agent, handoff.to_agent)
            for key, handoff in team.handoff_events.items()
        },
        "notifications": [
            _words(note.worker_id, note.message, note.result_ref) for note in team.notifications
        ],
    }


def _around(state: ProjectionState) -> dict[str, Any]:
    context, permissions, metrics = state.context, state.permissions, state.metrics
    return {
        "context": [_words(item.status, item.title) for item in context.items],
        "catalog": context.tool_catalog,
        "compactions": [
            _words(fold.status, fold.tokens_before, fold.tokens_after)
            for fold in context.compactions
        ],
        "permissions": [
            _words(event.event_class, event.decision, event.reason_code)
            for event in permissions.events
        ],
        "sandbox": permissions.sandbox.status if permissions.sandbox.applied else None,
        "limits": {key: limit.status for key, limit in metrics.limits.items()},
        "routing": [_words(choice.decision, choice.model) for choice in metrics.routing],
        "usage": _usage(state),
        "metrics": metrics.values,
        "processes": {
            key: _words(process.status, process.exit_code, f"{process.output_bytes} bytes")
            for key, process in state.processes.items()
        },
        "hooks": {
            key: _words(hook.status, hook.outcome, hook.exit_code)
            for key, hook in state.hooks.items()
        },
        "diagnostics": [
            f"{item.severity} {item.code}" for item in state.diagnostics.items.values()
        ],
        "shared": state.shared,
    }


def _usage(state: ProjectionState) -> str:
    usage = state.metrics.usage
    if not usage.records:
        return ""
    return f"{usage.total_tokens} tokens, {usage.total_cost_usd:.2f} USD"


def _steps(done: int | None, total: int | None) -> str | None:
    return None if done is None else f"{done}/{total}"


def _words(*values: object) -> str:
    return " ".join(_spelled(value) for value in values if value not in (None, "", []))


def _spelled(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, cast('list[object]', value)))}]"
    return str(value)
