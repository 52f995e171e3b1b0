"""`Guard`: the one door. Nothing behind it asks again who somebody is.

Everything is refused that is not let in here: by a known host, no foreign page, and the token or a
ticket. Only what `OPEN` lists and the files of the workbench need none of the last. A header, or
for streams the list of subprotocols, carries the token; a token in an address is refused even
when it is right, so that nobody gets used to it. A request gets its trace id here, and every
answer the headers that keep browsers from guessing; only an origin that was allowed by name gets
those that let its pages talk to this server.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from factwire.facts import Person
from factwire.facts.resources import TokenScope
from factwire.serving.access_control import (
    AccessLimiter,
    AccessToken,
    Caller,
    HostPolicy,
    Tickets,
    TokenStore,
)
from factwire.serving.asgi import (
    BROWSER_POLICY,
    Application,
    Headers,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    refuse,
    trace_id_from,
)
from factwire.serving.limits import BODY_BYTES, BODY_SECONDS

SUBPROTOCOL: Final = "factwire.v1"
"""What the server answers to a client that offers the token as a subprotocol."""

TOKEN_SUBPROTOCOL: Final = "factwire.token."  # noqa: S105 - the prefix, not a token
"""Begins the subprotocol that carries the token."""

_IN_ADDRESS: Final = ("access_token", "api_key", "auth", "authorization", "key", "token")


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """At most one of the two is used; a header comes first."""

    token: str | None = None
    ticket: str | None = None


def read_credentials(
    scope: Mapping[str, Any], headers: Mapping[bytes, bytes], *, ticket_name: str = "ticket"
) -> Credentials:
    """What a request offers; raises `Problem` for a token in its address. `ticket_name` is the
    parameter that holds a ticket.
    """
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    for name in _IN_ADDRESS:
        if name in query and name != ticket_name:
            raise Problem(
                400,
                "token_in_url",
                "do not put a token in a URL; send it as 'Authorization: Bearer …', or, for a "
                "stream, get a ticket from POST /v1/tickets",
            )
    bearer = _parse_bearer(headers.get(b"authorization"))
    if bearer is not None:
        return Credentials(token=bearer)
    subprotocols: Iterable[str] = scope.get("subprotocols", ())
    for name in subprotocols:
        if name.startswith(TOKEN_SUBPROTOCOL):
            return Credentials(token=name.removeprefix(TOKEN_SUBPROTOCOL))
    tickets = query.get(ticket_name)
    return Credentials(ticket=tickets[0] if tickets else None)


def _parse_bearer(header: bytes | None) -> str | None:
    scheme, _, value = (header or b"").decode("latin-1").partition(" ")
    return value.strip() if scheme.lower() == "bearer" and value.strip() else None


_REQUEST_HEADERS: Final = (
    b"authorization, content-type, idempotency-key, last-event-id, traceparent"
)
_EXPOSED_HEADERS: Final = (
    b"idempotency-replayed, retry-after, x-as-of, x-next-offset, x-offset, x-trace-id"
)
_METHODS: Final = b"GET, POST, PATCH, DELETE"
_MAX_AGE: Final = b"600"


def cors_headers(origin: bytes | None, host_policy: HostPolicy) -> Headers:
    """What an answer to a page says; nothing, for one that was not allowed by name."""
    if origin is None or origin.decode("latin-1").lower() not in host_policy.origins:
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]


def preflight_headers(request: dict[bytes, bytes], host_policy: HostPolicy) -> Headers:
    """What a browser that asks beforehand is told; nothing, for any other request."""
    if b"access-control-request-method" not in request:
        return []
    known = cors_headers(request.get(b"origin"), host_policy)
    if not known:
        return []
    return [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _REQUEST_HEADERS),
        (b"access-control-max-age", _MAX_AGE),
        *known,
    ]


OPEN: Final = frozenset({("GET", "/v1/health"), ("HEAD", "/v1/health")})
"""What anybody may ask who can reach this server."""

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

_OWN_SITE: Final = frozenset({b"none", b"same-origin"})
"""What a browser says of a request that no other site made; any other value is refused."""


RELAYED: Final = "relayed"
"""Key of a request's state: who sends it by way of a Hub. Only this process itself can set it."""


class RelayedCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose request a Hub passes on, and what it may do."""

    caller: Caller
    person: Person


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in, from where, and how often."""

    token: AccessToken
    host_policy: HostPolicy
    tickets: Tickets
    limiter: AccessLimiter
    tokens: TokenStore

    def find_caller(self, secret: str) -> Caller | None:
        """Whose token it is."""
        return Caller() if self.token.matches(secret) else self.tokens.find(secret)


OpenRoutes = frozenset[tuple[str, str]]
"""Methods and paths that need no credentials."""


class BodyRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the body of a request may be: how large, of which media types, and how slow."""

    most: int = BODY_BYTES
    kinds: tuple[bytes, ...] = _JSON
    seconds: float = BODY_SECONDS


class Guard(ABC):
    """An ASGI application around another; `server_name` is what refusals call it. How a server
    finds out whose request it is, is its own `ensure_credentials`.
    """

    def __init__(
        self,
        application: Application,
        host_policy: HostPolicy,
        is_page: Callable[[Scope], bool] = lambda _: False,
        *,
        server_name: str,
        open_routes: OpenRoutes = OPEN,
        body_rule_of: Callable[[Scope], BodyRule] = lambda _: BodyRule(),
    ) -> None:
        self.server_name = server_name
        self._application = application
        self._host_policy = host_policy
        self._is_page = is_page
        self._open_routes = open_routes
        self._body_rule_of = body_rule_of

    @abstractmethod
    async def ensure_credentials(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Put who sends a request into its state, or raise the `Problem` that refuses it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        state: dict[str, Any] = scope.setdefault("state", {})
        trace_id: str = state.get("trace_id") or trace_id_from(headers.get(b"traceparent"))
        state["trace_id"] = trace_id
        page = cors_headers(headers.get(b"origin"), self._host_policy)
        try:
            if scope["type"] == "http" and await self._is_preflight(scope, headers, send):
                return
            await self._ensure_admitted(scope, headers)
        except Problem as problem:
            await refuse(scope, receive, _with_page(send, page), problem)
            return
        if scope["type"] == "http":
            receive = _bounded_body(receive, self._body_rule_of(scope))
            send = _with_headers(send, trace_id, page)
        else:
            send = _with_handshake(send, scope, page)
        await self._application(scope, receive, send)

    async def _is_preflight(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> bool:
        """Answer a browser that asks what an allowed page may do; it sends no token with that."""
        answer = preflight_headers(headers, self._host_policy)
        if scope["method"] != "OPTIONS" or not answer:
            return False
        if not self._host_policy.allows_host(headers.get(b"host", b"").decode("latin-1")):
            return False
        await send({"type": "http.response.start", "status": 204, "headers": answer})
        await send({"type": "http.response.body", "body": b""})
        return True

    async def _ensure_admitted(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the `Problem` that keeps a request out."""
        _ensure_unrepeated_headers(scope)
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._host_policy.allows_host(host):
            detail = f"this {self.server_name} does not accept that host name"
            raise Problem(421, "host_not_allowed", detail)
        is_page = self._is_page(scope)
        if not (is_page and _is_navigation(headers)):
            self._ensure_no_foreign_page(scope, headers, host)
        if is_page:
            # Read for its refusal alone: not even a page is opened by a token in an address.
            read_credentials(scope, headers)
        elif (scope.get("method"), scope["path"]) in self._open_routes:
            scope["state"]["is_known"] = await self._has_valid_token(scope, headers)
        else:
            await self.ensure_credentials(scope, headers)
        if scope["type"] == "http":
            _ensure_body(scope, headers, self._body_rule_of(scope))

    def _ensure_no_foreign_page(self, scope: Scope, headers: dict[bytes, bytes], host: str) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            named = origin.decode("latin-1")
            if not self._host_policy.allows_origin(named, host, scope["scheme"]):
                raise Problem(403, "origin_not_allowed", "that origin is not allowed")
        elif headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
            raise Problem(403, "cross_site_request", "cross-site requests are not allowed")

    async def _has_valid_token(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether somebody who needs no token shows it all the same; guesses count as elsewhere."""
        if read_credentials(scope, headers).token is None:
            return False
        try:
            await self.ensure_credentials(scope, headers)
        except Problem:
            return False
        return True


class TokenGuard(Guard):
    """A guard that asks for a token of the server, or for a ticket; `scope_of` is the scope that a
    request needs.
    """

    def __init__(
        self,
        application: Application,
        access: Access,
        is_stream: Callable[[Scope], bool] = lambda _: False,
        is_page: Callable[[Scope], bool] = lambda _: False,
        *,
        server_name: str,
        scope_of: Callable[[Scope], TokenScope] = lambda _: "admin",
    ) -> None:
        super().__init__(application, access.host_policy, is_page, server_name=server_name)
        self._access = access
        self._is_stream = is_stream
        self._scope_of = scope_of

    async def ensure_credentials(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Require a token or a ticket that may do what is asked."""
        relayed: RelayedCaller | None = scope["state"].get(RELAYED)
        caller = self._identify(scope, headers) if relayed is None else relayed.caller
        needed = self._scope_of(scope)
        if not caller.may(needed):
            raise Problem(
                403,
                "insufficient_scope",
                f"this needs a token with the scope {needed}; yours has: "
                f"{', '.join(caller.scopes)}",
            )
        scope["state"]["caller"] = caller
        scope["state"]["via"] = caller.token_name or _client_of(headers)

    def _identify(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """Whose request it is; raises `Problem`."""
        address = (scope.get("client") or ("", 0))[0]
        credentials = read_credentials(scope, headers)
        ticket = credentials.ticket if self._is_stream(scope) else None
        # First: somebody else's guesses, from the same address, keep nobody out who has a token or
        # a ticket.
        if credentials.token is not None:
            caller = self._access.find_caller(credentials.token)
        else:
            caller = None if ticket is None else self._access.tickets.redeem(ticket)
        if caller is not None:
            scope["state"]["ticket"] = ticket or ""
            return caller
        self._access.limiter.ensure_may_try(address)
        self._access.limiter.note_refusal(address)
        if ticket is not None:
            raise Problem(401, "ticket_invalid", "the ticket is unknown, used or expired")
        raise Problem(
            401,
            "unauthenticated",
            f"send the token of this {self.server_name} as 'Authorization: Bearer …'",
            headers={"www-authenticate": 'Bearer realm="factwire"'},
        )


_PRODUCTS: Final = {b"factwire": "client", b"factwire-cli": "terminal"}


def _client_of(headers: dict[bytes, bytes]) -> str:
    """What somebody uses: only the workbench has the origin of this server."""
    if headers.get(b"sec-fetch-site") == b"same-origin":
        return "workbench"
    product = headers.get(b"user-agent", b"").partition(b"/")[0]
    return _PRODUCTS.get(product, "api")


def _is_navigation(headers: dict[bytes, bytes]) -> bool:
    """Whether somebody follows a link, on whatever site it stands; in a frame it would be none."""
    return (
        headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


def _ensure_unrepeated_headers(scope: Scope) -> None:
    seen: set[bytes] = set()
    for name, _ in scope["headers"]:
        if name in seen and name in _ONCE:
            raise Problem(
                400, "repeated_header", f"the header {name.decode()} must occur only once"
            )
        seen.add(name)


def _ensure_body(scope: Scope, headers: dict[bytes, bytes], rule: BodyRule) -> None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _LENGTH_DIGITS or int(length) > rule.most:
        raise Problem(413, "body_too_large", f"the body is larger than {rule.most} bytes")
    if scope["method"] in _SAFE:
        return
    has_body = int(length) > 0 or b"transfer-encoding" in headers
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if (has_body or kind) and kind not in rule.kinds:
        expected = rule.kinds[0].decode()
        raise Problem(415, "json_only", f"send JSON with 'Content-Type: {expected}'")


def _bounded_body(receive: Receive, rule: BodyRule) -> Receive:
    """A body that ends in time and within its bound."""
    taken = 0
    ends = asyncio.get_running_loop().time() + rule.seconds
    complete = False

    async def receive_bounded() -> Message:
        nonlocal taken, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            raise _body_problem(
                408, "body_too_slow", f"the body did not arrive within {rule.seconds:g} s"
            ) from None
        taken += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if taken > rule.most:
            detail = f"the body is larger than {rule.most} bytes"
            raise _body_problem(413, "body_too_large", detail)
        return message

    return receive_bounded


def _body_problem(status: int, code: str, detail: str) -> Problem:
    """The refusal of a body that nobody reads to its end: the connection goes with it."""
    return Problem(status, code, detail, headers={"connection": "close"})


def _with_headers(send: Send, trace_id: str, page: Headers) -> Send:
    """Answers with the policy for browsers, the trace, and what a page may read."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Headers = list(message.get("headers", ()))
            own = {name.lower() for name, _ in headers}
            added = [(name, value) for name, value in BROWSER_POLICY if name not in own]
            trace = (b"x-trace-id", trace_id.encode())
            message = {**message, "headers": [*headers, *added, trace, *page]}
        await send(message)

    return send_with_headers


def _with_handshake(send: Send, scope: Scope, page: Headers) -> Send:
    """A browser closes a socket whose server chose none of the subprotocols that it offered."""
    send = _with_page(send, page)
    if SUBPROTOCOL not in scope.get("subprotocols", ()):
        return send

    async def send_handshake(message: Message) -> None:
        if message["type"] == "websocket.accept":
            message = {**message, "subprotocol": SUBPROTOCOL}
        await send(message)

    return send_handshake


def _with_page(send: Send, page: Headers) -> Send:
    """Refusals that a page of an allowed origin can read."""
    if not page:
        return send

    async def send_with_page_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": [*message.get("headers", ()), *page]}
        await send(message)

    return send_with_page_headers
