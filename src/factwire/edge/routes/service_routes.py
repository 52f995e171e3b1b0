"""The Edge itself: whether it is well, its figures, its agents, tokens and tickets for streams."""

from typing import Any, Literal, cast

import msgspec
from litestar import Response, delete, get, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import (
    HTTP_200_OK,
    HTTP_201_CREATED,
    HTTP_204_NO_CONTENT,
    HTTP_503_SERVICE_UNAVAILABLE,
)
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from factwire import __version__
from factwire.edge.edge_metrics import EdgeObserver
from factwire.edge.events.event_schemas import build_asyncapi
from factwire.edge.routes.api_types import RetentionBody, TicketBody, TokenBody
from factwire.edge.routes.request_context import (
    EdgeRequest,
    caller_of,
    edge_of,
    new_id,
    person_of,
    retention_of,
)
from factwire.facts import redact_text
from factwire.facts.resources import (
    AgentRow,
    Agents,
    CreatedToken,
    Health,
    HealthDetails,
    Page,
    RetentionRules,
    RetentionRun,
    RetentionState,
    Ticket,
    TokenRow,
)
from factwire.serving.asgi import Problem
from factwire.serving.guard import Access
from factwire.serving.limits import STREAM_TICKET_SECONDS, TICKET_SECONDS
from factwire.serving.rest import ALSO, declare_bytes


def observer_of(request: EdgeRequest) -> EdgeObserver:
    return cast("EdgeObserver", request.app.state["observing"])


@get("/v1/metrics", tags=["service"], opt=declare_bytes("text/plain"))
async def read_metrics(request: EdgeRequest) -> Response[bytes]:
    """Get metrics in the Prometheus text format."""
    text = await observer_of(request).exposition()
    return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


METRICS_ROUTES: list[Any] = [read_metrics]


@get("/v1/health", tags=["service"], opt={ALSO: (HTTP_503_SERVICE_UNAVAILABLE,)})
async def read_health(request: EdgeRequest) -> Response[Health]:
    """Get the health of this Edge; details require the token. While the journal cannot be read or
    written, the status is `degraded`, and the answer is 503.
    """
    details = await _read_details(request) if request.state.get("is_known") else None
    found = await edge_of(request).feed.health()
    words: dict[str, Literal["ok", "degraded", "stopping"]] = {
        "live": "ok",
        "degraded": "degraded",
        "stopped": "stopping",
    }
    status, refusal = words[found.state], edge_of(request).writes.refusal
    if status == "ok" and refusal is not None:
        status = "degraded"
    trouble = found.code if refusal is None else refusal.code
    code = HTTP_200_OK if status == "ok" else HTTP_503_SERVICE_UNAVAILABLE
    health = Health(
        status=status,
        version=__version__,
        code=trouble if status == "degraded" else None,
        details=details,
    )
    return Response(health, status_code=code)


async def _read_details(request: EdgeRequest) -> HealthDetails:
    observer = observer_of(request)
    vitals = await observer.vitals()
    refusal = edge_of(request).writes.refusal
    return HealthDetails(
        edge_id=edge_of(request).edge_id,
        runtime_id=edge_of(request).mint.runtime_id,
        uptime_seconds=round(observer.uptime, 3),
        feed=vitals.feed.state,
        feed_cursor=str(vitals.feed.cursor),
        journal_head=vitals.head,
        feed_lag=vitals.feed.lag,
        reason=vitals.feed.reason or (None if refusal is None else str(refusal)),
        runs_active=vitals.active,
        runs_queued=vitals.runs["queued"],
        approvals_pending=vitals.pending,
        streams=vitals.streams.readers,
        untrusted_project=edge_of(request).untrusted_project,
        hub_trouble=edge_of(request).hub.trouble,
    )


@get("/v1/agents", tags=["service"])
async def list_agents(request: EdgeRequest) -> Agents:
    """List the agents and their capabilities."""
    registered = edge_of(request).registered
    there = [
        AgentRow(agent_id=name, available=True, manifest=agent.manifest)
        for name, agent in registered.agents.items()
    ]
    missing = [
        AgentRow(agent_id=name, available=False, code=error.code, message=str(error))
        for name, error in registered.problems.items()
    ]
    return Agents(
        items=[*there, *missing],
        as_of=str(edge_of(request).cursor),
        default=request.app.state["default_agent"],
    )


