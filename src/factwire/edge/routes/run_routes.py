"""Runs: asked for, watched, stopped; what they print, what they changed and what they made to
look at.
"""

from typing import Annotated, Any, Literal

from litestar import Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import (
    HTTP_200_OK,
    HTTP_201_CREATED,
    HTTP_202_ACCEPTED,
    HTTP_204_NO_CONTENT,
)

from factwire.edge.limits import WAIT_SECONDS
from factwire.edge.operations import (
    preview_operations,
    run_changes,
    run_operations,
    thread_operations,
    worktree_operations,
)
from factwire.edge.operations.run_operations import RunDiff, StandingRule, propose_standing_rule
from factwire.edge.records.thread_records import bare_id
from factwire.edge.routes.api_types import (
    CancelBody,
    DecisionBody,
    MergeBody,
    PreviewBody,
    RunBody,
)
from factwire.edge.routes.event_routes import View, read_events_page
from factwire.edge.routes.request_context import (
    EdgeRequest,
    edge_of,
    new_id,
    person_of,
    read_hidden,
    read_parts,
    states_of,
)
from factwire.facts.resources import (
    Approval,
    ApprovalStatus,
    DecisionCard,
    GrantedRule,
    Page,
    Preview,
    Run,
    RunMerge,
    RunProcess,
    RunStatus,
)
from factwire.serving.envelopes import Envelope
from factwire.serving.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit, build_page
from factwire.serving.rest import declare_answer, declare_bytes, trace_of

WaitSeconds = Annotated[
    int,
    QueryParameter(ge=0, le=WAIT_SECONDS, description="Seconds to wait before answering anyway."),
]


