"""Serving an Edge: uvicorn with our protocols on uvloop, and a stop that loses nothing.

A stop closes the streams first, each with what is durable and a code that says to come again; then
requests that are under way are answered; then the connections go.
"""

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn

from factwire import __version__
from factwire.edge.startup import EdgeSettings, OpenEdge, ensure_secure, open_edge
from factwire.runtime.configuration import Configuration
from factwire.serving.limits import BACKLOG, IDLE_SECONDS, STOP_SECONDS
from factwire.serving.logs import logger
from factwire.serving.streams import FactwireHttpProtocol, Streams, socket_settings

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
_log: Final = logger("factwire.edge")

Ready = Callable[[OpenEdge, str], None]
"""Called with the address once requests are answered."""


class EdgeServer(uvicorn.Server):
    """uvicorn, with the streams closed before the connections."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._streams = streams

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
        _log.info("edge_stopping", streams=self._streams.stats().readers)
        for server in self.servers:
            server.close()
        await self._streams.close(STOP_SECONDS / 2)
        await super().shutdown(sockets)


class AddressUnusable(Exception):
    """Nothing can listen where the Edge was told to."""

    code = "address_unusable"


async def serve(
    configuration: Configuration, workspace: Path, settings: EdgeSettings, ready: Ready
) -> None:
    """Serve until told to stop; raises `InsecureStart`, `AddressUnusable` or a journal's error."""
    ensure_secure(settings)
    with open_listening_socket(settings.host, settings.port) as listening:
        async with open_edge(configuration, workspace, settings) as edge:
            server = EdgeServer(build_server_config(edge), edge.streams)
            serving = asyncio.create_task(server.serve([listening]))
            started = asyncio.create_task(server.listening.wait())
            await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
            started.cancel()
            if server.started:
                address = address_of(settings.host, listening.getsockname()[1])
                _log_start(edge, address)
                ready(edge, address)
            await serving
    _log.info("edge_stopped")


def _log_start(edge: OpenEdge, address: str) -> None:
    _log.info(
        "edge_started",
        address=address,
        edge_id=edge.context.edge_id,
        version=__version__,
        head=edge.context.feed.cursor.seq,
    )


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


def build_server_config(edge: OpenEdge) -> uvicorn.Config:
    """How uvicorn serves an Edge."""
    return uvicorn.Config(
        edge.application,
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
