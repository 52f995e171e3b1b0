"""Output of runs: what their programs printed, by bytes, and what they changed, by git."""

from pathlib import Path
from typing import Final, Literal

import msgspec

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Run
from factwire.edge.states import States
from factwire.edge.work.runs import find
from factwire.projection import ProjectionState
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
    again. Of scope `workspace` is whatever is in the folder and not in its last commit, which others
    may have changed, before the run or after it.
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
    worktree = run.worktree
    if worktree is None:
        found = await workspace_diff(machine.runtime.workspaces.real(folder))
    elif not Path(worktree.path).is_dir():
        found = WorkspaceDiff(available=False, reason="worktree_removed")
    else:
        place = machine.runtime.workspaces.real(worktree.path)
        source = machine.runtime.workspaces.real(worktree.repository)
        found = await workspace_diff(place, repository=source, base=worktree.base)
    return RunDiff(
        run_id=run_id,
        scope="workspace" if worktree is None else "run",
        available=found.available,
        reason=found.reason,
        base=found.base,
        files=found.files,
        truncated=found.truncated,
    )


def _processes(state: ProjectionState, run: Run) -> list[str]:
    """The programs of a run, in the order in which they were started."""
    return [
        process.process_id for process in state.processes.values() if process.turn_id == run.turn_id
    ]
