"""`MirrorApp`: everything below `/v1/edges/{edgeId}`: uploads by the Edge, reads by people.

Who may do what is decided by `authorize`, which is asked before anything is looked up; another
person's Edge and one that does not exist are answered alike. An upload is a body of msgpack, no
larger than a bound, and is acknowledged once it is on disk.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar, cast
from urllib.parse import quote, unquote

import msgspec
from litestar import Response, get, post, put
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.status_codes import HTTP_200_OK, HTTP_204_NO_CONTENT

from factwire.edge.edge_app import AS_OF
from factwire.edge.hub_upload import CHAIN_MEDIA_TYPE, RemovedPage, UploadSession, UploadStart
from factwire.facts.limits import LINE_BYTES
from factwire.facts.refs import InvalidRef, parse_ref
from factwire.hub.limits import MIRRORED_SECONDS
from factwire.hub.mirror.mirror_store import (
    EdgeMirror,
    MirrorStatus,
    MirrorStore,
    UnknownEdge,
    UploadRefused,
)
from factwire.hub.mirror.mirrored_edge import MirroredEdge, open_mirrored_edge
from factwire.journal import Cursor, CursorError, MirrorGap, MirrorRefused
from factwire.journal.chunks import ChainBatch
from factwire.serving.access_control import Caller
from factwire.serving.asgi import (
    Application,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    new_trace_id,
    refuse,
)
from factwire.serving.logs import logger
from factwire.serving.rest import (
    BODY,
    JsonRequest,
    MsgspecLitestar,
    prepare_request,
    problem_handlers,
    to_response,
    to_routable_scope,
)
from factwire.serving.streams import FeedStopped

Purpose = Literal["read", "upload"]


class MirrorAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may have of a mirror: all of it, or some `threads`. Streams that they open are
    known by `stream_key`, by which they can be closed.
    """

    stream_key: str
    threads: frozenset[str] | None = None


Authorize = Callable[[Scope, str, Purpose], AbstractAsyncContextManager[MirrorAccess]]
"""Who asks for an Edge and what for, for as long as they are answered; raises `Problem`, 404 for an
Edge that is none of theirs.
"""
NoteUpload = Callable[[str, str], None]
"""Told of an Edge whose mirror is at a cursor now."""


class DeviceRelay(Protocol):
    """Passes on to an Edge what only the Edge itself can do."""

    def owns(self, scope: Scope) -> bool:
        """Whether a request, under its path at the Edge, needs the device."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send, edge_id: str) -> None:
        """Answer a request; raises `Problem`."""
        ...


class DecisionTaker(Protocol):
    """Takes decisions at the address that an Edge has for them."""

    async def __call__(
        self, scope: Scope, receive: Receive, edge_id: str, is_known: Callable[[str], bool]
    ) -> tuple[str, int]:
        """Decide what an agent asks. Return its id at the Edge, and how many seconds the mirror may
        take to show it decided; raises `Problem`. `is_known` is whether the mirror has a request.
        """
        ...


UPLOAD_BYTES_MOST: Final = LINE_BYTES + 16 * 1024 * 1024
"""Bytes of one upload; a part is far smaller, unless it holds the longest line there can be."""

_PREFIX: Final = re.compile(r"/v1/edges/([^/]+)(/.*)?")
_DECISIONS: Final = ("POST", "/v1/permissions/decide")
_NO_VERBS: Final = re.compile(r"(?!)")
_log: Final = logger("factwire.hub")


class MirrorRequest(JsonRequest):
    """A request about a mirror."""


def store_of(request: MirrorRequest) -> MirrorStore:
    return cast("MirrorStore", request.app.state["mirrors"])


def _note_upload(
    request: MirrorRequest, mirror: EdgeMirror, answer: UploadSession
) -> UploadSession:
    note = cast("NoteUpload | None", request.app.state["note_upload"])
    if note is not None:
        note(mirror.edge_id, str(Cursor(mirror.epoch, answer.acked_seq)))
    return answer


Session = Annotated[int, QueryParameter(ge=1, description="The session that uploads.")]
Decoded = TypeVar("Decoded")


@get("/v1/edges/{edge_id:str}/mirror", tags=["edges"])
async def read_mirror(request: MirrorRequest, edge_id: FromPath[str]) -> MirrorStatus:
    """Get how far the mirror of an Edge is, and which uploads it refused."""
    async with store_of(request).use(edge_id) as mirror:
        return await mirror.status()


@post("/v1/edges/{edge_id:str}/mirror/sessions", status_code=HTTP_200_OK, tags=["edges"])
async def begin_session(
    request: MirrorRequest, edge_id: FromPath[str], data: JSONBody[UploadStart]
) -> UploadSession:
    """Begin a session of uploads, which ends all sessions before it."""
    async with store_of(request).use(edge_id, create=True) as mirror:
        return _note_upload(request, mirror, await mirror.begin_session(data))


@post(
    "/v1/edges/{edge_id:str}/mirror/chain",
    status_code=HTTP_200_OK,
    tags=["edges"],
    opt={BODY: {CHAIN_MEDIA_TYPE: (bytes, {})}},
)
async def take_chain(
    request: MirrorRequest, edge_id: FromPath[str], session: Session
) -> UploadSession:
    """Upload the next part of the Edge's chain; the answer says what is durable."""
    async with store_of(request).use(edge_id) as mirror:
        body = await _read_body(request)
        answer = await mirror.take_chain(session, _decode(body, ChainBatch), body)
        return _note_upload(request, mirror, answer)


