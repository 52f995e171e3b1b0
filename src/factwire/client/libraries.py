"""The libraries of the extra `factwire[client]`, or an error that names it."""

import logging
from asyncio import Lock as AsyncLock
from collections.abc import Callable
from threading import Lock
from typing import Final, cast

from factwire.client.errors import MissingExtra

try:
    import httpx
    from websockets.asyncio.client import ClientConnection as AsyncSocket
    from websockets.asyncio.client import connect as connect_async
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
    from websockets.sync.client import ClientConnection as Socket
    from websockets.sync.client import connect as _connect_sync
except ModuleNotFoundError as error:
    raise MissingExtra((error.name or "").partition(".")[0]) from error

connect_sync: Final = cast("Callable[..., Socket]", _connect_sync)

socket_log: Final = logging.getLogger("factwire.client.streams")
"""Where the sockets' library writes; its details are left out, because they show the token."""

socket_log.addFilter(lambda record: record.levelno > logging.DEBUG)

__all__ = [
    "AsyncLock",
    "AsyncSocket",
    "ConnectionClosed",
    "InvalidHandshake",
    "InvalidStatus",
    "Lock",
    "Socket",
    "connect_async",
    "connect_sync",
    "httpx",
    "socket_log",
]
