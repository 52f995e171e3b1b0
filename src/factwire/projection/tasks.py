"""Tasks and jobs: pieces of work with their state, attempts, retries and dependencies.

Some classes say something about a task or a job but not how it is: they are recorded with their
subject and leave its status alone, in timeline and graph alike.
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from factwire.facts.classes.payloads import ProgressPayload, TaskPayload, TaskProfilePayload
from factwire.facts.fact import Fact, id_of
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import list_at, number_at, object_at, text_at, whole_number_at
from factwire.facts.outcomes import bad_end
from factwire.facts.refs import refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.payload_fields import (
    adjust_state,
    other_id,
    read_payload,
    stated_state,
    subagent_of,
    task_of,
    turn_of,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


COUNTED_CLASSES: Final = frozenset({"job.item.started", "job.item.completed", "job.item.failed"})
"""Asides that come by the thousand: the job counts them, and no list names them."""

STATUSLESS_CLASSES: Final = COUNTED_CLASSES | {
    "task.profile.resolved",
    "task.dependency.updated",
    "task.delegated",
}


TASKS_PATH: Final = "/tasks"
JOBS_PATH: Final = "/jobs"

TASK_STATES: Final = {
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

_STATES_OF_PHASE: Final = {
    "draft": "draft",
    "submitted": "queued",
    "accepted": "accepted",
    "preparing": "preparing",
    "acting": "running",
    "waiting": "blocked",
    "interrupted": "cancelling",
    "cancelled": "cancelled",
    "failed": "failed",
    "completed": "completed",
    "archived": "archived",
}
"""The state that a UI event states by its phase, since its class only says that a task changed."""

ENDED_TASKS: Final = frozenset(
    {"cancelled", "timed_out", "failed", "lost", "completed", "archived"}
)

OPEN_TASKS: Final = frozenset(
    {"draft", "accepted", "queued", "preparing", "running", "waiting_input", "waiting_permission"}
    | {"waiting_resource", "blocked", "paused", "retrying", "cancelling"}
)

_APART: Final = ("external_task", "work_item", "automation_job")
"""What runs a task that goes on without the turn in which it was set."""

_WAITING_STATES: Final = {
    "input": "waiting_input",
    "permission": "waiting_permission",
    "approval": "waiting_permission",
    "resource": "waiting_resource",
}
_ATTEMPT_STATES: Final = {
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


class ProjectedTask(View):
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
    profile: TaskProfilePayload | None = None
    reason: str | None = None
    message: str | None = None
    failure_category: str | None = None
    artifact_refs: list[str] | None = None
    evidence_refs: list[str] | None = None
    output_refs: list[str] | None = None
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


def update_task(draft: "StateDraft", fact: Fact) -> None:
    """task.*: what the fact says of its task; `task.changed` may be about a job instead."""
    if fact.event_class == "task.changed" and task_of(fact) is None:
        update_job(draft, fact)
        return
    task, path = ensure_task(draft, fact, task_of(fact) or "")
    payload, name = read_payload(fact, TaskPayload), fact.event_class or ""
    state = _next_state(fact, payload)
    if state is not None and state != task.status:
        _enter_state(draft, task, path, state, fact.created_at)
    if state in OPEN_TASKS:
        draft.fill(task, path, turn_id=turn_of(fact))
    draft.count(task, path, "retries", name == "task.retrying")
    if name == "task.created":
        draft.put(task, path, "created_at", fact.created_at)
    _describe_task(draft, task, path, fact, payload)
    if name in _ATTEMPT_STATES:
        _update_attempt(draft, task, path, fact, payload)


def _enter_state(draft: "StateDraft", task: ProjectedTask, path: str, state: str, at: str) -> None:
    """Another state: why the task was in the one before no longer holds."""
    draft.put(task, path, "status", state)
    draft.put(
        task, path, "completed_at", (task.completed_at or at) if state in ENDED_TASKS else None
    )
    if state != "archived":
        for field in ("reason", "message", "failure_category"):
            draft.put(task, path, field, None)


def apply_turn(draft: "StateDraft", fact: Fact, key: str, state: str) -> None:
    """A turn of a task that is worked on elsewhere: the task runs with it and ends as it ends,
    unless a fact of its own has ended it before.
    """
    task, path = ensure_task(draft, fact, key)
    has_ended = task.status in ENDED_TASKS and state in ENDED_TASKS
    if state != task.status and not has_ended:
        _enter_state(draft, task, path, state, fact.created_at)
    _describe_task(draft, task, path, fact, read_payload(fact, TaskPayload))


def apply_job_turn(draft: "StateDraft", fact: Fact, key: str, state: str) -> None:
    """A turn of a job, or of one of its items where the fact names one."""
    item = id_of(fact, "jobItemId")
    job, path = _ensure_job(draft, fact, key)
    if item is not None:
        if state == "running" or item in job.running_item_ids:
            _count_item(draft, job, path, item, state)
    elif not (job.status in ENDED_TASKS and state in ENDED_TASKS):
        _describe_job(draft, fact, job, path, state)


def is_elsewhere(task: ProjectedTask) -> bool:
    """Whether a task is worked on apart from the turn that set it."""
    return task.remote_task_id is not None or task.runtime_entity in _APART


def end_task(draft: "StateDraft", fact: Fact, key: str, status: str) -> list[str]:
    """A task whose turn is over, with its attempts; the ids of those that ended with it."""
    task, path = draft.state.tasks[key], f"{TASKS_PATH}/{escape_key(key)}"
    ended = fact.created_at if status in ENDED_TASKS else None
    draft.put(task, path, "status", status)
    draft.put(task, path, "completed_at", ended)
    found = [n for n, attempt in enumerate(task.attempts) if attempt.status == "running"]
    for place in found:
        draft.put(task.attempts[place], f"{path}/attempts/{place}", "status", status)
        draft.put(task.attempts[place], f"{path}/attempts/{place}", "completed_at", ended)
    return [task.attempts[place].attempt_id for place in found]


def set_parent(draft: "StateDraft", task_id: str, parent_task_id: str | None) -> None:
    """Note under which task a task belongs, where nothing did so before."""
    task, path = draft.state.tasks[task_id], f"{TASKS_PATH}/{escape_key(task_id)}"
    if task.parent_task_id is None and parent_task_id != task_id:
        draft.fill(task, path, parent_task_id=parent_task_id)


def set_task_profile(draft: "StateDraft", fact: Fact) -> None:
    task, path = ensure_task(draft, fact, task_of(fact) or "")
    profile = read_payload(fact, TaskProfilePayload)
    draft.fill(task, path, profile=profile if profile != TaskProfilePayload() else None)
    _add_refs(draft, task, path, fact)


def delegate_task(draft: "StateDraft", fact: Fact) -> None:
    update_task(draft, fact)
    task, path = ensure_task(draft, fact, task_of(fact) or "")
    to = text_at(fact.payload, "delegatedTo", "assignee", "toAgent") or subagent_of(fact)
    draft.fill(task, path, delegated_to=to)


def update_dependency(draft: "StateDraft", fact: Fact) -> None:
    update_task(draft, fact)
    task, path = ensure_task(draft, fact, task_of(fact) or "")
    other = dependency_of(fact)
    if other is None:
        return
    status = text_at(fact.payload, "dependencyStatus", "status") or UNKNOWN
    if task.dependencies is None:
        draft.put(task, path, "dependencies", {other: status})
    elif task.dependencies.get(other) != status:
        draft.create(task.dependencies, f"{path}/dependencies", other, status)
    draft.extend(task, path, "depends_on", [other])


def dependency_of(fact: Fact) -> str | None:
    """The task that a fact says another one waits for."""
    return text_at(fact.payload, "dependsOnTaskId", "dependencyTaskId", "dependencyId")


def ensure_task(draft: "StateDraft", fact: Fact, task_id: str) -> tuple[ProjectedTask, str]:
    """A task by its id, created by the first fact that names it."""
    path = f"{TASKS_PATH}/{escape_key(task_id)}"
    existing = draft.state.tasks.get(task_id)
    if existing is not None:
        return existing, path
    task = ProjectedTask(
        task_id=task_id,
        status=UNKNOWN,
        attempts=[],
        retries=0,
        turn_id=turn_of(fact),
        created_at=fact.created_at if fact.event_class == "task.created" else None,
    )
    return draft.create(draft.state.tasks, TASKS_PATH, task_id, task), path


def add_subagent(draft: "StateDraft", fact: Fact, task_id: str, subagent_id: str) -> None:
    """Note who works on a task."""
    task, path = ensure_task(draft, fact, task_id)
    draft.extend(task, path, "subagent_ids", [subagent_id])


def _next_state(fact: Fact, payload: TaskPayload) -> str | None:
    name = fact.event_class or ""
    if name == "task.waiting":
        return _WAITING_STATES.get(payload.reason or "", payload.status or "waiting_input")
    if name in TASK_STATES:
        return adjust_state(fact, TASK_STATES[name], blocked="blocked")
    if name not in ("task.updated", "task.changed"):
        return None
    if payload.status is not None or fact.attempt_id is not None:
        return payload.status
    phase = fact.phase if name == "task.changed" else None
    return _STATES_OF_PHASE.get(phase or "") or stated_state(fact, blocked="blocked")


def _describe_task(
    draft: "StateDraft", task: ProjectedTask, path: str, fact: Fact, payload: TaskPayload
) -> None:
    stated = payload.progress
    steps = stated if isinstance(stated, ProgressPayload) else _flat_steps(fact)
    share = None if isinstance(payload.progress, ProgressPayload) else payload.progress
    draft.fill(
        task,
        path,
        title=payload.title,
        objective=payload.objective,
        role=payload.role,
        assignee=payload.assignee,
        parent_task_id=fact.parent_task_id or other_id(fact, "parentTaskId", "parent_task_id"),
        current_run_id=fact.run_id or other_id(fact, "runId", "run_id"),
        agent_id=fact.agent_id,
        remote_task_id=fact.remote_task_id or other_id(fact, "remoteTaskId", "remote_task_id"),
        completed_steps=steps.completed_steps,
        total_steps=steps.total_steps,
        progress=share,
        depends_on=payload.depends_on,
        reason=payload.reason,
        message=payload.message,
        failure_category=payload.failure_category,
        runtime_entity=fact.runtime_entity,
        updated_at=fact.created_at,
    )
    _add_refs(draft, task, path, fact)
    worker = subagent_of(fact)
    if worker is not None:
        add_subagent(draft, fact, task.task_id, worker)


def _flat_steps(fact: Fact) -> ProgressPayload:
    """Steps that a payload states beside its progress."""
    return ProgressPayload(
        completed_steps=whole_number_at(fact.payload, "completedSteps"),
        total_steps=whole_number_at(fact.payload, "totalSteps"),
    )


def _add_refs(draft: "StateDraft", task: ProjectedTask, path: str, fact: Fact) -> None:
    """Every ref of a fact about a task; what is neither an artifact nor evidence is an output."""
    refs = refs_of(fact)
    if not refs:
        return
    artifacts = _stated_refs(fact, "artifactRefs", fact.artifact_refs)
    evidence = _stated_refs(fact, "evidenceRefs", fact.evidence_refs)
    draft.extend(task, path, "artifact_refs", artifacts)
    draft.extend(task, path, "evidence_refs", evidence)
    outputs = [
        ref
        for ref in refs
        if not draft.has_text(task, path, "artifact_refs", ref)
        and not draft.has_text(task, path, "evidence_refs", ref)
    ]
    draft.extend(task, path, "output_refs", outputs)


def _stated_refs(fact: Fact, name: str, stated: tuple[str, ...]) -> list[str]:
    """Refs of a task, from the top level or the payload, as texts or as objects, and one by itself
    under the name in the singular.
    """
    rows = [*(list_at(fact.payload.get(name)) or ()), fact.payload.get(name.removesuffix("s"))]
    found = (row if isinstance(row, str) else text_at(object_at(row) or {}, "ref") for row in rows)
    return [*stated, *filter(None, found)]


def _update_attempt(
    draft: "StateDraft", task: ProjectedTask, path: str, fact: Fact, payload: TaskPayload
) -> None:
    run = fact.run_id or other_id(fact, "runId", "run_id")
    key = fact.attempt_id or other_id(fact, "attemptId", "attempt_id") or run or ""
    status = _ATTEMPT_STATES[fact.event_class or ""]
    if status == "completed":
        status = bad_end(fact) or status
    ended = fact.created_at if status != "running" else None
    fields = {
        "failure_category": payload.failure_category,
        "message": payload.message,
        "run_id": run,
    }
    places = draft.memory.index_list(f"{path}/attempts", task.attempts, attrgetter("attempt_id"))
    if key in places:
        attempt, place = task.attempts[places[key]], f"{path}/attempts/{places[key]}"
        draft.put(attempt, place, "status", status)
        if status == "running":
            draft.fill(attempt, place, started_at=fact.created_at)
        draft.fill(attempt, place, completed_at=ended, **fields)
        return
    places[key] = len(task.attempts)
    attempt = Attempt(
        attempt_id=key,
        status=status,
        number=payload.attempt or len(task.attempts) + 1,
        started_at=fact.created_at if status == "running" else None,
        completed_at=ended,
        **fields,
    )
    draft.push(task.attempts, f"{path}/attempts", attempt)


def update_job(draft: "StateDraft", fact: Fact) -> None:
    """job.*: one job; its items are counted by state."""
    key = fact.job_id or other_id(fact, "jobId", "job_id")
    if key is None:
        return
    name = fact.event_class or ""
    job, path = _ensure_job(draft, fact, key)
    state = _JOB_STATES.get(name)
    if state is not None:
        state = adjust_state(fact, state, blocked="blocked")
    if name == "task.changed" and fact.job_item_id is None:
        status = read_payload(fact, TaskPayload).status
        state = status or _STATES_OF_PHASE.get(fact.phase or "")
    _describe_job(draft, fact, job, path, state)
    if name in _ITEM_STATES:
        item = fact.job_item_id or other_id(fact, "jobItemId", "job_item_id") or fact.id
        _count_item(draft, job, path, item, _ITEM_STATES[name])


def _ensure_job(draft: "StateDraft", fact: Fact, key: str) -> tuple[Job, str]:
    jobs, path = draft.state.jobs, f"{JOBS_PATH}/{escape_key(key)}"
    if key not in jobs:
        job = Job(
            job_id=key,
            status=UNKNOWN,
            items_running=0,
            items_completed=0,
            items_failed=0,
            running_item_ids=[],
            task_id=task_of(fact),
            created_at=fact.created_at if fact.event_class == "job.created" else None,
        )
        draft.create(jobs, JOBS_PATH, key, job)
    return jobs[key], path


def _describe_job(draft: "StateDraft", fact: Fact, job: Job, path: str, state: str | None) -> None:
    payload = read_payload(fact, TaskPayload)
    if state is not None and state not in ENDED_TASKS:
        draft.put(job, path, "failure_category", None)
        draft.put(job, path, "completed_at", None)
    if fact.event_class == "job.created":
        draft.put(job, path, "created_at", fact.created_at)
    total = number_at(fact.payload, "totalItems", "total")
    draft.fill(
        job,
        path,
        status=state,
        title=payload.title,
        total_items=None if total is None else int(total),
        progress=payload.progress if isinstance(payload.progress, float | int) else None,
        message=payload.message,
        failure_category=payload.failure_category,
        completed_at=fact.created_at if state in ENDED_TASKS else None,
    )


def _count_item(draft: "StateDraft", job: Job, path: str, item: str, state: str) -> None:
    """Count an item; only those that are known to run are taken off the running ones."""
    is_running = state == "running"
    if state in ("completed", "failed"):
        draft.count(job, path, f"items_{state}")
    draft.list_text(job.running_item_ids, f"{path}/runningItemIds", item, listed=is_running)
    draft.memory.jobs_by_item.move_row(job.job_id, item, item if is_running else None)
    draft.put(job, path, "items_running", len(job.running_item_ids))
