"""Previews: started for a run, told as ready, and told as stopped whoever or whatever ended them.

A preview lives no longer than the process that serves it. What a former one left as ready is told
as stopped before this one answers anybody.
"""

import asyncio
from typing import Any

from factwire.edge.limits import PREVIEWS
from factwire.edge.logs import logger
from factwire.edge.machine import Machine
from factwire.edge.previews import PathMissing, PathRefused, ServedFolder, TooManyPreviews
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Preview, Run
from factwire.journal.blobs.disk import on_disk
from factwire.runtime.processes.errors import FolderRefused

_log = logger("factwire.edge")


async def create(
    machine: Machine, preview_id: str, run_id: str, path: str, *, host: str, trace_id: str
) -> Preview:
    """Serve a folder of a run; one with this id already is the one that was asked for before."""
    known = machine.records.previews.get(preview_id)
    if known is not None:
        return known
    run = machine.run(run_id)
    thread = machine.own_thread(run.thread_id or "")
    folder = await _folder(machine, run, path)

    async def ended(which: str) -> None:
        await _end(machine, which, reason="idle")

    try:
        url = await machine.previews.start(preview_id, folder, host, ended)
    except TooManyPreviews as error:
        raise Problem(
            429,
            "too_many_previews",
            f"{PREVIEWS} previews are served, as many as may be; stop one",
        ) from error
    except OSError as error:
        raise Problem(
            503, "preview_unavailable", f"nothing can listen here now: {error.strerror}"
        ) from error
    said = {"previewId": preview_id, "runId": run_id, "url": url, "status": "ready"}
    try:
        await machine.write(
            thread.thread_id,
            ("preview.ready", said),
            trace_id=trace_id,
            run_id=run_id,
            project_id=thread.project_id,
        )
    except BaseException:
        await machine.previews.stop(preview_id)
        raise
    return find(machine, preview_id)


async def stop(machine: Machine, preview_id: str, trace_id: str) -> Preview:
    """Serve a preview no longer; one that has stopped already is only told again."""
    row = find(machine, preview_id)
    if row.status == "ready" and not await _stopped(machine, row, "requested", trace_id):
        raise Problem(
            409, "preview_elsewhere", "another Edge or runtime serves this preview; stop it there"
        )
    return machine.records.previews.get(preview_id) or row


async def stop_of_thread(machine: Machine, thread_id: str, trace_id: str) -> None:
    """Serve nothing of a thread any more."""
    for row in _ready(machine):
        if row.thread_id == thread_id:
            await _stopped(machine, row, "thread_deleted", trace_id)


async def stop_of_runs(machine: Machine, run_ids: set[str], trace_id: str) -> None:
    """Serve nothing of some runs any more."""
    for row in _ready(machine):
        if row.run_id in run_ids:
            await _stopped(machine, row, "worktree_removed", trace_id)


async def stop_all(machine: Machine) -> None:
    """Stop what is served, as an Edge does that stops itself."""
    served = machine.previews.served
    await asyncio.gather(*(_end(machine, each, reason="edge_stopped") for each in served))


async def settle(machine: Machine) -> None:
    """Tell as stopped what a former process of this Edge left as ready."""
    for row in _ready(machine):
        try:
            await _tell(machine, row, "edge_restarted", "")
        except Exception as error:  # noqa: BLE001 - one thread must not keep an Edge from starting
            _log.warning("preview_stop_untold", preview_id=row.preview_id, exc_info=error)


def find(machine: Machine, preview_id: str) -> Preview:
    """A preview; raises `Problem`."""
    row = machine.records.previews.get(preview_id)
    if row is None:
        raise Problem(404, "unknown_preview", "no preview has this id")
    return row


def _ready(machine: Machine) -> list[Preview]:
    rows = machine.records.previews.rows.values()
    return [row for row in rows if row.status == "ready" and row.edge_id == machine.edge_id]


async def _folder(machine: Machine, run: Run, path: str) -> ServedFolder:
    """The folder to serve, held open; raises `Problem`, which tells nothing of other folders."""
    runtime = machine.runtime
    own = runtime.means.unwatched
    folder = run.work_dir or str(runtime.workspace)
    try:
        return await on_disk(
            ServedFolder.open, folder, path, tuple(runtime.workspaces.allowed), own
        )
    except FolderRefused as error:
        raise Problem(
            403, "workspace_not_allowed", "the folder of this run is gone or no longer allowed"
        ) from error
    except PathRefused as error:
        raise Problem(
            403,
            "preview_path_not_allowed",
            "expected a folder inside the run's own, with no hidden folder on the way",
        ) from error
    except PathMissing as error:
        raise Problem(
            404, "preview_path_not_found", "the run's folder has no folder of this name"
        ) from error


async def _end(machine: Machine, preview_id: str, *, reason: str) -> None:
    """Stop what nobody asked to stop; whoever waits for nothing hears of an error by the log."""
    row = machine.records.previews.get(preview_id)
    try:
        if row is None:
            await machine.previews.stop(preview_id)
        else:
            await _stopped(machine, row, reason, "")
    except Exception as error:  # noqa: BLE001 - the next start tells it as stopped
        _log.warning("preview_stop_untold", preview_id=preview_id, exc_info=error)


async def _stopped(machine: Machine, row: Preview, reason: str, trace_id: str) -> bool:
    if not await machine.previews.stop(row.preview_id):
        return False
    await _tell(machine, row, reason, trace_id)
    return True


async def _tell(machine: Machine, row: Preview, reason: str, trace_id: str) -> None:
    said: dict[str, Any] = {
        "previewId": row.preview_id,
        "runId": row.run_id,
        "status": "stopped",
        "reason": reason,
    }
    await machine.write(
        row.thread_id or "",
        ("preview.stopped", {name: value for name, value in said.items() if value is not None}),
        trace_id=trace_id,
        run_id=row.run_id,
        project_id=row.project_id,
    )
