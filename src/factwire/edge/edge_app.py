"""The application of an Edge: streams, REST and the workbench behind one guard.

A thread that was deleted is gone from streams and REST. Every answer to a read says the cursor that
the lists are true as of.
"""

from functools import cache
from typing import Any, Final, cast
from urllib.parse import unquote

from litestar import Litestar, Response
from litestar.datastructures import State

from factwire.edge.edge_context import SERVER_NAME, EdgeContext
from factwire.edge.edge_metrics import EdgeObserver
from factwire.edge.operations.retention_operations import EdgeRetention
from factwire.edge.operations.run_operations import REFUSAL_STATUSES
from factwire.edge.routes import (
    artifact_routes,
    event_routes,
    project_routes,
    run_routes,
    service_routes,
    thread_routes,
)
from factwire.edge.routes.request_context import EdgeRequest, edge_of
from factwire.edge.workbench import Workbench, load_built_bundle, page_policy
from factwire.facts.resources import TokenScope
from factwire.journal import JournalError
from factwire.projection.views import Text
from factwire.runtime import RuntimeRefused
from factwire.serving.asgi import (
    Application,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    refuse,
)
from factwire.serving.guard import Access, TokenGuard
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.logs import logger
from factwire.serving.openapi import ApiDescription, build_document
from factwire.serving.request_observing import UNMATCHED, ObserverMiddleware, RouteTemplates
from factwire.serving.rest import (
    SLASH,
    MsgspecLitestar,
    compile_verbs,
    prepare_request,
    problem_handlers,
    to_response,
    to_routable_scope,
)
from factwire.serving.streams import Streams
from factwire.serving.streams.stream_app import PROJECTION

AS_OF: Final = b"x-as-of"


class Dispatcher:
    """An ASGI application of three; REST gets requests under a path that routes."""

    def __init__(
        self,
        edge: EdgeContext,
        streams: Streams,
        access: Access,
        rest: Application,
        workbench: Workbench,
    ) -> None:
        self._edge = edge
        self._streams = streams
        self._access = access
        self._rest = rest
        self._workbench = workbench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._rest(scope, receive, send)
        elif self._streams.owns(scope):
            await self._serve_stream(scope, receive, send)
        elif scope["type"] == "websocket":
            problem = Problem(404, "not_found", "no stream at this address")
            await refuse(scope, receive, send, problem)
        elif self._workbench.owns(scope):
            await self._workbench(scope, receive, send)
        else:
            await self._rest(
                to_routable_scope(scope, _VERBS),
                receive,
                add_cursor_header(self._edge, scope, send),
            )

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            ensure_not_deleted(self._edge, scope)
            self._access.limiter.enter_stream()
        except Problem as problem:
            await refuse(scope, receive, send, problem)
            return
        try:
            with self._access.tickets.keep_open(scope["state"].get("ticket", "")):
                await self._streams(scope, receive, send)
        finally:
            self._access.limiter.leave_stream()


