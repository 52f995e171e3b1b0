"""`Guard`: the one door. Nothing behind it asks again who somebody is.

Everything is refused that is not let in here: by a known host, no foreign page, and the token or a
ticket. Only what `OPEN` lists and the files of the workbench need none of the last. A request gets
its trace id here, and every answer the headers that keep browsers from guessing.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import msgspec

from factwire.edge.limits import BODY_BYTES, BODY_SECONDS
from factwire.edge.problems import MEDIA_TYPE, Problem, encoded
from factwire.edge.security.credentials import SUBPROTOCOL, offered
from factwire.edge.security.floods import Floods
from factwire.edge.security.pages import Headers, page_headers, preflight_headers
from factwire.edge.security.places import Places
from factwire.edge.security.tickets import Tickets
from factwire.edge.security.tokens import Token
from factwire.edge.tracing import trace_id_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN: Final = frozenset({("GET", "/v1/health"), ("HEAD", "/v1/health")})
"""What anybody may ask who can reach this Edge."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_JSON: Final = (b"application/json", b"application/x-ndjson", b"application/merge-patch+json")
_LENGTH_DIGITS: Final = 18
_ONCE: Final = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"origin",
        b"sec-fetch-site",
        b"traceparent",
    }
)
"""Headers by which a request is judged: of two of them, it could be judged by the wrong one."""

