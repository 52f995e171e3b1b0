"""Hearing of commits by other processes, and telling them of ours.

A notification only says "look": what is there is then read from the journal. One that is lost, or
sent while the connection was down, costs at most one poll interval and never a fact. Notifications
go out after the commit and not inside it, because the server lets commits that notify happen only
one at a time, for all journals of a database.
"""

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from factwire.journal.errors import JournalUnavailable
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.pages import Page, Pages
from factwire.journal.postgres.presence import Presence
from factwire.journal.postgres.session import Session

_BREATH: Final = 0.005
"""Seconds between two notifications; under load one of them stands for several commits."""


class Watched(Protocol):
    """Who wants to know."""

    def heard_from(self) -> int:
        """The last seq that is known already."""
        ...

    def hear(self, page: Page) -> None:
        """Take in what was found past it."""
        ...

    def hear_of_trouble(self, error: Exception) -> None:
        """Nothing could be found out, and trying again may not help."""
        ...


class Watch:
    """A task that keeps one connection, listens on it and looks now and then."""

    def __init__(
        self, session: Session, pages: Pages, presence: Presence, watched: Watched, poll: float
    ) -> None:
        self._session = session
        self._pages = pages
        self._presence = presence
        self._watched = watched
        self._poll = poll
        self._channel = ""
        self._stir = asyncio.Event()
        self._tell = False
        self._look = False
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, channel: str) -> None:
        """Look once, so that the connection is there, then go on in the background."""
        self._channel = channel
        await self._session.run(self._look_now)
        self._task = asyncio.create_task(self._work())

    async def greet(self, connection: Connection) -> None:
        """What every new connection of this watch begins with."""
        await self._presence.enter(connection)
        await connection.add_listener(self._channel, self._notified)
        connection.add_termination_listener(self._ended)

    def tell(self) -> None:
        """Notify other processes soon."""
        self._tell = True
        self._stir.set()

    async def close(self) -> None:
        self._closing = True
        self._stir.set()
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        while not self._closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._stir.wait()
            quiet = not self._stir.is_set()
            self._stir.clear()
            try:
                await self._turn(quiet=quiet)
            except JournalUnavailable:
                # The session has noted why; the next turn tries again.
                self._look = True
            except Exception as error:  # noqa: BLE001 - it is the followers' to handle
                self._watched.hear_of_trouble(error)
            if not self._closing:
                await asyncio.sleep(_BREATH)

    async def _turn(self, *, quiet: bool) -> None:
        if self._tell:
            self._tell = False
            await self._session.run(self._tell_now)
        if self._look or quiet:
            self._look = False
            await self._session.run(self._look_now)

    async def _tell_now(self, connection: Connection) -> None:
        await connection.execute(
            "SELECT pg_notify($1, $2)", self._channel, str(self._presence.process)
        )

    async def _look_now(self, connection: Connection) -> None:
        after = self._watched.heard_from()
        self._watched.hear(await self._pages.after(connection, after, None))
        await self._presence.refresh(connection)

    def _notified(self, _connection: object, _pid: int, _channel: str, sender: str) -> None:
        if sender != str(self._presence.process):
            self._look = True
            self._stir.set()

    def _ended(self, _connection: object) -> None:
        self._look = True
        self._stir.set()
