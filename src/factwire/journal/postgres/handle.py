"""An open PostgreSQL journal: its connections, the parts that work on them, and other processes.

A server must keep its word on durability. On every new connection a journal is told from an older
copy of itself: another system identifier, another timeline or a missing last commit mint a new
epoch, so that no cursor of the other life matches by accident. An old copy of the data directory
put back while no process was connected cannot be seen from inside; whoever puts it back says so
with `factwire journal import`.

A notification of another process only says "look"; one that is lost costs at most one poll interval
and never a fact. Notifications go out after the commit, because the server lets commits that notify
happen only one at a time, for all journals of a database.
"""

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from factwire.journal.chunks import GENESIS, Chunk, find_anchor
from factwire.journal.cursor import Bounds, new_epoch
from factwire.journal.errors import JournalUnavailable, JournalUrlError
from factwire.journal.followers import ReaderPosition, ReaderRegistry
from factwire.journal.postgres.reader import (
    ChunkPage,
    PageReader,
    PostgresReader,
    ReaderPresence,
    ReadRequest,
)
from factwire.journal.postgres.retention import PostgresRemover
from factwire.journal.postgres.schema import (
    CHUNK_COLUMNS,
    FactLookup,
    JournalTip,
    KeyEncoder,
    decode_unchecked_chunk,
    migrate,
)
from factwire.journal.postgres.server_connection import (
    FORBIDDEN,
    READ_SESSIONS,
    STALLED,
    ConnectionHealth,
    PostgresConnection,
    PostgresSession,
    PostgresSettings,
    SessionPool,
    connect,
)
from factwire.journal.postgres.snapshots import PostgresCatalogue
from factwire.journal.postgres.writer import PostgresWriter

_SERVER: Final = """
SELECT system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
FROM pg_control_system()
"""
_FORK: Final = """
UPDATE factwire.journal SET epoch = $3, lineage = $4
WHERE id = $1 AND epoch = $2 RETURNING epoch
"""
_HOLDER: Final = f"""
SELECT {CHUNK_COLUMNS} FROM factwire.chunk WHERE journal = $1 AND last >= $2 ORDER BY last LIMIT 1
"""  # noqa: S608


async def load_server_lineage(connection: PostgresConnection) -> str:
    """Which server this is, and of which of its lives; empty where the role may not know."""
    try:
        return str(await connection.fetchval(_SERVER))
    except FORBIDDEN:
        return ""


class LastSeenCommit:
    """The last commit that this process saw, which the journal must always have."""

    def __init__(self, journal: int) -> None:
        self._journal = journal
        self.seq = 0
        self.hash = b""

    def note(self, seq: int, digest: bytes) -> None:
        if seq > self.seq:
            self.seq, self.hash = seq, digest

    async def check(self, connection: PostgresConnection) -> None:
        """Mint a new epoch if the journal is not the one that this process has seen."""
        row = await connection.fetchrow(
            "SELECT epoch, lineage, base FROM factwire.journal WHERE id = $1", self._journal
        )
        if row is None:
            return
        lineage = await load_server_lineage(connection)
        moved = bool(lineage and row["lineage"]) and lineage != row["lineage"]
        if moved or not await self._has_last(connection, row["base"]):
            self.seq, self.hash = 0, b""
            known = lineage or row["lineage"]
            await connection.execute(_FORK, self._journal, row["epoch"], new_epoch(), known)

    async def _has_last(self, connection: PostgresConnection, base: int) -> bool:
        # Taken once: commits go on while this one is looked for.
        seq, digest = self.seq, self.hash
        if seq <= base:
            return True
        row = await connection.fetchrow(_HOLDER, self._journal, seq)
        if row is None or row["first"] > seq:
            return False
        chunk = decode_unchecked_chunk(row)
        # A thinned chunk no longer tells its commits apart.
        return chunk.seqs is not None or find_anchor(chunk, seq) == digest


