"""Threads: their list, their conversation, their state."""

from typing import Annotated

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_201_CREATED, HTTP_202_ACCEPTED, HTTP_204_NO_CONTENT

from factwire.edge.events.thing_payloads import Item
from factwire.edge.items import items_of
from factwire.edge.limits import LIST_ITEMS_MOST
from factwire.edge.problems import Problem
from factwire.edge.records import Page
from factwire.edge.records.rows import Activity, Thread, ThreadStatus
from factwire.edge.routes.answers import (
    ItemPage,
    MessageAnswer,
    SteerAnswer,
    ThreadOverview,
    ThreadState,
    declared,
)
from factwire.edge.routes.bodies import ForkBody, MessageBody, ThreadBody, ThreadChange
from factwire.edge.routes.context import (
    EdgeRequest,
    machine_of,
    new_id,
    read_parts,
    states_of,
    trace_of,
)
from factwire.edge.routes.paging import DEFAULT_LIMIT, After, Limit, page
from factwire.edge.work import queue, runs, threads
from factwire.edge.work.queue import QueuedRun
from factwire.projection import thread_read_model

At = Annotated[
    str | None,
    QueryParameter(
        description="A cursor, or the id of an event or a fact: the thread as it was then."
    ),
]


@get("/v1/threads", tags=["threads"])
async def list_threads(
    request: EdgeRequest,
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    status: FromQuery[ThreadStatus | None] = None,
    activity: FromQuery[Activity | None] = None,
    search: Annotated[
        str | None, QueryParameter(description="Words of the title, or the start of an id.")
    ] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Thread]:
    """Threads, newest first; `asOf` is the cursor from which their events go on."""
    machine = machine_of(request)
    words = (search or "").casefold().split()

    def wanted(row: Thread) -> bool:
        return (not words or _is_found(row, words)) and (
            (project_id is None or row.project_id == project_id)
            and (status is None or row.status == status)
            and (activity is None or row.activity == activity)
        )

    return page(machine, machine.records.threads, after, limit, wanted)


@post("/v1/threads", status_code=HTTP_201_CREATED, tags=["threads"])
async def create_thread(request: EdgeRequest, data: JSONBody[ThreadBody]) -> Thread:
    """Make a thread."""
    new = threads.NewThread(
        thread_id=new_id(request, "thr"),
        project_id=data.project_id,
        conversation_id=data.conversation_id,
        title=data.title,
        agent_id=data.agent_id,
    )
    with runs.refusals():
        return await threads.create(machine_of(request), new, trace_of(request))


@get("/v1/threads/{thread_id:str}", tags=["threads"])
async def read_thread(request: EdgeRequest, thread_id: FromPath[str]) -> Thread:
    """One thread, with what it is at."""
    return machine_of(request).thread(thread_id)


@patch("/v1/threads/{thread_id:str}", tags=["threads"])
async def change_thread(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[ThreadChange]
) -> Thread:
    """Rename a thread, archive it or take it out of the archive."""
    given = {"title": data.title, "status": data.status}
    changes = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return await threads.change(machine_of(request), thread_id, changes, trace_of(request))


@delete("/v1/threads/{thread_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["threads"])
async def delete_thread(request: EdgeRequest, thread_id: FromPath[str]) -> None:
    """Take a thread off every list; its facts stay in the journal until retention takes them."""
    await threads.delete(machine_of(request), thread_id, trace_of(request))


@post("/v1/threads/{thread_id:str}/:archive", status_code=200, tags=["threads"])
async def archive_thread(request: EdgeRequest, thread_id: FromPath[str]) -> Thread:
    """Put a thread into the archive."""
    changes = {"status": "archived"}
    return await threads.change(machine_of(request), thread_id, changes, trace_of(request))


@post("/v1/threads/{thread_id:str}/:fork", status_code=HTTP_201_CREATED, tags=["threads"])
async def fork_thread(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[ForkBody]
) -> Thread:
    """Make a thread that begins with this one's conversation, as it stood then."""
    new = threads.NewThread(thread_id=new_id(request, "thr"), title=data.title)
    return await threads.fork(
        machine_of(request),
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
        str | None, QueryParameter(name="cursor", description="The last item of the page before.")
    ] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=LIST_ITEMS_MOST, description="Items of one page.")
    ] = DEFAULT_LIMIT,
) -> ItemPage:
    """What was said and done on a thread, oldest first; `asOf` is the cursor it is true as of."""
    row = machine_of(request).thread(thread_id)
    seen = await states_of(request).now(thread_id)
    found = items_of(seen.projection.state, row.project_id)
    start = _after(found, after)
    shown = found[start : start + limit]
    more = start + limit < len(found)
    return ItemPage(items=shown, as_of=str(seen.cursor), next=shown[-1].item_id if more else None)


