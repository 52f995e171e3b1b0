"""`AsyncContent`: bytes of any length, handed over in pieces and never held whole."""

from collections.abc import AsyncIterator
from typing import Any, Self

from factwire.client.asynchronous.sending import Sender
from factwire.client.call import Call
from factwire.client.libraries import httpx
from factwire.client.limits import PIECE_BYTES


class AsyncContent:
    """Opened by `async with`; `async for` brings its pieces."""

    def __init__(self, sender: Sender, call: Call[Any]) -> None:
        self._sender = sender
        self._call = call
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> Self:
        self._response = await self._sender.open(self._call)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            await self._response.aclose()

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where the Edge says so."""
        text = "" if self._response is None else self._response.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response is None:
            raise RuntimeError("content is opened by 'async with' before it is read")
        try:
            async for piece in self._response.aiter_bytes(PIECE_BYTES):
                yield piece
        except httpx.RequestError as error:
            raise self._sender.link.unreachable(error) from error

    async def read(self) -> bytes:
        """All of it at once, for what is known to be small."""
        return b"".join([piece async for piece in self])
