"""Relayed requests: what only the device can do, asked of it through the link.

A request below `/v1/edges/{edgeId}` that the mirror cannot answer goes to the Edge in the name of
the person who sent it, and its answer comes back as it is. `RELAY_ROLES` says what somebody must
be allowed for each route; what is not in it never reaches an Edge through a Hub: tokens, tickets,
retention, streams. A device that is not connected is refused at once, unless the client prefers to
wait (`Prefer: respond-async`). With an `Idempotency-Key`, a command is one delivery however often
it comes: it gets the answer that the Hub has, or the device is asked again for the one that it has;
another command under the same key is refused. What the device refused may be tried again.
"""

import asyncio
from typing import Any, Final, Literal, cast
from urllib.parse import unquote

import msgspec
from litestar.datastructures import State
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.edge_app import ROUTE_SCOPES, build_litestar, name_route
from factwire.edge.hub_frames import (
    MIRRORED_ROUTES,
    NOT_RELAYED,
    RelayAnswer,
    RelayCommandCreated,
)
from factwire.facts.resources import GrantRole
from factwire.hub.frames.event_log import EventLog, HubChange
from factwire.hub.hub_guard import CALLER, ORIGIN
from factwire.hub.limits import RELAY_BODY_BYTES, RELAY_QUEUED_SECONDS, RELAY_SECONDS
from factwire.hub.link.agent_tasks import describe_person, may_use_device
from factwire.hub.link.deliveries import (
    MILLISECONDS,
    NewDelivery,
    add_delivery,
    may_send,
    read_done_status,
    repeat_relay,
    to_delivery,
)
from factwire.hub.link.edge_link import DeviceSockets, EdgeLink
from factwire.hub.mirror.mirror_app import find_faces
from factwire.hub.mirror.mirror_store import MirrorStore, UnknownEdge
from factwire.hub.people.accounts import HubCaller, new_id
from factwire.hub.records.device_tables import devices
from factwire.hub.records.grant_records import NeededRight, find_reach
from factwire.hub.records.hub_database import HubDatabase
from factwire.hub.records.invitation_records import add_audit_entry
from factwire.hub.records.link_tables import OPEN_STATES, deliveries
from factwire.serving.asgi import Problem, Receive, Scope, Send, get_header
from factwire.serving.idempotency import check_key, derive_id, key_reused
from factwire.serving.request_observing import RouteTemplates

RelayScope = Literal["read", "decide", "run"]

_ROLES_OF_SCOPES: Final[dict[str, GrantRole]] = {
    "read": "viewer",
    "decide": "approver",
    "run": "operator",
}
_SCOPES_OF_ROLES: Final[dict[GrantRole, list[RelayScope]]] = {
    "viewer": ["read"],
    "approver": ["read", "decide"],
    "operator": ["read", "decide", "run"],
}

MERGE_ROUTE: Final = "POST /v1/runs/{run_id}:merge"
"""What a Hub asks of an Edge itself, once work is approved."""

RELAY_ROLES: Final[dict[str, GrantRole]] = {
    route: _ROLES_OF_SCOPES[scope]
    for route, scope in ROUTE_SCOPES.items()
    if scope in _ROLES_OF_SCOPES and route not in NOT_RELAYED and route != MERGE_ROUTE
}
"""Route of an Edge → what somebody must be allowed with its device to have it relayed. A message to
a thread is a run of an agent, so who may comment has the chat of the thread at the Hub instead.
What a worker of a team changed is merged by way of its run, where it must have been approved.
"""

_OF_THREAD: Final = "/v1/threads/{thread_id}"
_OF_RUN: Final = "/v1/runs/{run_id}"
_BODY_IDS: Final = {
    "POST /v1/runs": "threadId",
    "POST /v1/evidence": "threadId",
    "POST /v1/previews": "runId",
}
"""Route → the field of its body that names a thread, or a run of it."""

_DEVICE_FIELDS: Final = ("projectId", "workDir")
"""What of a run only those choose who may operate the whole device."""

RELAY_PROBLEM_CODES: Final[dict[str, str]] = {
    "answer_expired": "the device carried out this command before; its answer is no longer kept",
    "device_offline": "the device is not connected; nothing was sent",
    "insufficient_grant": "what is shared with you does not allow this",
    "not_relayed": "a Hub does not pass this on; ask the Edge itself",
    "relay_timeout": "the device did not answer in time; it may have done it",
    "relay_too_large": "the body is too large to be passed on to a device",
}
"""Code → why a request was not relayed."""

