"""The application of an Edge: streams, REST and the workbench behind one guard.

A verb stands behind a colon in an address (`/v1/runs/R:cancel`); inside it is a path of its own. A
thread that was deleted is gone from streams and REST. Every answer to a read says the cursor that
the lists are true as of.
"""

import re
from collections.abc import MutableMapping
from functools import cache
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException

from factwire.edge.edge_context import EdgeContext
from factwire.edge.edge_metrics import EdgeObserver, ObserverMiddleware
from factwire.edge.operations.run_operations import REFUSAL_STATUSES
from factwire.edge.routes import (
    artifact_routes,
    event_routes,
    project_routes,
    run_routes,
    service_routes,
    thread_routes,
)
from factwire.edge.routes.request_context import (
    SLASH,
    EdgeRequest,
    build_invalid_request,
    prepare_request,
    trace_of,
)
from factwire.edge.workbench import Workbench, load_built_bundle, page_policy
from factwire.journal import CursorError, CursorExpired, JournalCorrupt, JournalError
from factwire.journal.blobs import BlobCorrupt, BlobMissing
from factwire.projection.views import Text
from factwire.runtime import RuntimeRefused
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.asgi import PROBLEM_MEDIA_TYPE, Problem, to_document
from factwire.serving.guard import Access, Application, Guard, Message, Receive, Scope, Send, refuse
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.logs import logger
from factwire.serving.openapi import build_document
from factwire.serving.request_observing import RouteTemplates
from factwire.serving.rest import MsgspecLitestar
from factwire.serving.streams import Streams
from factwire.serving.streams.stream_app import PROJECTION

AS_OF: Final = b"x-as-of"


class Dispatcher:
    """An ASGI application of three."""

    def __init__(
        self,
        edge: EdgeContext,
        streams: Streams,
        access: Access,
        rest: Application,
        workbench: Workbench,
    ) -> None:
        self._machine = edge
        self._streams = streams
        self._limiter = access.limiter
        self._rest = rest
        self._workbench = workbench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._rest(scope, receive, send)
        elif self._streams.owns(scope):
            await self._serve_stream(scope, receive, send)
        elif scope["type"] == "websocket":
            problem = Problem(404, "not_found", "no stream is at this address")
            await refuse(scope, receive, send, problem, scope["state"]["trace_id"])
        elif self._workbench.owns(scope):
            await self._workbench(scope, receive, send)
        else:
            await self._rest(scope, receive, self._with_cursor_header(scope, send))

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._ensure_not_deleted(scope)
            self._limiter.enter_stream()
        except Problem as problem:
            await refuse(scope, receive, send, problem, scope["state"]["trace_id"])
            return
        try:
            await self._streams(scope, receive, send)
        finally:
            self._limiter.leave_stream()

    def _ensure_not_deleted(self, scope: Scope) -> None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        thread = PROJECTION.fullmatch(raw.decode("ascii", "replace"))
        if thread is not None and unquote(thread[1]) in self._machine.records.deleted:
            raise Problem(404, "unknown_thread", "no thread has this id")

    def _with_cursor_header(self, scope: Scope, send: Send) -> Send:
        if scope["method"] != "GET":
            return send

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                cursor = str(self._machine.cursor).encode()
                message = {**message, "headers": [*message["headers"], (AS_OF, cursor)]}
            await send(message)

        return sent


VERBS: Final = ("archive", "cancel", "fork", "promote", "retry", "steer", "stop")
"""What may stand behind a colon."""

ROUTES: Final[list[Any]] = [
    *service_routes.ROUTES,
    *service_routes.METRICS_ROUTES,
    *project_routes.ROUTES,
    *thread_routes.ROUTES,
    *run_routes.ROUTES,
    *event_routes.ROUTES,
    *artifact_routes.ROUTES,
    *run_routes.PREVIEW_ROUTES,
]
"""Every handler of the REST interface."""

_VERB: Final = re.compile(rf"(/.*[^/]):({'|'.join(VERBS)})")
_SLASH: Final = re.compile("%2f", re.IGNORECASE)
_log: Final = logger("factwire.edge")
_STREAM: Final = "/v1/threads/{thread_id}/projection/stream"
_PAGES: Final = ("/", "/assets/{file}")


def build_application(
    edge: EdgeContext,
    streams: Streams,
    access: Access,
    observer: EdgeObserver,
    *,
    default_agent: str | None,
    bind: str = "127.0.0.1",
    more_routes: tuple[Any, ...] = (),
) -> Application:
    """Everything that this Edge answers, behind its guard, and seen from outside of it."""
    rest = build_rest_app(
        edge, access, observer, default_agent=default_agent, more_routes=more_routes
    )
    routed = _RestPaths(IdempotencyMiddleware(cast("Application", rest)))
    paths = (*(route.path_format for route in rest.routes), _STREAM)
    workbench = Workbench(load_built_bundle(), page_policy(bind, access.host_policy), paths)
    faces = Dispatcher(edge, streams, access, routed, workbench)
    guard = Guard(faces, access, streams.owns, workbench.owns)
    return ObserverMiddleware(guard, observer, RouteTemplates((*paths, *_PAGES)))


