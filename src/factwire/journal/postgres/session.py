"""A connection that comes back.

Work that meets a lost connection is done again on a new one, with growing pauses, until the
patience of its caller ends in `JournalUnavailable`. So all work must be safe to repeat. `Health`
says meanwhile what is wrong.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import uniform
from typing import Final, TypeVar

from factwire.journal.errors import (
    JournalClosed,
    JournalUnavailable,
    JournalUnwritable,
    JournalUrlError,
)
from factwire.journal.postgres.driver import FULL, LOST, MISUSED, REFUSED, Connection

_log: Final = logging.getLogger("factwire.journal")
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_FAREWELL: Final = 1.0

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]


class Health:
    """Whether the server answers, as its sessions last found."""

    def __init__(self, where: str) -> None:
        self.degraded: str | None = None
        """Why calls have to wait; None while the server answers."""
        self._where = where

    def lost(self, error: BaseException) -> None:
        if self.degraded is None:
            _log.warning("lost %s (%r); trying again", self._where, error)
        self.degraded = repr(error)

    def found(self) -> None:
        if self.degraded is not None:
            _log.info("%s answers again", self._where)
        self.degraded = None


class Session:
    """One connection at a time; work is done one piece after the other."""

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], health: Health, patience: float
    ) -> None:
        self.connect = connect
        """How the next connection is made."""
        self._health = health
        self._patience = patience
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def run(self, work: Work[T], *, due: float | None = None) -> T:
        """What `work` answers, once it went through on one connection.

        `due` is the time of the loop at which patience ends.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience if due is None else due
        pause = _FIRST_PAUSE
        async with self._lock:
            while True:
                try:
                    return await self._try(work, due)
                except (*LOST, MISUSED) as error:
                    self._drop(error)
                    if loop.time() + pause >= end:
                        message = "the server cannot be reached; what was under way may have been"
                        message = f"{message} written, so do it again as it is ({error})"
                        raise JournalUnavailable(message) from error
                # The spread keeps many processes from coming back in one moment.
                await asyncio.sleep(pause * uniform(0.5, 1.0))  # noqa: S311
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def close(self) -> None:
        """End the connection once the work under way is done."""
        async with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                await _leave(connection)

    async def _try(self, work: Work[T], due: float | None) -> T:
        if self._closed:
            raise JournalClosed("the journal is closed")
        connection = self._connection
        try:
            # Without a time of its own, work is bounded by the driver, command by command.
            async with asyncio.timeout_at(due):
                if connection is None or connection.is_closed():
                    self._connection = connection = await self.connect()
                    self._health.found()
                return await work(connection)
        except REFUSED as error:
            raise JournalUrlError(f"the server refuses this URL: {error}") from error
        except MISUSED:
            if connection is not None and not connection.is_closed():
                raise RuntimeError("the driver was misused") from None
            raise
        except LOST:
            raise
        except FULL as error:
            raise JournalUnwritable(str(error)) from error

    def _drop(self, error: BaseException) -> None:
        self._health.lost(error)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


class Sessions:
    """A few sessions for reads; each is lent to one reader at a time."""

    def __init__(self, sessions: list[Session]) -> None:
        self._all = sessions
        self._idle: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for session in sessions:
            self._idle.put_nowait(session)

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[Session]:
        session = await self._idle.get()
        try:
            yield session
        finally:
            self._idle.put_nowait(session)

    async def run(self, work: Work[T]) -> T:
        async with self.lent() as session:
            return await session.run(work)

    async def close(self) -> None:
        for session in self._all:
            await session.close()


async def _leave(connection: Connection) -> None:
    try:
        await connection.close(timeout=_FAREWELL)
    except (*LOST, MISUSED):
        connection.terminate()
