"""An open journal: its connections, and the parts that work on them."""

import asyncio

from factwire.journal.chunk import Chunk
from factwire.journal.live import Reader, Readers
from factwire.journal.postgres.catalogue import Catalogue
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.ledger import Ledger
from factwire.journal.postgres.lineage import Seen
from factwire.journal.postgres.opening import open_connection, open_journal_row
from factwire.journal.postgres.pages import Page, Pages
from factwire.journal.postgres.presence import Presence
from factwire.journal.postgres.reading import Opening, Reading
from factwire.journal.postgres.removal import Remover
from factwire.journal.postgres.rows import Place
from factwire.journal.postgres.session import Health, Session, Sessions
from factwire.journal.postgres.settings import READ_SESSIONS, Settings
from factwire.journal.postgres.watch import Watch
from factwire.journal.postgres.writer import Writer
from factwire.journal.resume import Bounds


class Handle:
    """One journal, opened; closing it ends every task and connection."""

    def __init__(self, settings: Settings, journal: int, health: Health, first: Session) -> None:
        self.journal = journal
        self.health = health
        self.keys = Keys(journal)
        self.ledger = Ledger(journal, self.keys)
        self._settings = settings
        self._seen = Seen(journal)
        self._pages = Pages(journal, self.keys)
        self.catalogue = Catalogue(journal, self._pages, self.keys)
        readers = Readers()
        self._presence = Presence(journal, readers)
        patience = settings.patience
        self.sessions = Sessions(
            [Session(self._connect, health, patience) for _ in range(READ_SESSIONS)]
        )
        first.connect = self._connect
        self._writing = first
        self._watching = Session(self._connect_watch, health, patience)
        self._watch = Watch(self._watching, self._pages, self._presence, self, settings.poll)
        place = Place(epoch="", head=0, hash=b"", floor=0)
        self.reading = Reading(self.sessions, self._pages, self.ledger, place, readers)
        self.remover = Remover(
            journal,
            pages=self._pages,
            keys=self.keys,
            presence=self._presence,
            readers=readers,
            gate=self.reading.gate,
        )
        self.writer = Writer(self._writing, journal, patience=patience, on_commit=self._committed)

    async def start(self) -> None:
        # The first connection was made before the journal was known.
        await self._writing.run(self._seen.check)
        bounds = await self._writing.run(lambda link: self._pages.bounds(link, None))
        self.reading.epoch = bounds.epoch
        self.reading.tail.restart(bounds.head)
        await self._watch.start(f"factwire_{self.journal}")

    async def open_reader(self, opening: Opening) -> tuple[Bounds, Reader]:
        return await self.reading.open(opening, self._presence, self._watching)

    async def close(self) -> None:
        await self.writer.close()
        await self._watch.close()
        self.reading.bell.ring()
        for session in (self._writing, self._watching):
            await session.close()
        await self.sessions.close()

    def heard_from(self) -> int:
        return self.reading.heard_from()

    def hear(self, page: Page) -> None:
        if page.place.epoch != self.reading.epoch:
            self.writer.forget()
        elif page.chunks:
            self._seen.note(page.chunks[-1].last, page.chunks[-1].hash)
        self.reading.hear(page)

    def hear_of_trouble(self, error: Exception) -> None:
        self.reading.hear_of_trouble(error)

    def _committed(self, place: Place, chunk: Chunk) -> None:
        self._seen.note(chunk.last, chunk.hash)
        self.reading.committed(place, chunk)
        self._watch.tell()

    async def _connect(self) -> Connection:
        connection = await open_connection(self._settings)
        try:
            await self._seen.check(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _connect_watch(self) -> Connection:
        connection = await self._connect()
        try:
            await self._watch.greet(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection


async def open_handle(settings: Settings) -> Handle:
    """Open a journal, creating its tables and itself where they are not there yet."""
    health = Health(settings.shown)
    first = Session(lambda: open_connection(settings), health, settings.patience)
    try:
        journal = await first.run(lambda link: open_journal_row(link, settings.journal))
    except BaseException:
        await first.close()
        raise
    handle = Handle(settings, journal, health, first)
    try:
        await handle.start()
    except BaseException:
        await asyncio.shield(handle.close())
        raise
    return handle