_FOREIGN: Final = frozenset({b"cross-site", b"same-site"})
_POLICY: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in, from where, and how often."""

    token: Token
    places: Places
    tickets: Tickets
    floods: Floods


class Guard:
    """An ASGI application around another."""

    def __init__(
        self,
        application: Application,
        access: Access,
        is_stream: Callable[[Scope], bool] = lambda _: False,
        is_page: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        self._application = application
        self._access = access
        self._is_stream = is_stream
        self._is_page = is_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        state: dict[str, Any] = scope.setdefault("state", {})
        trace_id: str = state.get("trace_id") or trace_id_of(headers.get(b"traceparent"))
        state["trace_id"] = trace_id
        page = page_headers(headers.get(b"origin"), self._access.places)
        if page:
            send = _with_page(send, page)
        try:
            if scope["type"] == "http" and await self._is_preflight(scope, headers, send):
                return
            self._judge(scope, headers)
        except Problem as problem:
            await refuse(scope, receive, send, problem, trace_id)
            return
        if scope["type"] == "http":
            receive, send = _whole_body(receive), _with_headers(send, trace_id)
        elif SUBPROTOCOL in scope.get("subprotocols", ()):
            send = _with_subprotocol(send)
        await self._application(scope, receive, send)

    async def _is_preflight(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> bool:
        """Answer a browser that asks what an allowed page may do; it sends no token with that."""
        told = preflight_headers(headers, self._access.places)
        if scope["method"] != "OPTIONS" or not told:
            return False
        if not self._access.places.knows_host(headers.get(b"host", b"").decode("latin-1")):
            return False
        await send({"type": "http.response.start", "status": 204, "headers": told[3:]})
        await send({"type": "http.response.body", "body": b""})
        return True

    def _judge(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the `Problem` that keeps a request out."""
        _ensure_once(scope)
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._access.places.knows_host(host):
            raise Problem(421, "host_not_allowed", "this Edge does not answer to that host name")
        is_page = self._is_page(scope)
        if not (is_page and _is_visit(headers)):
            self._ensure_no_foreign_page(scope, headers, host)
        if is_page:
            # Read for its refusal alone: not even a page is opened by a token in an address.
            offered(scope, headers)
        elif (scope.get("method"), scope["path"]) in OPEN:
            scope["state"]["is_known"] = self._is_known(scope, headers)
        else:
            self._ensure_credentials(scope, headers)
        if scope["type"] == "http":
            _ensure_body(scope, headers)

    def _ensure_no_foreign_page(self, scope: Scope, headers: dict[bytes, bytes], host: str) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            named = origin.decode("latin-1")
            if not self._access.places.knows_origin(named, host, scope["scheme"]):
                raise Problem(403, "origin_not_allowed", "pages of that origin may not talk here")
        elif headers.get(b"sec-fetch-site") in _FOREIGN:
            raise Problem(403, "cross_site_request", "another site made this request")

    def _is_known(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether somebody who needs no token shows it all the same; guesses count as elsewhere."""
        if offered(scope, headers).token is None:
            return False
        try:
            self._ensure_credentials(scope, headers)
        except Problem:
            return False
        return True

    def _ensure_credentials(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        address = (scope.get("client") or ("", 0))[0]
        given = offered(scope, headers)
        # First: somebody else's guesses, from the same address, keep nobody out who has the token.
        if given.token is not None and self._access.token.fits(given.token):
            return
        self._access.floods.ensure_may_try(address)
        if given.ticket is not None and self._is_stream(scope):
            if self._access.tickets.redeem(given.ticket):
                return
            self._access.floods.note_refusal(address)
            raise Problem(401, "ticket_invalid", "the ticket is unknown, used or too old")
        self._access.floods.note_refusal(address)
        raise Problem(
            401,
            "unauthenticated",
            "send the token of this Edge as 'Authorization: Bearer …'",
            headers={"www-authenticate": 'Bearer realm="factwire"'},
        )


def _is_visit(headers: dict[bytes, bytes]) -> bool:
    """Whether somebody follows a link, on whatever site it stands; in a frame it would be none."""
    return (
        headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


def _ensure_once(scope: Scope) -> None:
    seen: set[bytes] = set()
    for name, _ in scope["headers"]:
        if name in seen and name in _ONCE:
            raise Problem(400, "repeated_header", f"the header {name.decode()} is given once")
        seen.add(name)


def _ensure_body(scope: Scope, headers: dict[bytes, bytes]) -> None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _LENGTH_DIGITS or int(length) > BODY_BYTES:
        raise Problem(413, "body_too_large", f"a body has at most {BODY_BYTES} bytes")
    if scope["method"] in _SAFE:
        return
    has_body = int(length) > 0 or b"transfer-encoding" in headers
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if (has_body or kind) and kind not in _JSON:
        raise Problem(415, "json_only", "send JSON, and say so: 'Content-Type: application/json'")


def _whole_body(receive: Receive) -> Receive:
    """A body that ends in time and within its bound."""
    taken = 0
    ends = asyncio.get_running_loop().time() + BODY_SECONDS
    complete = False

    async def received() -> Message:
        nonlocal taken, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            raise _unread(408, "body_too_slow", f"a body arrives in {BODY_SECONDS:g} s") from None
        taken += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if taken > BODY_BYTES:
            raise _unread(413, "body_too_large", f"a body has at most {BODY_BYTES} bytes")
        return message

    return received


def _unread(status: int, code: str, detail: str) -> Problem:
    """The refusal of a body that nobody reads to its end: the connection goes with it."""
    return Problem(status, code, detail, headers={"connection": "close"})


def _with_headers(send: Send, trace_id: str) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", ())}
            added = [(name, value) for name, value in _POLICY if name not in own]
            message = {
                **message,
                "headers": [
                    *message.get("headers", ()),
                    *added,
                    (b"x-trace-id", trace_id.encode()),
                ],
            }
        await send(message)

    return sent


def _with_page(send: Send, page: Headers) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": [*message.get("headers", ()), *page]}
        await send(message)

    return sent


def _with_subprotocol(send: Send) -> Send:
    """A browser closes a socket whose server chose none of the subprotocols that it offered."""

    async def sent(message: Message) -> None:
        if message["type"] == "websocket.accept":
            message = {**message, "subprotocol": SUBPROTOCOL}
        await send(message)

    return sent


async def refuse(
    scope: Scope, receive: Receive, send: Send, problem: Problem, trace_id: str
) -> None:
    """Answer with a problem: before the upgrade, if it was to be a socket."""
    body = encoded(problem, trace_id)
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008})
            return
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"x-trace-id", trace_id.encode()),
        *_POLICY,
        *((name.encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": f"{kind}.start", "status": problem.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
