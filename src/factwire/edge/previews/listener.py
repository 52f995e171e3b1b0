"""A listener: one site on a port of its own, which makes it an origin of its own.

Previews share no port. On one they would share an origin too: a page that one agent made could read
what another made, its storage and its answers, and the path that keeps them apart for people keeps
nothing apart for scripts. A port each costs a socket, and there are few previews.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn

from factwire.edge.limits import BACKLOG, PREVIEW_CONNECTIONS, PREVIEW_STOP_SECONDS
from factwire.edge.previews.folder import ServedFolder
from factwire.edge.previews.policy import policy_headers
from factwire.edge.previews.site import Site
from factwire.edge.security.places import Places
from factwire.edge.streams import FactwireHttpProtocol


class PreviewServer(uvicorn.Server):
    """uvicorn without hands on the signals of the process: those are the Edge's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Listener:
    """A preview that is served, from `open` until `close`."""

    def __init__(self, folder: ServedFolder, site: Site, listening: socket.socket) -> None:
        config = uvicorn.Config(
            site,
            http=FactwireHttpProtocol,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=PREVIEW_CONNECTIONS,
            timeout_graceful_shutdown=PREVIEW_STOP_SECONDS,
        )
        self._folder = folder
        self._site = site
        self._socket = listening
        self._server = PreviewServer(config)
        self._serving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @classmethod
    async def open(cls, folder: ServedFolder, host: str, places: Places) -> "Listener":
        """Serve a folder on a free port of a host; raises `OSError`. The folder is ours then."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, 0), family=family, backlog=BACKLOG)
        except OSError:
            folder.close()
            raise
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        policy = policy_headers(_frames(places))
        site = Site(folder, places, str(listening.getsockname()[1]), policy)
        listener = cls(folder, site, listening)
        await listener.start()
        return listener

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def key(self) -> str:
        """What an address must hold."""
        return self._site.key

    async def start(self) -> None:
        serving = asyncio.create_task(self._server.serve([self._socket]))
        listening = asyncio.create_task(self._server.listening.wait())
        self._serving = serving
        await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()

    def when_idle(self, seconds: float, ended: Callable[[], Awaitable[None]]) -> None:
        """Call `ended` once nobody has asked for anything for so long."""
        self._watching = asyncio.create_task(self._watch(seconds, ended))

    async def _watch(self, seconds: float, ended: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._site.used + seconds - loop.time()) > 0 or self._site.busy:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left, seconds / 10)):
                    await self._closing.wait()
                    return
        await ended()

    async def close(self) -> None:
        """Serve nothing more; what is under way gets a moment, then it is cut."""
        self._closing.set()
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.gather(self._serving, return_exceptions=True)
        self._socket.close()
        self._folder.close()


def _frames(places: Places) -> list[str]:
    """Whose pages may show a preview in a frame: those of the hosts that this Edge answers to."""
    named = [f"http://{host}:*" for host in places.hosts if not host.startswith("[")]
    return [*named, *places.origins]