_PREFER: Final = "respond-async"


class EdgeRelay:
    """Passes requests on to Edges; `owns` says which."""

    def __init__(
        self,
        database: HubDatabase,
        events: EventLog,
        link: EdgeLink,
        sockets: DeviceSockets,
        mirrors: MirrorStore,
    ) -> None:
        self._database = database
        self._events = events
        self._link = link
        self._sockets = sockets
        self._mirrors = mirrors
        edge_routes = build_litestar(State()).routes
        self._templates = RouteTemplates(route.path_format for route in edge_routes)

    def owns(self, scope: Scope) -> bool:
        """Whether a request, under its path at the Edge, needs the device."""
        if scope["type"] != "http":
            return False
        route = name_route(scope, self._templates)
        method, _, template = route.partition(" ")
        is_mirrored = method == "GET" and template in MIRRORED_ROUTES
        return route in ROUTE_SCOPES and not is_mirrored

    async def __call__(self, scope: Scope, receive: Receive, send: Send, edge_id: str) -> None:
        """Pass a request on, and answer it; raises `Problem`."""
        caller: HubCaller = scope["state"][CALLER]
        route = name_route(scope, self._templates)
        role = RELAY_ROLES.get(route)
        if role is None:
            raise Problem(403, "not_relayed", "a Hub does not pass this on; ask the Edge itself")
        if role != "viewer" and not caller.may("member"):
            raise Problem(
                403, "insufficient_role", f"this needs the role member; yours is {caller.role}"
            )
        body = await read_relayed_body(receive)
        thread_id = await self._find_thread(scope, edge_id, route, role, body)
        waits = _PREFER in (get_header(scope, b"prefer") or "")
        async with self._events.change() as change:
            device = await find_edge_device(
                change.connection, caller.person_id, edge_id, role, thread_id
            )
            online = device["online"] or self._sockets.is_connected(device["device_id"])
            seconds = RELAY_QUEUED_SECONDS if waits else RELAY_SECONDS
            right = NeededRight(role=role, thread_id=thread_id)
            new = await _build_delivery(
                change, scope, device, right=right, body=body, lasts=seconds
            )
            known = await _find_known(change.connection, new)
            row, is_queued = await _queue(change, new, known, can_send=online or waits)
            if is_queued and scope["method"] != "GET":
                await add_audit_entry(
                    change.connection,
                    change.now,
                    "edge.command",
                    scope["state"][ORIGIN],
                    device["device_id"],
                    command=route,
                    deliveryId=new.delivery_id,
                )
        if row["state"] in OPEN_STATES and (online or not waits):
            row = await self._wait(new.delivery_id, gives_up=not waits)
        is_replay = known is not None and read_done_status(known) is not None
        await _send_answer(send, row, is_replay=is_replay)

    async def _find_thread(
        self, scope: Scope, edge_id: str, route: str, role: GrantRole, body: bytes
    ) -> str | None:
        """The thread that a request is about, for somebody with whom threads of an Edge are shared
        and not all of it; raises `Problem` for what is beyond a thread.
        """
        caller: HubCaller = scope["state"][CALLER]
        async with self._database.read() as connection:
            reach = await find_reach(connection, caller.person_id, edge_id, role)
            seen = await find_reach(connection, caller.person_id, edge_id)
        if seen is None or (reach is not None and reach.is_whole):
            return _read_path_id(scope, route, _OF_THREAD)
        if route == "POST /v1/blobs":
            # An attachment belongs to no thread yet.
            return None if reach is None else min(reach.threads)
        fields = _read_fields(body) if route in _BODY_IDS else {}
        named = fields.get(_BODY_IDS.get(route, ""))
        found = named if isinstance(named, str) else None
        run_id = found if _BODY_IDS.get(route) == "runId" else _read_path_id(scope, route, _OF_RUN)
        if run_id is not None:
            return await self._find_thread_of_run(edge_id, run_id)
        if route == "POST /v1/runs" and any(name in fields for name in _DEVICE_FIELDS):
            detail = "only who may operate the whole device chooses a project or a folder"
            raise Problem(403, "insufficient_grant", detail)
        return found or _read_path_id(scope, route, _OF_THREAD)

    async def _find_thread_of_run(self, edge_id: str, run_id: str) -> str | None:
        try:
            async with self._mirrors.use(edge_id) as mirror:
                run = (await find_faces(mirror)).context.records.runs.get(run_id)
        except UnknownEdge:
            return None
        return None if run is None else run.thread_id

    async def _wait(self, delivery_id: str, *, gives_up: bool) -> RowMapping:
        until = asyncio.get_running_loop().time() + RELAY_SECONDS
        row = await self._link.wait_for_answer(delivery_id, until)
        if row["state"] in OPEN_STATES and gives_up:
            row = await self._withdraw(delivery_id)
        async with self._database.read() as connection:
            # Whoever asked may have lost the right to it while the device worked on it.
            allowed = select(deliveries).where(deliveries.c.delivery_id == delivery_id, may_send())
            if (await connection.execute(allowed)).first() is None:
                raise _unknown_edge()
        return row

    async def _withdraw(self, delivery_id: str) -> RowMapping:
        """Send a request no more, unless it was answered this moment."""
        own = deliveries.c.delivery_id == delivery_id
        async with self._events.change() as change:
            await change.connection.execute(
                update(deliveries)
                .where(own, deliveries.c.state.in_(OPEN_STATES))
                .values(state="expired", ended_at=change.now, code="relay_timeout", payload="{}")
            )
            return (await change.connection.execute(select(deliveries).where(own))).mappings().one()