def ensure_not_deleted(edge: EdgeContext, scope: Scope) -> None:
    """Raise `Problem` for the stream of a thread that was deleted."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    thread = PROJECTION.fullmatch(raw.decode("ascii", "replace"))
    if thread is not None and edge.records.is_deleted(unquote(thread[1])):
        raise Problem(404, "unknown_thread", "no thread has this id")


def add_cursor_header(edge: EdgeContext, scope: Scope, send: Send) -> Send:
    """Answers to reads, with the cursor that the lists are true as of."""
    if scope["method"] != "GET":
        return send

    async def send_with_cursor(message: Message) -> None:
        if message["type"] == "http.response.start":
            cursor = str(edge.cursor).encode()
            message = {**message, "headers": [*message["headers"], (AS_OF, cursor)]}
        await send(message)

    return send_with_cursor


VERBS: Final = (
    "archive",
    "cancel",
    "continue",
    "fork",
    "merge",
    "promote",
    "retry",
    "steer",
    "stop",
)
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

_SCOPE_ROUTES: Final[dict[TokenScope, str]] = {
    "read": """
        GET /v1/health
        GET /v1/agents
        GET /v1/metrics
        GET /asyncapi.json
        GET /openapi.json
        POST /v1/tickets
        GET /v1/projects
        GET /v1/projects/{project_id}
        GET /v1/conversations
        GET /v1/conversations/{conversation_id}
        GET /v1/threads
        GET /v1/threads/{thread_id}
        GET /v1/threads/{thread_id}/items
        GET /v1/threads/{thread_id}/items/{item_id}
        GET /v1/threads/{thread_id}/projection
        GET /v1/threads/{thread_id}/read-model
        GET /v1/threads/{thread_id}/queue
        GET /v1/threads/{thread_id}/evidence-progress
        GET /v1/runs
        GET /v1/runs/{run_id}
        GET /v1/runs/{run_id}/events
        GET /v1/runs/{run_id}/logs
        GET /v1/runs/{run_id}/diff
        GET /v1/runs/{run_id}/processes
        GET /v1/approvals
        GET /v1/approvals/{approval_id}
        GET /v1/approvals/{approval_id}/standing-rule
        GET /v1/standing-rules
        GET /v1/events
        GET /v1/facts
        GET /v1/artifacts
        GET /v1/artifacts/{artifact_id}
        GET /v1/artifacts/{artifact_id}/content
        GET /v1/blobs/{ref}
        GET /v1/tasks
        GET /v1/tasks/{task_id}
        GET /v1/evidence
        GET /v1/evidence/{evidence_id}
        GET /v1/evidence/{evidence_id}/content
        GET /v1/evidence/{evidence_id}/verification
        GET /v1/previews
        GET /v1/previews/{preview_id}
    """,
    "decide": """
        GET /v1/approvals/{approval_id}/card
        POST /v1/permissions/decide
        DELETE /v1/standing-rules/{rule_id}
    """,
    "run": """
        POST /v1/projects
        PATCH /v1/projects/{project_id}
        DELETE /v1/projects/{project_id}
        POST /v1/conversations
        POST /v1/conversations/{conversation_id}/members
        POST /v1/threads
        PATCH /v1/threads/{thread_id}
        DELETE /v1/threads/{thread_id}
        POST /v1/threads/{thread_id}:archive
        POST /v1/threads/{thread_id}:fork
        POST /v1/threads/{thread_id}/messages
        POST /v1/threads/{thread_id}/queue:continue
        POST /v1/threads/{thread_id}/queue/{run_id}:continue
        POST /v1/threads/{thread_id}/queue/{run_id}:promote
        POST /v1/threads/{thread_id}/queue/{run_id}:steer
        DELETE /v1/threads/{thread_id}/queue/{run_id}
        POST /v1/runs
        POST /v1/runs/{run_id}:cancel
        POST /v1/runs/{run_id}:retry
        POST /v1/runs/{run_id}:merge
        DELETE /v1/runs/{run_id}/worktree
        POST /v1/facts
        POST /v1/blobs
        POST /v1/evidence
        POST /v1/previews
        POST /v1/previews/{preview_id}:stop
    """,
    "admin": """
        GET /v1/tokens
        POST /v1/tokens
        DELETE /v1/tokens/{token_id}
        GET /v1/retention
        POST /v1/retention/runs
    """,
}

ROUTE_SCOPES: Final[dict[str, TokenScope]] = {
    route.strip(): scope
    for scope, routes in _SCOPE_ROUTES.items()
    for route in routes.strip().splitlines()
}
"""Route → the scope that a token needs for it; whatever is not listed needs `admin`. Streams need
`read`.
"""

API: Final = ApiDescription(
    title="Factwire Edge",
    description=(
        "The threads, runs, approvals and artifacts of one machine. Every refusal is a problem "
        "document with a stable `code`. Lists are paged, newest first. Every list and state has "
        "a cursor `asOf`, which says how current it is; the streams of the AsyncAPI document "
        "continue from there."
    ),
    ids={
        "Thread": "threadId",
        "Run": "runId",
        "Project": "projectId",
        "Conversation": "conversationId",
        "Preview": "previewId",
        "EvidenceRow": "evidenceId",
    },
    listed={
        "ApprovalPage": "approvalId",
        "ArtifactPage": "artifactId",
        "TaskPage": "taskId",
    },
    links={
        "ApprovalPage": {
            "decidePermission": {
                "operationId": "decidePermission",
                "requestBody": {
                    "runId": "$response.body#/items/0/runId",
                    "requestId": "$response.body#/items/0/approvalId",
                    "decision": "allow",
                    "argsHash": "$response.body#/items/0/argsHash",
                },
                "description": "Decide the newest approval.",
            }
        }
    },
)
"""What the OpenAPI document of an Edge says beyond its handlers."""

_VERBS: Final = compile_verbs(VERBS)
_log: Final = logger("factwire.edge")
_STREAM: Final = "/v1/threads/{thread_id}/projection/stream"
_PAGES: Final = ("/", "/assets/{file}")


def build_application(
    edge: EdgeContext,
    streams: Streams,
    access: Access,
    observer: EdgeObserver,
    retention: EdgeRetention,
    *,
    default_agent: str | None,
    bind: str = "127.0.0.1",
    more_routes: tuple[Any, ...] = (),
) -> Application:
    """Everything that this Edge answers, behind its guard, and seen from outside of it."""
    rest = build_rest_app(
        edge,
        streams,
        access,
        observer,
        retention,
        default_agent=default_agent,
        more_routes=more_routes,
    )
    idempotent = IdempotencyMiddleware(cast("Application", rest))
    paths = (*(route.path_format for route in rest.routes), _STREAM)
    workbench = Workbench(load_built_bundle(), page_policy(bind, access.host_policy), paths)
    faces = Dispatcher(edge, streams, access, idempotent, workbench)
    templates = RouteTemplates((*paths, *_PAGES))

    def scope_of(scope: Scope) -> TokenScope:
        if streams.owns(scope):
            return "read"
        return ROUTE_SCOPES.get(name_route(scope, templates), "admin")

    guard = TokenGuard(
        faces,
        access,
        streams.owns,
        workbench.owns,
        server_name=SERVER_NAME,
        scope_of=scope_of,
    )
    return ObserverMiddleware(guard, observer, templates, log_name="factwire.edge.access")


def name_route(scope: Scope, templates: RouteTemplates) -> str:
    """The route of a request, as `ROUTE_SCOPES` names it."""
    routed = to_routable_scope(scope, _VERBS)["path"]
    template = templates.match_parts(filter(None, routed.split("/")))
    method = "GET" if scope.get("method") == "HEAD" else scope.get("method")
    return f"{method} {template}"


def read_path_ids(scope: Scope, route: str) -> dict[str, str]:
    """The ids in the path of a request, by their names in its route; none where it has no route."""
    template = route.partition(" ")[2]
    if template == UNMATCHED:
        return {}
    parts = filter(None, to_routable_scope(scope, _VERBS)["path"].split("/"))
    names = filter(None, template.replace(":", "/:").split("/"))
    return {
        name[1:-1]: part.replace(SLASH, "/")
        for name, part in zip(names, parts, strict=True)
        if name.startswith("{")
    }


def build_rest_app(
    edge: EdgeContext,
    streams: Streams,
    access: Access,
    observer: EdgeObserver,
    retention: EdgeRetention,
    *,
    default_agent: str | None,
    more_routes: tuple[Any, ...] = (),
) -> Litestar:
    """The REST interface alone."""
    state = State(
        {
            "machine": edge,
            "retention": retention,
            "streams": streams,
            "access": access,
            "observing": observer,
            "default_agent": default_agent,
        }
    )
    app = build_litestar(state, more_routes)
    # Made when somebody asks: it takes as long as all else that a start does.
    app.state["openapi"] = cache(lambda: build_document([*ROUTES, *more_routes], API))
    return app


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document of every Edge."""
    # A handler knows its types once an application has it.
    build_litestar(State())
    return build_document(ROUTES, API)


