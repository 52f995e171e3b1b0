"""`OpenCodeServer`: `opencode serve` for one turn, and what is asked of it over HTTP.

It listens on loopback, under a password that is made for it and that no command line shows. Where
it listens it says itself, once it does: a port that was chosen beforehand could be somebody else's
by then, who would be handed the password.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any, Final

import httpx
import msgspec

from factwire.facts import redact_text
from factwire.projection.reading import table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Host
from factwire.sources.framing import Item, Unreadable
from factwire.sources.live.limits import (
    FAREWELL_SECONDS,
    HEARTBEAT_SECONDS,
    REFUSAL_CHARACTERS,
    START_SECONDS,
)
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.remote_events import EventReader

_USER: Final = "opencode"
_PASSWORD: Final = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 - the name of a variable
_LISTENS: Final = re.compile(rb"listening on (http://127\.0\.0\.1:\d+)")
_HINT: Final = "Look at what it said, and at OpenCode's own log, then retry the turn."


class Refusal(Exception):
    """The server did not do what it was asked; `status` is HTTP's."""

    def __init__(self, path: str, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason or "no reason was given"
        super().__init__(f"{path}: {status}, {self.reason}")


class OpenCodeServer:
    """One server that runs."""

    def __init__(self, pipe: JsonPipe, client: httpx.AsyncClient) -> None:
        self._pipe = pipe
        self._client = client

    async def get(self, path: str) -> Any:
        """Raises `Refusal`, or `TurnFailed` where nobody answers."""
        return await self._call("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Raises `Refusal`, or `TurnFailed` where nobody answers."""
        return await self._call("POST", path, body)

    async def events(self) -> AsyncIterator[Item]:
        """What the server tells, without an end; raises `TurnFailed` where it has one."""
        reader = EventReader()
        timeout = httpx.Timeout(START_SECONDS, read=HEARTBEAT_SECONDS)
        try:
            async with self._client.stream("GET", "/event", timeout=timeout) as response:
                if not response.is_success:
                    raise Refusal("/event", response.status_code, _reason(await response.aread()))
                async for data in response.aiter_bytes():
                    for item in reader.feed(data):
                        yield item
        except httpx.TimeoutException as error:
            message = f"OpenCode said nothing for {HEARTBEAT_SECONDS:g} s"
            raise TurnFailed("agent_silent", message, _HINT) from error
        except httpx.TransportError as error:
            raise await self._gone(error) from error
        raise await self._gone()

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        given: dict[str, Any] = {}
        if body is not None:
            given["content"] = msgspec.json.encode(body)
            given["headers"] = {"Content-Type": "application/json"}
        try:
            response = await self._client.request(method, path, **given)
        except httpx.TransportError as error:
            raise await self._gone(error) from error
        if not response.is_success:
            raise Refusal(path, response.status_code, _reason(response.content))
        return _decoded(response.content)

    async def _gone(self, error: Exception | None = None) -> TurnFailed:
        """Why the server is not heard any more: mostly, it has ended."""
        how = f"its stream broke off: {error}" if error is not None else "its stream is over"
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                how = self._pipe.why(await self._pipe.ended())
        message = f"OpenCode ended before the turn did: {how}"
        return TurnFailed("stream_interrupted", message, _HINT)


@asynccontextmanager
async def served(
    host: Host,
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str],
    own_names: frozenset[str],
    start_seconds: float,
) -> AsyncGenerator[OpenCodeServer]:
    """A server in the workspace of a turn, for as long as the context lasts; raises
    `TurnFailed`.
    """
    # What OpenCode runs can see it; so it has the form of a token of ours, which no fact repeats.
    password = f"fwt_{token_hex(32)}"
    given, names = {**env, _PASSWORD: password}, own_names | {_PASSWORD}
    async with opened_pipe(host, argv, env=given, own_env_names=names) as pipe:
        listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(_read(pipe, listens))
        try:
            url = await _in_time(listens, start_seconds)
            folder = {"directory": str(host.workspace.resolve())}
            async with httpx.AsyncClient(
                base_url=url,
                auth=(_USER, password),
                params=folder,
                timeout=START_SECONDS,
                trust_env=False,
            ) as client:
                yield OpenCodeServer(pipe, client)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(pipe: JsonPipe, listens: "asyncio.Future[str]") -> None:
    """Read all that the server prints, so that it never waits for a reader."""
    async for item in pipe.items():
        found = _LISTENS.search(item.data) if isinstance(item, Unreadable) else None
        if found is not None and not listens.done():
            listens.set_result(found[1].decode())
    if not listens.done():
        how = pipe.why(await pipe.ended())
        message = f"OpenCode ended before it could be asked anything: {how}"
        listens.set_exception(TurnFailed("stream_interrupted", message, _HINT))


async def _in_time(listens: "asyncio.Future[str]", seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return await listens
    except TimeoutError as error:
        message = f"OpenCode was not ready for the turn in {seconds:g} s"
        raise TurnFailed("agent_silent", message, _HINT) from error


def _reason(content: bytes) -> str:
    """What a refusal says, in OpenCode's own two forms or any other."""
    said = table(_decoded(content)) or {}
    inner = table(said.get("data")) or said
    text = word(inner, "message") or content.decode("utf-8", "replace")
    return redact_text(text.strip()[:REFUSAL_CHARACTERS])[0]


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