def build_rest_app(
    edge: EdgeContext,
    access: Access,
    observer: EdgeObserver,
    *,
    default_agent: str | None,
    more_routes: tuple[Any, ...] = (),
) -> Litestar:
    """The REST interface alone."""
    state = State(
        {
            "machine": edge,
            "states": ThreadStates(edge.journal),
            "tickets": access.tickets,
            "observing": observer,
            "default_agent": default_agent,
        }
    )
    app = _build_litestar(state, more_routes)
    # Made when somebody asks: it takes as long as all else that a start does.
    app.state["openapi"] = cache(lambda: build_document([*ROUTES, *more_routes]))
    return app


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document of every Edge."""
    # A handler knows its types once an application has it.
    _build_litestar(State())
    return build_document(ROUTES)


def _build_litestar(state: State, more_routes: tuple[Any, ...] = ()) -> Litestar:
    return MsgspecLitestar(
        route_handlers=[*ROUTES, *more_routes],
        request_class=EdgeRequest,
        state=state,
        exception_handlers=cast("Any", _HANDLERS),
        before_request=cast("Any", prepare_request),
        type_encoders={Text: str},
        openapi_config=None,
        logging_config=None,
    )


class _RestPaths:
    """Hands requests to REST under a path that routes."""

    def __init__(self, rest: Application) -> None:
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._rest(
            _to_routable_scope(scope) if scope["type"] == "http" else scope, receive, send
        )


def _to_routable_scope(scope: Scope) -> Scope:
    """The scope with a path that routes. What is percent-encoded belongs to an id, be it a slash
    or the colon of a verb.
    """
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:").encode()
    path = raw.decode("ascii", "replace")
    found = _VERB.fullmatch(path)
    if found is not None:
        path = f"{found[1]}/:{found[2]}"
    path = unquote(_SLASH.sub(quote(SLASH), path))
    changed: MutableMapping[str, Any] = {**scope, "path": path, "raw_path": path.encode()}
    return changed


def _to_response(request: EdgeRequest, problem: Problem) -> Response[dict[str, Any]]:
    return Response(
        to_document(problem, trace_of(request)),
        status_code=problem.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers=problem.headers,
    )


def _answer_problem(request: EdgeRequest, problem: Problem) -> Response[dict[str, Any]]:
    return _to_response(request, problem)


def _answer_http_error(request: EdgeRequest, error: HTTPException) -> Response[dict[str, Any]]:
    codes = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
    if isinstance(error, ValidationException):
        extra: Any = error.extra
        return _to_response(request, build_invalid_request(list(extra or [])))
    code = codes.get(error.status_code, "invalid_request")
    return _to_response(
        request, Problem(error.status_code, code, error.detail, headers=error.headers)
    )


def _answer_journal_error(request: EdgeRequest, error: JournalError) -> Response[dict[str, Any]]:
    if isinstance(error, CursorError):
        gone = isinstance(error, CursorExpired)
        code = "cursor_expired" if gone else "cursor_invalid"
        return _to_response(request, Problem(410 if gone else 400, code, str(error)))
    if isinstance(error, JournalCorrupt | BlobCorrupt | BlobMissing):
        _log.error("journal_damaged", code=error.code, detail=str(error))
        return _to_response(
            request, Problem(500, error.code, "stored bytes are not what was written")
        )
    _log.warning("journal_refused", code=error.code, detail=str(error))
    headers = {"retry-after": "1"}
    return _to_response(request, Problem(503, error.code, str(error), headers=headers))


def _answer_refusal(request: EdgeRequest, error: RuntimeRefused) -> Response[dict[str, Any]]:
    status, code = REFUSAL_STATUSES.get(error.code, (409, error.code))
    return _to_response(request, Problem(status, code, str(error)))


def _answer_unexpected_error(request: EdgeRequest, error: Exception) -> Response[dict[str, Any]]:
    route = request.state.get("route")
    _log.error("request_failed", trace_id=trace_of(request), route=route, exc_info=error)
    problem = Problem(500, "internal_error", "something is wrong here; the trace id leads to it")
    return _to_response(request, problem)


_HANDLERS: Final = {
    Problem: _answer_problem,
    HTTPException: _answer_http_error,
    JournalError: _answer_journal_error,
    RuntimeRefused: _answer_refusal,
    Exception: _answer_unexpected_error,
}
"""Exception → how it is told."""
