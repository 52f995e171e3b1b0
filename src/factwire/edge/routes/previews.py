"""Previews of what runs made, and the worktrees that runs made it in."""

from typing import Annotated, Any, Literal

from litestar import delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.edge.records import Page
from factwire.edge.records.rows import Preview
from factwire.edge.routes.bodies import PreviewBody
from factwire.edge.routes.context import EdgeRequest, machine_of, new_id, trace_of
from factwire.edge.routes.paging import DEFAULT_LIMIT, After, Limit, page
from factwire.edge.work import previews, runs, worktrees


@get("/v1/previews", tags=["previews"])
async def list_previews(
    request: EdgeRequest,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    status: FromQuery[Literal["ready", "stopped"] | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Preview]:
    """Previews, newest first; one that has stopped has no address any more."""
    machine = machine_of(request)

    def wanted(row: Preview) -> bool:
        return (
            (thread_id is None or row.thread_id == thread_id)
            and (run_id is None or row.run_id == run_id)
            and (status is None or row.status == status)
        )

    return page(machine, machine.records.previews, after, limit, wanted)


@post("/v1/previews", status_code=HTTP_201_CREATED, tags=["previews"])
async def create_preview(request: EdgeRequest, data: JSONBody[PreviewBody]) -> Preview:
    """Serve a folder of a run on an origin of its own; its address opens it to whoever has it."""
    return await previews.create(
        machine_of(request),
        new_id(request, "prv"),
        data.run_id,
        data.path,
        host=request.url.hostname or "127.0.0.1",
        trace_id=trace_of(request),
    )


@get("/v1/previews/{preview_id:str}", tags=["previews"])
async def read_preview(request: EdgeRequest, preview_id: FromPath[str]) -> Preview:
    """One preview, with its address while it is served."""
    return previews.find(machine_of(request), preview_id)


@post("/v1/previews/{preview_id:str}/:stop", status_code=200, tags=["previews"])
async def stop_preview(request: EdgeRequest, preview_id: FromPath[str]) -> Preview:
    """Serve a preview no longer."""
    return await previews.stop(machine_of(request), preview_id, trace_of(request))


@delete("/v1/runs/{run_id:str}/worktree", status_code=HTTP_204_NO_CONTENT, tags=["runs"])
async def delete_worktree(request: EdgeRequest, run_id: FromPath[str]) -> None:
    """Remove the worktree of a run that has ended, with whatever it holds."""
    machine = machine_of(request)
    run = runs.find(machine, run_id)
    machine.own_thread(run.thread_id or "")
    await worktrees.remove(machine, run, trace_of(request))


ROUTES: list[Any] = [list_previews, create_preview, read_preview, stop_preview, delete_worktree]