@post(
    "/v1/edges/{edge_id:str}/mirror/removed",
    status_code=HTTP_204_NO_CONTENT,
    tags=["edges"],
    opt={BODY: {CHAIN_MEDIA_TYPE: (bytes, {})}},
)
async def take_removed(request: MirrorRequest, edge_id: FromPath[str], session: Session) -> None:
    """Upload what the Edge keeps of facts that it removed before the mirror had them."""
    async with store_of(request).use(edge_id) as mirror:
        page = _decode(await _read_body(request), RemovedPage)
        await mirror.take_removed(session, page.removed, page.threads)


@post("/v1/edges/{edge_id:str}/mirror/blobs/missing", status_code=HTTP_200_OK, tags=["edges"])
async def list_missing_blobs(
    request: MirrorRequest, edge_id: FromPath[str], session: Session, data: JSONBody[list[str]]
) -> list[str]:
    """List those among some refs whose content the mirror does not have."""
    async with store_of(request).use(edge_id) as mirror:
        mirror.ensure_newest(session)
        return [ref for ref in data if not await mirror.blobs.exists(_check_ref(ref))]


@put(
    "/v1/edges/{edge_id:str}/mirror/blobs/{ref:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["edges"],
    opt={BODY: {CHAIN_MEDIA_TYPE: (bytes, {})}},
)
async def take_blob(
    request: MirrorRequest, edge_id: FromPath[str], ref: FromPath[str], session: Session
) -> None:
    """Upload the content behind a ref; content with another hash is refused."""
    kind, digest = parse_ref(_check_ref(ref))
    async with store_of(request).use(edge_id) as mirror:
        mirror.ensure_newest(session)
        stored = await mirror.blobs.put(request.stream(), kind=kind)
        if parse_ref(stored.ref)[1] != digest:
            raise Problem(422, "blob_mismatch", f"expected content for {ref}, got {stored.ref}")


ROUTES: Final[list[Any]] = [
    read_mirror,
    begin_session,
    take_chain,
    take_removed,
    list_missing_blobs,
    take_blob,
]

MIRROR_PROBLEM_CODES: Final[dict[str, str]] = {
    "blob_mismatch": "the content does not have the hash of its ref",
    "device_required": "only the device itself can do this, and it is not connected",
    "mirror_broken": "the upload does not verify, or does not continue the chain",
    "mirror_conflict": "the mirror holds other facts at this place; the upload was kept aside",
    "mirror_refused": "the mirror refused the upload",
    "mirror_gap": "facts before those of the upload are missing; `expectedSeq` comes next",
    "unknown_edge": "no Edge with this id has joined",
    "upload_fenced": "a newer session uploads for this Edge",
    "upload_too_large": "the upload is too large; send smaller parts",
    "upload_unreadable": "the upload is not what this address expects",
}
"""Code → why a Hub refuses a request about a mirror; codes never change."""


class MirrorApp:
    """Answers what is below `/v1/edges/{edgeId}`; an ASGI application. Without a relay, what needs
    the device is refused. A command is answered once the mirror shows what it did, so that whoever
    reads next finds it, as at the Edge itself.
    """

    def __init__(
        self, store: MirrorStore, authorize: Authorize, note_upload: NoteUpload | None = None
    ) -> None:
        self.relay: DeviceRelay | None = None
        self.decide: DecisionTaker | None = None
        self._store = store
        self._authorize = authorize
        self._uploads = cast("Application", build_upload_app(store, note_upload))

    def owns(self, scope: Scope) -> bool:
        """Whether a request is about one Edge."""
        return scope["type"] in ("http", "websocket") and _match(scope) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).setdefault("trace_id", new_trace_id())
        try:
            edge_id, path = split_path(scope)
            purpose = purpose_of(path)
            async with self._authorize(scope, edge_id, purpose) as access:
                if scope["type"] == "http" and (purpose == "upload" or path == "/mirror"):
                    ensure_whole(access)
                    await self._uploads(to_routable_scope(scope, _NO_VERBS), receive, send)
                    return
                edge_scope = _ask_as_edge(scope, path)
                decides = self.decide if _is_decision(edge_scope) else None
                if decides is None and self.relay is not None and self.relay.owns(edge_scope):
                    held = self._hold_until_mirrored(edge_scope, send, edge_id)
                    await self.relay(edge_scope, receive, held, edge_id)
                    return
                async with self._open_faces(edge_id) as faces:
                    if decides is not None:
                        read = await decides(edge_scope, receive, edge_id, faces.has_approval)
                        edge_scope = _read_instead(edge_scope, *read)
                    moved = _move_scope(edge_scope, access)
                    if access.threads is not None:
                        await faces.ensure_within(moved, access.threads)
                    await faces(moved, receive, send)
        except UnknownEdge as error:
            await refuse(scope, receive, send, Problem(404, "unknown_edge", str(error)))
        except Problem as problem:
            await refuse(scope, receive, send, problem)

    def _hold_until_mirrored(self, scope: Scope, send: Send, edge_id: str) -> Send:
        """Answers to commands, each sent when the mirror has come as far as the Edge was then, or
        has not in time.
        """
        if scope["method"] in ("GET", "HEAD"):
            return send

        async def send_held(message: Message) -> None:
            if message["type"] == "http.response.start":
                as_of = dict(message["headers"]).get(AS_OF, b"").decode("latin-1")
                with suppress(TimeoutError, CursorError, FeedStopped, UnknownEdge):
                    async with (
                        asyncio.timeout(MIRRORED_SECONDS),
                        self._open_faces(edge_id) as faces,
                    ):
                        await faces.wait_for(Cursor.parse(as_of))
            await send(message)

        return send_held

    @asynccontextmanager
    async def _open_faces(self, edge_id: str) -> AsyncGenerator[MirroredEdge]:
        async with self._store.use(edge_id) as mirror:
            yield await find_faces(mirror)


