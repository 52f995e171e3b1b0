"""The Hub itself: whether it is well, its figures, its description."""

from typing import Any, cast

from litestar import Response, get
from litestar.status_codes import HTTP_200_OK, HTTP_503_SERVICE_UNAVAILABLE
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from sqlalchemy import text

from factwire import __version__
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.hub_resources import HubHealth
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.routes.hub_requests import HubRequest, services_of
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


ROUTES: list[Any] = [read_health, read_metrics, read_openapi]
