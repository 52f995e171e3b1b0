"""The application of a Hub: REST and the page for invitations, behind one guard.

`ROUTE_ROLES` says which role each route needs; a route that is not there needs `admin`. The routes
of `OPEN_ROUTES` need nobody to be signed in, and those who sign in or register there may do so only
a few times a minute.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from litestar import Litestar, Response
from litestar.datastructures import State

from factwire.hub.hub_guard import SERVER_NAME, HubGuard, Rate, RateMiddleware, RequestRates
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.join_page import PATH, owns_page, serve_page
from factwire.hub.limits import (
    HUB_BODY_BYTES,
    LOGINS_PER_MINUTE,
    REGISTRATIONS_PER_MINUTE,
    REQUESTS_PER_MINUTE,
)
from factwire.hub.people.accounts import HubServices
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.hub_tables import Role
from factwire.hub.routes import account_routes, hub_service_routes, people_routes
from factwire.hub.routes.hub_requests import HubRequest
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Application, Problem, Receive, Scope, Send, refuse
from factwire.serving.guard import OPEN, OpenRoutes
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.logs import logger
from factwire.serving.openapi import ApiDescription, build_document
from factwire.serving.request_observing import ObserverMiddleware, RouteTemplates
from factwire.serving.rest import (
    MsgspecLitestar,
    prepare_request,
    problem_handlers,
    to_response,
    to_routable_scope,
)

ROUTES: Final[list[Any]] = [
    *hub_service_routes.ROUTES,
    *account_routes.ROUTES,
    *people_routes.ROUTES,
]
"""Every handler of the REST interface."""

OPEN_ROUTES: Final[OpenRoutes] = OPEN | {
    ("POST", "/v1/auth/register"),
    ("POST", "/v1/auth/login"),
    ("POST", "/v1/auth/refresh"),
}
"""What anybody may ask who can reach this Hub."""

_METRICS: Final = "GET /v1/metrics"

_ROLE_ROUTES: Final[dict[Role, str]] = {
    "viewer": """
        GET /openapi.json
        POST /v1/auth/logout
        GET /v1/me
        POST /v1/me/password
        GET /v1/me/sessions
        DELETE /v1/me/sessions/{session_id}
        GET /v1/people/{person_id}
        PATCH /v1/people/{person_id}
        GET /v1/invitations
        GET /v1/invitations/{invitation_id}
        DELETE /v1/invitations/{invitation_id}
        GET /v1/audit
    """,
    "admin": """
        GET /v1/metrics
        GET /v1/people
        POST /v1/invitations
    """,
}

ROUTE_ROLES: Final[dict[str, Role]] = {
    route.strip(): role
    for role, routes in _ROLE_ROUTES.items()
    for route in routes.strip().splitlines()
}
"""Route → the role that it needs; each role includes those below it. Where a viewer may ask, the
query finds what is theirs alone.
"""

_EVERY: Final = Rate("every", REQUESTS_PER_MINUTE)
RATES: Final[dict[str, Rate]] = {
    "POST /v1/auth/register": Rate("register", REGISTRATIONS_PER_MINUTE),
    "POST /v1/auth/login": Rate("login", LOGINS_PER_MINUTE),
    "POST /v1/auth/refresh": Rate("refresh", LOGINS_PER_MINUTE),
    "POST /v1/me/password": Rate("password", LOGINS_PER_MINUTE),
}
"""Route → how often it may be used, beside the limit of every request."""

API: Final = ApiDescription(
    title="Factwire Hub",
    description=(
        "The people of a Hub: accounts, sessions, invitations and the audit log. Every refusal is "
        "a problem document with a stable `code`. Lists are paged, newest first. Sign in with "
        "`POST /v1/auth/login` and send the access token as a bearer token."
    ),
    ids={"CreatedInvitation": "invitationId"},
    listed={
        "PersonAccountPage": "personId",
        "SignInSessionPage": "sessionId",
        "InvitationPage": "invitationId",
    },
    open_routes=OPEN_ROUTES,
    has_cursors=False,
    is_limited=True,
)
"""What the OpenAPI document of a Hub says beyond its handlers."""

HUB_PROBLEM_CODES: Final[dict[str, str]] = {
    "insufficient_role": "the role of the account does not allow the request",
    "invitation_invalid": "the invitation is unknown, used, revoked or expired",
    "last_admin": "the only admin can be neither disabled nor made something else",
    "name_taken": "somebody has this name",
    "name_unusable": "the name is empty, too long or not printable",
    "password_changed": "the password was changed by another request meanwhile",
    "password_weak": "the password is too short, too long or too easy to guess",
    "password_wrong": "the current password is wrong",
    "records_unavailable": "the database of the Hub does not answer, is locked or full; try again",
    "refresh_token_invalid": "the refresh token is unknown, or its session is over",
    "refresh_token_reused": "the refresh token was used before; its session was ended",
    "sign_in_failed": "the name or the password is wrong, or the account is disabled",
    "too_many_requests": "too many requests of this kind came from the address in a minute",
    "unknown_invitation": "none of your invitations has this id",
    "unknown_person": "nobody, or nobody that you may see, has this id",
    "unknown_session": "none of your sessions has this id",
}
"""Code → why a Hub refuses a request, beside the codes that it shares with an Edge."""

HUB_START_CODES: Final[dict[str, str]] = {
    "address_unusable": "the host or port cannot be listened on",
    "data_unusable": "the data folder cannot be used",
    "file_unusable": "a file of the data folder cannot be used",
    "key_unusable": "the key of the data folder is damaged",
    "records_newer": "a newer version of Factwire wrote the schema of the database",
    "records_unavailable": "the database does not answer, is locked, full or damaged",
    "records_url": "the address of the database is invalid",
    "tls_required": "the address is reachable from other machines, and people would not use HTTPS",
    "token_exposed": "others can read a secret of the data folder",
    "token_unusable": "the metrics token of the data folder is damaged",
}
"""Code → why a Hub does not start, or a command on its database ends."""

_NO_VERBS: Final = re.compile(r"(?!)")
_log: Final = logger("factwire.hub")


def build_application(
    hub: HubServices,
    observer: HubObserver,
    host_policy: HostPolicy,
    *,
    metrics_token: str,
    proxies: frozenset[str],
    monotonic: Callable[[], float],
) -> Application:
    """Everything that this Hub answers, behind its guard, and seen from outside of it."""
    rest = IdempotencyMiddleware(cast("Application", build_rest_app(hub, observer)))
    templates = RouteTemplates((*_path_formats(), PATH))

    def route_of(scope: Scope) -> str:
        method = "GET" if scope.get("method") == "HEAD" else scope.get("method")
        routed = to_routable_scope(scope, _NO_VERBS)["path"]
        return f"{method} {templates.match_parts(filter(None, routed.split('/')))}"

    def role_of(scope: Scope) -> Role | None:
        route = route_of(scope)
        return None if route == _METRICS else ROUTE_ROLES.get(route, "admin")

    def rates_of(scope: Scope) -> tuple[Rate, ...]:
        own = RATES.get(route_of(scope))
        return (_EVERY,) if own is None else (_EVERY, own)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            problem = Problem(404, "not_found", "no stream at this address")
            await refuse(scope, receive, send, problem)
        elif owns_page(scope):
            await serve_page(scope, receive, send)
        else:
            await rest(to_routable_scope(scope, _NO_VERBS), receive, send)

    guard = HubGuard(
        dispatch,
        hub,
        host_policy,
        owns_page,
        open_routes=OPEN_ROUTES,
        body_bytes=HUB_BODY_BYTES,
        role_of=role_of,
        metrics_token=metrics_token,
    )
    limited = RateMiddleware(guard, RequestRates(monotonic), rates_of, proxies)
    return ObserverMiddleware(limited, observer, templates, log_name="factwire.hub.access")


def build_rest_app(hub: HubServices, observer: HubObserver) -> Litestar:
    """The REST interface alone."""
    app = _build_litestar(State({"hub": hub, "observing": observer}))
    app.state["openapi"] = cache(lambda: build_document(ROUTES, API))
    return app


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document of every Hub."""
    # A handler knows its types once an application has it.
    _build_litestar(State())
    return build_document(ROUTES, API)


def _path_formats() -> tuple[str, ...]:
    return tuple(route.path_format for route in _build_litestar(State()).routes)


def _build_litestar(state: State) -> Litestar:
    return MsgspecLitestar(
        route_handlers=ROUTES,
        request_class=HubRequest,
        state=state,
        exception_handlers=cast(
            "Any", {**problem_handlers(_log), RecordsUnavailable: _answer_unavailable}
        ),
        before_request=cast("Any", prepare_request),
        openapi_config=None,
        logging_config=None,
    )


def _answer_unavailable(request: HubRequest, error: RecordsUnavailable) -> Response[dict[str, Any]]:
    _log.warning("records_unavailable", detail=str(error))
    headers = {"retry-after": "1"}
    detail = f"the database of this {SERVER_NAME} does not answer; try again"
    return to_response(request, Problem(503, error.code, detail, headers=headers))