_DURABLE: Final = """
SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit
"""
_WAITS: Final = frozenset({"on", "remote_apply"})
_FIND: Final = "SELECT id FROM factwire.journal WHERE name = $1"
_CREATE: Final = """
INSERT INTO factwire.journal (name, epoch, lineage, hash, base_hash) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (name) DO NOTHING
"""


async def open_connection(settings: PostgresSettings) -> PostgresConnection:
    """A connection whose commits are durable when they return."""
    connection = await connect(
        settings.dsn, within=settings.patience, settings=_build_session_settings(settings)
    )
    try:
        await _ensure_durable(connection, settings)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def open_journal_row(connection: PostgresConnection, name: str) -> int:
    """The number of the journal in its database; creates what is not there yet."""
    await migrate(connection)
    found = await connection.fetchval(_FIND, name)
    if found is not None:
        return int(found)
    lineage = await load_server_lineage(connection)
    await connection.execute(_CREATE, name, new_epoch(), lineage, GENESIS)
    return int(await connection.fetchval(_FIND, name))


async def _ensure_durable(connection: PostgresConnection, settings: PostgresSettings) -> None:
    row = await connection.fetchrow(_DURABLE)
    if row is None or not settings.durable:
        return
    for name in ("fsync", "full_page_writes"):
        if row[name] != "on":
            message = f"{settings.shown}: the server runs with {name}=off, so a crash can lose"
            remedy = f"turn {name} on, or add durable=no to the URL to accept the risk"
            raise JournalUrlError(f"{message} acknowledged facts; {remedy}")
    if row["synchronous_commit"] not in _WAITS:
        await connection.execute("SET synchronous_commit = on")


def _build_session_settings(settings: PostgresSettings) -> dict[str, str]:
    """Every query here walks an index; a planner without statistics must not think otherwise."""
    return {
        "application_name": "factwire",
        "search_path": "pg_catalog",
        "lock_timeout": f"{settings.patience * 1000:.0f}",
        "idle_in_transaction_session_timeout": str(STALLED),
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "jit": "off",
    }


_BREATH: Final = 0.005
"""Seconds between two notifications; under load one of them stands for several commits."""


class CommitListener(Protocol):
    """Who wants to know."""

    def last_heard_seq(self) -> int:
        """The last seq that is known already."""
        ...

    def take_page(self, page: ChunkPage) -> None:
        """Take in what was found past it."""
        ...

    def note_trouble(self, error: Exception) -> None:
        """Nothing could be found out, and trying again may not help."""
        ...