def build_litestar(state: State, more_routes: tuple[Any, ...] = ()) -> Litestar:
    """The handlers of an Edge on what they share, whichever server has them."""
    return MsgspecLitestar(
        route_handlers=[*ROUTES, *more_routes],
        request_class=EdgeRequest,
        state=state,
        exception_handlers=cast(
            "Any",
            {
                **problem_handlers(_log),
                RuntimeRefused: _answer_refusal,
                JournalError: _answer_journal_refusal,
            },
        ),
        before_request=cast("Any", prepare_request),
        type_encoders={Text: str},
        openapi_config=None,
        logging_config=None,
    )


PROBLEM_CODES: Final[dict[str, str]] = {
    "active_run_exists": "a run is active on the thread, or the run has not ended",
    "address_too_long": "the address of the request is too long",
    "agent_error": "the agent cannot be used",
    "agent_name_taken": "two agents have this name",
    "agent_not_installed": "the program of the agent is not installed",
    "agent_required": "no agent was named, and neither the thread nor the configuration has one",
    "answer_too_large": "the answer to a request that a Hub passed on is too large to be relayed",
    "append_refused": "the journal refused the batch; none of it was written",
    "approval_changed": "the request has changed since it was shown; read it again",
    "approval_decided": "the approval is already decided",
    "approval_expired": "the approval has expired",
    "approval_not_shown": "what is asked about is no longer known exactly; it can only be denied",
    "batch_size": "the batch is empty or has too many facts",
    "blob_corrupt": "stored content is damaged",
    "blob_error": "stored content cannot be used",
    "blob_missing": "stored content is missing",
    "blob_unreadable": "stored content cannot be read now; try again",
    "blob_unwritable": "content cannot be stored, as when the disk is full; try again",
    "body_too_large": "the body is too large",
    "body_too_slow": "the body did not arrive in time",
    "broken_entry_point": "a plugin for this agent cannot be loaded",
    "class_reserved": "only an Edge records facts of this class, about itself",
    "conflicting_fact": "a fact with this id and another content exists",
    "conflicting_parameters": "two parameters exclude each other",
    "connecting_too_fast": "too many streams were opened in one second",
    "content_unavailable": "the content was not kept",
    "cross_site_request": "the request comes from a page of another site",
    "cursor_expired": "retention has removed the next facts; start from a snapshot",
    "cursor_invalid": "this is no cursor of this journal or list",
    "edge_stopping": "the Edge is stopping; try again when it is back",
    "files_too_big": "files that were changed are too big to be merged",
    "headers_too_long": "the headers are too large",
    "headers_too_slow": "the headers did not arrive in time",
    "host_not_allowed": "the `Host` header names a host that is not allowed",
    "idempotency_key_reused": "the `Idempotency-Key` was used for another request",
    "identity_unusable": "the identity of this runtime is damaged, or belongs to another user",
    "insufficient_scope": "the token does not have the scope that the request needs",
    "internal_error": "a bug or a fault of the machine; the log has the trace id",
    "invalid_agent": "the agent does not describe itself correctly",
    "invalid_facts": "facts of the batch are invalid; `issues` lists them, and none was written",
    "invalid_http": "the request is not valid HTTP/1.1",
    "invalid_idempotency_key": "the `Idempotency-Key` is empty, too long or not printable",
    "invalid_input": "an attachment of the message cannot be used",
    "invalid_parameter": "a parameter has a wrong value or is too long",
    "invalid_query": "the query cannot be read",
    "invalid_request": "the request does not match the schema of its address; `issues` says where",
    "journal_busy": "another process writes to the journal",
    "journal_closed": "the journal is closed; the Edge is stopping",
    "journal_corrupt": "the journal is damaged",
    "journal_error": "the journal refused the request",
    "journal_read_only": "the journal is open for reading only",
    "journal_unavailable": "the journal does not answer",
    "journal_unwritable": "the journal cannot be written, as when the disk is full; try again",
    "journal_url": "the address of the journal is invalid",
    "json_only": "the body must be JSON, with that `Content-Type`",
    "lists_behind": "the request was recorded, but the lists do not show it yet",
    "lists_damaged": "the saved lists cannot be read; restart the Edge to make them anew",
    "log_unavailable": "this Edge has no log of the run",
    "merge_target_busy": "another program is changing the branch, or another worktree shows it",
    "merge_target_dirty": "the branch is checked out and something there is not committed",
    "merge_target_unknown": "the repository has no such branch, or none is checked out",
    "merge_unavailable": "git could not merge; `reason` says why",
    "merge_unfinished": "the branch was moved, but its files could not follow; ask again",
    "method_not_allowed": "the address does not have this method",
    "missing_extra": "the agent needs a package that is not installed",
    "no_standing_rule": "no exact rule covers the request; decide it once",
    "no_worktree": "the run has no worktree of its own",
    "not_found": "there is nothing at this address",
    "not_relayed": "a Hub does not pass this on; ask the Edge itself",
    "origin_not_allowed": "the `Origin` is not allowed",
    "preview_elsewhere": "another Edge or runtime serves the preview",
    "preview_path_not_allowed": "the folder is outside the run's folder, or hidden",
    "preview_path_not_found": "the run's folder has no such folder",
    "preview_unavailable": "no port could be opened for the preview",
    "project_in_use": "the project has active threads",
    "queue_full": "too many runs are queued on the thread",
    "range_not_satisfiable": "the range is outside the content",
    "refused": "the runtime refused the request",
    "repeated_header": "a header that matters for access occurs twice",
    "repeated_parameter": "a parameter occurs twice",
    "restore_refused": "the journal is not empty, so it cannot be restored into",
    "retention_not_set": "no rule says what to remove",
    "retention_running": "retention is already running",
    "run_ended": "the run has ended",
    "run_not_active": "the run is not active",
    "runtime_id_taken": "this is the runtime id of the Edge itself; use another one",
    "sequence_conflict": "the sequence is not the next one of its thread",
    "service_worker_refused": "a preview cannot install a service worker",
    "steer_too_long": "the message is too long to steer a run; send it as a run",
    "steer_unsupported": "the agent cannot be steered",
    "storage_unavailable": "the disk takes nothing more, or cannot be used; try again later",
    "stream_not_acceptable": "the address is a stream; ask for a WebSocket or an event stream",
    "streams_stopping": "the Edge is stopping; reconnect with your cursor",
    "thread_archived": "the thread is archived",
    "thread_deleted": "a thread with this id was deleted",
    "thread_owned_elsewhere": "the thread belongs to another runtime",
    "ticket_invalid": "the ticket is unknown, used, expired or not renewable; create a new one",
    "token_exists": "a token with this name exists",
    "token_in_url": "a token must not be in an address; use a header or a ticket",
    "too_many_connections": "too many connections are open",
    "too_many_previews": "too many previews are open; stop one first",
    "too_many_refusals": "too many wrong tokens came from this address; wait a minute",
    "too_many_runs": "too many runs are active or wait for decisions",
    "too_many_streams": "too many streams are open",
    "too_many_tickets": "too many tickets are unused",
    "too_many_tokens": "there are too many named tokens; revoke one first",
    "unauthenticated": "the token is missing or wrong",
    "unknown_agent": "no agent has this name",
    "unknown_agent_kind": "no agent of this kind is installed",
    "unknown_approval": "no approval, or none of this run, has this id",
    "unknown_artifact": "no artifact has this id",
    "unknown_blob": "there is no content behind this ref",
    "unknown_conversation": "no conversation has this id",
    "unknown_decision": "the decision is not one that can be made",
    "unknown_evidence": "no evidence pack has this id",
    "unknown_item": "the thread has no item with this id",
    "unknown_parameter": "the address has no such parameter",
    "unknown_preview": "no preview has this id",
    "unknown_project": "no project has this id",
    "unknown_run": "no run, or none of this queue, has this id",
    "unknown_standing_rule": "no rule with this id holds: it was revoked or has expired",
    "unknown_task": "no task has this id",
    "unknown_thread": "no thread has this id",
    "unknown_token": "no token has this id",
    "unknown_type": "the view has no event of this type; `types` lists those that exist",
    "unreadable_json": "the body is not valid JSON, or nested too deeply",
    "unstorable_fact": "a fact cannot be written as JSON",
    "work_changed": "the worktree is not as `tree` says any more; nothing was merged",
    "workspace_not_allowed": "the folder is not in an allowed workspace",
    "worktree_not_removed": "the worktree could not be removed completely",
    "worktree_removed": "the worktree of the run was removed",
    "worktree_unavailable": "no worktree could be made; `reason` says why",
}
"""Code → why an Edge refuses a request; codes never change."""


def _answer_refusal(request: EdgeRequest, error: RuntimeRefused) -> Response[dict[str, Any]]:
    status, code = REFUSAL_STATUSES.get(error.code, (409, error.code))
    return to_response(request, Problem(status, code, str(error)))


def _answer_journal_refusal(request: EdgeRequest, error: JournalError) -> Response[dict[str, Any]]:
    """What the journal refuses is refused, and the health of the Edge shows it from then on."""
    edge_of(request).writes.record_refusal(error)
    return _ANSWER_JOURNAL_ERROR(request, error)


_ANSWER_JOURNAL_ERROR: Final = problem_handlers(_log)[JournalError]
