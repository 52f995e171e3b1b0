"""What every ASGI application here shares: its types, trace ids, and the one form of a refusal.

A refusal is a problem by RFC 9457 with a stable code. The code is for programs and never changes;
the words are for people and may. A problem says what was expected, what came and what to do, and
nothing of the machine it happened on. A trace id leads from a request to the facts it led to, in
the form of W3C trace context.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from factwire.facts import redact_text

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"


class Problem(Exception):
    """Ends a request with this status; `members` are further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.members = members
        super().__init__(f"{code}: {detail}")


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client reads when it was refused."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    trace_id: str


def to_document(problem: Problem, trace_id: str) -> dict[str, Any]:
    """A problem as its JSON document; what a client sent may stand in it, a secret may not."""
    document = ProblemDocument(
        type=f"urn:factwire:problem:{problem.code}",
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        code=problem.code,
        detail=redact_text(problem.detail)[0],
        trace_id=trace_id,
    )
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return {**plain, **problem.members}


def encode_problem(problem: Problem, trace_id: str) -> bytes:
    """A problem as bytes, for where no framework stands between."""
    return msgspec.json.encode(to_document(problem, trace_id))


_TRACEPARENT: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_NO_TRACE: Final = b"0" * 32
_NO_SPAN: Final = b"0" * 16


class Traceparent(msgspec.Struct, frozen=True):
    """What a caller says of its own trace; all in hexadecimal digits."""

    trace_id: str
    span_id: str
    flags: str


def new_trace_id() -> str:
    """A fresh trace id: 32 hexadecimal digits."""
    return secrets.token_hex(16)


def read_traceparent(header: bytes | None) -> Traceparent | None:
    """The trace that a request belongs to; None where it names none."""
    found = _TRACEPARENT.fullmatch(header or b"")
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    return Traceparent(found[1].decode(), found[2].decode(), found[3].decode())


def trace_id_from(header: bytes | None) -> str:
    """The trace that a request belongs to; a new one where it names none."""
    caller = read_traceparent(header)
    return new_trace_id() if caller is None else caller.trace_id


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

BROWSER_POLICY: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
)
"""What keeps browsers from guessing what an answer is, and from keeping it."""

_DENIAL: Final = "websocket.http.response"


def get_header(scope: Scope, name: bytes) -> str | None:
    """The first header of a name."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return None


def scope_trace_id(scope: Scope) -> str:
    """The trace of a request: what was put into its state, or a new one."""
    state: Mapping[str, Any] = scope.get("state", {})
    known = state.get("trace_id")
    return known if isinstance(known, str) else new_trace_id()


def get_extension(scope: Scope, name: str) -> Any:
    """What the server offers beyond ASGI, by name; None where it does not."""
    offered: Mapping[str, Any] = scope.get("extensions") or {}
    return offered.get(name)


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    problem: Problem,
    *,
    headers: Iterable[tuple[bytes, bytes]] | None = None,
) -> None:
    """Answer with a problem; a socket is refused before it is one, where the server can do that.

    `headers` stand in for those of an answer that passes nobody else on its way out: it ends the
    connection, names its trace and carries the policy for browsers.
    """
    trace_id = scope_trace_id(scope)
    prefix = "http.response"
    if scope["type"] == "websocket":
        prefix = _DENIAL
        await receive()
        if get_extension(scope, _DENIAL) is None:
            await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
            return
    if headers is None:
        headers = ((b"connection", b"close"), (b"x-trace-id", trace_id.encode()), *BROWSER_POLICY)
    body = encode_problem(problem, trace_id)
    pairs = [
        (b"content-type", PROBLEM_MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        *headers,
        *((name.encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": f"{prefix}.start", "status": problem.status, "headers": pairs})
    shown = b"" if scope.get("method") == "HEAD" else body
    await send({"type": f"{prefix}.body", "body": shown})
