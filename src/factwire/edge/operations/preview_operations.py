"""Previews: started for a run, told as ready, and told as stopped whoever or whatever ended them.

A preview lives no longer than the process that serves it. What a former one left as ready is told
as stopped before this one answers anybody.
"""

import asyncio
from typing import Any

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import PREVIEWS
from factwire.edge.preview_server import TooManyPreviews
from factwire.edge.preview_site import PathMissing, PathRefused, ServedFolder
from factwire.facts import Person
from factwire.facts.resources import Preview, Run
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.processes.process_spec import FolderRefused
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

_log = logger("factwire.edge")


async def start_preview(
    edge: EdgeContext,
    preview_id: str,
    run_id: str,
    path: str,
    *,
    host: str,
    by: Person,
    trace_id: str,
) -> Preview:
    """Serve a folder of a run; one with this id already is the one that was asked for before."""
    known = edge.records.previews.get(preview_id)
    if known is not None:
        return known
    run = edge.find_run(run_id)
    thread = edge.find_own_thread(run.thread_id or "")
    folder = await _open_folder(edge, run, path)

    async def end_idle_preview(which: str) -> None:
        await _end_quietly(edge, which, reason="idle")

    try:
        url = await edge.previews.start(preview_id, folder, host, end_idle_preview)
    except TooManyPreviews as error:
        raise Problem(
            429,
            "too_many_previews",
            f"too many previews ({PREVIEWS}); stop one first",
        ) from error
    except OSError as error:
        raise Problem(
            503, "preview_unavailable", f"cannot open a port for the preview: {error.strerror}"
        ) from error
    payload = {"previewId": preview_id, "runId": run_id, "url": url, "status": "ready"}
    try:
        await edge.write(
            thread.thread_id,
            ("preview.ready", payload),
            trace_id=trace_id,
            by=by,
            run_id=run_id,
            project_id=thread.project_id,
        )
    except BaseException:
        await edge.previews.stop(preview_id)
        raise
    return find_preview(edge, preview_id)


async def end_preview(edge: EdgeContext, preview_id: str, by: Person, trace_id: str) -> Preview:
    """Serve a preview no longer; one that has stopped already is only told again."""
    row = find_preview(edge, preview_id)
    if row.status == "ready" and not await _stop_and_record(edge, row, "requested", trace_id, by):
        raise Problem(
            409,
            "preview_elsewhere",
            "this preview is served by another Edge or runtime; stop it there",
        )
    return edge.records.previews.get(preview_id) or row


async def stop_thread_previews(
    edge: EdgeContext, thread_id: str, trace_id: str, by: Person
) -> None:
    """Serve nothing of a thread any more."""
    for row in _ready_previews(edge):
        if row.thread_id == thread_id:
            await _stop_and_record(edge, row, "thread_deleted", trace_id, by)


async def stop_run_previews(
    edge: EdgeContext, run_ids: set[str], trace_id: str, by: Person
) -> None:
    """Serve nothing of some runs any more."""
    for row in _ready_previews(edge):
        if row.run_id in run_ids:
            await _stop_and_record(edge, row, "worktree_removed", trace_id, by)


async def stop_all_previews(edge: EdgeContext) -> None:
    """Stop what is served, as an Edge does that stops itself."""
    served = edge.previews.preview_ids
    await asyncio.gather(*(_end_quietly(edge, each, reason="edge_stopped") for each in served))


async def settle_previews(edge: EdgeContext) -> None:
    """Tell as stopped what a former process of this Edge left as ready."""
    for row in _ready_previews(edge):
        try:
            await _record_stopped(edge, row, "edge_restarted", "")
        except Exception as error:  # noqa: BLE001 - one thread must not keep an Edge from starting
            _log.warning("preview_stop_untold", preview_id=row.preview_id, exc_info=error)


def find_preview(edge: EdgeContext, preview_id: str) -> Preview:
    """A preview; raises `Problem`."""
    row = edge.records.previews.get(preview_id)
    if row is None:
        raise Problem(404, "unknown_preview", "no preview has this id")
    return row


def _ready_previews(edge: EdgeContext) -> list[Preview]:
    rows = edge.records.previews.newest(status="ready")
    return [row for row in rows if row.edge_id == edge.edge_id]


async def _open_folder(edge: EdgeContext, run: Run, path: str) -> ServedFolder:
    """The folder to serve, held open; raises `Problem`, which tells nothing of other folders."""
    runtime = edge.runtime
    own = runtime.resources.unwatched
    folder = run.work_dir or str(runtime.workspace)
    try:
        return await run_disk_work(
            ServedFolder.open, folder, path, tuple(runtime.workspaces.allowed), own
        )
    except FolderRefused as error:
        raise Problem(
            403,
            "workspace_not_allowed",
            "the folder of this run no longer exists or is no longer allowed",
        ) from error
    except PathRefused as error:
        raise Problem(
            403,
            "preview_path_not_allowed",
            "expected a folder inside the run's folder, without hidden folders in its path",
        ) from error
    except PathMissing as error:
        raise Problem(
            404, "preview_path_not_found", "the run's folder has no such folder"
        ) from error


async def _end_quietly(edge: EdgeContext, preview_id: str, *, reason: str) -> None:
    """Stop what nobody asked to stop; whoever waits for nothing hears of an error by the log."""
    row = edge.records.previews.get(preview_id)
    try:
        if row is None:
            await edge.previews.stop(preview_id)
        else:
            await _stop_and_record(edge, row, reason, "")
    except Exception as error:  # noqa: BLE001 - the next start tells it as stopped
        _log.warning("preview_stop_untold", preview_id=preview_id, exc_info=error)


async def _stop_and_record(
    edge: EdgeContext, row: Preview, reason: str, trace_id: str, by: Person | None = None
) -> bool:
    if not await edge.previews.stop(row.preview_id):
        return False
    await _record_stopped(edge, row, reason, trace_id, by)
    return True


async def _record_stopped(
    edge: EdgeContext, row: Preview, reason: str, trace_id: str, by: Person | None = None
) -> None:
    payload: dict[str, Any] = {
        "previewId": row.preview_id,
        "runId": row.run_id,
        "url": row.url,
        "status": "stopped",
        "reason": reason,
    }
    await edge.write(
        row.thread_id or "",
        ("preview.stopped", {name: value for name, value in payload.items() if value is not None}),
        trace_id=trace_id,
        by=by,
        run_id=row.run_id,
        project_id=row.project_id,
    )
