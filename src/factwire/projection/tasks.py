"""Tasks and jobs: pieces of work with their state, attempts, retries and dependencies."""

from typing import TYPE_CHECKING, Final

from factwire.facts.fact import Fact
from factwire.facts.payloads import Progress
from factwire.facts.payloads import Task as TaskPayload
from factwire.facts.standing_payloads import TaskProfile
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.pointers import escaped
from factwire.projection.reading import (
    joined,
    number,
    other_id,
    read,
    subagent_of,
    task_of,
    turn_of,
    word,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas

PATH: Final = "/tasks"
JOBS: Final = "/jobs"

STATES: Final = {
    "task.created": "draft",
    "task.accepted": "accepted",
    "task.queued": "queued",
    "task.started": "running",
    "task.progress": "running",
    "task.waiting": "waiting_input",
    "task.blocked": "blocked",
    "task.paused": "paused",
    "task.resumed": "running",
    "task.retrying": "retrying",
    "task.cancel_requested": "cancelling",
    "task.cancelled": "cancelled",
    "task.timed_out": "timed_out",
    "task.failed": "failed",
    "task.lost": "lost",
    "task.completed": "completed",
    "task.archived": "archived",
    "task.attempt.started": "running",
}
"""The state that a class puts a task into; classes that are not here leave it as it was."""

ENDED: Final = frozenset({"cancelled", "timed_out", "failed", "lost", "completed", "archived"})

_WAITS: Final = {
    "input": "waiting_input",
    "permission": "waiting_permission",
    "approval": "waiting_permission",
    "resource": "waiting_resource",
}
_ATTEMPTS: Final = {
    "task.attempt.started": "running",
    "task.attempt.completed": "completed",
    "task.attempt.failed": "failed",
}
_JOB_STATES: Final = {
    "job.created": "draft",
    "job.queued": "queued",
    "job.started": "running",
    "job.progress": "running",
    "job.completed": "completed",
    "job.failed": "failed",
    "job.cancelled": "cancelled",
}
_ITEM_STATES: Final = {
    "job.item.started": "running",
    "job.item.completed": "completed",
    "job.item.failed": "failed",
}


class Attempt(View):
    """One try at a task; earlier ones are kept."""

    attempt_id: str
    status: str
    number: int
    run_id: str | None = None
    failure_category: str | None = None
    message: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Task(View):
    """One piece of work."""

    task_id: str
    status: str
    attempts: list[Attempt]
    retries: int
    title: str | None = None
    objective: str | None = None
    role: str | None = None
    assignee: str | None = None
    parent_task_id: str | None = None
    turn_id: str | None = None
    current_run_id: str | None = None
    agent_id: str | None = None
    subagent_ids: list[str] | None = None
    remote_task_id: str | None = None
    completed_steps: int | None = None
    total_steps: int | None = None
    progress: float | None = None
    depends_on: list[str] | None = None
    dependencies: dict[str, str] | None = None
    delegated_to: str | None = None
    profile: TaskProfile | None = None
    reason: str | None = None
    message: str | None = None
    failure_category: str | None = None
    artifact_refs: list[str] | None = None
    evidence_refs: list[str] | None = None
    runtime_entity: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    completed_at: str | None = None


class Job(View):
    """Work in many items, counted rather than listed."""

    job_id: str
    status: str
    items_running: int
    items_completed: int
    items_failed: int
    running_item_ids: list[str]
    title: str | None = None
    task_id: str | None = None
    total_items: int | None = None
    progress: float | None = None
    message: str | None = None
    failure_category: str | None = None
    created_at: str | None = None
    completed_at: str | None = None


def changed(canvas: "Canvas", fact: Fact) -> None:
    """task.*: what the fact says of its task."""
    task, path = task_for(canvas, fact, task_of(fact) or "")
    said, name = read(fact, TaskPayload), fact.event_class or ""
    state = _state(fact, said)
    if state is not None and state != task.status:
        _enter(canvas, task, path, state, fact.created_at)
    canvas.count(task, path, "retries", name == "task.retrying")
    _describe(canvas, task, path, fact, said)
    if name in _ATTEMPTS:
        _attempt(canvas, task, path, fact, said)


def _enter(canvas: "Canvas", task: Task, path: str, state: str, at: str) -> None:
    """Another state: why the task was in the one before no longer holds."""
    canvas.put(task, path, "status", state)
    canvas.put(task, path, "completed_at", (task.completed_at or at) if state in ENDED else None)
    if state != "archived":
        for field in ("reason", "message", "failure_category"):
            canvas.put(task, path, field, None)


def profile_resolved(canvas: "Canvas", fact: Fact) -> None:
    task, path = task_for(canvas, fact, task_of(fact) or "")
    profile = read(fact, TaskProfile)
    canvas.fill(task, path, profile=profile if profile != TaskProfile() else None)


def delegated(canvas: "Canvas", fact: Fact) -> None:
    changed(canvas, fact)
    task, path = task_for(canvas, fact, task_of(fact) or "")
    to = word(fact.payload, "delegatedTo", "assignee", "toAgent") or subagent_of(fact)
    canvas.fill(task, path, delegated_to=to)


def dependency_updated(canvas: "Canvas", fact: Fact) -> None:
    changed(canvas, fact)
    task, path = task_for(canvas, fact, task_of(fact) or "")
    other = word(fact.payload, "dependsOnTaskId", "dependencyTaskId", "dependencyId")
    if other is not None:
        status = word(fact.payload, "dependencyStatus", "status") or UNKNOWN
        canvas.put(task, path, "dependencies", {**(task.dependencies or {}), other: status})
        merged = joined(task.depends_on, [other])
        canvas.put(task, path, "depends_on", merged)


def task_for(canvas: "Canvas", fact: Fact, task_id: str) -> tuple[Task, str]:
    """A task by its id, created by the first fact that names it."""
    path = f"{PATH}/{escaped(task_id)}"
    known = canvas.state.tasks.get(task_id)
    if known is not None:
        return known, path
    task = Task(
        task_id=task_id,
        status=UNKNOWN,
        attempts=[],
        retries=0,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    return canvas.create(canvas.state.tasks, PATH, task_id, task), path


def add_subagent(canvas: "Canvas", fact: Fact, task_id: str, subagent_id: str) -> None:
    """Note who works on a task."""
    task, path = task_for(canvas, fact, task_id)
    merged = joined(task.subagent_ids, [subagent_id])
    canvas.put(task, path, "subagent_ids", merged)


def _state(fact: Fact, said: TaskPayload) -> str | None:
    name = fact.event_class or ""
    if name == "task.waiting":
        return _WAITS.get(said.reason or "", said.status or "waiting_input")
    if name in STATES:
        return STATES[name]
    return said.status if name in ("task.updated", "task.changed") else None


def _describe(canvas: "Canvas", task: Task, path: str, fact: Fact, said: TaskPayload) -> None:
    steps = said.progress if isinstance(said.progress, Progress) else Progress()
    share = None if isinstance(said.progress, Progress) else said.progress
    canvas.fill(
        task,
        path,
        title=said.title,
        objective=said.objective,
        role=said.role,
        assignee=said.assignee,
        parent_task_id=fact.parent_task_id or other_id(fact, "parentTaskId", "parent_task_id"),
        current_run_id=fact.run_id or other_id(fact, "runId", "run_id"),
        agent_id=fact.agent_id,
        remote_task_id=fact.remote_task_id or other_id(fact, "remoteTaskId", "remote_task_id"),
        completed_steps=steps.completed_steps,
        total_steps=steps.total_steps,
        progress=share,
        depends_on=said.depends_on,
        reason=said.reason,
        message=said.message,
        failure_category=said.failure_category,
        artifact_refs=joined(task.artifact_refs, fact.artifact_refs),
        evidence_refs=joined(task.evidence_refs, fact.evidence_refs),
        runtime_entity=fact.runtime_entity,
        updated_at=fact.created_at,
    )
    worker = subagent_of(fact)
    if worker is not None:
        add_subagent(canvas, fact, task.task_id, worker)


def _attempt(canvas: "Canvas", task: Task, path: str, fact: Fact, said: TaskPayload) -> None:
    run = fact.run_id or other_id(fact, "runId", "run_id")
    key = fact.attempt_id or other_id(fact, "attemptId", "attempt_id") or run or ""
    status = _ATTEMPTS[fact.event_class or ""]
    ended = fact.created_at if status != "running" else None
    fields = {"failure_category": said.failure_category, "message": said.message, "run_id": run}
    for index, attempt in enumerate(task.attempts):
        if attempt.attempt_id == key:
            place = f"{path}/attempts/{index}"
            canvas.put(attempt, place, "status", status)
            canvas.fill(attempt, place, completed_at=ended, **fields)
            return
    attempt = Attempt(
        attempt_id=key,
        status=status,
        number=said.attempt or len(task.attempts) + 1,
        started_at=fact.created_at,
        completed_at=ended,
        **fields,
    )
    canvas.push(task.attempts, f"{path}/attempts", attempt)


def job_changed(canvas: "Canvas", fact: Fact) -> None:
    """job.*: one job; its items are counted by state."""
    key = fact.job_id or other_id(fact, "jobId", "job_id")
    if key is None:
        return
    jobs, path, said = canvas.state.jobs, f"{JOBS}/{escaped(key)}", read(fact, TaskPayload)
    name = fact.event_class or ""
    if key not in jobs:
        job = Job(
            job_id=key,
            status=UNKNOWN,
            items_running=0,
            items_completed=0,
            items_failed=0,
            running_item_ids=[],
            task_id=task_of(fact),
            created_at=fact.created_at,
        )
        canvas.create(jobs, JOBS, key, job)
    job, state = jobs[key], _JOB_STATES.get(name)
    if state is not None and state not in ENDED:
        canvas.put(job, path, "failure_category", None)
        canvas.put(job, path, "completed_at", None)
    total = number(fact.payload, "totalItems", "total")
    canvas.fill(
        job,
        path,
        status=state,
        title=said.title,
        total_items=None if total is None else int(total),
        progress=said.progress if isinstance(said.progress, float | int) else None,
        message=said.message,
        failure_category=said.failure_category,
        completed_at=fact.created_at if state in ENDED else None,
    )
    if name in _ITEM_STATES:
        item = fact.job_item_id or other_id(fact, "jobItemId", "job_item_id") or fact.id
        _count_item(canvas, job, path, item, _ITEM_STATES[name])


def _count_item(canvas: "Canvas", job: Job, path: str, item: str, state: str) -> None:
    """Count an item; only those that are known to run are taken off the running ones."""
    running = [other for other in job.running_item_ids if other != item]
    if state == "running":
        running.append(item)
    else:
        canvas.count(job, path, f"items_{state}")
    canvas.put(job, path, "running_item_ids", running)
    canvas.put(job, path, "items_running", len(running))
