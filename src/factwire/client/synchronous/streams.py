"""`Stream`: a stream that comes back by itself, exactly where it was cut."""

from contextlib import ExitStack
from time import sleep
from typing import Any, Final, Generic, Self, TypeVar
from weakref import WeakSet

from factwire.client.libraries import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    Socket,
    connect_sync,
)
from factwire.client.link import Link
from factwire.client.retrying import Tries
from factwire.client.stream import Course

T = TypeVar("T")

_ABNORMAL: Final = 1006
FAILURES: Final = (OSError, TimeoutError, EOFError, InvalidHandshake)
"""What keeps a connection from being made."""


class _Staying(Socket):
    """Goes nowhere else, whatever the answer says: the token is for one place."""

    def handshake(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().handshake(*args, **kwargs)
        except InvalidStatus as refused:
            refused.response.headers.pop("Location", None)
            raise


class Stream(Generic[T]):
    """`for` brings what comes, for as long as its reader stays.

    With `with`, it stands before the block begins, so that nothing which the block sets off
    is missed by a stream that begins now; and its connection ends with the block.
    """

    def __init__(self, link: Link, course: Course[T], streams: "WeakSet[Stream[Any]]") -> None:
        self._link = link
        self._course = course
        self._streams = streams
        self._socket: Socket | None = None
        self._open = ExitStack()
        self._tries = Tries(link.retry_seconds)
        self._closed = False
        self._first: T | None = None

    @property
    def cursor(self) -> str | None:
        """Where a new stream would go on behind everything that this one has brought."""
        return self._course.cursor

    def __enter__(self) -> Self:
        self._socket = self._socket or self._connected()
        while self._course.awaits_start and self._first is None:
            self._first = self._next_message()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item, self._first = self._first, None
        while item is None:
            if self._closed:
                raise StopIteration
            item = self._next_message()
        return item

    def close(self) -> None:
        """End the stream; whoever reads it hears of no more."""
        self._closed = True
        self._disconnect()

    def _next_message(self) -> T | None:
        try:
            self._socket = self._socket or self._connected()
            message = self._socket.recv()
            item = self._course.take(message)
        except ConnectionClosed as closed:
            self._cut(closed)
            return None
        except Exception:
            self.close()
            raise
        self._tries.served()
        return item

    def _cut(self, closed: ConnectionClosed) -> None:
        self._disconnect()
        end = closed.rcvd
        try:
            self._course.closed(*((_ABNORMAL, "") if end is None else (end.code, end.reason)))
            if not self._closed:
                sleep(self._link.after_refusal(self._tries, closed))
        except Exception:
            self._closed = True
            raise

    def _connected(self) -> Socket:
        while True:
            url = self._link.socket_url(self._course.path, self._course.query)
            try:
                socket = connect_sync(
                    url, create_connection=_Staying, **self._link.socket_settings()
                )
            except FAILURES as error:
                sleep(self._link.after_refusal(self._tries, error))
            else:
                self._tries.connected(self._link.reconnect_seconds)
                self._streams.add(self)
                self._open.enter_context(socket)
                return socket

    def _disconnect(self) -> None:
        self._socket = None
        self._open.close()
