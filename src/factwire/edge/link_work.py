"""`EdgeWork`: what an Edge does for its Hub, through the operations that its own routes use.

What is created for a delivery has ids that follow from the id of the delivery. A relayed request
passes the Edge's own door with the scopes that the Hub allows, never with `admin`, and some routes
that a token may use are closed to it (`NOT_RELAYED`), as are those that a mirror answers: whoever
has the Hub gets nothing here that a token for runs and decisions would not give them, and nothing
of private threads.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

import httpx
import msgspec
from litestar.datastructures import State

from factwire.edge.edge_app import build_litestar, name_route, read_path_ids
from factwire.edge.edge_context import EdgeContext
from factwire.edge.hub_access import (
    HubAccess,
    HubRefused,
    HubUnreachable,
    send_request,
    write_link_trouble,
)
from factwire.edge.hub_frames import (
    MIRRORED_ROUTES,
    NOT_RELAYED,
    UNSET,
    AgentControl,
    AgentDispatch,
    RelayAnswer,
)
from factwire.edge.hub_frames import RelayCommandCreated as RelayCommand
from factwire.edge.hub_link import HubLink, LinkedRun, LinkSocket, RunEnd, UploadFailed
from factwire.edge.hub_upload import HubUpload
from factwire.edge.limits import (
    LINK_ROUTE_BYTES,
    LINK_SUMMARY_CHARACTERS,
    LINK_UPLOAD_BYTES,
    UPLOAD_SECONDS,
)
from factwire.edge.link_store import LinkStore
from factwire.edge.operations import run_operations, thread_operations
from factwire.edge.operations.run_changes import report_changes
from factwire.edge.operations.worktree_operations import TaskWorktree
from factwire.edge.private_threads import ensure_public, read_privacy
from factwire.facts import Fact, Person
from factwire.facts.resources import RUN_ENDS, Run
from factwire.journal import Filter
from factwire.projection import ProjectionState, project
from factwire.projection.messages import TextPart
from factwire.runtime.mint import run_of
from factwire.runtime.turn_end import to_route
from factwire.serving.access_control import LOOPBACK_NAMES, Caller
from factwire.serving.asgi import (
    PROBLEM_MEDIA_TYPE,
    Application,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    encode_problem,
    new_trace_id,
)
from factwire.serving.guard import RELAYED, RelayedCaller
from factwire.serving.idempotency import CALLER_ID, derive_id
from factwire.serving.request_observing import RouteTemplates
from factwire.serving.streams import FeedStopped

_TRACE_DIGITS: Final = 32
_COSTS: Final = ("cost.estimated", "cost.recorded")
_ROUTE: Final = "routing.decided"
_KEPT_HEADERS: Final = frozenset(
    {
        "content-disposition",
        "content-range",
        "content-type",
        "idempotency-replayed",
        "retry-after",
        "x-as-of",
        "x-next-offset",
        "x-offset",
        "x-process-id",
    }
)


class EdgeWork:
    """The work of one Edge; `application` is all that it answers, behind its guard."""

    def __init__(
        self, edge: EdgeContext, application: Application, route_of: Callable[[Scope], str]
    ) -> None:
        self.edge_id = edge.edge_id
        self._edge = edge
        self._application = application
        self._route_of = route_of
        self._reporting = asyncio.Lock()

    def list_agents(self) -> list[str]:
        return sorted(self._edge.registered.agents)

    async def start(self, dispatch: AgentDispatch, by: Person) -> LinkedRun:
        edge, agent_id = self._edge, dispatch.agent_type
        trace_id = sha256(dispatch.delivery_id.encode()).hexdigest()[:_TRACE_DIGITS]
        with run_operations.translate_refusals():
            edge.registered.agent(agent_id)
        thread_id = None if dispatch.thread_id is UNSET else dispatch.thread_id
        # One that has begun stays what it is, even if its thread was made private since.
        if thread_id is not None and self.find(dispatch.delivery_id) is None:
            await ensure_public(edge, {"thread_id": thread_id}, None)
        if thread_id is None:
            project_id = None if dispatch.project_id is UNSET else dispatch.project_id
            new = thread_operations.NewThread(
                thread_id=derive_id("thr", dispatch.delivery_id),
                project_id=run_operations.check_project(edge, project_id),
                agent_id=agent_id,
                by=by,
            )
            with run_operations.translate_refusals():
                run_operations.ensure_capacity(edge)
                thread_id = (await thread_operations.add_thread(edge, new, trace_id)).thread_id
        run = await run_operations.start_run(
            edge,
            run_operations.NewRun(
                turn_id=derive_id("trn", dispatch.delivery_id),
                thread_id=thread_id,
                agent_id=agent_id,
                prompt=dispatch.prompt,
                options={} if dispatch.model_params is UNSET else dispatch.model_params,
                work_dir=None if dispatch.work_dir is UNSET else dispatch.work_dir,
                worktree=_read_worktree(dispatch),
                trace_id=trace_id,
                by=by,
            ),
        )
        return LinkedRun(run_id=run.run_id, thread_id=thread_id)

    def find(self, delivery_id: str) -> LinkedRun | None:
        row = self._edge.records.runs.get(run_of(derive_id("trn", delivery_id)))
        return None if row is None else LinkedRun(run_id=row.run_id, thread_id=row.thread_id or "")

    async def stop(self, run_id: str, reason: str, by: Person) -> None:
        try:
            await run_operations.request_cancel(self._edge, run_id, reason, by)
        except Problem as problem:
            # One that has ended by itself has ended, which is all that was asked for.
            if problem.code not in ("run_ended", "run_not_active"):
                raise

    async def decide(self, control: AgentControl, by: Person) -> None:
        request = control.edge_control
        if request.args_hash is UNSET:
            raise Problem(400, "approval_not_shown", "a decision names the hash of what was shown")
        await ensure_public(self._edge, {"approval_id": request.request_id}, None)
        await run_operations.decide_approval(
            self._edge,
            request.run_id,
            request.request_id,
            request.decision,
            by=by,
            reason=request.reason,
            args_hash=request.args_hash,
            always=None,
            expires_in=None,
            response=None,
        )

    async def relay(self, command: RelayCommand, by: Person) -> RelayAnswer:
        content = b"" if command.body is None else msgspec.json.encode(command.body)
        scope = _build_scope(command, by, len(content))
        try:
            await self._ensure_relayed(scope, command.body)
        except Problem as problem:
            return _refuse(problem)
        answer = await _ask(self._application, scope, content)
        if len(answer.content) > LINK_UPLOAD_BYTES:
            detail = "the answer is too large to be relayed"
            return _refuse(Problem(413, "answer_too_large", detail))
        # By this a Hub knows what its mirror must have, so that it shows what a command did.
        answer.headers.setdefault("x-as-of", str(self._edge.cursor))
        return answer

    async def _ensure_relayed(self, scope: Scope, body: Any) -> None:
        """Raise `Problem` for what a Hub may not ask for, or what does not exist for it."""
        route = self._route_of(scope)
        method, _, template = route.partition(" ")
        if route in NOT_RELAYED or (method == "GET" and template in MIRRORED_ROUTES):
            raise Problem(403, "not_relayed", "a Hub does not pass this on; ask the Edge itself")
        await ensure_public(self._edge, read_path_ids(scope, route), body)

    async def read_end(self, run: LinkedRun) -> RunEnd | None:
        row = self._edge.records.runs.get(run.run_id)
        if row is None or row.status not in RUN_ENDS:
            return None
        if (await read_privacy(self._edge))(run.thread_id):
            return RunEnd(summary="", usage={}, error=_hide_error(row))
        state = await self._edge.runtime.state(run.thread_id)
        facts = await self._read_facts(run.thread_id, row.turn_id, (*_COSTS, _ROUTE))
        costs = [fact for fact in facts if fact.event_class in _COSTS]
        changes, diff = None, ""
        if run.worktree:
            async with self._reporting:
                changes, diff = await report_changes(self._edge, row)
        return RunEnd(
            summary=_summarize(state, row),
            usage=msgspec.to_builtins(project(costs, run.thread_id).metrics.usage),
            error=_describe_error(row),
            route=_find_route(facts),
            changes=changes,
            diff=diff,
        )

    async def _read_facts(
        self, thread_id: str, turn_id: str, classes: tuple[str, ...]
    ) -> list[Fact]:
        """Facts of one turn of a thread."""
        wanted = Filter(thread=thread_id, turn=turn_id, classes=classes)
        batches = self._edge.journal.read(filter=wanted)
        return [fact async for batch in batches for _, fact in batch.facts()]

    async def follow_ends(self) -> AsyncIterator[None]:
        feed = self._edge.feed
        with suppress(FeedStopped):
            while True:
                # Noted before anybody looks, so that what comes meanwhile leads to another look.
                seq = self._edge.records.seq
                yield None
                await feed.wait_for(seq + 1)


def _read_worktree(dispatch: AgentDispatch) -> TaskWorktree | None:
    wanted = dispatch.worktree
    if wanted is UNSET:
        return None
    return TaskWorktree(run_id=None if wanted.edge_run_id is UNSET else wanted.edge_run_id)


def _summarize(state: ProjectionState, run: Run) -> str:
    """The last message that the agent itself wrote in a run."""
    for message in reversed(state.messages):
        if message.turn_id != run.turn_id or message.role == "user" or message.subagent_id:
            continue
        text = "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))
        if text:
            return text[:LINK_SUMMARY_CHARACTERS]
    return ""


def _find_route(facts: list[Fact]) -> dict[str, Any] | None:
    """What a run decided as a supervisor, as its structured output has it."""
    decided = (to_route(fact.payload) for fact in facts if fact.event_class == _ROUTE)
    # The choice of a model is a fact of this class, too.
    routes = [route for route in decided if route is not None]
    if not routes or len(msgspec.json.encode(routes[-1])) > LINK_ROUTE_BYTES:
        return None
    return routes[-1]


def _describe_error(run: Run) -> dict[str, Any] | None:
    if run.status == "finished":
        return None
    if run.status == "cancelled":
        return {"code": "cancelled", "message": run.reason or "the run was cancelled"}
    error = run.error
    if error is None:
        return {"code": "run_failed", "message": "the run failed"}
    return {"code": error.code, "message": error.message}


def _hide_error(run: Run) -> dict[str, Any] | None:
    """How a run ended, without anything that it said."""
    if run.status == "finished":
        return None
    code = "cancelled" if run.status == "cancelled" else "run_failed"
    return {"code": code, "message": "the thread of this task is private"}


def _build_scope(command: RelayCommand, by: Person, length: int) -> Scope:
    headers = [(b"host", LOOPBACK_NAMES[0].encode()), (b"content-length", str(length).encode())]
    if length:
        headers.append((b"content-type", b"application/json"))
    if command.method == "POST":
        key = command.delivery_id if command.idempotency_key is UNSET else command.idempotency_key
        headers.append((b"idempotency-key", key.encode("latin-1", "replace")))
    caller = Caller(token_id=by.device_id, token_name="hub", scopes=tuple(command.scopes))  # noqa: S106
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": command.method,
        "scheme": "http",
        "path": unquote(command.path),
        "raw_path": command.path.encode("ascii", "replace"),
        "query_string": command.query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {RELAYED: RelayedCaller(caller=caller, person=by), CALLER_ID: by.user_id or ""},
    }


async def _ask(application: Application, scope: Scope, content: bytes) -> RelayAnswer:
    is_sent, status, headers = False, 500, dict[str, str]()
    body = bytearray()

    async def receive() -> Message:
        nonlocal is_sent
        if is_sent:
            await asyncio.Event().wait()
        is_sent = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            found = ((name.decode().lower(), value.decode()) for name, value in message["headers"])
            headers.update({name: value for name, value in found if name in _KEPT_HEADERS})
        elif len(body) <= LINK_UPLOAD_BYTES:
            body.extend(message.get("body", b""))

    await application(scope, receive, send)
    return RelayAnswer(status=status, headers=headers, content=bytes(body))


def _refuse(problem: Problem) -> RelayAnswer:
    content = encode_problem(problem, new_trace_id())
    headers = {"content-type": PROBLEM_MEDIA_TYPE}
    return RelayAnswer(status=problem.status, headers=headers, content=content)


class LinkAccess:
    """The way to the Hub for what does not go by the socket: tokens, and answers that are too large
    for a frame.
    """

    def __init__(self, access: HubAccess, http: httpx.AsyncClient) -> None:
        self._access = access
        self._http = http

    async def token(self) -> str:
        return await self._access.token(self._http)

    def forget(self, token: str) -> None:
        self._access.forget(token)

    async def upload(self, delivery_id: str, answer: RelayAnswer) -> None:
        headers = {"content-type": "application/json"}
        try:
            headers["authorization"] = f"Bearer {await self.token()}"
            await send_request(
                self._http,
                "PUT",
                f"/v1/deliveries/{delivery_id}/answer",
                content=msgspec.json.encode(answer),
                headers=headers,
            )
        except (HubRefused, HubUnreachable) as error:
            raise UploadFailed(str(error)) from error


@asynccontextmanager
async def link_to_hub(
    edge: EdgeContext,
    application: "asyncio.Future[Application]",
    access: HubAccess,
    uploader: HubUpload,
) -> AsyncGenerator[HubLink]:
    """Keep an Edge linked to its Hub for as long as the block lasts."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (await asyncio.shield(application))(scope, receive, send)

    templates = RouteTemplates(route.path_format for route in build_litestar(State()).routes)
    work = EdgeWork(edge, answer, lambda scope: name_route(scope, templates))
    target = access.target
    async with (
        LinkStore(edge.data) as store,
        httpx.AsyncClient(base_url=target.url, timeout=UPLOAD_SECONDS) as http,
    ):
        way = LinkAccess(access, http)
        link = HubLink(work, store, way.upload)
        telling: set[asyncio.Task[None]] = set()

        def tell_uploaded(epoch: str, first: int, last: int) -> None:
            task = asyncio.create_task(link.tell_uploaded(epoch, first, last))
            telling.add(task)
            task.add_done_callback(telling.discard)

        uploader.on_acked = tell_uploaded
        note = partial(write_link_trouble, edge.data)
        socket = LinkSocket(link, target, way, state=edge.hub, note_trouble=note)
        async with link.run(), socket.run():
            try:
                yield link
            finally:
                uploader.on_acked = None
                await asyncio.gather(*telling)
