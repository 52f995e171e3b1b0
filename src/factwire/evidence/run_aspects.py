"""Aspects: what a state holds of each turn, as items.

One function an aspect: it takes the state and gives, for each thing, the turn it belongs to, a
subject, and the fields by which two such things are told apart. Ids and times are not among them.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from factwire.evidence.run_comparison import Aspect
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import DIAGNOSTIC_CODES, ProjectionState
from factwire.projection.diagnostics import Diagnostic
from factwire.projection.messages import Message, TextPart

AspectRow = tuple[str | None, str, dict[str, Any]]
"""Turn, subject and fields of one thing."""

_EVERYWHERE: Final = frozenset({"permission.evaluated"})
"""Decisions that every call brings along; the call and what was asked say the same."""

_OF_DELIVERY: Final = frozenset(
    {
        *("foreign_thread", "conflicting_fact", "sequence_conflict"),
        *("window_overflow", "snapshot_outdated"),
    }
)
"""Remarks on how facts arrived, which say nothing of what was done."""


def name_teammate(state: ProjectionState, key: str | None) -> str | None:
    """What a teammate is called, since its id is new in every run."""
    thread = state.subagents.threads.get(key or "")
    return key if thread is None else thread.name or thread.role or thread.title or key


def list_prompts(state: ProjectionState) -> Iterator[AspectRow]:
    for message in state.messages:
        if message.role == "user":
            fields = {"text": _join_text(message), "inputs": message.input_refs}
            yield message.turn_id, "prompt", fields


def list_answers(state: ProjectionState) -> Iterator[AspectRow]:
    for message in state.messages:
        text = _join_text(message)
        if message.role == "user" or (not text and message.status != "retracted"):
            continue
        status = None if message.status == "final" else message.status
        speaker = name_teammate(state, message.subagent_id) or message.role
        yield message.turn_id, speaker, {"text": text, "status": status}


def list_plans(state: ProjectionState) -> Iterator[AspectRow]:
    for plan in state.plans.values():
        fields = {"text": str(plan.text), "steps": plan.steps, "decision": plan.decision}
        by = {"by": name_teammate(state, plan.subagent_id)}
        state_of = {"state": None if plan.state == "final" else plan.state}
        yield plan.turn_id, "plan", fields | by | state_of


def list_tools(state: ProjectionState) -> Iterator[AspectRow]:
    for tool in state.tools.values():
        fields = {
            "args": str(tool.args_text) if tool.args is None else tool.args,
            "status": tool.state,
            "exitCode": tool.exit_code,
            "output": str(tool.output_text) if tool.output is None else tool.output,
            "outputRef": tool.output_ref,
            "summary": tool.summary,
            "failureCategory": tool.failure_category,
            "message": tool.message,
            "unclosed": tool.unclosed,
            "by": name_teammate(state, tool.subagent_id),
        }
        yield tool.turn_id, tool.tool_name or "unnamed tool", fields
    yield from _list_commands(state)
    yield from _list_checks(state)


def _list_commands(state: ProjectionState) -> Iterator[AspectRow]:
    """Programs that no tool call tells of, and hooks."""
    for process in state.processes.values():
        if process.tool_call_id not in state.tools:
            fields = {
                "command": process.command,
                "cwd": process.cwd,
                "status": process.status,
                "exitCode": process.exit_code,
                "signal": process.signal,
                "failureCategory": process.failure_category,
                "output": str(process.output),
                "outputRef": process.output_ref,
            }
            yield process.turn_id, process.kind, fields
    for hook in state.hooks.values():
        fields = {
            "status": hook.status,
            "event": hook.hook_event,
            "outcome": hook.outcome,
            "exitCode": hook.exit_code,
            "message": hook.message,
        }
        yield hook.turn_id, f"hook {hook.hook_name or ''}".strip(), fields


def _list_checks(state: ProjectionState) -> Iterator[AspectRow]:
    for patch in state.coding.patches.values():
        fields = {
            "paths": patch.paths,
            "status": patch.status,
            "failureCategory": patch.failure_category,
            "message": patch.message,
        }
        yield patch.turn_id, "patch", fields
    for run in state.coding.tests.values():
        fields = {
            "command": run.command,
            "status": run.status,
            "passed": run.passed,
            "failed": run.failed,
            "skipped": run.skipped,
        }
        yield run.turn_id, "tests", fields


def list_approvals(state: ProjectionState) -> Iterator[AspectRow]:
    for action in state.actions.values():
        fields = {
            "prompt": action.prompt or action.title,
            "shown": action.shown,
            "detail": action.detail,
            "severity": action.severity,
            "tool": action.tool_name,
            "command": action.command,
            "cwd": action.cwd,
            "rule": action.rule,
            "options": action.options,
            "requestedBy": name_teammate(state, action.requested_by),
            "status": action.status,
            "decision": action.decision,
            "reason": action.reason,
            "decidedBy": None if action.decided_by is None else str(action.decided_by),
            "applied": action.applied,
            "response": action.response,
        }
        yield action.turn_id, action.action_type or "request", fields
    for event in state.permissions.events:
        if event.event_class not in _EVERYWHERE:
            fields = {
                "decision": event.decision,
                "mode": event.mode,
                "rule": event.rule,
                "reasonCode": event.reason_code,
                "message": event.message,
                "tool": event.tool_name,
                "path": event.path,
                "command": event.command,
            }
            yield event.turn_id, event.event_class, fields


def list_artifacts(state: ProjectionState) -> Iterator[AspectRow]:
    for made in state.artifacts.values():
        if made.kind == "file" and made.path in state.coding.files:
            continue
        fields = {
            "kind": made.kind,
            "status": made.status,
            "mediaType": made.media_type,
            "path": made.path,
            "versions": len(made.versions) or None,
            "contentRef": made.content_ref,
            "exportStatus": made.export_status,
            "failureCategory": made.failure_category,
            "message": made.message,
            "by": name_teammate(state, made.subagent_id),
        }
        yield made.turn_id, made.title or made.path or made.kind, fields


def list_agents(state: ProjectionState) -> Iterator[AspectRow]:
    for key, thread in state.subagents.threads.items():
        fields = {
            "role": thread.role,
            "title": thread.title,
            "status": thread.status,
            "summary": thread.summary,
            "message": thread.message,
            "failureCategory": thread.failure_category,
            "topology": thread.topology,
            "resultRef": thread.result_ref,
            "parent": name_teammate(state, thread.parent_subagent_id),
        }
        yield thread.turn_id, name_teammate(state, key) or "subagent", fields
    for event in state.team_workbench.handoff_events.values():
        giver, taker = name_teammate(state, event.from_agent), name_teammate(state, event.to_agent)
        fields = {"from": giver, "to": taker, "status": event.status, "reason": event.reason}
        yield event.turn_id, "handoff", fields
    for notification in state.team_workbench.notifications:
        worker = name_teammate(state, notification.worker_id)
        fields = {"from": worker, "message": notification.message, "status": notification.status}
        yield None, "notification", fields


def list_tasks(state: ProjectionState) -> Iterator[AspectRow]:
    for task in state.tasks.values():
        if task.status == UNKNOWN and not task.title and not task.objective:
            continue
        fields = {
            "status": task.status,
            "objective": task.objective,
            "assignee": name_teammate(state, task.assignee),
            "attempts": [[each.status, each.failure_category] for each in task.attempts],
            "completedSteps": task.completed_steps,
            "totalSteps": task.total_steps,
            "progress": task.progress,
            "reason": task.reason,
            "message": task.message,
            "failureCategory": task.failure_category,
        }
        yield task.turn_id, task.title or task.objective or "task", fields
    for job in state.jobs.values():
        fields = {
            "status": job.status,
            "items": job.total_items,
            "completed": job.items_completed,
            "failed": job.items_failed,
            "message": job.message,
        }
        yield None, f"job {job.title or ''}".strip(), fields


def list_evidence(state: ProjectionState) -> Iterator[AspectRow]:
    for item in state.evidence.items.values():
        fields = {
            "kind": item.kind,
            "status": item.status,
            "verdict": item.verdict,
            "summary": item.summary,
            "url": item.url,
        }
        yield item.turn_id, item.title or item.kind, fields
    for review in state.evidence.reviews.values():
        fields = {
            "status": review.status,
            "verdict": review.verdict,
            "reviewer": name_teammate(state, review.reviewer),
            "summary": review.summary,
        }
        yield review.turn_id, "review", fields


def list_trials(state: ProjectionState) -> Iterator[AspectRow]:
    for trial in state.evidence.trials.values():
        fields = {
            "dataset": trial.dataset,
            "configuration": trial.configuration,
            "status": trial.status,
            "reward": trial.reward,
            "failureCategory": trial.failure_category,
        }
        yield None, trial.task or "trial", fields


def list_errors(state: ProjectionState) -> Iterator[AspectRow]:
    for found in state.diagnostics.items.values():
        if found.code in _OF_DELIVERY or _is_of_a_call(state, found):
            continue
        # What a projection remarks itself names ids; its code says all that two runs can share.
        own = found.code in DIAGNOSTIC_CODES
        fields = {
            "severity": found.severity,
            "message": None if own else found.message,
            "failureCategory": found.failure_category,
            "recoveryHint": found.recovery_hint,
        }
        yield found.turn_id, found.code, fields


def _is_of_a_call(state: ProjectionState, found: Diagnostic) -> bool:
    """Whether a remark says no more than that a call failed, which is compared as a call."""
    call = state.tools.get(found.subject or "")
    return call is not None and found.code in (call.failure_category, "tool.failed")


ASPECT_LISTERS: Final[dict[Aspect, Callable[[ProjectionState], Iterator[AspectRow]]]] = {
    "prompt": list_prompts,
    "answers": list_answers,
    "plans": list_plans,
    "tools": list_tools,
    "approvals": list_approvals,
    "artifacts": list_artifacts,
    "agents": list_agents,
    "tasks": list_tasks,
    "evidence": list_evidence,
    "trials": list_trials,
    "errors": list_errors,
}
"""Aspects that a state holds; the others are in the ledger."""


def _join_text(message: Message) -> str:
    return "\n\n".join(str(part.text) for part in message.parts if isinstance(part, TextPart))
