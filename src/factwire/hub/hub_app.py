"""The application of a Hub: REST and the pages for joining and signing in, behind one guard.

Each part of the interface is a `RouteGroup`, which says who may use its routes and how often; a
route of which no group says that is for admins. The routes of `OPEN_ROUTES` need nobody to be
signed in.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from litestar import Litestar, Response
from litestar.datastructures import State

from factwire.edge.hub_frames import MIRRORED_ROUTES
from factwire.hub.frames.hub_socket import SOCKET_PATH, HubSocket
from factwire.hub.hub_guard import (
    SERVER_NAME,
    HubGuard,
    RateMiddleware,
    RouteAccess,
)
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.hub_pages import PAGES, owns_page, serve_page
from factwire.hub.limits import (
    HUB_BODY_BYTES,
    REQUESTS_PER_MINUTE,
    SOCKET_CONNECTS_PER_MINUTE,
)
from factwire.hub.link.hub_links import HubLinks
from factwire.hub.link.runner_keeper import RunnerKeeper
from factwire.hub.mirror import hub_mirrors
from factwire.hub.mirror.hub_mirrors import HubMirrors, describe_reading
from factwire.hub.mirror.mirror_app import ROUTES as UPLOAD_ROUTES
from factwire.hub.mirror.mirror_app import build_upload_app
from factwire.hub.people.accounts import HubServices
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.request_rates import Rate
from factwire.hub.routes import (
    account_routes,
    approval_routes,
    chat_routes,
    contact_routes,
    device_routes,
    hub_service_routes,
    joining_routes,
    message_routes,
    notification_routes,
    people_routes,
    runner_routes,
    sign_in_routes,
    task_routes,
    team_routes,
)
from factwire.hub.routes.hub_requests import HubRequest
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Application, Problem, Receive, Scope, Send, refuse
from factwire.serving.guard import OPEN, BodyRule, OpenRoutes
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.logs import logger
from factwire.serving.openapi import ApiDescription, build_document
from factwire.serving.request_observing import ObserverMiddleware, RouteTemplates
from factwire.serving.rest import (
    FORM_MEDIA_TYPE,
    MsgspecLitestar,
    compile_verbs,
    prepare_request,
    problem_handlers,
    to_response,
    to_routable_scope,
)

GROUPS: Final = (
    hub_service_routes.GROUP,
    account_routes.GROUP,
    sign_in_routes.GROUP,
    people_routes.GROUP,
    joining_routes.GROUP,
    device_routes.GROUP,
    task_routes.GROUP,
    runner_routes.GROUP,
    contact_routes.GROUP,
    chat_routes.GROUP,
    message_routes.GROUP,
    notification_routes.GROUP,
    approval_routes.GROUP,
    team_routes.GROUP,
)
"""Every part of the REST interface."""

ROUTES: Final[list[Any]] = [handler for group in GROUPS for handler in group.handlers]
"""Every handler of the REST interface."""

OPEN_ROUTES: Final[OpenRoutes] = OPEN.union(*(group.open_routes for group in GROUPS))
"""What anybody may ask who can reach this Hub."""

_METRICS: Final = "GET /v1/metrics"

ROUTE_ACCESS: Final[dict[str, RouteAccess]] = {
    route: access for group in GROUPS for route, access in group.access_by_route().items()
}
"""Route → who may use it."""

_BODY: Final = BodyRule(most=HUB_BODY_BYTES)
_POLL_BODY: Final = BodyRule(most=HUB_BODY_BYTES, kinds=(*_BODY.kinds, FORM_MEDIA_TYPE.encode()))
_EVERY: Final = Rate("every", REQUESTS_PER_MINUTE)
_SOCKETS: Final = Rate("sockets", SOCKET_CONNECTS_PER_MINUTE)
RATES: Final[dict[str, Rate]] = {
    route: rate for group in GROUPS for route, rate in group.rates.items()
}
"""Route → how often it may be used, beside the limit of every request."""

API: Final = ApiDescription(
    title="Factwire Hub",
    description=(
        "The people of a Hub: accounts, sessions, invitations, the audit log, friends, chats and "
        "messages. Every refusal is a problem document with a stable `code`. Lists are paged, "
        "newest first unless they say otherwise. Sign in with "
        "`POST /v1/auth/login` and send the access token as a bearer token."
    ),
    ids={name: member for group in GROUPS for name, member in group.ids.items()},
    listed={name: member for group in GROUPS for name, member in group.listed.items()},
    open_routes=OPEN_ROUTES,
    has_cursors=False,
    is_limited=True,
)
"""What the OpenAPI document of a Hub says beyond its handlers."""

HUB_PROBLEM_CODES: Final[dict[str, str]] = dict(
    sorted((code, reason) for group in GROUPS for code, reason in group.codes.items())
)
"""Code → why a Hub refuses a request, beside the codes that it shares with an Edge."""

HUB_START_CODES: Final[dict[str, str]] = {
    "address_unusable": "the host or port cannot be listened on",
    "data_unusable": "the data folder cannot be used",
    "file_unusable": "a file of the data folder cannot be used",
    "key_unusable": "the key of the data folder is damaged",
    "mail_password_missing": "the variable with the password for the mail server is not set",
    "provider_secret_missing": "the variable with the secret of an identity provider is not set",
    "records_newer": "a newer version of Factwire wrote the schema of the database",
    "records_unavailable": "the database does not answer, is locked, full or damaged",
    "records_url": "the address of the database is invalid",
    "tls_required": "the address is reachable from other machines, and people would not use HTTPS",
    "token_exposed": "others can read a secret of the data folder",
    "token_unusable": "the metrics token of the data folder is damaged",
}
"""Code → why a Hub does not start, or a command on its database ends."""

VERBS: Final = ("cancel", "handback", "merge", "pause", "reassign", "resume", "retry", "takeover")
"""What may stand behind a colon."""

_VERBS: Final = compile_verbs(VERBS)
_log: Final = logger("factwire.hub")


class RoutePolicy:
    """What is known of a request by its address: who may send it, how often, and what its body may
    be.
    """

    def __init__(self, templates: RouteTemplates, sockets: HubSocket) -> None:
        self._templates = templates
        self._sockets = sockets

    def route_of(self, scope: Scope) -> str:
        method = "GET" if scope.get("method") == "HEAD" else scope.get("method")
        routed = to_routable_scope(scope, _VERBS)["path"]
        return f"{method} {self._templates.match_parts(filter(None, routed.split('/')))}"

    def access_of(self, scope: Scope) -> RouteAccess | None:
        """Who may send a request; None for figures."""
        if self._sockets.owns(scope):
            return "both"
        mirrored = hub_mirrors.access_of(scope)
        if mirrored is not None:
            return mirrored
        route = self.route_of(scope)
        return None if route == _METRICS else ROUTE_ACCESS.get(route, "admin")

    def rates_of(self, scope: Scope) -> tuple[Rate, ...]:
        uploads = hub_mirrors.rates_of(scope)
        if uploads is not None:
            return uploads
        if scope["type"] == "websocket":
            return (_EVERY, _SOCKETS)
        own = RATES.get(self.route_of(scope))
        return (_EVERY,) if own is None else (_EVERY, own)

    def body_rule_of(self, scope: Scope) -> BodyRule:
        own = _POLL_BODY if self.route_of(scope) in joining_routes.POLL_ROUTES else _BODY
        return hub_mirrors.body_rule_of(scope) or own


def build_application(
    hub: HubServices,
    mirrors: HubMirrors,
    links: HubLinks,
    observer: HubObserver,
    host_policy: HostPolicy,
    *,
    runners: RunnerKeeper,
    metrics_token: str,
    proxies: frozenset[str],
    token_in_url: bool,
    monotonic: Callable[[], float],
) -> Application:
    """Everything that this Hub answers, behind its guard, and seen from outside of it."""
    rest = IdempotencyMiddleware(cast("Application", build_rest_app(hub, links, runners, observer)))
    sockets = HubSocket(hub, monotonic)
    templates = RouteTemplates((*_path_formats(), *PAGES, SOCKET_PATH, *_mirror_templates()))
    policy = RoutePolicy(templates, sockets)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if sockets.owns(scope):
            await sockets(scope, receive, send)
        elif mirrors.owns(scope):
            await mirrors(scope, receive, send)
        elif scope["type"] == "websocket":
            problem = Problem(404, "not_found", "no stream at this address")
            await refuse(scope, receive, send, problem)
        elif owns_page(scope):
            await serve_page(scope, receive, send)
        else:
            await rest(to_routable_scope(scope, _VERBS), receive, send)

    guard = HubGuard(
        dispatch,
        hub,
        host_policy,
        owns_page,
        open_routes=OPEN_ROUTES,
        body_rule_of=policy.body_rule_of,
        access_of=policy.access_of,
        takes_ticket=sockets.owns,
        metrics_token=metrics_token,
        token_in_url=token_in_url,
    )
    limited = RateMiddleware(guard, hub.rates, policy.rates_of, proxies)
    return ObserverMiddleware(limited, observer, templates, log_name="factwire.hub.access")


def build_rest_app(
    hub: HubServices, links: HubLinks, runners: RunnerKeeper, observer: HubObserver
) -> Litestar:
    """The REST interface alone."""
    state = {"hub": hub, "link": links, "runners": runners, "observing": observer}
    app = _build_litestar(State(state))
    app.state["openapi"] = cache(build_openapi)
    return app


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document of every Hub."""
    # A handler knows its types once an application has it.
    _build_litestar(State())
    build_upload_app()
    document = build_document([*ROUTES, *UPLOAD_ROUTES], API)
    describe_reading(document)
    return document


def _mirror_templates() -> tuple[str, ...]:
    """The addresses below that of an Edge, by which requests are counted and logged."""
    uploads = (route.path_format for route in build_upload_app().routes)
    reading = (path.removeprefix("/v1") for path in MIRRORED_ROUTES)
    return (*uploads, *(f"/v1/edges/{{edge_id}}{path}" for path in reading))


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
