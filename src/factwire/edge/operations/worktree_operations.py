"""Worktrees of runs: made before a run is asked for, told with it, kept until somebody is done.

The order is what makes a crash harmless. A note is written first, then the worktree is made, then
the run is submitted, and the note is taken away; a note that is found at the start of an Edge names
a worktree whose run nobody ever heard of, and both are removed.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.operations import preview_operations
from factwire.facts import Person
from factwire.facts.resources import Run, RunWorktree
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.errors import WorkspaceNotAllowed
from factwire.runtime.sandbox import (
    NoRepository,
    Worktree,
    WorktreeUnavailable,
    add_worktree,
    borrow,
    remove_worktree,
)
from factwire.runtime.turn_resources import Workspaces
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

_log: Final = logger("factwire.edge")
_NOTE: Final = ".asked"
_ENDED: Final = ("finished", "failed", "cancelled")


def worktree_root(data: Path) -> Path:
    """Beside the data folder: what lies in it is the Edge's own, and no work of a run."""
    return data.with_name(f"{data.name}-worktrees")


@asynccontextmanager
async def make_worktree(
    edge: EdgeContext, run_id: str, repository: str
) -> AsyncGenerator[Worktree]:
    """A worktree for a run that is submitted inside; it goes again, if that fails."""
    source = edge.runtime.workspaces.resolve(repository)
    folder = edge.worktrees / run_id
    note = edge.worktrees / f"{run_id}{_NOTE}"
    await _discard(source, folder, note)
    await run_disk_work(_write_note, note, str(source))
    try:
        yield await add_worktree(source, folder)
    except WorktreeUnavailable as error:
        await _discard(source, folder, note)
        raise Problem(409, error.code, str(error), reason=error.reason) from error
    except BaseException:
        await asyncio.shield(_discard(source, folder, note))
        raise
    await run_disk_work(note.unlink)


class TaskWorktree(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree where the folder of a run is in a repository, else the folder itself. With
    `run_id`, that of an earlier run of the same thread, while it is there.
    """

    run_id: str | None = None


_NO_WORKTREES: Final = frozenset(
    {"not_a_repository", "no_commit", "git_missing", "unsupported_ref_storage", "sparse_checkout"}
)
"""Why a folder can have no worktrees, however often somebody tries."""


@asynccontextmanager
async def choose_folder(
    edge: EdgeContext, run_id: str, thread_id: str, folder: str, wanted: TaskWorktree
) -> AsyncGenerator[tuple[str, dict[str, str] | None]]:
    """Where a run works that is submitted inside, and what is to be told of its worktree."""
    former = None if wanted.run_id is None else edge.records.runs.get(wanted.run_id)
    if former is not None and former.worktree is not None and former.thread_id == thread_id:
        worktree = former.worktree
        if await run_disk_work(Path(worktree.path).is_dir):
            yield former.work_dir or worktree.path, msgspec.to_builtins(worktree)
            return
    place = edge.runtime.workspaces.resolve(folder)
    top = await run_disk_work(_find_top, edge.runtime.workspaces, place)
    if top is None or await _find_obstacle(top) in _NO_WORKTREES:
        yield folder, None
        return
    async with make_worktree(edge, run_id, str(top)) as made:
        inside = Path(made.path) / place.relative_to(top)
        # What is not in the commit is not in the worktree either.
        is_there = await run_disk_work(inside.is_dir)
        yield str(inside) if is_there else made.path, describe_worktree(made)


def _find_top(workspaces: Workspaces, place: Path) -> Path | None:
    """The top of the repository that a folder is in, as far up as folders are allowed."""
    for folder in (place, *place.parents):
        try:
            workspaces.resolve(folder)
        except WorkspaceNotAllowed:
            return None
        if os.path.lexists(folder / ".git"):
            return folder
    return None


async def _find_obstacle(top: Path) -> str | None:
    """Why a folder can have no worktree, by the words of `WorktreeUnavailable`."""
    try:
        async with borrow(top) as git:
            return "no_commit" if git.head is None else None
    except NoRepository as error:
        return error.reason


async def describe_missing_worktree(edge: EdgeContext, run: Run) -> str:
    """Why a run that was to have a worktree has none."""
    folder = run.work_dir or str(edge.runtime.workspace)
    try:
        place = edge.runtime.workspaces.resolve(folder)
    except WorkspaceNotAllowed:
        return "folder_removed"
    top = await run_disk_work(_find_top, edge.runtime.workspaces, place)
    return "not_a_repository" if top is None else await _find_obstacle(top) or "no_worktree"


async def settle_worktrees(edge: EdgeContext) -> None:
    """Remove what was made for runs that were never submitted."""
    for note in await run_disk_work(_list_notes, edge.worktrees):
        run_id = note.name.removesuffix(_NOTE)
        try:
            if edge.records.runs.get(run_id) is None:
                source = Path((await run_disk_work(note.read_text)).strip())
                await _discard(source, edge.worktrees / run_id, note)
            else:
                await run_disk_work(note.unlink)
        except OSError as error:
            _log.warning("worktree_not_removed", run_id=run_id, exc_info=error)


async def remove_run_worktree(edge: EdgeContext, run: Run, by: Person, trace_id: str) -> None:
    """Remove the worktree of a run that has ended, with whatever it holds; raises `Problem`."""
    worktree = run.worktree
    if worktree is None:
        raise Problem(404, "no_worktree", "this run has no worktree of its own")
    sharing = find_ended_runs(edge, worktree)
    await preview_operations.stop_run_previews(edge, sharing, trace_id, by)
    await _remove_own(edge, worktree)


def find_ended_runs(edge: EdgeContext, worktree: RunWorktree) -> set[str]:
    """The runs that worked in a worktree; raises `Problem` while one does."""
    sharing = _runs_sharing(edge, worktree)
    if any(each.status not in _ENDED for each in sharing):
        raise Problem(409, "active_run_exists", "a run is still using it; cancel it first")
    return {each.run_id for each in sharing}


async def remove_thread_worktrees(edge: EdgeContext, thread_id: str) -> None:
    """Remove all worktrees of a thread that is about to be deleted."""
    runs = edge.records.runs.newest(thread_id=thread_id)
    for worktree in {run.worktree.path: run.worktree for run in runs if run.worktree}.values():
        await _remove_own(edge, worktree)


def _runs_sharing(edge: EdgeContext, worktree: RunWorktree) -> list[Run]:
    """The runs that work in one worktree: the first, and those that try it again."""
    return list(edge.records.runs.newest(worktree=worktree.path))


async def _remove_own(edge: EdgeContext, worktree: RunWorktree) -> None:
    folder = Path(worktree.path)
    # A fact names the folder; what this Edge did not make is not its to remove.
    if folder.parent != await run_disk_work(edge.worktrees.resolve):
        return
    try:
        await remove_worktree(Path(worktree.repository), folder)
    except OSError as error:
        raise Problem(
            409, "worktree_not_removed", f"could not remove the whole worktree: {error.strerror}"
        ) from error


async def _discard(source: Path, folder: Path, note: Path) -> None:
    await remove_worktree(source, folder)
    await run_disk_work(note.unlink, missing_ok=True)


def _write_note(note: Path, text: str) -> None:
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(note, text.encode())


def _list_notes(root: Path) -> list[Path]:
    return sorted(root.glob(f"*{_NOTE}"))


def describe_worktree(worktree: Worktree) -> dict[str, str]:
    """What the facts of a run say of its worktree."""
    plain: dict[str, str] = msgspec.to_builtins(worktree)
    return plain
