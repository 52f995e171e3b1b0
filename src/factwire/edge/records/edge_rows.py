"""Rows: what an Edge lists of projects, threads, runs and the things in them.

A row is derived from facts and from nothing else. `seq` is the place of the fact that began it, by
which lists are ordered and paged.
"""

from typing import Literal

import msgspec

ThreadStatus = Literal["active", "archived"]
Activity = Literal["idle", "running", "waiting", "completed", "failed", "canceled"]
RunStatus = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "cancelled"]


class Row(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Changed in place by the facts that follow."""

    seq: int
    created_at: str
    updated_at: str


class ThreadRow(Row, kw_only=True):
    """A row that belongs to a thread."""

    thread_id: str | None = None


class Project(Row, kw_only=True):
    """A folder of work on this machine."""

    project_id: str
    name: str
    work_dir: str | None = None


class Conversation(Row, kw_only=True):
    """A place where people and agents talk; `members` by id, with their type."""

    conversation_id: str
    title: str | None = None
    project_id: str | None = None
    members: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class Thread(Row, kw_only=True):
    """`activity` is what its turns are at; `runtime_id` is who writes it."""

    thread_id: str
    status: ThreadStatus
    activity: Activity
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    agent_id: str | None = None
    runtime_id: str | None = None
    latest_run_id: str | None = None
    parent_thread_id: str | None = None
    from_item_id: str | None = None
    queued_runs: tuple[str, ...] = ()
    open_approvals: tuple[str, ...] = ()


class RunError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Why a run failed; the code is one of the Edge's, the category the runtime's own."""

    code: str
    message: str
    failure_category: str | None = None
    recovery_hint: str | None = None


class RunWorktree(msgspec.Struct, frozen=True, kw_only=True):
    """The git worktree of a run: where it is, of which repository, and as which commit it began."""

    path: str
    repository: str
    base: str


class Run(ThreadRow, kw_only=True):
    """One turn of an agent."""

    run_id: str
    turn_id: str
    status: RunStatus
    project_id: str | None = None
    agent_id: str | None = None
    prompt: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    work_dir: str | None = None
    worktree: RunWorktree | None = None
    started_at: str | None = None
    finished_at: str | None = None
    error: RunError | None = None


class Approval(ThreadRow, kw_only=True):
    """What a person must decide, or has; the answer is bound to `args_hash`."""

    approval_id: str
    status: ApprovalStatus
    kind: str
    risk_level: str
    project_id: str | None = None
    run_id: str | None = None
    summary: str | None = None
    shown: str | None = None
    cwd: str | None = None
    rule: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_by: str | None = None
    subagent_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    decision: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    applied: bool | None = None


class Artifact(ThreadRow, kw_only=True):
    """A thing that a run made; its content is behind a ref."""

    artifact_id: str
    status: str
    project_id: str | None = None
    run_id: str | None = None
    kind: str = "unknown"
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None


class Task(ThreadRow, kw_only=True):
    """A piece of work; the whole of it is in the projection of its thread."""

    task_id: str
    status: str
    project_id: str | None = None
    run_id: str | None = None
    title: str | None = None
    parent_task_id: str | None = None
    subagent_id: str | None = None


class Preview(ThreadRow, kw_only=True):
    """A folder of a run that is served on an origin of its own, by the Edge `edge_id`."""

    preview_id: str
    status: Literal["ready", "stopped"]
    project_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    url: str | None = None


class EvidenceRow(ThreadRow, kw_only=True):
    """A pack that was made of a thread."""

    evidence_id: str
    status: str
    project_id: str | None = None
    export_ref: str | None = None
