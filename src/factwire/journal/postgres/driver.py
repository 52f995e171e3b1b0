"""asyncpg as this package uses it: the driver brings no types, so its few calls are typed here."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]


class Row(Protocol):
    """One row of an answer."""

    def __getitem__(self, key: str, /) -> Any: ...


class Transaction(Protocol):
    """A transaction, as a block or step by step."""

    async def start(self) -> None: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(self, *error: object) -> object: ...


class Connection(Protocol):
    """One connection to the server."""

    async def execute(self, query: str, *args: object) -> str: ...

    async def fetch(self, query: str, *args: object) -> Sequence[Row]: ...

    async def fetchrow(self, query: str, *args: object) -> Row | None: ...

    def fetchval(self, query: str, *args: object) -> Coroutine[Any, Any, Any]: ...

    async def copy_records_to_table(
        self, table_name: str, *, records: Sequence[Sequence[object]]
    ) -> str: ...

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> Transaction: ...

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


async def connect(dsn: str, *, within: float, settings: Mapping[str, str]) -> Connection:
    """A new connection; raises one of the errors above."""
    opened = await _connect(
        dsn, timeout=within, command_timeout=within, server_settings=dict(settings)
    )
    return cast("Connection", opened)
