"""Runs: asked for, watched, stopped; what they print and what they changed."""

from typing import Annotated, Any, Literal

from litestar import Response, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_202_ACCEPTED

from factwire.edge.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.edge.records import Page
from factwire.edge.records.belonging import bare_id
from factwire.edge.records.rows import Approval, ApprovalStatus, Run, RunStatus
from factwire.edge.routes.answers import EventPage, bytes_of, declared
from factwire.edge.routes.bodies import CancelBody, DecisionBody, RunBody
from factwire.edge.routes.context import (
    EdgeRequest,
    machine_of,
    new_id,
    read_parts,
    states_of,
    trace_of,
)
from factwire.edge.routes.paging import DEFAULT_LIMIT, After, Limit, page
from factwire.edge.routes.reads import View, events_page
from factwire.edge.work import output, runs, threads
from factwire.edge.work.output import RunDiff
from factwire.edge.work.standing import StandingRule, standing_rule


@get("/v1/runs", tags=["runs"])
async def list_runs(
    request: EdgeRequest,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    status: FromQuery[RunStatus | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Run]:
    """Runs, newest first."""
    machine = machine_of(request)

    def wanted(row: Run) -> bool:
        return (
            (thread_id is None or row.thread_id == thread_id)
            and (project_id is None or row.project_id == project_id)
            and (status is None or row.status == status)
        )

    return page(machine, machine.records.runs, after, limit, wanted)


@post("/v1/runs", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def create_run(request: EdgeRequest, data: JSONBody[RunBody]) -> Run:
    """Start a run, or queue it behind the active one of its thread."""
    machine, trace = machine_of(request), trace_of(request)
    parts = read_parts(data.input)
    with runs.refusals():
        machine.registered.agent(data.agent_id)
    thread_id = data.thread_id
    if thread_id is None:
        new = threads.NewThread(
            thread_id=new_id(request, "thr"),
            project_id=runs.project_of(machine, data.project_id),
            title=data.title,
            agent_id=data.agent_id,
        )
        with runs.refusals():
            runs.ensure_room(machine)
            thread_id = (await threads.create(machine, new, trace)).thread_id
    return await runs.start(
        machine,
        runs.NewRun(
            turn_id=new_id(request, "trn"),
            thread_id=thread_id,
            agent_id=data.agent_id,
            prompt=data.prompt,
            input=parts,
            options=data.options or {},
            work_dir=data.work_dir,
            worktree=data.worktree,
            when_busy=data.when_busy,
            trace_id=trace,
        ),
    )


@get("/v1/runs/{run_id:str}", tags=["runs"])
async def read_run(request: EdgeRequest, run_id: FromPath[str]) -> Run:
    """One run, with how it stands."""
    return runs.find(machine_of(request), run_id)


@post("/v1/runs/{run_id:str}/:cancel", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def cancel_run(
    request: EdgeRequest, run_id: FromPath[str], data: JSONBody[CancelBody | None] = None
) -> Run:
    """Ask a run to stop. It is asked by its own protocol first, then by signals."""
    reason = (data.reason if data else None) or "requested"
    return await runs.cancel(machine_of(request), run_id, reason)


@post("/v1/runs/{run_id:str}/:retry", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def retry_run(request: EdgeRequest, run_id: FromPath[str]) -> Run:
    """Run what ended once more; the old run is kept as it was."""
    return await runs.retry(machine_of(request), run_id, trace_of(request))


@get("/v1/runs/{run_id:str}/events", tags=["runs"], opt=declared(EventPage))
async def read_run_events(
    request: EdgeRequest,
    run_id: FromPath[str],
    cursor: FromQuery[str | None] = None,
    view: FromQuery[View] = "runtime",
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)] = PAGE_ITEMS,
) -> Response[bytes]:
    """The events of a run, oldest first."""
    run = runs.find(machine_of(request), run_id)
    return await events_page(
        request,
        view=view,
        thread_id=run.thread_id,
        run_id=bare_id(run, run_id),
        cursor=cursor,
        limit=limit,
    )


@get("/v1/runs/{run_id:str}/logs", tags=["runs"], opt=bytes_of())
async def read_logs(
    request: EdgeRequest,
    run_id: FromPath[str],
    stream: FromQuery[Literal["stdout", "stderr"]] = "stdout",
    offset: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=output.LOG_BYTES)] = output.LOG_BYTES,
    process_id: Annotated[str | None, QueryParameter(name="processId")] = None,
) -> Response[bytes]:
    """Bytes of what a program of a run printed; the headers say which, and what follows."""
    machine = machine_of(request)
    found = await output.log(
        machine,
        states_of(request),
        run_id,
        process_id=process_id,
        stream=stream,
        offset=offset,
        limit=limit,
    )
    headers = {
        "x-process-id": found.process_id,
        "x-offset": str(offset),
        "x-next-offset": str(offset + len(found.data)),
    }
    return Response(found.data, media_type="application/octet-stream", headers=headers)


@get("/v1/runs/{run_id:str}/diff", tags=["runs"])
async def read_diff(request: EdgeRequest, run_id: FromPath[str]) -> RunDiff:
    """What a run changed in its worktree, or without one what its folder has that its last commit
    has not, whoever changed it; `scope` says which, and git tells it.
    """
    return await output.diff(machine_of(request), run_id)


@get("/v1/approvals", tags=["approvals"])
async def list_approvals(
    request: EdgeRequest,
    status: FromQuery[ApprovalStatus | None] = None,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Approval]:
    """What waits for a person, and what was decided; newest first."""
    machine = machine_of(request)

    def wanted(row: Approval) -> bool:
        return (
            (status is None or row.status == status)
            and (thread_id is None or row.thread_id == thread_id)
            and (run_id is None or row.run_id == run_id)
        )

    return page(machine, machine.records.approvals, after, limit, wanted)


@get("/v1/approvals/{approval_id:str}/standing-rule", tags=["approvals"])
async def read_standing_rule(request: EdgeRequest, approval_id: FromPath[str]) -> StandingRule:
    """The rule that `always` would grant for what waits, or why there is none."""
    return await standing_rule(machine_of(request), approval_id)


@post("/v1/permissions/decide", status_code=200, tags=["approvals"])
async def decide_permission(request: EdgeRequest, data: JSONBody[DecisionBody]) -> Approval:
    """Decide what a run waits for: once, on what was shown."""
    return await runs.decide(
        machine_of(request),
        data.run_id,
        data.request_id,
        data.decision,
        reason=data.reason,
        args_hash=data.args_hash,
        always=data.always,
        response=data.response,
    )


ROUTES: list[Any] = [
    list_runs,
    create_run,
    read_run,
    cancel_run,
    retry_run,
    read_run_events,
    read_logs,
    read_diff,
    list_approvals,
    read_standing_rule,
    decide_permission,
]