def access_of(request: EdgeRequest) -> Access:
    return cast("Access", request.app.state["access"])


@post("/v1/tickets", status_code=HTTP_201_CREATED, tags=["service"])
async def create_ticket(request: EdgeRequest, data: JSONBody[TicketBody | None] = None) -> Ticket:
    """Create a ticket for clients that cannot send headers: for one stream or, with `renewable`,
    for a stream that reconnects. With `renew`, an existing renewable ticket lasts anew.
    """
    wanted, tickets, caller = data or TicketBody(), access_of(request).tickets, caller_of(request)
    if wanted.renew is not None:
        if not tickets.renew(wanted.renew, caller):
            detail = "the ticket is unknown, expired, not renewable or another token's"
            raise Problem(404, "ticket_invalid", detail)
        return Ticket(ticket=wanted.renew, expires_in=STREAM_TICKET_SECONDS, renewable=True)
    ticket = tickets.issue(caller, renewable=wanted.renewable)
    life = STREAM_TICKET_SECONDS if wanted.renewable else TICKET_SECONDS
    return Ticket(ticket=ticket, expires_in=life, renewable=wanted.renewable)


@get("/v1/tokens", tags=["tokens"])
async def list_tokens(request: EdgeRequest) -> Page[TokenRow]:
    """List the named tokens with their scopes and last use, newest first; never a secret."""
    rows = access_of(request).tokens.rows()
    return Page(items=rows, as_of=str(edge_of(request).cursor))


@post("/v1/tokens", status_code=HTTP_201_CREATED, tags=["tokens"])
async def create_token(request: EdgeRequest, data: JSONBody[TokenBody]) -> CreatedToken:
    """Create a named token with limited scopes; the response is the only one with its secret."""
    scopes = tuple(sorted(set(data.scopes)))
    store = access_of(request).tokens
    name, _ = redact_text(data.name.strip() or data.name)
    row, secret = store.create(new_id(request, "tok"), name, scopes)
    return CreatedToken(**msgspec.structs.asdict(row), token=secret)


@delete("/v1/tokens/{token_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["tokens"])
async def revoke_token(request: EdgeRequest, token_id: FromPath[str]) -> None:
    """Revoke a token: it opens nothing any more, and its open streams are closed."""
    access = access_of(request)
    access.tokens.revoke(token_id)
    access.tickets.revoke(token_id)
    request.app.state["streams"].close_token(token_id)


@get("/asyncapi.json", tags=["service"])
async def read_asyncapi() -> dict[str, Any]:
    """Get the streams of this Edge as an AsyncAPI document."""
    return build_asyncapi()


@get("/openapi.json", tags=["service"])
async def read_openapi(request: EdgeRequest) -> dict[str, Any]:
    """Get this API as an OpenAPI document."""
    return cast("dict[str, Any]", request.app.state["openapi"]())


@get("/v1/retention", tags=["retention"])
async def read_retention(request: EdgeRequest) -> RetentionState:
    """Get what retention removes by itself, what its last run removed, and when the next one is."""
    return retention_of(request).state()


@post("/v1/retention/runs", status_code=HTTP_200_OK, tags=["retention"])
async def run_retention(
    request: EdgeRequest, data: JSONBody[RetentionBody | None] = None
) -> RetentionRun:
    """Remove old runs and compact complete texts now, by these rules or by the settings. With
    `dryRun`, nothing is removed. Runs that are open, and what they need, are never removed.
    """
    body = data or RetentionBody()
    rules = RetentionRules(
        keep_days=body.keep_days, keep_facts=body.keep_facts, compact=body.compact
    )
    return await retention_of(request).run(
        None if rules == RetentionRules() else rules,
        by=person_of(request),
        dry_run=body.dry_run,
    )


ROUTES: list[Any] = [
    read_health,
    list_agents,
    create_ticket,
    list_tokens,
    create_token,
    revoke_token,
    read_asyncapi,
    read_openapi,
    read_retention,
    run_retention,
]
