"""A server by HTTP, as the protocol streams over it.

Headers come from the configuration alone. A server on this machine is never asked by way of a
proxy, and no answer is read that is bigger than a message may be, packed or not.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from factwire.runtime.toolbox.mcp.limits import CONNECT_SECONDS, MESSAGE_BYTES
from factwire.runtime.toolbox.mcp.ways import is_near

_PACKED: Final = frozenset({"gzip", "deflate", "br", "zstd"})
_STREAM: Final = "text/event-stream"


class TooBig(httpx2.TransportError):
    """An answer that is not read to its end."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MESSAGE_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise TooBig(f"the server sent an answer of more than {MESSAGE_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Any]:
    """The streams of a session. How long an answer takes is for the call to bound."""
    async with (
        httpx2.AsyncClient(
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            trust_env=not is_near(url),
            event_hooks={"response": [_bound]},
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "").lower() in _PACKED:
        raise TooBig("the server packs its answers though it was asked not to")
    stream = response.stream
    is_stream = response.headers.get("content-type", "").startswith(_STREAM)
    if isinstance(stream, httpx2.AsyncByteStream) and not is_stream:
        response.stream = _Bounded(stream)
