"""The figures of this Edge, for Prometheus. Whoever asks needs the token, as for everything else:
how much is done here is nobody else's business.
"""

from typing import Any, cast

from litestar import Response, get
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from factwire.edge.observing import Observing
from factwire.edge.routes.answers import bytes_of
from factwire.edge.routes.context import EdgeRequest


def observing_of(request: EdgeRequest) -> Observing:
    return cast("Observing", request.app.state["observing"])


@get("/v1/metrics", tags=["service"], opt=bytes_of("text/plain"))
async def read_metrics(request: EdgeRequest) -> Response[bytes]:
    """What this Edge counts, in Prometheus' text form."""
    text = await observing_of(request).exposition()
    return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


ROUTES: list[Any] = [read_metrics]
