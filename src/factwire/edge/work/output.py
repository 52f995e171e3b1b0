"""Output of runs: what their programs printed, by bytes, and what they changed, by git."""

from typing import Final, Literal

import msgspec

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Run, RunWorktree
from factwire.edge.states import States
from factwire.edge.work.runs import find
from factwire.journal.blobs.disk import on_disk
from factwire.projection import ProjectionState
from factwire.runtime.errors import WorkspaceNotAllowed
from factwire.runtime.processes import LogUnavailable
from factwire.runtime.processes.batches import Stream
from factwire.runtime.processes.limits import LOG_READ_BYTES
from factwire.runtime.sandbox import ChangedFile, WorkspaceDiff, workspace_diff

LOG_BYTES: Final = LOG_READ_BYTES
"""Bytes of one read of a log."""


class LogPiece(msgspec.Struct, frozen=True):
    """Some bytes of one stream of one program."""

    process_id: str
    data: bytes


class RunDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`available` says whether git could tell; `reason` is a stable word where it could not.

    Of scope `run` is what was changed in the worktree of the run, by it and by runs that tried it
    again. Of scope `workspace` is whatever is in the folder and not in its last commit, which
    others may have changed, before the run or after it.
    """

    run_id: str
    scope: Literal["run", "workspace"]
    available: bool
    files: tuple[ChangedFile, ...] = ()
    truncated: bool = False
    reason: str | None = None
    base: str | None = None


async def log(
    machine: Machine,
    states: States,
    run_id: str,
    *,
    process_id: str | None,
    stream: Stream,
    offset: int,
    limit: int,
) -> LogPiece:
    """Bytes of a log; of the newest program of the run, where none is named."""
    run = find(machine, run_id)
    processes = machine.runtime.means.processes
    if processes is None or run.thread_id is None:
        raise Problem(404, "log_unavailable", "this Edge keeps no logs of that run")
    seen = await states.now(run.thread_id)
    known = _processes(seen.projection.state, run)
    chosen = process_id or (known[-1] if known else None)
    if chosen is None or chosen not in known:
        raise Problem(404, "log_unavailable", "no program of this run has a log")
    try:
        data = await processes.logs.read(chosen, stream, offset, limit)
    except LogUnavailable as error:
        raise Problem(404, "log_unavailable", str(error)) from error
    return LogPiece(chosen, data)


async def diff(machine: Machine, run_id: str) -> RunDiff:
    """What a run changed, where it has a worktree; else what its folder has that its last commit
    has not.
    """
    run = find(machine, run_id)
    folder = run.work_dir or str(machine.runtime.workspace)
    if run.worktree is None:
        found = await workspace_diff(machine.runtime.workspaces.real(folder))
    else:
        found = await _worktree_diff(machine, run.worktree)
    return RunDiff(
        run_id=run_id,
        scope="workspace" if run.worktree is None else "run",
        available=found.available,
        reason=found.reason,
        base=found.base,
        files=found.files,
        truncated=found.truncated,
    )


async def _worktree_diff(machine: Machine, worktree: RunWorktree) -> WorkspaceDiff:
    """What was changed since a worktree began, commits included: nothing that the run could have
    made of the worktree's own settings is looked at.
    """
    allowed = machine.runtime.workspaces
    try:
        place = await on_disk(allowed.real, worktree.path)
    except WorkspaceNotAllowed:
        return WorkspaceDiff(available=False, reason="worktree_removed")
    try:
        source = await on_disk(allowed.real, worktree.repository)
    except WorkspaceNotAllowed:
        return WorkspaceDiff(available=False, reason="repository_not_allowed")
    return await workspace_diff(place, repository=source, base=worktree.base)


def _processes(state: ProjectionState, run: Run) -> list[str]:
    """The programs of a run, in the order in which they were started."""
    return [
        process.process_id for process in state.processes.values() if process.turn_id == run.turn_id
    ]