class CommitWatch:
    """A task that keeps one connection, listens on it and looks now and then."""

    def __init__(
        self,
        session: PostgresSession,
        pages: PageReader,
        presence: ReaderPresence,
        watched: CommitListener,
        poll: float,
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

    async def prepare_connection(self, connection: PostgresConnection) -> None:
        """What every new connection of this watch begins with."""
        await self._presence.enter(connection)
        await connection.add_listener(self._channel, self._on_notification)
        connection.add_termination_listener(self._on_connection_end)

    def notify_soon(self) -> None:
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
                await self._work_once(quiet=quiet)
            except JournalUnavailable:
                # The session has noted why; the next turn tries again.
                self._look = True
            except Exception as error:  # noqa: BLE001 - it is the followers' to handle
                self._watched.note_trouble(error)
            if not self._closing:
                await asyncio.sleep(_BREATH)

    async def _work_once(self, *, quiet: bool) -> None:
        if self._tell:
            self._tell = False
            await self._session.run(self._notify_now)
        if self._look or quiet:
            self._look = False
            await self._session.run(self._look_now)

    async def _notify_now(self, connection: PostgresConnection) -> None:
        await connection.execute(
            "SELECT pg_notify($1, $2)", self._channel, str(self._presence.process)
        )

    async def _look_now(self, connection: PostgresConnection) -> None:
        after = self._watched.last_heard_seq()
        self._watched.take_page(await self._pages.load_after(connection, after, None))
        await self._presence.refresh(connection)

    def _on_notification(self, _connection: object, _pid: int, _channel: str, sender: str) -> None:
        if sender != str(self._presence.process):
            self._look = True
            self._stir.set()

    def _on_connection_end(self, _connection: object) -> None:
        self._look = True
        self._stir.set()


class PostgresHandle:
    """One journal, opened; closing it ends every task and connection."""

    def __init__(
        self,
        settings: PostgresSettings,
        journal: int,
        health: ConnectionHealth,
        first: PostgresSession,
    ) -> None:
        self.journal = journal
        self.health = health
        self.keys = KeyEncoder(journal)
        self.ledger = FactLookup(journal, self.keys)
        self._settings = settings
        self._seen = LastSeenCommit(journal)
        self._pages = PageReader(journal, self.keys)
        self.catalogue = PostgresCatalogue(journal, self._pages, self.keys)
        readers = ReaderRegistry()
        self._presence = ReaderPresence(journal, readers)
        patience = settings.patience
        self.sessions = SessionPool(
            [PostgresSession(self._connect, health, patience) for _ in range(READ_SESSIONS)]
        )
        first.connect = self._connect
        self._writing = first
        self._watching = PostgresSession(self._connect_watch, health, patience)
        self._watch = CommitWatch(self._watching, self._pages, self._presence, self, settings.poll)
        place = JournalTip(epoch="", head=0, hash=b"", floor=0)
        self.reader = PostgresReader(self.sessions, self._pages, self.ledger, place, readers)
        self.remover = PostgresRemover(
            journal,
            pages=self._pages,
            keys=self.keys,
            presence=self._presence,
            readers=readers,
            gate=self.reader.gate,
        )
        self.writer = PostgresWriter(
            self._writing, journal, patience=patience, on_commit=self._note_commit
        )

    async def start(self) -> None:
        # The first connection was made before the journal was known.
        await self._writing.run(self._seen.check)
        bounds = await self._writing.run(lambda link: self._pages.load_bounds(link, None))
        self.reader.epoch = bounds.epoch
        self.reader.tail.restart(bounds.head)
        await self._watch.start(f"factwire_{self.journal}")

    async def open_reader(self, opening: ReadRequest) -> tuple[Bounds, ReaderPosition]:
        return await self.reader.open(opening, self._presence, self._watching)

    async def close(self) -> None:
        await self.writer.close()
        await self._watch.close()
        self.reader.bell.notify()
        for session in (self._writing, self._watching):
            await session.close()
        await self.sessions.close()

    def last_heard_seq(self) -> int:
        return self.reader.last_heard_seq()

    def take_page(self, page: ChunkPage) -> None:
        if page.place.epoch != self.reader.epoch:
            self.writer.forget()
        elif page.chunks:
            self._seen.note(page.chunks[-1].last, page.chunks[-1].hash)
        self.reader.take_page(page)

    def note_trouble(self, error: Exception) -> None:
        self.reader.note_trouble(error)

    def _note_commit(self, place: JournalTip, chunk: Chunk) -> None:
        self._seen.note(chunk.last, chunk.hash)
        self.reader.note_commit(place, chunk)
        self._watch.notify_soon()

    async def _connect(self) -> PostgresConnection:
        connection = await open_connection(self._settings)
        try:
            await self._seen.check(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _connect_watch(self) -> PostgresConnection:
        connection = await self._connect()
        try:
            await self._watch.prepare_connection(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection


async def open_handle(settings: PostgresSettings) -> PostgresHandle:
    """Open a journal, creating its tables and itself where they are not there yet."""
    health = ConnectionHealth(settings.shown)
    first = PostgresSession(lambda: open_connection(settings), health, settings.patience)
    try:
        journal = await first.run(lambda link: open_journal_row(link, settings.journal))
    except BaseException:
        await first.close()
        raise
    handle = PostgresHandle(settings, journal, health, first)
    try:
        await handle.start()
    except BaseException:
        await asyncio.shield(handle.close())
        raise
    return handle
