"""Rows: what an Edge lists of projects, threads, runs and the things in them, and tables of them.

A row is derived from facts and from nothing else. `seq` is the place of the fact that began it, by
which lists are ordered and paged. A page begins after a place, not after a count, so that what is
added meanwhile shifts nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Generic, Literal, TypeVar

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


R = TypeVar("R", bound=Row)


class RowTable(Generic[R]):
    """Rows of one kind."""

    def __init__(self, rows: dict[str, R] | None = None) -> None:
        self.rows: dict[str, R] = rows or {}
        by_place = sorted((row.seq, key) for key, row in self.rows.items())
        self._places = [place for place, _ in by_place]
        self._keys = [key for _, key in by_place]

    def get(self, key: str) -> R | None:
        return self.rows.get(key)

    def add(self, key: str, row: R) -> R:
        """Take in a row; most are newer than all others."""
        at = bisect_right(self._places, row.seq)
        self.rows[key] = row
        self._places.insert(at, row.seq)
        self._keys.insert(at, key)
        return row

    def remove(self, key: str) -> None:
        """Take a row out; its id is free again."""
        row = self.rows.pop(key, None)
        if row is None:
            return
        at = bisect_left(self._places, row.seq)
        while self._keys[at] != key:
            at += 1
        del self._places[at], self._keys[at]

    def newest(self, before: int | None = None) -> Iterator[R]:
        """Rows from the newest to the oldest, of those that began before a place."""
        end = len(self._keys) if before is None else bisect_left(self._places, before)
        for at in range(end - 1, -1, -1):
            yield self.rows[self._keys[at]]


class Page(msgspec.Struct, Generic[R], kw_only=True, omit_defaults=True, rename="camel"):
    """Some rows, and where the next page begins; without `next` there is none."""

    items: list[R]
    as_of: str
    next: str | None = None


def select_rows(
    table: RowTable[R], wanted: Callable[[R], bool], before: int | None, limit: int
) -> tuple[list[R], int | None]:
    """At most `limit` rows that are wanted, and the place before which the next ones stand."""
    found: list[R] = []
    for row in table.newest(before):
        if not wanted(row):
            continue
        if len(found) == limit:
            return found, found[-1].seq
        found.append(row)
    return found, None
