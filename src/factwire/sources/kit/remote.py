"""Agents that work elsewhere and are spoken to over HTTP: a request each, a stream of events back.

Secrets stand in the environment and are looked up when a turn begins; nothing that the other side
says is told with one in it. No redirect is followed, because a request carries what is meant for
one place alone, and no proxy or password of the machine is used that nobody asked for.
"""

import asyncio
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision
from factwire.runtime.toolbox.mcp_content import (
    MissingVariable,
    SecretMask,
    list_variables,
    resolve_references,
)
from factwire.sources.kit.limits import (
    LINE_BYTES,
    REFUSAL_BYTES,
    REFUSAL_CHARACTERS,
    REMOTE_SILENCE_SECONDS,
    START_SECONDS,
)
from factwire.sources.kit.live_agent import LiveTurn, TurnDriver, read_options
from factwire.sources.kit.stream_framing import EventReader, Item, read_items

_SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key")
_KEY: Final = "Authorization"
_EVENTS: Final = "text/event-stream"
_JSON: Final = "json"
_REFUSALS: Final = {
    401: ("unauthorized", "Check the key, and the variable that holds it."),
    403: ("unauthorized", "Check the key, and the variable that holds it."),
    404: ("not_found", "Check the option url."),
    429: ("rate_limited", "Wait, then retry the turn."),
}
_REDIRECT: Final = "Redirects are not followed; set the option url to the agent's new address."
_RETRY: Final = "Retry the turn; if it fails again, check the remote agent."


class RemoteOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`url` is where the agent is. Values of `headers` refer to variables as `${NAME}`; the key in
    `api_key_env` is sent as a bearer token.
    """

    url: str = ""
    headers: dict[str, str] = {}
    title: str | None = None
    silence_seconds: Annotated[float, msgspec.Meta(gt=0)] = REMOTE_SILENCE_SECONDS
    raw: bool = False


class RemoteEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a remote agent is, and how it is spoken to."""

    url: str
    headers: dict[str, str]
    title: str
    silence_seconds: float


def read_endpoint(settings: AgentSettings) -> tuple[RemoteEndpoint, RemoteOptions]:
    """Where the agent that a configuration names is; raises `InvalidAgent`."""
    options = read_options(settings, RemoteOptions)
    parts = urlsplit(options.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidAgent(f"{settings.kind} needs the option url, such as https://example.org/run")
    if parts.username or parts.password:
        raise InvalidAgent("a URL cannot contain a password; put it into a header, as ${NAME}")
    headers = dict(options.headers)
    if settings.api_key_env is not None:
        headers[_KEY] = f"Bearer ${{{settings.api_key_env}}}"
    for name, value in headers.items():
        if name.lower() in _SECRET_HEADERS and not list_variables({name: value}):
            raise InvalidAgent(
                f"the header {name} is a secret; refer to an environment variable as ${{NAME}}"
            )
    title = options.title or f"{settings.kind} at {parts.hostname}"
    silence = options.silence_seconds
    return RemoteEndpoint(
        url=options.url, headers=headers, title=title, silence_seconds=silence
    ), options


class RemoteConnection:
    """A connection to a remote agent, for one turn."""

    def __init__(self, place: RemoteEndpoint, client: httpx.AsyncClient, mask: SecretMask) -> None:
        self._place = place
        self._client = client
        self._mask = mask

    async def stream(self, body: dict[str, Any], **headers: str) -> AsyncIterator[Item]:
        """What comes back for a request; raises `TurnFailed`."""
        sent = {"Accept": _EVENTS, "Content-Type": "application/json", **headers}
        data = msgspec.json.encode(body)
        try:
            async with self._client.stream(
                "POST", self._place.url, content=data, headers=sent
            ) as response:
                async for item in self._read_items(response):
                    yield item
        except httpx.TimeoutException as error:
            message = f"{self._place.title} sent nothing for too long"
            raise TurnFailed("agent_silent", message, _RETRY) from error
        except httpx.TransportError as error:
            reason = self._mask.short(str(error) or type(error).__name__, REFUSAL_CHARACTERS)
            message = f"the connection to {self._place.title} failed: {reason}"
            raise TurnFailed("stream_interrupted", message, _RETRY) from error

    async def _read_items(self, response: httpx.Response) -> AsyncIterator[Item]:
        if not response.is_success:
            raise await self._refusal(response)
        if not response.headers.get("content-type", "").startswith(_EVENTS):
            for item in await self._read_json(response):
                yield item
            return
        reader = EventReader()
        async for data in response.aiter_bytes():
            for item in reader.feed(data):
                yield item
        for item in reader.finish():
            yield item

    async def _read_json(self, response: httpx.Response) -> list[Item]:
        """An answer that is no stream: JSON, or else somebody who is no agent."""
        kind = response.headers.get("content-type", "")
        if _JSON not in kind:
            start = await self._read_reason(response)
            message = f"{self._place.title} sent {kind or 'nothing'} instead of events: {start}"
            raise TurnFailed("invalid_response", message, "Check the option url.")
        return list(read_items([await _read_start(response, LINE_BYTES)], "lines"))

    async def _refusal(self, response: httpx.Response) -> TurnFailed:
        status = response.status_code
        message = f"{self._place.title} answered {status}: {await self._read_reason(response)}"
        usual = _REDIRECT if response.is_redirect else _RETRY
        category, hint = _REFUSALS.get(status, ("provider_error", usual))
        return TurnFailed(category, message, hint)

    async def _read_reason(self, response: httpx.Response) -> str:
        # Bytes enough that a secret at the end of what is told is whole, and is taken out.
        data = await _read_start(response, REFUSAL_BYTES)
        return self._mask.short(data.decode("utf-8", "replace"), REFUSAL_CHARACTERS)


async def _read_start(response: httpx.Response, size: int) -> bytes:
    """The first bytes of an answer, and no more of one without end."""
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) >= size:
            break
    return bytes(data[:size])


