"""A server process: its data folder, its address, uvicorn with our protocols on uvloop, and a stop
that loses nothing.

A stop closes the streams first, each with what is durable and a code that says to come again; then
requests that are under way are answered; then the connections go.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn

from factwire.journal.atomic_files import make_private_folder
from factwire.serving.asgi import Application
from factwire.serving.limits import (
    BACKLOG,
    COLLECTION_SHARE,
    IDLE_SECONDS,
    REST_SECONDS,
    REST_SHARE,
    STOP_SECONDS,
    YOUNG_COLLECTIONS,
    YOUNG_COLLECTIONS_MOST,
)
from factwire.serving.logs import logger
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

if sys.platform == "win32":

    def run(work: Coroutine[Any, Any, None]) -> None:
        """Run the server to its end."""
        asyncio.run(work)
else:
    import uvloop

    def run(work: Coroutine[Any, Any, None]) -> None:
        """Run the server to its end."""
        uvloop.run(work)


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_log: Final = logger("factwire.server")


class HttpServer(uvicorn.Server):
    """uvicorn, with `before_closing` done before the connections go."""

    def __init__(
        self, config: uvicorn.Config, before_closing: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._before_closing = before_closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop on a signal and go on from there: uvicorn's own way ends the process by the same
        signal once more, before anything around the server could be closed.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._before_closing()
        await super().shutdown(sockets)


class AddressUnusable(Exception):
    """Nothing can listen on the address that was chosen."""

    code = "address_unusable"


class DataUnusable(Exception):
    """The folder that a server keeps its things in cannot be used."""

    code = "data_unusable"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder}: {reason}; fix it, or choose another --data folder")


def ensure_data_folder(folder: Path) -> None:
    """Make a folder that only this user can read; raises `DataUnusable`."""
    try:
        repair = make_private_folder(folder)
    except OSError as error:
        raise DataUnusable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataUnusable(folder, "it is not writable")
    if repair is not None:
        _log.warning("data_exposed", detail=repair)


async def serve_until_stopped(
    server: HttpServer, listening: socket.socket, host: str, ready: Callable[[str], None]
) -> None:
    """Serve on a socket until a signal comes; `ready` gets the address then."""
    async with _collect_garbage_at_rest():
        serving = asyncio.create_task(server.serve([listening]))
        started = asyncio.create_task(server.listening.wait())
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if server.started:
            ready(address_of(host, listening.getsockname()[1]))
        await serving


@asynccontextmanager
async def _collect_garbage_at_rest() -> AsyncGenerator[None]:
    """Keep full garbage collections out of requests: one looks through all that the process holds,
    which takes the event loop longer than any request. What is there at the start is needed until
    the end and left aside for good; the rest is looked through while nothing else is done. Young
    garbage is collected as ever.
    """
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
    collecting = asyncio.create_task(_collect_whenever_due(FullCollections(time.process_time())))
    try:
        yield
    finally:
        collecting.cancel()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


_NEVER: Final = 2**31 - 1
"""More young collections than a process makes before the oldest objects would be looked through."""


async def _collect_whenever_due(collections: "FullCollections") -> None:
    while True:
        await asyncio.sleep(REST_SECONDS)
        if collections.is_due(gc.get_count()[2], time.process_time()):
            gc.collect()
            collections.note_end(time.process_time())


class FullCollections:
    """Decides when everything is looked through, by the work of a process; called at an interval.

    Due is a collection once there was enough to collect, as Python has it, and the process rests;
    without any rest, once there was so much that memory counts for more than a pause. However long
    one takes, collections stay a small share of the time.
    """

    def __init__(self, processor: float) -> None:
        self._processor = processor
        self._pause = 0.0

    def is_due(self, young_collections: int, processor: float) -> bool:
        """Take the number of young collections since the last full one, and the processor time."""
        is_resting = processor - self._processor <= REST_SHARE * REST_SECONDS
        self._processor = processor
        self._pause -= REST_SECONDS
        if young_collections >= YOUNG_COLLECTIONS_MOST:
            return True
        return is_resting and self._pause <= 0 and young_collections >= YOUNG_COLLECTIONS

    def note_end(self, processor: float) -> None:
        """Take the processor time at the end of a collection."""
        self._pause = (processor - self._processor) / COLLECTION_SHARE
        self._processor = processor


def open_listening_socket(host: str, port: int) -> socket.socket:
    """A socket that holds an address; raises `AddressUnusable`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise AddressUnusable(
            f"{host}:{port}: {reason}; choose another --host or --port"
        ) from error
    # Connections inherit it; not every event loop sets it, and without it an answer waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def build_server_config(application: Application) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        application,
        http=FactwireHttpProtocol,
        loop="none",
        lifespan="off",
        log_config=None,
        # Below this it logs the headers of sockets, with the token, and addresses with tickets.
        log_level="warning",
        access_log=False,
        server_header=False,
        # Whoever connects is who connects; a header that says otherwise is anybody's.
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(STOP_SECONDS / 2),
        **socket_settings(),
    )


def address_of(host: str, port: int) -> str:
    """Where a browser finds what listens there."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