@get("/v1/runs", tags=["runs"])
async def list_runs(
    request: EdgeRequest,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    status: FromQuery[RunStatus | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Run]:
    """List runs, newest first."""
    edge = edge_of(request)
    return build_page(
        edge.cursor,
        edge.records.runs,
        after,
        limit,
        thread_id=thread_id,
        project_id=project_id,
        status=status,
    )


@post("/v1/runs", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def create_run(request: EdgeRequest, data: JSONBody[RunBody]) -> Run:
    """Start a run, or queue it behind the active run of its thread."""
    edge, trace = edge_of(request), trace_of(request)
    parts = read_parts(data.input)
    with run_operations.translate_refusals():
        edge.registered.agent(data.agent_id)
    thread_id = data.thread_id
    if thread_id is None:
        new = thread_operations.NewThread(
            thread_id=new_id(request, "thr"),
            project_id=run_operations.check_project(edge, data.project_id),
            title=data.title,
            agent_id=data.agent_id,
            by=person_of(request),
        )
        with run_operations.translate_refusals():
            run_operations.ensure_capacity(edge)
            thread_id = (await thread_operations.add_thread(edge, new, trace)).thread_id
    return await run_operations.start_run(
        edge,
        run_operations.NewRun(
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
            by=person_of(request),
        ),
    )


@get("/v1/runs/{run_id:str}", tags=["runs"])
async def read_run(request: EdgeRequest, run_id: FromPath[str], wait: WaitSeconds = 0) -> Run:
    """Get a run and its status; with `wait`, as soon as it has ended."""
    return await run_operations.wait_for_run(edge_of(request), run_id, wait)


@post("/v1/runs/{run_id:str}/:cancel", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def cancel_run(
    request: EdgeRequest, run_id: FromPath[str], data: JSONBody[CancelBody | None] = None
) -> Run:
    """Cancel a run: first through its own protocol, then with signals."""
    reason = (data.reason if data else None) or "requested"
    return await run_operations.request_cancel(edge_of(request), run_id, reason, person_of(request))


@post("/v1/runs/{run_id:str}/:retry", status_code=HTTP_202_ACCEPTED, tags=["runs"])
async def retry_run(request: EdgeRequest, run_id: FromPath[str]) -> Run:
    """Retry an ended run as a new run; the old one is kept unchanged."""
    return await run_operations.retry_ended_run(
        edge_of(request), run_id, person_of(request), trace_of(request)
    )


@post("/v1/runs/{run_id:str}/:merge", status_code=HTTP_200_OK, tags=["runs"])
async def merge_run(
    request: EdgeRequest, run_id: FromPath[str], data: JSONBody[MergeBody]
) -> RunMerge:
    """Merge what an ended run changed in its worktree into a branch of its repository, and remove
    the worktree. With conflicts, nothing is changed.
    """
    wanted = run_changes.WantedMerge(into=data.into, message=data.message, tree=data.tree)
    return await run_changes.merge_run(edge_of(request), run_id, wanted, person_of(request))


@get("/v1/runs/{run_id:str}/events", tags=["runs"], opt=declare_answer(Page[Envelope]))
async def read_run_events(
    request: EdgeRequest,
    run_id: FromPath[str],
    cursor: FromQuery[str | None] = None,
    view: FromQuery[View] = "runtime",
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)] = PAGE_ITEMS,
) -> Response[bytes]:
    """List the events of a run, oldest first."""
    run = run_operations.find_run(edge_of(request), run_id)
    return await read_events_page(
        request,
        view=view,
        thread_id=run.thread_id,
        run_id=bare_id(run, run_id),
        cursor=cursor,
        limit=limit,
    )


@get("/v1/runs/{run_id:str}/logs", tags=["runs"], opt=declare_bytes())
async def read_logs(
    request: EdgeRequest,
    run_id: FromPath[str],
    stream: FromQuery[Literal["stdout", "stderr"]] = "stdout",
    offset: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[
        int, QueryParameter(ge=1, le=run_operations.LOG_BYTES)
    ] = run_operations.LOG_BYTES,
    process_id: Annotated[str | None, QueryParameter(name="processId")] = None,
) -> Response[bytes]:
    """Read the output of a program of a run; the headers give the range and the next offset."""
    edge = edge_of(request)
    found = await run_operations.read_run_log(
        edge,
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


@get("/v1/runs/{run_id:str}/processes", tags=["runs"])
async def list_processes(request: EdgeRequest, run_id: FromPath[str]) -> Page[RunProcess]:
    """List the programs of a run in the order in which they started; `logs` has their output."""
    return await run_operations.list_processes(edge_of(request), states_of(request), run_id)


@get("/v1/runs/{run_id:str}/diff", tags=["runs"])
async def read_diff(request: EdgeRequest, run_id: FromPath[str]) -> RunDiff:
    """Get the diff of a run, as git reports it; `scope` says of what: the changes in the run's
    worktree or, without one, all uncommitted changes in its folder, whoever made them.
    """
    return await run_operations.diff_run(edge_of(request), run_id)


@get("/v1/approvals", tags=["approvals"])
async def list_approvals(
    request: EdgeRequest,
    status: FromQuery[ApprovalStatus | None] = None,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Approval]:
    """List approvals, pending and decided; newest first."""
    edge = edge_of(request)
    return build_page(
        edge.cursor,
        edge.records.approvals,
        after,
        limit,
        thread_id=thread_id,
        run_id=run_id,
        status=status,
    )


@get("/v1/approvals/{approval_id:str}", tags=["approvals"])
async def read_approval(
    request: EdgeRequest, approval_id: FromPath[str], wait: WaitSeconds = 0
) -> Approval:
    """Get an approval; with `wait`, as soon as it is decided."""
    return await run_operations.wait_for_approval(edge_of(request), approval_id, wait)


@get("/v1/approvals/{approval_id:str}/card", tags=["approvals"])
async def read_decision_card(request: EdgeRequest, approval_id: FromPath[str]) -> DecisionCard:
    """Get exactly what an approval is about, with the hash that a decision is bound to. Nothing is
    redacted as in the row: a secret is masked within one word, or marked where it cannot be.
    """
    return await run_operations.read_card(edge_of(request), approval_id)


@get("/v1/approvals/{approval_id:str}/standing-rule", tags=["approvals"])
async def read_standing_rule(request: EdgeRequest, approval_id: FromPath[str]) -> StandingRule:
    """Get the rule that `always` would grant for an approval, or why there is none."""
    hidden = await read_hidden(request)
    return await propose_standing_rule(edge_of(request), approval_id, hidden)


@get("/v1/standing-rules", tags=["approvals"])
async def list_standing_rules(request: EdgeRequest) -> Page[GrantedRule]:
    """List the rules that were granted and hold; newest first."""
    return await run_operations.list_standing_rules(edge_of(request), await read_hidden(request))


@delete("/v1/standing-rules/{rule_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["approvals"])
async def revoke_standing_rule(request: EdgeRequest, rule_id: FromPath[str]) -> None:
    """Revoke a rule: what it allowed is asked about again."""
    await run_operations.revoke_standing_rule(edge_of(request), rule_id, person_of(request))


@post("/v1/permissions/decide", status_code=200, tags=["approvals"])
async def decide_permission(request: EdgeRequest, data: JSONBody[DecisionBody]) -> Approval:
    """Decide an approval: once, and for exactly what was shown."""
    return await run_operations.decide_approval(
        edge_of(request),
        data.run_id,
        data.request_id,
        data.decision,
        by=person_of(request),
        reason=data.reason,
        args_hash=data.args_hash,
        always=data.always,
        expires_in=data.expires_in,
        response=data.response,
    )


ROUTES: list[Any] = [
    list_runs,
    create_run,
    read_run,
    cancel_run,
    retry_run,
    merge_run,
    read_run_events,
    read_logs,
    list_processes,
    read_diff,
    list_approvals,
    read_approval,
    read_decision_card,
    read_standing_rule,
    list_standing_rules,
    revoke_standing_rule,
    decide_permission,
]


@get("/v1/previews", tags=["previews"])
async def list_previews(
    request: EdgeRequest,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    status: FromQuery[Literal["ready", "stopped"] | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Preview]:
    """List previews, newest first; a stopped preview has no address."""
    edge = edge_of(request)
    return build_page(
        edge.cursor,
        edge.records.previews,
        after,
        limit,
        thread_id=thread_id,
        run_id=run_id,
        status=status,
    )


@post("/v1/previews", status_code=HTTP_201_CREATED, tags=["previews"])
async def create_preview(request: EdgeRequest, data: JSONBody[PreviewBody]) -> Preview:
    """Serve a folder of a run on its own origin; anyone who has the address can open it."""
    return await preview_operations.start_preview(
        edge_of(request),
        new_id(request, "prv"),
        data.run_id,
        data.path,
        host=request.url.hostname or "127.0.0.1",
        by=person_of(request),
        trace_id=trace_of(request),
    )


@get("/v1/previews/{preview_id:str}", tags=["previews"])
async def read_preview(request: EdgeRequest, preview_id: FromPath[str]) -> Preview:
    """Get a preview, with its address while it is served."""
    return preview_operations.find_preview(edge_of(request), preview_id)


@post("/v1/previews/{preview_id:str}/:stop", status_code=200, tags=["previews"])
async def stop_preview(request: EdgeRequest, preview_id: FromPath[str]) -> Preview:
    """Stop a preview."""
    return await preview_operations.end_preview(
        edge_of(request), preview_id, person_of(request), trace_of(request)
    )


@delete("/v1/runs/{run_id:str}/worktree", status_code=HTTP_204_NO_CONTENT, tags=["runs"])
async def delete_worktree(request: EdgeRequest, run_id: FromPath[str]) -> None:
    """Remove the worktree of an ended run, with everything in it."""
    edge = edge_of(request)
    run = run_operations.find_run(edge, run_id)
    edge.find_own_thread(run.thread_id or "")
    await worktree_operations.remove_run_worktree(edge, run, person_of(request), trace_of(request))


PREVIEW_ROUTES: list[Any] = [
    list_previews,
    create_preview,
    read_preview,
    stop_preview,
    delete_worktree,
]
