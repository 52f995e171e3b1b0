"""`AsyncStream`: a stream that comes back by itself, exactly where it was cut."""

import asyncio
from typing import Any, Final, Generic, Self, TypeVar
from weakref import WeakSet

from factwire.client.libraries import (
    AsyncSocket,
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    connect_async,
)
from factwire.client.link import Link
from factwire.client.retrying import Tries
from factwire.client.stream import Course

T = TypeVar("T")

_ABNORMAL: Final = 1006
FAILURES: Final = (OSError, TimeoutError, EOFError, InvalidHandshake)
"""What keeps a connection from being made."""


class _Staying(AsyncSocket):
    """Goes nowhere else, whatever the answer says: the token is for one place."""

    async def handshake(self, *args: Any, **kwargs: Any) -> None:
        try:
            await super().handshake(*args, **kwargs)
        except InvalidStatus as refused:
            refused.response.headers.pop("Location", None)
            raise


class AsyncStream(Generic[T]):
    """`async for` brings what comes, for as long as its reader stays.

    With `async with`, it stands before the block begins, so that nothing which the block sets off
    is missed by a stream that begins now; and its connection ends with the block.
    """

    def __init__(self, link: Link, course: Course[T], streams: "WeakSet[AsyncStream[Any]]") -> None:
        self._link = link
        self._course = course
        self._streams = streams
        self._socket: AsyncSocket | None = None
        self._tries = Tries(link.retry_seconds)
        self._closed = False
        self._first: T | None = None

    @property
    def cursor(self) -> str | None:
        """Where a new stream would go on behind everything that this one has brought."""
        return self._course.cursor

    async def __aenter__(self) -> Self:
        self._socket = self._socket or await self._connected()
        while self._course.awaits_start and self._first is None:
            self._first = await self._next_message()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        item, self._first = self._first, None
        while item is None:
            if self._closed:
                raise StopAsyncIteration
            item = await self._next_message()
        return item

    async def aclose(self) -> None:
        """End the stream; whoever reads it hears of no more."""
        self._closed = True
        await self._disconnect()

    async def _next_message(self) -> T | None:
        try:
            self._socket = self._socket or await self._connected()
            message = await self._socket.recv()
            item = self._course.take(message)
        except ConnectionClosed as closed:
            await self._cut(closed)
            return None
        except Exception:
            await self.aclose()
            raise
        self._tries.served()
        return item

    async def _cut(self, closed: ConnectionClosed) -> None:
        await self._disconnect()
        end = closed.rcvd
        try:
            self._course.closed(*((_ABNORMAL, "") if end is None else (end.code, end.reason)))
            if not self._closed:
                await asyncio.sleep(self._link.after_refusal(self._tries, closed))
        except Exception:
            self._closed = True
            raise

    async def _connected(self) -> AsyncSocket:
        while True:
            url = self._link.socket_url(self._course.path, self._course.query)
            try:
                socket = await connect_async(
                    url, create_connection=_Staying, **self._link.socket_settings()
                )
            except FAILURES as error:
                await asyncio.sleep(self._link.after_refusal(self._tries, error))
            else:
                self._tries.connected(self._link.reconnect_seconds)
                self._streams.add(self)
                return socket

    async def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
