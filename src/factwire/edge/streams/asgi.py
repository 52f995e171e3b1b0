"""What this package says over ASGI: its types, and how a refusal looks on each kind of request."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from factwire.edge.problems import MEDIA_TYPE, Problem, encoded
from factwire.edge.tracing import new_trace_id

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_DENIAL: Final = "websocket.http.response"


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of a name."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return None


def trace_id_of(scope: Scope) -> str:
    """The trace of a request: what was put into its state, or a new one."""
    state: Mapping[str, Any] = scope.get("state", {})
    known = state.get("trace_id")
    return known if isinstance(known, str) else new_trace_id()


def extension(scope: Scope, name: str) -> Any:
    """What the server offers beyond ASGI, by name; None where it does not."""
    offered: Mapping[str, Any] = scope.get("extensions", {})
    return offered.get(name)


async def refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer with a problem; a socket is refused before it is one, where the server can do that."""
    prefix = "http.response"
    if scope["type"] == "websocket":
        prefix = _DENIAL
        if extension(scope, _DENIAL) is None:
            await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
            return
    body = encoded(problem, trace_id_of(scope))
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **problem.headers,
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": f"{prefix}.start", "status": problem.status, "headers": pairs})
    shown = b"" if scope.get("method") == "HEAD" else body
    await send({"type": f"{prefix}.body", "body": shown, "more_body": False})
