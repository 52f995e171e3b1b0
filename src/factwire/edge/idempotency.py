"""Idempotency-Key: a POST that comes twice under one key is answered once and told again.

It lies around the REST interface, so that no handler has to think of it.
"""

from hashlib import sha256
from typing import Final

from factwire.edge.limits import KEPT_ANSWER_BYTES
from factwire.edge.problems import Problem
from factwire.edge.security.guard import Application, Message, Receive, Scope, Send, refuse
from factwire.edge.work.keys import Answer, Keys, checked_key

_HEADER: Final = b"idempotency-key"
_REPLAYED: Final = (b"idempotency-replayed", b"true")
_KEPT: Final = range(200, 300)


class Idempotency:
    """An ASGI application around another."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._keys = Keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = dict(scope.get("headers", ())).get(_HEADER)
        if scope["type"] != "http" or scope["method"] != "POST" or key is None:
            await self._application(scope, receive, send)
            return
        try:
            name = f"{scope['path']}\0{checked_key(key.decode('latin-1'))}"
            body = await _body(receive)
            if body is None:
                # Whoever hung up while sending asked for nothing that could be done.
                return
            request = sha256(scope["path"].encode() + b"\0" + body).digest()
            async with self._keys.holding(name):
                known = self._keys.known(name, request)
                if known is None:
                    known = await self._answered(scope, _again(body, receive), send, request)
                    if known is not None:
                        self._keys.keep(name, known)
                    return
        except Problem as problem:
            await refuse(scope, receive, send, problem, scope["state"]["trace_id"])
            return
        await _replay(known, send)

    async def _answered(
        self, scope: Scope, receive: Receive, send: Send, request: bytes
    ) -> Answer | None:
        """Let the request be answered; what came of it, where that is worth keeping."""
        started: Message = {}
        parts: list[bytes] = []

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
            await send(message)

        await self._application(scope, receive, sent)
        body = b"".join(parts)
        if started.get("status") not in _KEPT or len(body) > KEPT_ANSWER_BYTES:
            return None
        headers = tuple((bytes(name), bytes(value)) for name, value in started["headers"])
        return Answer(request=request, status=started["status"], headers=headers, body=body)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None where the client hung up before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever comes."""
    told = False

    async def received() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


async def _replay(answer: Answer, send: Send) -> None:
    headers = [*answer.headers, _REPLAYED]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
