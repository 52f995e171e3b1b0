"""Plain reads of the streams: a page at a time, with the bytes that a stream would have sent."""

from functools import partial
from typing import Annotated, Literal

from litestar import MediaType, Response, get, post
from litestar.params import FromQuery, QueryParameter
from litestar.status_codes import HTTP_200_OK

from factwire.edge.edge_context import EdgeContext
from factwire.edge.events import build_envelope
from factwire.edge.events.event_types import types_of_view
from factwire.edge.operations import outside_facts
from factwire.edge.routes.api_types import (
    FACT_EXAMPLES,
    FACT_LINE_EXAMPLES,
    FactList,
    FactsBody,
)
from factwire.edge.routes.request_context import EdgeRequest, edge_of, new_id
from factwire.facts.resources import Accepted, Page
from factwire.journal import Cursor, Filter
from factwire.serving.asgi import Problem
from factwire.serving.envelopes import Envelope, FactFrame
from factwire.serving.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.serving.rest import declare_answer, declare_body, decode_raw_body
from factwire.serving.streams import FrameEncoder, Selection, read_cursor
from factwire.serving.streams import read_message_page as read_page
from factwire.serving.streams.stream_query import ensure_known_types

View = Literal["runtime", "conversation"]
Names = Annotated[
    str | None,
    QueryParameter(description="Names separated by commas; each includes the names below it."),
]
Items = Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)]


@get("/v1/events", tags=["events"], opt=declare_answer(Page[Envelope]))
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
    """List events after a cursor, oldest first; a WebSocket or event stream follows them live."""
    return await read_events_page(
        request,
        view=view,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        types=types,
        cursor=await _resolve_start(request, cursor, since),
        limit=limit,
    )


@get("/v1/facts", tags=["events"], opt=declare_answer(Page[FactFrame]))
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
    """List facts after a cursor, oldest first; a WebSocket or event stream follows them live."""
    wanted = Filter(
        project=project_id, thread=thread_id, run=run_id, classes=_split_names(classes, "classes")
    )
    selection = Selection(face="facts", view="runtime", filter=_nonempty_filter(wanted), types=())
    return await _read_page(request, selection, await _resolve_start(request, cursor, since), limit)


@post(
    "/v1/facts",
    status_code=HTTP_200_OK,
    tags=["events"],
    opt=declare_body(json=(FactList, FACT_EXAMPLES), ndjson=(str, FACT_LINE_EXAMPLES)),
)
async def post_facts(request: EdgeRequest) -> Accepted:
    """Add facts of an outside runtime: the complete batch or none of it; repeated facts are
    ignored.
    """
    body, request_id = await request.body(), new_id(request, "req")
    sent = _read_sent_facts(body, request.content_type[0], request_id)
    return await outside_facts.take_facts(edge_of(request), sent)


def _read_sent_facts(body: bytes, media_type: str, request_id: str) -> outside_facts.SentFacts:
    if media_type == "application/x-ndjson":
        return outside_facts.SentFacts.of_lines(body, request_id)
    # Not looked into: each fact is read once, where it is taken in.
    data = decode_raw_body(body or b"null", FactList)
    facts, name = (data.facts, "$.facts") if isinstance(data, FactsBody) else (data, "$")
    items = [bytes(each) for each in facts]
    return outside_facts.SentFacts(items, lambda index: f"{name}[{index}]", request_id)


async def read_events_page(
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
    wanted, names = (
        Filter(project=project_id, thread=thread_id, run=run_id),
        _split_names(types, "types"),
    )
    ensure_known_types(names, view, types_of_view)
    selection = Selection(face="events", view=view, filter=_nonempty_filter(wanted), types=names)
    return await _read_page(request, selection, cursor, limit)


async def _read_page(
    request: EdgeRequest, selection: Selection, cursor: str | None, limit: int
) -> Response[bytes]:
    edge = edge_of(request)
    encoder = FrameEncoder(
        selection,
        envelope_of=partial(build_envelope, edge_id=edge.edge_id, place_of=edge.place_of),
        place_of=edge.place_of,
    )
    after = None if cursor is None else await read_cursor(edge.journal, cursor)
    found = await read_page(edge.journal, encoder, after, limit)
    return Response(found.to_json(), media_type=MediaType.JSON)


async def _resolve_start(request: EdgeRequest, cursor: str | None, since: str | None) -> str | None:
    if since is None:
        return cursor
    if cursor is not None:
        raise Problem(400, "conflicting_parameters", "use a cursor or since=now, not both")
    return str(await _read_head(edge_of(request)))


async def _read_head(edge: EdgeContext) -> Cursor:
    return await edge.journal.head()


def _nonempty_filter(wanted: Filter) -> Filter | None:
    return None if wanted == Filter() else wanted


def _split_names(text: str | None, name: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = sorted({part.strip().removesuffix(".") for part in text.split(",")})
    if not all(names):
        raise Problem(400, "invalid_parameter", f"{name}: expected names separated by commas")
    return tuple(names)


ROUTES = [read_events, read_facts, post_facts]