def ensure_whole(access: MirrorAccess) -> None:
    """Raise `Problem` for who may have some threads only."""
    if access.threads is not None:
        raise unknown_edge()


def unknown_edge() -> Problem:
    return Problem(404, "unknown_edge", "no Edge with this id has joined this Hub")


def purpose_of(path: str) -> Purpose:
    """What a path below that of an Edge is for."""
    return "upload" if path.startswith("/mirror/") else "read"


async def find_faces(mirror: EdgeMirror) -> MirroredEdge:
    """The reading faces of a mirror, opened for the first who reads."""
    async with mirror.lock:
        if not isinstance(mirror.reader, MirroredEdge):
            mirror.reader = await open_mirrored_edge(mirror)
        return mirror.reader


def _match(scope: Scope) -> "re.Match[str] | None":
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return _PREFIX.fullmatch(raw.decode("ascii", "replace"))


def split_path(scope: Scope) -> tuple[str, str]:
    """The Edge that a request is about, and the rest of its path; raises `Problem`."""
    found = _match(scope)
    if found is None:
        raise Problem(404, "not_found", "there is nothing at this address")
    return unquote(found[1]), found[2] or "/"


def _ask_as_edge(scope: Scope, path: str) -> Scope:
    """The scope under the path that the Edge itself has."""
    moved = f"/v1{path}"
    return {**scope, "path": unquote(moved), "raw_path": moved.encode()}


def _is_decision(scope: Scope) -> bool:
    return scope["type"] == "http" and (scope["method"], scope["path"]) == _DECISIONS


def _read_instead(scope: Scope, request_id: str, seconds: int) -> Scope:
    """The scope of reading an approval, as soon as the mirror shows that it is decided."""
    path = f"/v1/approvals/{quote(request_id, safe='')}"
    query = f"wait={seconds}".encode()
    moved = {"path": unquote(path), "raw_path": path.encode(), "query_string": query}
    return {**scope, **moved, "method": "GET"}


def _move_scope(scope: Scope, access: MirrorAccess) -> Scope:
    """The scope as the Edge itself would have got it."""
    return {**scope, "state": {**scope["state"], "caller": Caller(token_id=access.stream_key)}}


def build_upload_app(
    store: MirrorStore | None = None, note_upload: NoteUpload | None = None
) -> MsgspecLitestar:
    """The routes of uploads alone; without a store, they can only be described."""
    return MsgspecLitestar(
        route_handlers=ROUTES,
        request_class=MirrorRequest,
        state=State({"mirrors": store, "note_upload": note_upload}),
        exception_handlers=cast(
            "Any",
            {
                **problem_handlers(_log),
                UploadRefused: _answer_upload_refusal,
                MirrorRefused: _answer_upload_refusal,
            },
        ),
        before_request=cast("Any", prepare_request),
        request_max_body_size=None,
        openapi_config=None,
        logging_config=None,
    )


_STATUSES: Final = {"unknown_edge": 404, "mirror_broken": 422}


def _answer_upload_refusal(
    request: MirrorRequest, error: UploadRefused | MirrorRefused
) -> Response[dict[str, Any]]:
    members: dict[str, Any] = (
        {"expectedSeq": error.expected} if isinstance(error, MirrorGap) else {}
    )
    status = _STATUSES.get(error.code, 409)
    return to_response(request, Problem(status, error.code, str(error), **members))


async def _read_body(request: MirrorRequest) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > UPLOAD_BYTES_MOST:
            detail = f"expected at most {UPLOAD_BYTES_MOST} bytes"
            raise Problem(413, "upload_too_large", detail)
    return bytes(body)


def _decode(body: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(400, "upload_unreadable", str(error)) from error


def _check_ref(ref: str) -> str:
    try:
        parse_ref(ref)
    except InvalidRef as error:
        raise Problem(404, "unknown_blob", str(error)) from error
    return ref
