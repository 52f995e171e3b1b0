"""Idempotency keys: what was asked for twice under one key is done once.

The id of whatever a request creates follows from its key, so that a repeat is recognised after a
restart too. Within one run of the server the answer itself is kept: a repeat gets the same one, a
different request under the same key is refused, and one that comes while the first is under way
waits for it.
"""

import asyncio
from base64 import b32encode
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256

import msgspec

from factwire.edge.limits import KEPT_ANSWERS, KEY_CHARACTERS
from factwire.edge.problems import Problem

_ULID_CHARACTERS = 26


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a request was, as a digest, and what came of it."""

    request: bytes
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Keys:
    """Answers by key, the newest kept."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def holding(self, key: str) -> AsyncGenerator[None]:
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

    def known(self, key: str, request: bytes) -> Answer | None:
        """The answer to a request that came before; raises `Problem` where it was another one."""
        answer = self._answers.get(key)
        if answer is not None and answer.request != request:
            raise Problem(
                422,
                "idempotency_key_reused",
                "this Idempotency-Key was used for another request; use a fresh one",
            )
        return answer

    def keep(self, key: str, answer: Answer) -> None:
        self._answers[key] = answer
        if len(self._answers) > KEPT_ANSWERS:
            self._answers.popitem(last=False)


def checked_key(key: str) -> str:
    """A key that can be used; raises `Problem`."""
    if not 1 <= len(key) <= KEY_CHARACTERS or not key.isprintable():
        raise Problem(
            400,
            "invalid_idempotency_key",
            f"an Idempotency-Key has 1 to {KEY_CHARACTERS} printable characters",
        )
    return key


def id_from(prefix: str, key: str) -> str:
    """The id of what is created under a key: always the same, and like any other to look at."""
    digest = b32encode(sha256(f"{prefix}\0{key}".encode()).digest()).decode()
    return f"{prefix}_{digest[:_ULID_CHARACTERS]}"
