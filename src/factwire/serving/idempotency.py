"""Idempotency-Key: a POST that comes twice under one key is done once and answered the same.

It lies around the REST interface, so that no handler has to think of it. The id of whatever a
request creates follows from its key, so that a repeat is recognised after a restart too. Within
one run of the server the answer itself is kept: a different request under the same key is
refused, and one that comes while the first is under way waits for it.
"""

import asyncio
from base64 import b32encode
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final

import msgspec

from factwire.serving.asgi import Application, Message, Problem, Receive, Scope, Send, refuse
from factwire.serving.limits import KEPT_ANSWER_BYTES, KEPT_ANSWERS, KEY_CHARACTERS

_ULID_CHARACTERS = 26


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a request was, as a digest, and what came of it."""

    request: bytes
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class IdempotencyKeys:
    """Answers by key, the newest kept."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, StoredAnswer] = OrderedDict()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncGenerator[None]:
        """Be the only one that works under a key."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = lock, users - 1

    def find_answer(self, key: str, request: bytes) -> StoredAnswer | None:
        """The answer to a request that came before; raises `Problem` where it was another one."""
        answer = self._answers.get(key)
        if answer is not None and answer.request != request:
            raise key_reused()
        return answer

    def store(self, key: str, answer: StoredAnswer) -> None:
        self._answers[key] = answer
        if len(self._answers) > KEPT_ANSWERS:
            self._answers.popitem(last=False)


def check_key(key: str) -> str:
    """A key that can be used; raises `Problem`."""
    if not 1 <= len(key) <= KEY_CHARACTERS or not key.isprintable():
        raise Problem(
            400,
            "invalid_idempotency_key",
            f"an Idempotency-Key must have 1 to {KEY_CHARACTERS} printable characters",
        )
    return key


def key_reused() -> Problem:
    """The refusal of a request under a key that another one has used."""
    return Problem(
        422,
        "idempotency_key_reused",
        "this Idempotency-Key was used for another request; use a new one",
    )


def derive_id(prefix: str, key: str) -> str:
    """The id of what is created under a key: always the same, and like any other to look at."""
    digest = b32encode(sha256(f"{prefix}\0{key}".encode()).digest()).decode()
    return f"{prefix}_{digest[:_ULID_CHARACTERS]}"


CALLER_ID: Final = "caller_id"
"""Key of a request's state: whose it is, where keys of different people must not meet."""

_HEADER: Final = b"idempotency-key"
_REPLAYED: Final = (b"idempotency-replayed", b"true")

DONE_STATUSES: Final = range(200, 300)
"""Statuses of answers that hold for a key; whatever was refused may be asked again under it."""


class IdempotencyMiddleware:
    """An ASGI application around another."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._keys = IdempotencyKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = dict(scope.get("headers", ())).get(_HEADER)
        if scope["type"] != "http" or scope["method"] != "POST" or key is None:
            await self._application(scope, receive, send)
            return
        try:
            caller = scope.get("state", {}).get(CALLER_ID, "")
            name = f"{caller}\0{scope['path']}\0{check_key(key.decode('latin-1'))}"
            body = await _read_body(receive)
            if body is None:
                # Whoever hung up while sending asked for nothing that could be done.
                return
            request = sha256(scope["path"].encode() + b"\0" + body).digest()
            async with self._keys.hold(name):
                known = self._keys.find_answer(name, request)
                if known is None:
                    known = await self._record_answer(
                        scope, _replay_body(body, receive), send, request
                    )
                    if known is not None:
                        self._keys.store(name, known)
                    return
        except Problem as problem:
            await refuse(scope, receive, send, problem)
            return
        await _send_stored_answer(known, send)

    async def _record_answer(
        self, scope: Scope, receive: Receive, send: Send, request: bytes
    ) -> StoredAnswer | None:
        """Let the request be answered; what came of it, where that is worth keeping."""
        started: Message = {}
        parts: list[bytes] = []

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
            await send(message)

        await self._application(scope, receive, record_and_send)
        body = b"".join(parts)
        if started.get("status") not in DONE_STATUSES or len(body) > KEPT_ANSWER_BYTES:
            return None
        headers = tuple((bytes(name), bytes(value)) for name, value in started["headers"])
        return StoredAnswer(request=request, status=started["status"], headers=headers, body=body)


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body; None where the client hung up before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever comes."""
    sent = False

    async def receive_body() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body


async def _send_stored_answer(answer: StoredAnswer, send: Send) -> None:
    headers = [*answer.headers, _REPLAYED]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