def _read_path_id(scope: Scope, route: str, template: str) -> str | None:
    """The id that a path names, where its route begins with a template."""
    if not route.partition(" ")[2].startswith(template):
        return None
    return unquote(scope["raw_path"].decode("ascii").split("/")[3].partition(":")[0])


async def find_edge_device(
    connection: AsyncConnection,
    person_id: str,
    edge_id: str,
    role: GrantRole,
    thread_id: str | None = None,
) -> RowMapping:
    """The device of an Edge, for somebody who may use it so; raises `Problem`."""
    query = (
        select(devices)
        .where(devices.c.edge_id == edge_id, devices.c.revoked_at.is_(None))
        .order_by(devices.c.created_at.desc())
        .limit(1)
    )
    allowed = query.where(may_use_device(person_id, role, thread_id=thread_id))
    row = (await connection.execute(allowed)).mappings().first()
    if row is not None:
        return row
    seen = query.where(may_use_device(person_id, "viewer", thread_id=thread_id))
    if (await connection.execute(seen)).first() is not None:
        raise Problem(
            403, "insufficient_grant", f"this needs the role {role}, which you do not have there"
        )
    raise _unknown_edge()


def _unknown_edge() -> Problem:
    return Problem(404, "unknown_edge", "no Edge with this id has joined this Hub")


async def _build_delivery(
    change: HubChange,
    scope: Scope,
    device: RowMapping,
    *,
    right: NeededRight,
    body: bytes,
    lasts: int,
) -> NewDelivery:
    caller: HubCaller = scope["state"][CALLER]
    path: bytes = scope["raw_path"]
    query: bytes = scope.get("query_string", b"")
    key = get_header(scope, b"idempotency-key")
    command = RelayCommandCreated(
        command_id="",
        delivery_id="",
        method=scope["method"],
        path=path.decode("ascii"),
        query=query.decode("latin-1"),
        person=await describe_person(change.connection, caller.person_id, caller.session_id),
        scopes=_SCOPES_OF_ROLES[right.role],
        body=_decode_body(body),
    )
    # What only reads is asked anew each time, as at the Edge itself.
    if key is None or command.is_read:
        delivery_id = new_id("dlv")
    else:
        named = f"{caller.person_id}\0{device['device_id']}\0{command.method} {command.path}"
        delivery_id = derive_id("dlv", f"{named}\0{check_key(key)}")
        command = msgspec.structs.replace(command, idempotency_key=key)
    return NewDelivery(
        delivery_id=delivery_id,
        device_id=device["device_id"],
        person_id=caller.person_id,
        kind="relay",
        payload=msgspec.structs.replace(command, command_id=delivery_id, delivery_id=delivery_id),
        expires_at=change.now + lasts * MILLISECONDS,
        right=right,
        request=command.digest().hex(),
    )


