"""The database of a Hub: opened, brought to the newest schema, read and written in transactions.

SQLite runs with a rollback journal, because the write-ahead log of the SQLite beside Python 3.11
can lose data, and syncs before a commit is acknowledged. It has one writer: transactions that
write begin as such and wait for each other, so none of them fails halfway for a lock. A schema that
is newer than this program is left alone.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, Literal, cast

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from factwire.hub.limits import DATABASE_CONNECTIONS, DATABASE_SECONDS
from factwire.journal.atomic_files import PRIVATE_MODE

_MIGRATIONS: Final = Path(__file__).with_name("migrations")
_WRITES: Final = "factwire_writes"
_MIGRATION_LOCK: Final = 0x66616374  # "fact"

JournalMode = Literal["TRUNCATE", "PERSIST", "WAL"]


class RecordsError(Exception):
    """The database of a Hub cannot be used; `code` is a stable word for why.

    RecordsError
    ├── RecordsNewer        a newer version of Factwire wrote the schema
    ├── RecordsUnavailable  it does not answer, is locked, full or damaged
    └── RecordsUrlError     its address is invalid
    """

    code = "records_error"


class RecordsNewer(RecordsError):
    code = "records_newer"


class RecordsUnavailable(RecordsError):
    code = "records_unavailable"


class RecordsUrlError(RecordsError):
    code = "records_url"


class HubDatabase:
    """Transactions on the records; open it with `open_database`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._writer = asyncio.Lock() if self._is_sqlite else None

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that sees one state and changes nothing; raises `RecordsUnavailable`."""
        with _translate_errors():
            async with self._engine.connect() as connection:
                if not self._is_sqlite:
                    # Otherwise each statement would see a state of its own.
                    await connection.execution_options(isolation_level="REPEATABLE READ")
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is durable once its block has ended; raises `RecordsUnavailable`.
        What breaks a constraint raises SQLAlchemy's `IntegrityError`, and nothing is written.
        """
        with _translate_errors():
            async with self._writer or nullcontext(), self._engine.connect() as connection:
                await connection.execution_options(**{_WRITES: True})
                async with connection.begin():
                    yield connection

    async def migrate(self, revision: str = "head") -> None:
        """Bring the schema to a version; raises `RecordsNewer` for one from later."""
        async with self.write() as connection:
            if not self._is_sqlite:
                lock = text("SELECT pg_advisory_xact_lock(:number)")
                await connection.execute(lock, {"number": _MIGRATION_LOCK})
            await connection.run_sync(_upgrade, revision)

    async def close(self) -> None:
        await self._engine.dispose()


@asynccontextmanager
async def open_database(
    url: str, *, journal_mode: JournalMode = "TRUNCATE"
) -> AsyncGenerator[HubDatabase]:
    """The records behind `sqlite:PATH` or `postgres://…`, with the newest schema; raises
    `RecordsError`.
    """
    engine = _create_engine(url, journal_mode)
    if engine.dialect.name == "sqlite":
        await asyncio.to_thread(_create_private_file, Path(str(engine.url.database)))
    database = HubDatabase(engine)
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()


def _create_engine(url: str, journal_mode: JournalMode) -> AsyncEngine:
    scheme, colon, rest = url.partition(":")
    # What begins otherwise, SQLite takes for a database in memory or an address of its own.
    if colon and scheme == "sqlite" and rest.strip("/") and not rest.startswith((":", "file:")):
        address = f"sqlite+aiosqlite:///{rest}"
        waits: dict[str, Any] = {"timeout": DATABASE_SECONDS}
    elif scheme in ("postgres", "postgresql") and rest.startswith("//"):
        address = f"postgresql+asyncpg:{rest}"
        waits = {"timeout": DATABASE_SECONDS, "command_timeout": DATABASE_SECONDS}
    else:
        # The address is not repeated: it may hold a password.
        raise RecordsUrlError("expected sqlite:PATH or postgres://HOST/NAME as the database")
    try:
        engine = create_async_engine(
            make_url(address),
            connect_args=waits,
            pool_size=DATABASE_CONNECTIONS,
            max_overflow=0,
            pool_timeout=DATABASE_SECONDS,
            pool_pre_ping=scheme != "sqlite",
            hide_parameters=True,
        )
    except (ArgumentError, ValueError) as error:
        raise RecordsUrlError("the address of the database cannot be read") from error
    except ModuleNotFoundError as error:
        raise RecordsUrlError(
            f"PostgreSQL needs {error.name}, which is not installed; install 'factwire[postgres]'"
        ) from error
    event.listen(engine.sync_engine, "before_cursor_execute", _replace_nul, retval=True)
    if scheme == "sqlite":
        _prepare_sqlite(engine, journal_mode)
    return engine


def _create_private_file(path: Path) -> None:
    """Make the file before SQLite does, which would let others read the hashes of passwords."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE_MODE))
    except OSError as error:
        raise RecordsUnavailable(f"cannot open {path}: {error.strerror}") from error


def _prepare_sqlite(engine: AsyncEngine, journal_mode: JournalMode) -> None:
    """Have SQLite sync, check references, and begin transactions where SQLAlchemy says so."""

    def set_up(connection: Any, _: object) -> None:
        # The driver's own way to begin would leave DDL outside of a transaction.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            f"journal_mode = {journal_mode}",
            "synchronous = FULL",
            "foreign_keys = ON",
            "trusted_schema = OFF",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine.sync_engine, "connect", set_up)
    event.listen(engine.sync_engine, "begin", begin)


def _replace_nul(
    _: Connection,
    __: Any,
    statement: str,
    parameters: Any,
    ___: Any,
    ____: bool,  # noqa: FBT001
) -> tuple[str, Any]:
    """PostgreSQL has no text with U+0000 in it, and agents and people may write one. It becomes the
    sign for what cannot be shown, in every database.
    """
    return statement, _without_nul(parameters)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _without_nul(each) for name, each in items}
    if isinstance(value, list | tuple):
        several = [_without_nul(each) for each in cast("Sequence[Any]", value)]
        return several if isinstance(value, list) else tuple(several)
    return value


def _upgrade(connection: Connection, revision: str) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    revisions = {each.revision for each in ScriptDirectory.from_config(config).walk_revisions()}
    for head in MigrationContext.configure(connection).get_current_heads():
        if head not in revisions:
            raise RecordsNewer(
                f"the database has the schema {head}, which this version does not know; use the "
                "version of Factwire that wrote it, or a newer one"
            )
    command.upgrade(config, revision)


@contextmanager
def _translate_errors() -> Generator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise RecordsUnavailable(f"the database refused: {_describe(error)}") from error
    except (OSError, TimeoutError) as error:
        raise RecordsUnavailable(f"the database does not answer: {error}") from error


def _describe(error: DBAPIError) -> str:
    """The reason alone: no statement, no value."""
    return str(error.orig).partition("\n")[0]
