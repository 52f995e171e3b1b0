"""Threads: their list, their conversation as items, their state."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_201_CREATED, HTTP_202_ACCEPTED, HTTP_204_NO_CONTENT

from factwire.edge.operations import run_operations, thread_operations
from factwire.edge.operations.run_operations import QueuedRun
from factwire.edge.routes.api_types import (
    ForkBody,
    MessageAnswer,
    MessageBody,
    ThreadBody,
    ThreadChange,
)
from factwire.edge.routes.request_context import (
    EdgeRequest,
    edge_of,
    new_id,
    person_of,
    read_parts,
    states_of,
)
from factwire.facts.resources import (
    Activity,
    Item,
    ItemContent,
    Page,
    SteerAnswer,
    Thread,
    ThreadOverview,
    ThreadState,
    ThreadStatus,
)
from factwire.journal import Cursor
from factwire.projection import Projection, ProjectionState, thread_read_model
from factwire.projection.messages import Message, TextPart, ToolPreviewPart
from factwire.projection.read_models import ThreadReadModel
from factwire.projection.tools import ENDED_TOOLS, Tool
from factwire.runtime.mint import run_of
from factwire.serving.asgi import Problem
from factwire.serving.limits import LIST_ITEMS_MOST
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit, RowSearch, build_page
from factwire.serving.rest import declare_answer, trace_of

_STATUS = {
    "streaming": "in_progress",
    "final": "completed",
    "interrupted": "interrupted",
    "stale": "stale",
    "retracted": "retracted",
}
_ROLES = {"user": "user_message", "assistant": "agent_message"}
_CALL_STATUS = {
    "input-streaming": "pending",
    "input-available": "started",
    "running": "started",
    "progress": "in_progress",
    "output-available": "completed",
    "output-error": "failed",
}
"""The states of a call in the words of an item; those of its events are the same."""

_ERRORS = {"output-available": False, "output-error": True, "cancelled": True}


def items_of(state: ProjectionState, project_id: str | None, runs: dict[str, str]) -> list[Item]:
    """Every item of a thread, oldest first; `runs` names the runs of turns that name none."""
    return [
        item
        for message in state.messages
        for item in _message_items(state, message, project_id, runs)
    ]


async def _list_items(request: EdgeRequest, row: Thread) -> tuple[Cursor, list[Item]]:
    edge, runs = edge_of(request), dict[str, str]()
    if row.runtime_id != edge.mint.runtime_id:
        # A runtime of others may name a run otherwise than its turn.
        listed = edge.records.runs.newest(thread_id=row.thread_id)
        runs = {run.turn_id: run.run_id for run in listed}
    return await states_of(request).derive(
        row.thread_id, None, lambda projection: items_of(projection.state, row.project_id, runs)
    )


def _message_items(
    state: ProjectionState, message: Message, project_id: str | None, runs: dict[str, str]
) -> Iterator[Item]:
    turn_id = message.turn_id
    run_id = None if turn_id is None else runs.get(turn_id) or run_of(turn_id)
    for part in message.parts:
        if isinstance(part, TextPart):
            own = part.part_id.startswith(f"{message.message_id}:text")
            yield Item(
                item_id=message.message_id if own else f"{message.message_id}/{part.part_id}",
                type=_ROLES.get(message.role, f"{message.role}_message"),
                role=message.role,
                status=_STATUS[part.state],
                project_id=project_id,
                thread_id=state.thread_id,
                run_id=run_id,
                subagent_id=message.subagent_id,
                content=ItemContent(text=str(part.text), refs=message.input_refs),
                created_at=message.created_at,
                updated_at=message.completed_at or message.created_at,
                by=message.by,
            )
        elif isinstance(part, ToolPreviewPart) and part.tool_call_id in state.tools:
            yield _build_tool_item(state, state.tools[part.tool_call_id], project_id, run_id)


def _build_tool_item(
    state: ProjectionState, tool: Tool, project_id: str | None, run_id: str | None
) -> Item:
    has_ended = tool.state in ENDED_TOOLS
    output = tool.output if tool.output is not None else str(tool.output_text) or None
    if has_ended and output is None:
        # The message of a call that succeeded is the last one about its progress.
        output = (tool.message if _ERRORS[tool.state] else None) or tool.summary
    return Item(
        item_id=tool.tool_call_id,
        type="tool",
        role="tool",
        status=_CALL_STATUS.get(tool.state, tool.state),
        project_id=project_id,
        thread_id=state.thread_id,
        run_id=run_id,
        subagent_id=tool.subagent_id,
        content=ItemContent(
            tool_name=tool.tool_name,
            input=tool.args if tool.args is not None else str(tool.args_text) or None,
            output=output,
            output_ref=tool.output_ref,
            is_error=_ERRORS.get(tool.state),
            exit_code=tool.exit_code,
            failure_category=tool.failure_category,
            progress=tool.progress,
            total=tool.total,
            message=None if has_ended else tool.message,
            refs=tool.ref_ids,
        ),
        created_at=tool.started_at,
        updated_at=tool.completed_at or tool.started_at,
    )


At = Annotated[
    str | None,
    QueryParameter(
        description="A cursor, or the id of an event or a fact: the thread as it was at that point."
    ),
]


@get("/v1/threads", tags=["threads"])
async def list_threads(
    request: EdgeRequest,
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    status: FromQuery[ThreadStatus | None] = None,
    activity: FromQuery[Activity | None] = None,
    search: Annotated[
        str | None, QueryParameter(description="Words from the title, or the start of an id.")
    ] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Thread]:
    """List threads, newest first; their events continue from the cursor `asOf`."""
    edge = edge_of(request)
    return build_page(
        edge.cursor,
        edge.records.threads,
        after,
        limit,
        _build_search((search or "").casefold().split()),
        project_id=project_id,
        status=status,
        activity=activity,
    )


@post("/v1/threads", status_code=HTTP_201_CREATED, tags=["threads"])
async def create_thread(request: EdgeRequest, data: JSONBody[ThreadBody]) -> Thread:
    """Create a thread."""
    new = thread_operations.NewThread(
        thread_id=new_id(request, "thr"),
        project_id=data.project_id,
        conversation_id=data.conversation_id,
        title=data.title,
        agent_id=data.agent_id,
        private=data.private,
        by=person_of(request),
    )
    with run_operations.translate_refusals():
        return await thread_operations.add_thread(edge_of(request), new, trace_of(request))


@get("/v1/threads/{thread_id:str}", tags=["threads"])
async def read_thread(request: EdgeRequest, thread_id: FromPath[str]) -> Thread:
    """Get a thread and its activity."""
    return edge_of(request).find_thread(thread_id)


@patch("/v1/threads/{thread_id:str}", tags=["threads"])
async def change_thread(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[ThreadChange]
) -> Thread:
    """Rename, archive or restore a thread, or make it private: what happens in it from then on
    stays on this Edge. A private thread cannot be made public again.
    """
    fields = {"title": data.title, "status": data.status, "private": data.private}
    changes = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    return await thread_operations.update_thread(
        edge_of(request), thread_id, changes, by=person_of(request), trace_id=trace_of(request)
    )


@delete("/v1/threads/{thread_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["threads"])
async def delete_thread(request: EdgeRequest, thread_id: FromPath[str]) -> None:
    """Delete a thread from all lists; its facts stay in the journal, subject to retention."""
    await thread_operations.remove_thread(
        edge_of(request), thread_id, by=person_of(request), trace_id=trace_of(request)
    )


@post("/v1/threads/{thread_id:str}/:archive", status_code=200, tags=["threads"])
async def archive_thread(request: EdgeRequest, thread_id: FromPath[str]) -> Thread:
    """Archive a thread."""
    changes = {"status": "archived"}
    return await thread_operations.update_thread(
        edge_of(request), thread_id, changes, by=person_of(request), trace_id=trace_of(request)
    )


@post("/v1/threads/{thread_id:str}/:fork", status_code=HTTP_201_CREATED, tags=["threads"])
async def fork_thread(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[ForkBody]
) -> Thread:
    """Fork a thread: create one that begins with its conversation at a given point."""
    new = thread_operations.NewThread(
        thread_id=new_id(request, "thr"), title=data.title, by=person_of(request)
    )
    return await thread_operations.add_fork(
        edge_of(request),
        states_of(request),
        thread_id,
        new,
        from_item_id=data.from_item_id,
        at=data.at,
        trace_id=trace_of(request),
    )


@get("/v1/threads/{thread_id:str}/items", tags=["threads"])
async def list_items(
    request: EdgeRequest,
    thread_id: FromPath[str],
    after: Annotated[
        str | None, QueryParameter(name="cursor", description="The last item of the previous page.")
    ] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=LIST_ITEMS_MOST, description="The number of items per page.")
    ] = DEFAULT_LIMIT,
) -> Page[Item]:
    """List the items of a thread, oldest first, as of the cursor `asOf`."""
    row = edge_of(request).find_thread(thread_id)
    cursor, found = await _list_items(request, row)
    start = _position_after(found, after)
    shown = found[start : start + limit]
    more = start + limit < len(found)
    return Page(items=shown, as_of=str(cursor), next=shown[-1].item_id if more else None)


@get("/v1/threads/{thread_id:str}/items/{item_id:str}", tags=["threads"])
async def read_item(request: EdgeRequest, thread_id: FromPath[str], item_id: FromPath[str]) -> Item:
    """Get an item of a thread."""
    row = edge_of(request).find_thread(thread_id)
    _, found = await _list_items(request, row)
    for item in found:
        if item.item_id == item_id:
            return item
    raise Problem(404, "unknown_item", "no item of this thread has this id")


@get(
    "/v1/threads/{thread_id:str}/projection",
    tags=["threads"],
    opt=declare_answer(ThreadState[ProjectionState]),
)
async def read_projection(
    request: EdgeRequest, thread_id: FromPath[str], at: At = None
) -> Response[bytes]:
    """Get the state of a thread, now or at an earlier point; changes continue from `asOf`."""
    edge = edge_of(request)
    edge.find_thread(thread_id)
    moment = await thread_operations.find_moment(edge, at)
    cursor, state = await states_of(request).derive(thread_id, moment, Projection.snapshot)
    body = b'{"threadId":%s,"asOf":"%s","state":%s}' % (
        _encode_text(thread_id),
        str(cursor).encode(),
        state,
    )
    return Response(body, media_type="application/json")


@get("/v1/threads/{thread_id:str}/read-model", tags=["threads"])
async def read_thread_model(
    request: EdgeRequest, thread_id: FromPath[str], at: At = None
) -> ThreadOverview[ThreadReadModel]:
    """Get what the first screen of a thread needs, as of the cursor `asOf`."""
    edge = edge_of(request)
    edge.find_thread(thread_id)
    moment = await thread_operations.find_moment(edge, at)
    cursor, model = await states_of(request).derive(
        thread_id, moment, lambda projection: thread_read_model(projection.state)
    )
    return ThreadOverview(as_of=str(cursor), read_model=model)


@post("/v1/threads/{thread_id:str}/messages", status_code=HTTP_202_ACCEPTED, tags=["threads"])
async def post_message(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[MessageBody]
) -> MessageAnswer:
    """Send a message to an agent: it starts a run, is queued, or steers the active run."""
    edge, parts = edge_of(request), read_parts(data.input)
    edge.find_own_thread(thread_id)
    turn_id = new_id(request, "trn")
    if data.mode == "steer":
        steered = await run_operations.steer_active_run(
            edge, thread_id, data.text, parts, steer_id=turn_id, by=person_of(request)
        )
        return MessageAnswer(steered=SteerAnswer(**msgspec.structs.asdict(steered)))
    new = run_operations.NewRun(
        turn_id=turn_id,
        thread_id=thread_id,
        agent_id=run_operations.choose_agent(
            edge, thread_id, data.agent_id, request.app.state["default_agent"]
        ),
        prompt=data.text,
        input=parts,
        options=data.options or {},
        when_busy="refuse" if data.mode == "refuse" else "queue",
        trace_id=trace_of(request),
        by=person_of(request),
    )
    return MessageAnswer(run=await run_operations.start_run(edge, new))


@get("/v1/threads/{thread_id:str}/queue", tags=["threads"])
async def read_queue(request: EdgeRequest, thread_id: FromPath[str]) -> Page[QueuedRun]:
    """List the queued runs of a thread, next one first."""
    edge = edge_of(request)
    edge.find_own_thread(thread_id)
    seen = await states_of(request).now(thread_id)
    return run_operations.build_queue_page(edge, seen.projection.state)


@post("/v1/threads/{thread_id:str}/queue/{run_id:str}/:promote", status_code=200, tags=["threads"])
async def promote_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> Page[QueuedRun]:
    """Move a queued run to the front."""
    return await run_operations.promote_queued_run(
        edge_of(request), thread_id, run_id, person_of(request)
    )


@post("/v1/threads/{thread_id:str}/queue/:continue", status_code=200, tags=["threads"])
async def continue_queue(request: EdgeRequest, thread_id: FromPath[str]) -> Page[QueuedRun]:
    """Continue after a stop: start the held runs of a thread, one after the other."""
    return await run_operations.release_queued_runs(
        edge_of(request), thread_id, None, person_of(request)
    )


@post("/v1/threads/{thread_id:str}/queue/{run_id:str}/:continue", status_code=200, tags=["threads"])
async def continue_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> Page[QueuedRun]:
    """Start a held run as soon as the thread is free; other held runs stay held."""
    return await run_operations.release_queued_runs(
        edge_of(request), thread_id, run_id, person_of(request)
    )


@post("/v1/threads/{thread_id:str}/queue/{run_id:str}/:steer", status_code=200, tags=["threads"])
async def steer_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> Page[QueuedRun]:
    """Send the prompt of a queued run to the active run instead."""
    return await run_operations.steer_queued_run(
        edge_of(request), thread_id, run_id, person_of(request)
    )


@delete("/v1/threads/{thread_id:str}/queue/{run_id:str}", status_code=200, tags=["threads"])
async def remove_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> Page[QueuedRun]:
    """Remove a run from the queue; it will not start."""
    return await run_operations.remove_queued_run(
        edge_of(request), thread_id, run_id, person_of(request)
    )


def _build_search(words: list[str]) -> RowSearch | None:
    """Threads with all these words in their title, or with an id that begins with the first."""
    if not words:
        return None
    first = words[0]

    def matches(row: Thread) -> bool:
        title = (row.title or "").casefold()
        return all(word in title for word in words) or row.thread_id.casefold().startswith(first)

    in_title = " AND ".join(["instr(words, ?)"] * len(words))
    begins = "substr(lower(key), 1, length(?)) = ?"
    return RowSearch(f"({in_title}) OR {begins}", (*words, first, first), matches)


def _position_after(found: list[Item], item_id: str | None) -> int:
    """Where the page after an item begins; raises `Problem`."""
    if item_id is None:
        return 0
    for at, item in enumerate(found):
        if item.item_id == item_id:
            return at + 1
    raise Problem(
        400, "cursor_invalid", "expected the `next` value of the previous page; no item has this id"
    )


def _encode_text(text: str) -> bytes:
    return msgspec.json.encode(text)


ROUTES = [
    list_threads,
    create_thread,
    read_thread,
    change_thread,
    delete_thread,
    archive_thread,
    fork_thread,
    list_items,
    read_item,
    read_projection,
    read_thread_model,
    post_message,
    read_queue,
    promote_queued,
    continue_queue,
    continue_queued,
    steer_queued,
    remove_queued,
]
