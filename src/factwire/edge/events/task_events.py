"""Tasks and the agents that work on them; a handoff or a subagent is never told as the answer."""

from typing import Any, Final

from factwire.facts import Fact
from factwire.facts.classes.payloads import ProgressPayload, TaskPayload, TeammatePayload
from factwire.facts.json_values import object_at, text_at
from factwire.projection.payload_fields import (
    other_id,
    read_payload,
    ref_text,
    subagent_of,
    task_of,
    tool_of,
)
from factwire.serving.envelopes import EventPayload, MappingTable, TypedPayload, map_both_views


class TaskStarted(EventPayload, frozen=True):
    """A task has begun."""

    task_id: str
    call_id: str | None = None
    description: str | None = None
    task_type: str | None = None
    parent_id: str | None = None


class TaskDispatched(EventPayload, frozen=True):
    """A task was given to another agent; `parent_id` is the task that it is part of."""

    agent_id: str
    task_id: str | None = None
    task: str | None = None
    role: str | None = None
    parent_id: str | None = None
    call_id: str | None = None


class TaskProgress(EventPayload, frozen=True):
    """How far a task is."""

    task_id: str
    description: str | None = None
    last_tool_name: str | None = None
    usage: dict[str, Any] | None = None
    completed_steps: int | None = None
    total_steps: int | None = None
    agent_id: str | None = None


class TaskNotification(EventPayload, frozen=True):
    """How a task ended, or what its worker has to say."""

    task_id: str
    status: str
    summary: str | None = None
    usage: dict[str, Any] | None = None
    ref: str | None = None
    agent_id: str | None = None


class SubAgentsComplete(EventPayload, frozen=True):
    """All agents under one parent are done."""

    parent_id: str
    child_count: int
    all_complete: bool


_ENDS: Final = {
    "task.completed": "completed",
    "task.failed": "failed",
    "task.cancelled": "cancelled",
    "task.timed_out": "timed_out",
    "task.lost": "lost",
}


_ENDINGS: Final = frozenset((*_ENDS.values(), "stopped", "canceled"))


def _parent_task_id(fact: Fact) -> str | None:
    return other_id(fact, "parentTaskId", "parent_task_id")


def _worker_id(fact: Fact) -> str | None:
    return subagent_of(fact) or other_id(fact, "workerId", "worker_id")


def _read_usage(fact: Fact) -> dict[str, Any] | None:
    return object_at(fact.payload.get("usage"))


def _to_task_started(fact: Fact) -> TypedPayload | None:
    task, fields = task_of(fact), read_payload(fact, TaskPayload)
    if task is None:
        return None
    return "run.agent.task_started", TaskStarted(
        task_id=task,
        call_id=tool_of(fact),
        description=fields.title or fields.objective or text_at(fact.payload, "name"),
        task_type=text_at(fact.payload, "taskType", "kind") or fields.role,
        parent_id=_parent_task_id(fact),
    )


def _to_task_dispatched(fact: Fact) -> TypedPayload | None:
    """A task that was given to somebody: a new subagent, or whom it was delegated to."""
    fields = read_payload(fact, TeammatePayload)
    assignee = text_at(fact.payload, "delegatedTo", "assignee")
    agent = assignee or _worker_id(fact) or fact.agent_id
    if agent is None:
        return None
    return "run.agent.task_dispatched", TaskDispatched(
        agent_id=agent,
        task_id=task_of(fact),
        task=fields.title or text_at(fact.payload, "objective") or fields.name,
        role=fields.role,
        parent_id=_parent_task_id(fact),
        call_id=tool_of(fact),
    )


def _to_task_progress(fact: Fact) -> TypedPayload | None:
    task, fields = task_of(fact), read_payload(fact, TaskPayload)
    if task is None:
        return None
    steps = fields.progress if isinstance(fields.progress, ProgressPayload) else ProgressPayload()
    return "run.agent.task_progress", TaskProgress(
        task_id=task,
        description=fields.message or fields.title,
        last_tool_name=text_at(fact.payload, "lastToolName", "toolName"),
        usage=_read_usage(fact),
        completed_steps=steps.completed_steps,
        total_steps=steps.total_steps,
        agent_id=_worker_id(fact),
    )


def _to_task_notification(fact: Fact) -> TypedPayload | None:
    task, fields = task_of(fact), read_payload(fact, TeammatePayload)
    if task is None:
        return None
    return "run.agent.task_notification", TaskNotification(
        task_id=task,
        status=_ENDS.get(fact.event_class or "") or fields.status or fact.status,
        summary=fields.summary or fields.message,
        usage=_read_usage(fact),
        ref=ref_text(fields.result_ref),
        agent_id=_worker_id(fact),
    )


def _to_worker_message(fact: Fact) -> TypedPayload | None:
    """What a worker has to say meanwhile; how its task ended is reported once, by the task."""
    return None if text_at(fact.payload, "status") in _ENDINGS else _to_task_notification(fact)


def _to_sub_agents_complete(fact: Fact) -> TypedPayload | None:
    """The end of a team's work, where the fact counts who was in it."""
    payload = fact.payload
    parent = text_at(payload, "parentId") or _parent_task_id(fact) or task_of(fact)
    count, done = payload.get("childCount"), payload.get("allComplete")
    if parent is None or type(count) is not int or type(done) is not bool:
        return None
    return "run.agent.sub_agents_complete", SubAgentsComplete(
        parent_id=parent, child_count=count, all_complete=done
    )


_DISPATCHED: Final = map_both_views(_to_task_dispatched, "run.agent.task_dispatched")
_PROGRESS: Final = map_both_views(_to_task_progress, "run.agent.task_progress")
_NOTIFICATION: Final = map_both_views(_to_task_notification, "run.agent.task_notification")

TASK_EVENTS: Final[MappingTable] = {
    "task.started": map_both_views(_to_task_started, "run.agent.task_started"),
    "task.delegated": _DISPATCHED,
    "subagent.spawned": _DISPATCHED,
    "agent.spawned": _DISPATCHED,
    "task.progress": _PROGRESS,
    "subagent.progress": _PROGRESS,
    "subagent.started": map_both_views(_to_task_started, "run.agent.task_started"),
    "worker.notification": map_both_views(_to_worker_message, "run.agent.task_notification"),
    **dict.fromkeys(_ENDS, _NOTIFICATION),
    "team.changed": map_both_views(_to_sub_agents_complete, "run.agent.sub_agents_complete"),
}
