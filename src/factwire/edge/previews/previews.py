"""`Previews`: what is served now, each on a port of its own, and never more than may be.

It knows sockets and folders and no facts; `edge.work.previews` tells what it does.
"""

import asyncio
from collections.abc import Awaitable, Callable

from factwire.edge.limits import PREVIEW_IDLE_SECONDS, PREVIEWS
from factwire.edge.previews.folder import ServedFolder
from factwire.edge.previews.listener import Listener
from factwire.edge.security.places import Places, is_any_address

Ended = Callable[[str], Awaitable[object]]


class TooManyPreviews(Exception):
    """As many are served as may be."""


class Previews:
    """The listeners of an Edge that is bound to `host`."""

    def __init__(
        self,
        host: str,
        places: Places,
        *,
        most: int = PREVIEWS,
        idle_seconds: float = PREVIEW_IDLE_SECONDS,
    ) -> None:
        self.most = most
        self._host = host
        self._places = places
        self._idle_seconds = idle_seconds
        self._listeners: dict[str, Listener] = {}
        self._opening = asyncio.Lock()

    @property
    def served(self) -> tuple[str, ...]:
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
            listener = await Listener.open(folder, self._host, self._places)
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