async def _find_known(connection: AsyncConnection, new: NewDelivery) -> RowMapping | None:
    """What is known of a delivery that came before; raises `Problem` where another command has its
    key. Of one that was given up only the device knows whether it was carried out.
    """
    query = select(deliveries).where(deliveries.c.delivery_id == new.delivery_id)
    known = (await connection.execute(query)).mappings().first()
    if known is None:
        return None
    is_held = known["state"] in OPEN_STATES or read_done_status(known) is not None
    if is_held and known["request"] not in (None, new.request):
        raise key_reused()
    return known


async def _queue(
    change: HubChange, new: NewDelivery, known: RowMapping | None, *, can_send: bool
) -> tuple[RowMapping, bool]:
    """The delivery that answers a request, and whether it was queued for that: the one that is
    known, unless it has to be sent, or sent again. Raises `Problem` where that cannot be done.
    """
    status = None if known is None else read_done_status(known)
    if known is not None and status is not None and known["content"] is not None:
        return known, False
    if known is not None and known["state"] in OPEN_STATES and (can_send or known["attempts"]):
        return known, False
    if not can_send and status is not None:
        raise _answer_expired(status)
    if not can_send:
        # What was sent before may have been heard, and only the device knows.
        raise device_offline() if known is None or not known["attempts"] else _timed_out()
    if known is None:
        await add_delivery(change, new)
    else:
        await repeat_relay(change, known, new)
    query = select(deliveries).where(deliveries.c.delivery_id == new.delivery_id)
    return (await change.connection.execute(query)).mappings().one(), True


def _read_fields(body: bytes) -> dict[str, Any]:
    """The fields of a body that is an object."""
    decoded = _decode_body(body)
    return cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}


def _decode_body(body: bytes) -> Any:
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(400, "unreadable_json", f"the body is not valid JSON: {error}") from error


async def read_relayed_body(receive: Receive) -> bytes:
    """The body of a request; raises `Problem` for one that is too large for a device."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > RELAY_BODY_BYTES:
            detail = f"the body has more than {RELAY_BODY_BYTES} bytes, which no device is sent"
            raise Problem(413, "relay_too_large", detail)
        if not message.get("more_body", False):
            return bytes(body)


def device_offline() -> Problem:
    return Problem(
        409,
        "device_offline",
        "the device is not connected, and nothing was sent; with 'Prefer: respond-async' the "
        "request waits for it",
    )


def _answer_expired(status: int) -> Problem:
    return Problem(
        410,
        "answer_expired",
        f"the device carried out this command before and answered {status}; the answer itself is "
        "no longer kept, or the device does not send it now. Read what the command changed; to "
        "carry it out once more, use a new Idempotency-Key",
        answerStatus=status,
    )


async def _send_answer(send: Send, row: RowMapping, *, is_replay: bool) -> None:
    answer = read_answer(row)
    replayed = {"idempotency-replayed": "true"} if is_replay else {}
    await _answer(send, answer.status, {**answer.headers, **replayed}, answer.content)


def read_answer(row: RowMapping) -> RelayAnswer:
    """What the device answered to a relayed request, or that it has not yet; raises `Problem` where
    no answer will come, or none is kept.
    """
    if row["state"] == "acked" and row["content"] is not None:
        answer: dict[str, Any] = msgspec.json.decode(row["answer"])
        return RelayAnswer(
            status=answer["status"], headers=answer["headers"], content=row["content"]
        )
    if row["state"] in OPEN_STATES:
        headers = {
            "preference-applied": _PREFER,
            "location": f"/v1/deliveries/{row['delivery_id']}/answer",
        }
        accepted = msgspec.json.encode(to_delivery(row))
        return RelayAnswer(status=202, headers=headers, content=accepted)
    status = read_done_status(row)
    if status is not None:
        raise _answer_expired(status)
    if row["attempts"] == 0:
        raise device_offline()
    raise _timed_out()


def _timed_out() -> Problem:
    return Problem(
        504,
        "relay_timeout",
        "the device did not answer in time and may have done it; repeat the request with the same "
        "Idempotency-Key to get its answer",
    )


async def _answer(send: Send, status: int, headers: dict[str, str], content: bytes) -> None:
    named = {"content-type": "application/json", **headers, "content-length": str(len(content))}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": content})
