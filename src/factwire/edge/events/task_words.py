"""Tasks and the agents that work on them; a handoff or a subagent is never told as the answer."""

from typing import Any, Final

from factwire.edge.events.agent_payloads import (
    SubAgentsComplete,
    TaskDispatched,
    TaskNotification,
    TaskProgress,
    TaskStarted,
)
from factwire.edge.events.word import Said, Table, alike
from factwire.facts import Fact
from factwire.facts.payloads import Progress, Task, Teammate
from factwire.projection.reading import (
    other_id,
    read,
    ref_text,
    subagent_of,
    table,
    task_of,
    tool_of,
    word,
)

_ENDS: Final = {
    "task.completed": "completed",
    "task.failed": "failed",
    "task.cancelled": "cancelled",
    "task.timed_out": "timed_out",
    "task.lost": "lost",
}


def _parent(fact: Fact) -> str | None:
    return other_id(fact, "parentTaskId", "parent_task_id")


def _worker(fact: Fact) -> str | None:
    return subagent_of(fact) or other_id(fact, "workerId", "worker_id")


def _usage(fact: Fact) -> dict[str, Any] | None:
    return table(fact.payload.get("usage"))


def _started(fact: Fact) -> Said | None:
    task, said = task_of(fact), read(fact, Task)
    if task is None:
        return None
    return "run.agent.task_started", TaskStarted(
        task_id=task,
        call_id=tool_of(fact),
        description=said.title or said.objective,
        task_type=word(fact.payload, "taskType", "kind") or said.role,
        parent_id=_parent(fact),
    )


def _dispatched(fact: Fact) -> Said | None:
    """A task that was given to somebody: a new subagent, or whom it was delegated to."""
    said = read(fact, Teammate)
    given = word(fact.payload, "delegatedTo", "assignee")
    agent = given or _worker(fact) or fact.agent_id
    if agent is None:
        return None
    return "run.agent.task_dispatched", TaskDispatched(
        agent_id=agent,
        task_id=task_of(fact),
        task=said.title or word(fact.payload, "objective") or said.name,
        role=said.role,
        parent_id=_parent(fact),
        call_id=tool_of(fact),
    )


def _progress(fact: Fact) -> Said | None:
    task, said = task_of(fact), read(fact, Task)
    if task is None:
        return None
    steps = said.progress if isinstance(said.progress, Progress) else Progress()
    return "run.agent.task_progress", TaskProgress(
        task_id=task,
        description=said.message or said.title,
        last_tool_name=word(fact.payload, "lastToolName", "toolName"),
        usage=_usage(fact),
        completed_steps=steps.completed_steps,
        total_steps=steps.total_steps,
        agent_id=_worker(fact),
    )


def _told(fact: Fact) -> Said | None:
    task, said = task_of(fact), read(fact, Teammate)
    if task is None:
        return None
    return "run.agent.task_notification", TaskNotification(
        task_id=task,
        status=_ENDS.get(fact.event_class or "") or said.status or fact.status,
        summary=said.summary or said.message,
        usage=_usage(fact),
        ref=ref_text(said.result_ref),
        agent_id=_worker(fact),
    )


def _team(fact: Fact) -> Said | None:
    """The end of a team's work, where the fact counts who was in it."""
    said = fact.payload
    parent = word(said, "parentId") or _parent(fact) or task_of(fact)
    count, done = said.get("childCount"), said.get("allComplete")
    if parent is None or type(count) is not int or type(done) is not bool:
        return None
    return "run.agent.sub_agents_complete", SubAgentsComplete(
        parent_id=parent, child_count=count, all_complete=done
    )


_DISPATCHED: Final = alike(_dispatched, "run.agent.task_dispatched")
_PROGRESS: Final = alike(_progress, "run.agent.task_progress")
_TOLD: Final = alike(_told, "run.agent.task_notification")

TASK_WORDS: Final[Table] = {
    "task.started": alike(_started, "run.agent.task_started"),
    "task.delegated": _DISPATCHED,
    "subagent.spawned": _DISPATCHED,
    "agent.spawned": _DISPATCHED,
    "task.progress": _PROGRESS,
    "subagent.progress": _PROGRESS,
    "worker.notification": _TOLD,
    **dict.fromkeys(_ENDS, _TOLD),
    "team.changed": alike(_team, "run.agent.sub_agents_complete"),
}
