"""Previews that are served now, each on a port of its own, and never more than may be.

On one port they would share an origin: a page that one agent made could read what another made.
This knows sockets and folders and no facts; `operations.preview_operations` writes those.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn

from factwire.edge.limits import (
    PREVIEW_CONNECTIONS,
    PREVIEW_IDLE_SECONDS,
    PREVIEW_STOP_SECONDS,
    PREVIEWS,
)
from factwire.edge.preview_site import PreviewSite, ServedFolder, build_policy_headers
from factwire.serving.access_control import HostPolicy, is_any_address
from factwire.serving.limits import BACKLOG
from factwire.serving.streams import FactwireHttpProtocol


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


class PreviewListener:
    """A preview that is served, from `open` until `close`."""

    def __init__(self, folder: ServedFolder, site: PreviewSite, listening: socket.socket) -> None:
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
    async def open(
        cls, folder: ServedFolder, host: str, host_policy: HostPolicy
    ) -> "PreviewListener":
        """Serve a folder on a free port of a host; raises `OSError`. The folder is ours then."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, 0), family=family, backlog=BACKLOG)
        except OSError:
            folder.close()
            raise
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        policy = build_policy_headers(_frame_origins(host_policy))
        site = PreviewSite(folder, host_policy, str(listening.getsockname()[1]), policy)
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


def _frame_origins(host_policy: HostPolicy) -> list[str]:
    """Whose pages may show a preview in a frame: those of the hosts that this Edge answers to."""
    named = [f"http://{host}:*" for host in host_policy.hosts if not host.startswith("[")]
    return [*named, *host_policy.origins]


Ended = Callable[[str], Awaitable[object]]


class TooManyPreviews(Exception):
    """As many are served as may be."""


class PreviewRegistry:
    """The listeners of an Edge that is bound to `host`."""

    def __init__(
        self,
        host: str,
        host_policy: HostPolicy,
        *,
        most: int = PREVIEWS,
        idle_seconds: float = PREVIEW_IDLE_SECONDS,
    ) -> None:
        self.most = most
        self._host = host
        self._places = host_policy
        self._idle_seconds = idle_seconds
        self._listeners: dict[str, PreviewListener] = {}
        self._opening = asyncio.Lock()

    @property
    def preview_ids(self) -> tuple[str, ...]:
        """The ids of what is served, the oldest first."""
        return tuple(self._listeners)

    async def start(self, preview_id: str, folder: ServedFolder, name: str, ended: Ended) -> str:
        """Serve a folder, which is ours then; its address, on the host name by which the Edge was
        asked where that is bound to every address. `ended` is called once it has been idle for too
        long. Raises `TooManyPreviews` or `OSError`.
        """
        async with self._opening:
            if len(self._listeners) >= self.most:
                folder.close()
                raise TooManyPreviews
            listener = await PreviewListener.open(folder, self._host, self._places)
            self._listeners[preview_id] = listener

        async def idle() -> None:
            await ended(preview_id)

        listener.when_idle(self._idle_seconds, idle)
        shown = (name if is_any_address(self._host) else self._host).strip("[]")
        place = f"[{shown}]" if ":" in shown else shown
        return f"http://{place}:{listener.port}/{listener.key}/"

    async def stop(self, preview_id: str) -> bool:
        """Stop serving; whether it was served, which is true for one caller only."""
        listener = self._listeners.pop(preview_id, None)
        if listener is None:
            return False
        await listener.close()
        return True
