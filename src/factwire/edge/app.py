"""The application: streams and REST behind one guard.

A verb stands behind a colon in an address (`/v1/runs/R:cancel`); inside it is a path of its own.
"""

import re
from collections.abc import MutableMapping
from functools import cache
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException

from factwire.edge.faces import Faces
from factwire.edge.framework import MsgspecLitestar
from factwire.edge.idempotency import Idempotency
from factwire.edge.logs import logger
from factwire.edge.machine import Machine
from factwire.edge.observing import Observed, Observing, Templates
from factwire.edge.openapi import document_of_routes
from factwire.edge.problems import MEDIA_TYPE, Problem, document_of
from factwire.edge.routes import metrics, previews, projects, reads, runs, service, things, threads
from factwire.edge.routes.context import (
    SLASH,
    EdgeRequest,
    invalid_request,
    prepared,
    trace_of,
)
from factwire.edge.security import Access, Guard
from factwire.edge.security.guard import Application, Receive, Scope, Send
from factwire.edge.states import States
from factwire.edge.streams import Streams
from factwire.edge.work.runs import STATUSES
from factwire.edge.workbench import Workbench, built_bundle, page_policy
from factwire.journal import (
    CursorError,
    CursorExpired,
    JournalCorrupt,
    JournalError,
)
from factwire.journal.blobs import BlobCorrupt, BlobMissing
from factwire.projection.text import Text
from factwire.runtime import RuntimeRefused

VERBS: Final = ("archive", "cancel", "fork", "promote", "retry", "steer", "stop")
"""What may stand behind a colon."""

ROUTES: Final[list[Any]] = [
    *service.ROUTES,
    *metrics.ROUTES,
    *projects.ROUTES,
    *threads.ROUTES,
    *runs.ROUTES,
    *reads.ROUTES,
    *things.ROUTES,
    *previews.ROUTES,
]
"""Every handler of the REST interface."""

_VERB: Final = re.compile(rf"(/.*[^/]):({'|'.join(VERBS)})")
_SLASH: Final = re.compile("%2f", re.IGNORECASE)
_log: Final = logger("factwire.edge")
_STREAM: Final = "/v1/threads/{thread_id}/projection/stream"
_PAGES: Final = ("/", "/assets/{file}")


def application(
    machine: Machine,
    streams: Streams,
    access: Access,
    observing: Observing,
    *,
    default_agent: str | None,
    bind: str = "127.0.0.1",
    more_routes: tuple[Any, ...] = (),
) -> Application:
    """Everything that this Edge answers, behind its guard, and seen from outside of it."""
    rest = rest_app(
        machine, access, observing, default_agent=default_agent, more_routes=more_routes
    )
    routed = _Routed(Idempotency(cast("Application", rest)))
    paths = (*(route.path_format for route in rest.routes), _STREAM)
    workbench = Workbench(built_bundle(), page_policy(bind, access.places), paths)
    faces = Faces(machine, streams, access, routed, workbench)
    guard = Guard(faces, access, streams.owns, workbench.owns)
    return Observed(guard, observing, Templates((*paths, *_PAGES)))


def rest_app(
    machine: Machine,
    access: Access,
    observing: Observing,
    *,
    default_agent: str | None,
    more_routes: tuple[Any, ...] = (),
) -> Litestar:
    """The REST interface alone."""
    state = State(
        {
            "machine": machine,
            "states": States(machine.journal),
            "tickets": access.tickets,
            "observing": observing,
            "default_agent": default_agent,
        }
    )
    app = _litestar(state, more_routes)
    # Made when somebody asks: it takes as long as all else that a start does.
    app.state["openapi"] = cache(lambda: document_of_routes([*ROUTES, *more_routes]))
    return app


def openapi() -> dict[str, Any]:
    """The OpenAPI document of every Edge."""
    # A handler knows its types once an application has it.
    _litestar(State())
    return document_of_routes(ROUTES)


def _litestar(state: State, more_routes: tuple[Any, ...] = ()) -> Litestar:
    return MsgspecLitestar(
        route_handlers=[*ROUTES, *more_routes],
        request_class=EdgeRequest,
        state=state,
        exception_handlers=cast("Any", _HANDLERS),
        before_request=cast("Any", prepared),
        type_encoders={Text: str},
        openapi_config=None,
        logging_config=None,
    )


class _Routed:
    """Hands requests to REST under a path that routes."""

    def __init__(self, rest: Application) -> None:
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._rest(_routable(scope) if scope["type"] == "http" else scope, receive, send)


def _routable(scope: Scope) -> Scope:
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


def _answer(request: EdgeRequest, problem: Problem) -> Response[dict[str, Any]]:
    return Response(
        document_of(problem, trace_of(request)),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
    )


def _problem(request: EdgeRequest, problem: Problem) -> Response[dict[str, Any]]:
    return _answer(request, problem)


def _http_problem(request: EdgeRequest, error: HTTPException) -> Response[dict[str, Any]]:
    codes = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
    if isinstance(error, ValidationException):
        given: Any = error.extra
        return _answer(request, invalid_request(list(given or [])))
    code = codes.get(error.status_code, "invalid_request")
    return _answer(request, Problem(error.status_code, code, error.detail, headers=error.headers))


def _journal_problem(request: EdgeRequest, error: JournalError) -> Response[dict[str, Any]]:
    if isinstance(error, CursorError):
        gone = isinstance(error, CursorExpired)
        code = "cursor_expired" if gone else "cursor_invalid"
        return _answer(request, Problem(410 if gone else 400, code, str(error)))
    if isinstance(error, JournalCorrupt | BlobCorrupt | BlobMissing):
        _log.error("journal_damaged", code=error.code, detail=str(error))
        return _answer(request, Problem(500, error.code, "stored bytes are not what was written"))
    _log.warning("journal_refused", code=error.code, detail=str(error))
    headers = {"retry-after": "1"}
    return _answer(request, Problem(503, error.code, str(error), headers=headers))


def _refused(request: EdgeRequest, error: RuntimeRefused) -> Response[dict[str, Any]]:
    status, code = STATUSES.get(error.code, (409, error.code))
    return _answer(request, Problem(status, code, str(error)))


def _unexpected(request: EdgeRequest, error: Exception) -> Response[dict[str, Any]]:
    route = request.state.get("route")
    _log.error("request_failed", trace_id=trace_of(request), route=route, exc_info=error)
    problem = Problem(500, "internal_error", "something is wrong here; the trace id leads to it")
    return _answer(request, problem)


_HANDLERS: Final = {
    Problem: _problem,
    HTTPException: _http_problem,
    JournalError: _journal_problem,
    RuntimeRefused: _refused,
    Exception: _unexpected,
}
"""Exception → how it is told."""