@get("/v1/threads/{thread_id:str}/projection", tags=["threads"], opt=declared(ThreadState))
async def read_projection(
    request: EdgeRequest, thread_id: FromPath[str], at: At = None
) -> Response[bytes]:
    """The whole state of a thread, now or at a moment; changes go on from `asOf`."""
    machine_of(request).thread(thread_id)
    seen = await states_of(request).at(thread_id, at)
    body = b'{"threadId":%s,"asOf":"%s","state":%s}' % (
        _quoted(thread_id),
        str(seen.cursor).encode(),
        seen.projection.snapshot(),
    )
    return Response(body, media_type="application/json")


@get("/v1/threads/{thread_id:str}/read-model", tags=["threads"])
async def read_thread_model(
    request: EdgeRequest, thread_id: FromPath[str], at: At = None
) -> ThreadOverview:
    """What a first screen of a thread needs; `asOf` is the cursor it is true as of."""
    machine_of(request).thread(thread_id)
    seen = await states_of(request).at(thread_id, at)
    model = thread_read_model(seen.projection.state)
    return ThreadOverview(as_of=str(seen.cursor), read_model=model)


@post("/v1/threads/{thread_id:str}/messages", status_code=HTTP_202_ACCEPTED, tags=["threads"])
async def post_message(
    request: EdgeRequest, thread_id: FromPath[str], data: JSONBody[MessageBody]
) -> MessageAnswer:
    """Say something to an agent: a run starts, waits in the queue, or is steered."""
    machine, parts = machine_of(request), read_parts(data.input)
    machine.own_thread(thread_id)
    turn_id = new_id(request, "trn")
    if data.mode == "steer":
        steered = await runs.steer(machine, thread_id, data.text, parts, turn_id)
        return MessageAnswer(steered=SteerAnswer.of(steered))
    new = runs.NewRun(
        turn_id=turn_id,
        thread_id=thread_id,
        agent_id=runs.agent_for(
            machine, thread_id, data.agent_id, request.app.state["default_agent"]
        ),
        prompt=data.text,
        input=parts,
        options=data.options or {},
        when_busy="refuse" if data.mode == "refuse" else "queue",
        trace_id=trace_of(request),
    )
    return MessageAnswer(run=await runs.start(machine, new))


@get("/v1/threads/{thread_id:str}/queue", tags=["threads"])
async def read_queue(request: EdgeRequest, thread_id: FromPath[str]) -> list[QueuedRun]:
    """What waits on a thread, next first."""
    return await queue.waiting(machine_of(request), thread_id)


@post("/v1/threads/{thread_id:str}/queue/{run_id:str}/:promote", status_code=200, tags=["threads"])
async def promote_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> list[QueuedRun]:
    """Let a waiting run go first."""
    return await queue.promote(machine_of(request), thread_id, run_id)


@post("/v1/threads/{thread_id:str}/queue/{run_id:str}/:steer", status_code=200, tags=["threads"])
async def steer_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> list[QueuedRun]:
    """Say to the run that is under way what a waiting one was to be asked."""
    return await queue.steer(machine_of(request), thread_id, run_id)


@delete("/v1/threads/{thread_id:str}/queue/{run_id:str}", status_code=200, tags=["threads"])
async def remove_queued(
    request: EdgeRequest, thread_id: FromPath[str], run_id: FromPath[str]
) -> list[QueuedRun]:
    """Take a run out of the queue; it never starts."""
    return await queue.remove(machine_of(request), thread_id, run_id)


def _is_found(row: Thread, words: list[str]) -> bool:
    title = (row.title or "").casefold()
    return all(word in title for word in words) or row.thread_id.casefold().startswith(words[0])


def _after(found: list[Item], item_id: str | None) -> int:
    """Where the page after an item begins; raises `Problem`."""
    if item_id is None:
        return 0
    for at, item in enumerate(found):
        if item.item_id == item_id:
            return at + 1
    raise Problem(400, "cursor_invalid", "expected `next` of the page before; no item has this id")


def _quoted(text: str) -> bytes:
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
    read_projection,
    read_thread_model,
    post_message,
    read_queue,
    promote_queued,
    steer_queued,
    remove_queued,
]
