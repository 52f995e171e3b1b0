"""A connection to PostgreSQL that comes back, and what the URL of a journal says about it.

Work that meets a lost connection is done again on a new one, with growing pauses, until the
patience of its caller ends in `JournalUnavailable`. So all work must be safe to repeat. The driver
brings no types, so its few calls are typed here.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from random import uniform
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from factwire.journal.errors import (
    JournalClosed,
    JournalUnavailable,
    JournalUnwritable,
    JournalUrlError,
)

PATIENCE: Final = 30.0
"""Seconds that a call waits for a server that went away, before it raises `JournalUnavailable`."""

POLL: Final = 1.0
"""Seconds after which a follower looks for facts although no notification came."""

READ_SESSIONS: Final = 4
"""Connections for reads, so that one slow read does not hold up the next."""

GROUP_FACTS: Final = 4_096
"""Facts in a commit, past which it takes no further batch."""

GROUP_BYTES: Final = 1024 * 1024
"""Bytes of lines in a commit, past which it takes no further batch; a chunk is read whole."""

PAGE_CHUNKS: Final = 256
"""Chunks fetched at once."""

PAGE_BYTES: Final = 2 * 1024 * 1024
"""Bytes of chunks fetched at once, so that a reader's memory does not depend on its journal."""

TAIL_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the newest chunks kept for followers; one that falls behind them reads the server."""

THREADS_KEPT: Final = 4_096
"""Thread records that a writer remembers between two commits."""

STALLED: Final = 10_000
"""Milliseconds after which the server ends the transaction of a process that has stopped, so that
it does not hold up the others."""

_OWN: Final = ("journal", "patience", "poll", "durable")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,63}")


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One journal in one database; `dsn` is what the driver gets."""

    dsn: str
    journal: str = "main"
    patience: float = PATIENCE
    poll: float = POLL
    durable: bool = True
    shown: str = ""
    """The URL without its password, for messages."""


def read_settings(url: str) -> PostgresSettings:
    """The settings in `postgres://…?journal=NAME&patience=S&poll=S&durable=no`."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    own = {name: options.pop(name) for name in _OWN if name in options}
    shown = _drop_password(url)
    name = own.get("journal", "main")
    if _NAME.fullmatch(name) is None:
        raise JournalUrlError(
            f"journal= expects 1–63 characters of A–Z a–z 0–9 _ . -, got {name!r} in {shown}"
        )
    return PostgresSettings(
        dsn=urlunsplit(parts._replace(query=urlencode(options))),
        journal=name,
        patience=_parse_seconds(own, "patience", PATIENCE, shown),
        poll=_parse_seconds(own, "poll", POLL, shown),
        durable=_parse_durable(own.get("durable", "yes"), shown),
        shown=shown,
    )


def _drop_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query.pop("password", None)
    netloc = user.partition(":")[0] + at + place
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, safe="/")))


def _parse_seconds(own: dict[str, str], name: str, default: float, shown: str) -> float:
    try:
        value = float(own.get(name, default))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise JournalUrlError(
            f"{name}= expects a number of seconds above 0, got {own[name]!r} in {shown}"
        )
    return value


def _parse_durable(text: str, shown: str) -> bool:
    if text not in ("yes", "no"):
        raise JournalUrlError(f"durable= expects yes or no, got {text!r} in {shown}")
    return text == "yes"


class PostgresRow(Protocol):
    """One row of an answer."""

    def __getitem__(self, key: str, /) -> Any: ...


class PostgresTransaction(Protocol):
    """A transaction, as a block or step by step."""

    async def start(self) -> None: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(self, *error: object) -> object: ...


class PostgresConnection(Protocol):
    """One connection to the server."""

    async def execute(self, query: str, *args: object) -> str: ...

    async def fetch(self, query: str, *args: object) -> Sequence[PostgresRow]: ...

    async def fetchrow(self, query: str, *args: object) -> PostgresRow | None: ...

    def fetchval(self, query: str, *args: object) -> Coroutine[Any, Any, Any]: ...

    async def copy_records_to_table(
        self, table_name: str, *, records: Sequence[Sequence[object]]
    ) -> str: ...

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> PostgresTransaction: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...  # noqa: ASYNC109


LOST: Final[tuple[type[Exception], ...]] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TransactionRollbackError,
    asyncpg.InternalClientError,
)
"""The server went away, is not up yet, is a standby or is held up: worth trying again.

