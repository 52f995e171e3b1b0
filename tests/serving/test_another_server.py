"""A server that is no Edge, on the same parts: nothing of what they say is an Edge's."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest
import pytest_asyncio
from litestar import get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

import factwire.serving
from factwire.journal import Cursor
from factwire.serving.access_control import (
    AccessLimiter,
    AccessToken,
    HostPolicy,
    Tickets,
    TokenStore,
    load_token,
)
from factwire.serving.asgi import Application, Receive, Scope, Send
from factwire.serving.guard import Access, TokenGuard
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.logs import logger
from factwire.serving.openapi import ApiDescription, build_document
from factwire.serving.paging import (
    DEFAULT_LIMIT,
    After,
    Limit,
    Page,
    RowDatabase,
    RowTable,
    build_page,
)
from factwire.serving.request_observing import (
    LoopLag,
    ObserverMiddleware,
    RequestMetrics,
    RouteTemplates,
    Tracing,
)
from factwire.serving.rest import (
    JsonRequest,
    MsgspecLitestar,
    compile_verbs,
    derive_new_id,
    prepare_request,
    problem_handlers,
    to_routable_scope,
)

TOKEN = "a-token-for-another-server-0123456789"
AS_OF = Cursor("0" * 16, 9)


class Desk(msgspec.Struct, kw_only=True, rename="camel"):
    seq: int
    desk_id: str


class DeskBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str


TABLE = RowTable(RowDatabase(None, "1", ""), "desks", Desk)
for place in (2, 5, 7):
    TABLE.add(f"desk_{place}", Desk(seq=place, desk_id=f"desk_{place}"))


@get("/v1/desks")
async def list_desks(after: After = None, limit: Limit = DEFAULT_LIMIT) -> Page[Desk]:
    """Desks, newest first."""
    return build_page(AS_OF, TABLE, after, limit)


@post("/v1/desks")
async def add_desk(request: JsonRequest, data: JSONBody[DeskBody]) -> Desk:
    """Add a desk."""
    return Desk(seq=len(data.name), desk_id=derive_new_id(request, "desk") or "desk_0")


@post("/v1/desks/{desk_id:str}/:close")
async def close_desk(desk_id: FromPath[str]) -> Desk:
    """Close a desk."""
    raise ZeroDivisionError(desk_id)


HANDLERS: list[Any] = [list_desks, add_desk, close_desk]
HUB = ApiDescription(title="Factwire Hub", description="Desks.", ids={"Desk": "deskId"})


def build_app() -> MsgspecLitestar:
    return MsgspecLitestar(
        route_handlers=HANDLERS,
        request_class=JsonRequest,
        state=State(),
        exception_handlers=cast("Any", problem_handlers(logger("factwire.hub"))),
        before_request=cast("Any", prepare_request),
        openapi_config=None,
        logging_config=None,
    )


class Observer:
    def __init__(self) -> None:
        self.requests = RequestMetrics()
        self.tracing = Tracing("factwire.hub")


@pytest.fixture
def observer() -> Observer:
    return Observer()


@pytest_asyncio.fixture
async def http(observer: Observer, tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    app = build_app()
    rest = IdempotencyMiddleware(cast("Application", app))
    verbs = compile_verbs(("close",))

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        await rest(to_routable_scope(scope, verbs), receive, send)

    access = Access(
        token=AccessToken(TOKEN),
        host_policy=HostPolicy.build("127.0.0.1", (), ()),
        tickets=Tickets(),
        limiter=AccessLimiter(),
        tokens=TokenStore(tmp_path / "tokens"),
    )
    guard = TokenGuard(route, access, server_name="Hub")
    templates = RouteTemplates(route.path_format for route in app.routes)
    served = ObserverMiddleware(guard, observer, templates, log_name="factwire.hub.access")
    transport = httpx.ASGITransport(cast("Any", served))
    async with httpx.AsyncClient(
        transport=transport,
        base_url="http://localhost",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client


@pytest.mark.asyncio
async def test_its_refusals_name_it(http: httpx.AsyncClient):
    elsewhere = await http.get("/v1/desks", headers={"host": "evil.example"})
    assert elsewhere.json()["detail"] == "this Hub does not accept that host name"
    unknown = await http.get("/v1/desks", headers={"authorization": "Bearer no"})
    assert unknown.json()["detail"] == "send the token of this Hub as 'Authorization: Bearer …'"
    assert unknown.headers["x-trace-id"] == unknown.json()["traceId"]


@pytest.mark.asyncio
async def test_a_refusal_has_the_same_headers_for_head_and_no_body(http: httpx.AsyncClient):
    wrong = {"authorization": "Bearer no", "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    read, head = [
        await http.request(method, "/v1/desks", headers=wrong) for method in ("GET", "HEAD")
    ]
    assert head.headers == read.headers
    assert (head.status_code, head.content) == (read.status_code, b"")


@pytest.mark.asyncio
async def test_its_lists_and_bodies_are_those_of_every_server(http: httpx.AsyncClient):
    first = (await http.get("/v1/desks?limit=2")).json()
    assert [row["deskId"] for row in first["items"]] == ["desk_7", "desk_5"]
    assert first["asOf"] == str(AS_OF)
    last = (await http.get("/v1/desks", params={"cursor": first["next"]})).json()
    assert [row["deskId"] for row in last["items"]] == ["desk_2"]
    assert "next" not in last
    assert (await http.get("/v1/desks?limt=2")).json()["code"] == "unknown_parameter"
    assert (await http.post("/v1/desks", json={"name": 3})).json()["code"] == "invalid_request"
    key = {"idempotency-key": "one"}
    made = [await http.post("/v1/desks", json={"name": "a"}, headers=key) for _ in range(2)]
    assert made[0].json() == made[1].json()
    assert made[1].headers["idempotency-replayed"] == "true"


@pytest.mark.asyncio
async def test_a_verb_routes_and_what_it_raises_is_a_problem(
    http: httpx.AsyncClient, observer: Observer
):
    failed = await http.post("/v1/desks/a%2Fb:close")
    assert (failed.status_code, failed.json()["code"]) == (500, "internal_error")
    families = {family.name: family for family in observer.requests.families("factwire_hub_")}
    assert set(families) == {"factwire_hub_requests", "factwire_hub_request_seconds"}
    [counted] = [
        sample
        for sample in families["factwire_hub_requests"].samples
        if sample.labels["status"] == "500"
    ]
    assert counted.labels["route"] == "/v1/desks/{desk_id}:close"
    assert [family.name for family in LoopLag().families("factwire_hub_")] == [
        "factwire_hub_loop_lag_seconds"
    ]


def test_its_document_is_its_own():
    # A handler knows its types once an application has it.
    build_app()
    document = build_document(HANDLERS, HUB)
    assert (document["info"]["title"], document["info"]["description"]) == (HUB.title, "Desks.")
    made = document["paths"]["/v1/desks"]["post"]["responses"]["201"]
    assert made["links"] == {
        "closeDesk": {
            "operationId": "closeDesk",
            "parameters": {"deskId": "$response.body#/deskId"},
        }
    }


def test_its_token_has_a_file_of_its_own(tmp_path: Path):
    made = load_token(tmp_path, "hub-token")
    assert (tmp_path / "hub-token").read_text("ascii").strip() == made.token.value


def test_nothing_in_serving_speaks_of_an_edge():
    folder = Path(factwire.serving.__file__).parent
    named = [path.name for path in folder.rglob("*.py") if "Edge" in path.read_text("utf-8")]
    assert named == []
