"""The way to an endpoint: one HTTP client for a turn, which says no more about us than it must.

The key is put on each request here and is known to nothing else. Headers and keys that the library
would take from the environment are taken off, and an endpoint on this machine is never asked by way
of a proxy. Who listens hears of every refusal, and of every request that is made again.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

import httpx2
import msgspec
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from factwire.runtime.agents.openai.endpoints import Endpoint
from factwire.runtime.agents.openai.limits import CONNECT_SECONDS
from factwire.runtime.agents.openai.options import OpenAIOptions

_SENT: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
        *("transfer-encoding", "user-agent", "x-stainless-retry-count"),
    }
)
"""Headers that an endpoint gets, beside the key."""

_ATTEMPT: Final = "x-stainless-retry-count"
_NO_KEY: Final = "none"
"""What the library is told, which wants a key; no request carries it."""

_REFUSALS: Final = 400

_PROFILE: Final = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""An answer that does not say that it is at its end has broken off."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is none. `attempt` counts from 1; `wait_ms` is what the endpoint asks for."""

    status: int
    attempt: int
    wait_ms: float | None = None


class Listener(Protocol):
    def refused(self, refused: Refused) -> None: ...

    def asked_again(self, attempt: int) -> None: ...


@asynccontextmanager
async def opened_model(
    endpoint: Endpoint, options: OpenAIOptions, key: str | None, listener: Listener
) -> AsyncGenerator[OpenAIChatModel]:
    """The model, as long as the turn lasts."""

    async def dress(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT]:
            del request.headers[name]
        if key is not None:
            request.headers["authorization"] = f"Bearer {key}"
        if (attempt := _attempt(request)) > 1:
            listener.asked_again(attempt)

    async def look(response: httpx2.Response) -> None:
        if response.status_code >= _REFUSALS:
            listener.refused(_refused(response))

    async with httpx2.AsyncClient(
        timeout=httpx2.Timeout(options.silence_seconds, connect=CONNECT_SECONDS),
        trust_env=endpoint.place != "loopback",
        event_hooks={"request": [dress], "response": [look]},
    ) as http:
        client = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=_NO_KEY,
            http_client=http,
            max_retries=options.retries,
            timeout=http.timeout,
        )
        yield OpenAIChatModel(
            endpoint.model, provider=_provider(endpoint, client), profile=_PROFILE
        )


def _provider(endpoint: Endpoint, client: AsyncOpenAI) -> OpenAIProvider | OpenAICompatibleProvider:
    if endpoint.provider == "openai":
        return OpenAIProvider(openai_client=client)
    return OpenAICompatibleProvider(endpoint.provider, openai_client=client)


def _refused(response: httpx2.Response) -> Refused:
    return Refused(
        status=response.status_code,
        attempt=_attempt(response.request),
        wait_ms=_wait(response.headers),
    )


def _attempt(request: httpx2.Request) -> int:
    count = request.headers.get(_ATTEMPT, "0")
    return (int(count) if count.isdecimal() else 0) + 1


def _wait(headers: Mapping[str, str]) -> float | None:
    """Milliseconds that an endpoint asks to wait, where it says so in a number."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1_000.0)):
        try:
            return max(float(headers[name]) * factor, 0.0)
        except (KeyError, ValueError):
            continue
    return None
