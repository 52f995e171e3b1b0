"""The Hub itself: whether it is well, its figures, its descriptions, tickets for its socket."""

from typing import Any, cast

from litestar import Response, get, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_503_SERVICE_UNAVAILABLE
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from sqlalchemy import text

from factwire import __version__
from factwire.hub.frames.hub_asyncapi import build_asyncapi
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.hub_resources import HubHealth, SocketTicket
from factwire.hub.people.socket_tickets import issue_ticket
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.routes.hub_requests import HubRequest, RouteGroup, caller_of, services_of
from factwire.serving.rest import ALSO, declare_bytes


@get("/v1/health", tags=["service"], opt={ALSO: (HTTP_503_SERVICE_UNAVAILABLE,)})
async def read_health(request: HubRequest) -> Response[HubHealth]:
    """Get the health of this Hub. While its database cannot be used, the status is `degraded`, and
    the answer is 503.
    """
    try:
        async with services_of(request).database.read() as connection:
            await connection.execute(text("SELECT 1"))
    except RecordsUnavailable as error:
        health = HubHealth(status="degraded", version=__version__, code=error.code)
        return Response(health, status_code=HTTP_503_SERVICE_UNAVAILABLE)
    return Response(HubHealth(status="ok", version=__version__), status_code=HTTP_200_OK)


@get("/v1/metrics", tags=["service"], opt=declare_bytes("text/plain"))
async def read_metrics(request: HubRequest) -> Response[bytes]:
    """Get metrics in the Prometheus text format; for admins, and for the token in the file
    `hub-metrics-token` of the data folder.
    """
    observer = cast("HubObserver", request.app.state["observing"])
    return Response(await observer.exposition(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


@get("/openapi.json", tags=["service"])
async def read_openapi(request: HubRequest) -> dict[str, Any]:
    """Get this API as an OpenAPI document."""
    return cast("dict[str, Any]", request.app.state["openapi"]())


@get("/asyncapi.json", tags=["service"])
async def read_asyncapi() -> dict[str, Any]:
    """Get the frames of `/client/ws` as an AsyncAPI document."""
    return build_asyncapi()


@post("/client/ws-ticket", status_code=HTTP_201_CREATED, tags=["sockets"])
async def create_socket_ticket(request: HubRequest) -> SocketTicket:
    """Get a ticket with which a browser opens `GET /client/ws?access_token=…`: once, within 30
    seconds, as the session that asks.
    """
    return await issue_ticket(services_of(request), caller_of(request))


GROUP = RouteGroup(
    handlers=[read_health, read_metrics, read_openapi, read_asyncapi, create_socket_ticket],
    access={
        "viewer": """
            GET /openapi.json
            GET /asyncapi.json
            POST /client/ws-ticket
        """,
        "admin": "GET /v1/metrics",
    },
    codes={
        "device_only": "only a device that has joined may send the request",
        "insufficient_role": "the role of the account does not allow the request",
        "people_only": "a device sent a request that only people may send",
        "records_unavailable": "the database of the Hub does not answer, is locked or full; try "
        "again",
        "too_many_sockets": "too many sockets of the same person are open",
        "too_many_requests": "too many requests of this kind came from the address in a minute",
    },
)