The last is what the driver raises for work that meets the server's farewell half-way.
"""

REFUSED: Final[tuple[type[Exception], ...]] = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ClientConfigurationError,
)
"""The server, or the driver, will never accept this URL."""

FULL: Final = asyncpg.InsufficientResourcesError
MISUSED: Final = asyncpg.InterfaceError
"""What the driver raises on a closed connection, and on mistakes."""
FORBIDDEN: Final = asyncpg.InsufficientPrivilegeError
TAKEN: Final = asyncpg.UniqueViolationError


_connect: Final = cast("Callable[..., Awaitable[object]]", getattr(asyncpg, "connect"))  # noqa: B009


async def connect(dsn: str, *, within: float, settings: Mapping[str, str]) -> PostgresConnection:
    """A new connection; raises one of the errors above."""
    opened = await _connect(
        dsn, timeout=within, command_timeout=within, server_settings=dict(settings)
    )
    return cast("PostgresConnection", opened)


_log: Final = logging.getLogger("factwire.journal")
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_FAREWELL: Final = 1.0

T = TypeVar("T")
Work = Callable[[PostgresConnection], Awaitable[T]]


class ConnectionHealth:
    """Whether the server answers, as its sessions last found."""

    def __init__(self, where: str) -> None:
        self.outage: str | None = None
        """Why calls have to wait; None while the server answers."""
        self._where = where

    def note_loss(self, error: BaseException) -> None:
        if self.outage is None:
            _log.warning("lost the connection to %s (%r); retrying", self._where, error)
        self.outage = repr(error)

    def note_answer(self) -> None:
        if self.outage is not None:
            _log.info("%s answers again", self._where)
        self.outage = None


class PostgresSession:
    """One connection at a time; work is done one piece after the other."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[PostgresConnection]],
        health: ConnectionHealth,
        patience: float,
    ) -> None:
        self.connect = connect
        """How the next connection is made."""
        self._health = health
        self._patience = patience
        self._connection: PostgresConnection | None = None
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
                        message = (
                            "the server cannot be reached; an operation in progress may have been"
                        )
                        message = f"{message} written, so repeat it unchanged ({error})"
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
                await _close_connection(connection)

    async def _try(self, work: Work[T], due: float | None) -> T:
        if self._closed:
            raise JournalClosed("the journal is closed")
        connection = self._connection
        try:
            # Without a time of its own, work is bounded by the driver, command by command.
            async with asyncio.timeout_at(due):
                if connection is None or connection.is_closed():
                    self._connection = connection = await self.connect()
                    self._health.note_answer()
                return await work(connection)
        except REFUSED as error:
            raise JournalUrlError(f"the server rejected this URL: {error}") from error
        except MISUSED:
            if connection is not None and not connection.is_closed():
                raise RuntimeError("the database driver was used incorrectly") from None
            raise
        except LOST:
            raise
        except FULL as error:
            raise JournalUnwritable(str(error)) from error

    def _drop(self, error: BaseException) -> None:
        self._health.note_loss(error)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


class SessionPool:
    """A few sessions for reads; each is lent to one reader at a time."""

    def __init__(self, sessions: list[PostgresSession]) -> None:
        self._all = sessions
        self._idle: asyncio.LifoQueue[PostgresSession] = asyncio.LifoQueue()
        for session in sessions:
            self._idle.put_nowait(session)

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[PostgresSession]:
        session = await self._idle.get()
        try:
            yield session
        finally:
            self._idle.put_nowait(session)

    async def run(self, work: Work[T]) -> T:
        async with self.lend() as session:
            return await session.run(work)

    async def close(self) -> None:
        for session in self._all:
            await session.close()


async def _close_connection(connection: PostgresConnection) -> None:
    try:
        await connection.close(timeout=_FAREWELL)
    except (*LOST, MISUSED):
        connection.terminate()
