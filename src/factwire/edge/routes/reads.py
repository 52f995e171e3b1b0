"""Plain reads of the streams: a page at a time, with the bytes that a stream would have sent."""

from typing import Annotated, Literal

from litestar import MediaType, Response, get, post
from litestar.params import FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_200_OK

from factwire.edge.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.routes.answers import EventPage, FactPage, declared
from factwire.edge.routes.bodies import FactsBody
from factwire.edge.routes.context import EdgeRequest, machine_of
from factwire.edge.streams import Selection, Teller, read_cursor
from factwire.edge.streams import page as read_page
from factwire.edge.work import outside_facts
from factwire.edge.work.outside_facts import Accepted
from factwire.journal import Cursor, Filter

View = Literal["runtime", "conversation"]
Names = Annotated[
    str | None, QueryParameter(description="Names between commas; a name stands for all below it.")
]
Items = Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)]


@get("/v1/events", tags=["events"], opt=declared(EventPage))
async def read_events(
    request: EdgeRequest,
    cursor: FromQuery[str | None] = None,
    since: FromQuery[Literal["now"] | None] = None,
    view: FromQuery[View] = "runtime",
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    types: Names = None,
    limit: Items = PAGE_ITEMS,
) -> Response[bytes]:
    """Envelopes after a cursor, oldest first; as a stream over WebSocket or event stream."""
    return await events_page(
        request,
        view=view,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        types=types,
        cursor=await _from(request, cursor, since),
        limit=limit,
    )


@get("/v1/facts", tags=["events"], opt=declared(FactPage))
async def read_facts(
    request: EdgeRequest,
    cursor: FromQuery[str | None] = None,
    since: FromQuery[Literal["now"] | None] = None,
    project_id: Annotated[str | None, QueryParameter(name="projectId")] = None,
    thread_id: Annotated[str | None, QueryParameter(name="threadId")] = None,
    run_id: Annotated[str | None, QueryParameter(name="runId")] = None,
    classes: Names = None,
    limit: Items = PAGE_ITEMS,
) -> Response[bytes]:
    """Facts after a cursor, oldest first; as a stream over WebSocket or event stream."""
    wanted = Filter(
        project=project_id, thread=thread_id, run=run_id, classes=_names(classes, "classes")
    )
    selection = Selection(face="facts", view="runtime", filter=_some(wanted), types=())
    return await _page(request, selection, await _from(request, cursor, since), limit)


@post("/v1/facts", status_code=HTTP_200_OK, tags=["events"])
async def post_facts(request: EdgeRequest, data: JSONBody[FactsBody]) -> Accepted:
    """Take in facts of an outside runtime: all of the batch or none; repeats are no news."""
    return await outside_facts.take(machine_of(request), [bytes(each) for each in data.facts])


async def events_page(
    request: EdgeRequest,
    *,
    view: View,
    project_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    types: str | None = None,
    cursor: str | None,
    limit: int,
) -> Response[bytes]:
    """One page of envelopes."""
    wanted = Filter(project=project_id, thread=thread_id, run=run_id)
    selection = Selection(
        face="events", view=view, filter=_some(wanted), types=_names(types, "types")
    )
    return await _page(request, selection, cursor, limit)


async def _page(
    request: EdgeRequest, selection: Selection, cursor: str | None, limit: int
) -> Response[bytes]:
    machine = machine_of(request)
    teller = Teller(selection, edge_id=machine.edge_id)
    after = None if cursor is None else await read_cursor(machine.journal, cursor)
    found = await read_page(machine.journal, teller, after, limit)
    return Response(found.body(), media_type=MediaType.JSON)


async def _from(request: EdgeRequest, cursor: str | None, since: str | None) -> str | None:
    if since is None:
        return cursor
    if cursor is not None:
        raise Problem(400, "conflicting_parameters", "name a cursor or since=now, not both")
    return str(await _head(machine_of(request)))


async def _head(machine: Machine) -> Cursor:
    return await machine.journal.head()


def _some(wanted: Filter) -> Filter | None:
    return None if wanted == Filter() else wanted


def _names(text: str | None, name: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = sorted({part.strip().removesuffix(".") for part in text.split(",")})
    if not all(names):
        raise Problem(400, "invalid_parameter", f"{name}: expected names between commas")
    return tuple(names)


ROUTES = [read_events, read_facts, post_facts]