@asynccontextmanager
async def connect_remote(place: RemoteEndpoint) -> AsyncGenerator[RemoteConnection]:
    """A connection with the secrets of the place; raises `TurnFailed` where one is not set."""
    try:
        headers = resolve_references(place.headers, os.environ)
    except MissingVariable as missing:
        hint = f"Set the variable {missing.name}."
        raise TurnFailed("unauthorized", str(missing), hint) from missing
    timeout = httpx.Timeout(START_SECONDS, read=place.silence_seconds)
    secrets = [os.environ[name] for name in list_variables(place.headers)]
    async with httpx.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as client:
        yield RemoteConnection(place, client, SecretMask([*secrets, *headers.values()]))


class RemoteDriver(TurnDriver):
    """A turn of requests: the first one, and one more each time that people have answered."""

    def __init__(self, live: LiveTurn, place: RemoteEndpoint) -> None:
        super().__init__(live)
        self.place = place
        self.answers: dict[str, Decision] = {}
        self._answered = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @abstractmethod
    async def follow(self, remote: RemoteConnection) -> None:
        """Speak to the agent until the turn is over."""

    async def cancel_remote(self, remote: RemoteConnection) -> None:
        """Tell the agent that nobody wants the rest; most hear it by the line going dead."""

    def stop_waiting(self) -> None:
        """Nobody will answer what the agent has asked."""

    async def run(self) -> None:
        async with connect_remote(self.place) as remote:
            self._following = asyncio.create_task(self.follow(remote))
            try:
                await asyncio.wait({self._following})
                if not self._following.cancelled():
                    self._following.result()
                elif self.live.is_stopping:
                    await self._cancel(remote)
            finally:
                self._following.cancel()
                await asyncio.gather(self._following, return_exceptions=True)

    async def _cancel(self, remote: RemoteConnection) -> None:
        """The turn is stopped here, whether or not the agent hears of it."""
        try:
            await self.cancel_remote(remote)
        except TurnFailed as failed:
            payload = {"code": "cancel_not_delivered", "message": str(failed)}
            self.live.builder.add_fact("runtime.warning", payload)
        self.stop_waiting()

    async def answer(self, question: str, decision: Decision) -> None:
        self.answers[question] = decision
        self._answered.set()

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def wait_for_answers(self) -> dict[str, Decision]:
        """Wait until every question that is open has an answer; what the answers are."""
        questions = list(self.live.builder.actions)
        while any(question not in self.answers for question in questions):
            self._answered.clear()
            await self._answered.wait()
        return {question: self.answers.pop(question) for question in questions}

    def silence_failure(self) -> TurnFailed:
        """The agent was answered, and has said nothing to it."""
        self.stop_waiting()
        message = f"{self.place.title} did not continue after it was answered"
        return TurnFailed("stream_interrupted", message, _RETRY)
