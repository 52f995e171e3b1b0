"""An opened SQLite journal: its lock, its connections and threads, and what they share.

Opening decides the epoch: a new journal gets one, and so does a copy of another or an older state
of itself (see `lineage`).
"""

import asyncio
from pathlib import Path
from typing import Final

from factwire.journal.chain import GENESIS
from factwire.journal.chunk import anchor_in
from factwire.journal.cursor import new_epoch
from factwire.journal.errors import JournalCorrupt, JournalError, JournalReadOnly
from factwire.journal.live import Bell, Readers
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import drop_leftovers
from factwire.journal.sqlite.lineage import Mark, MarkFile, file_identity, read_mark
from factwire.journal.sqlite.lock import WriterLock
from factwire.journal.sqlite.reader import ReaderPool
from factwire.journal.sqlite.ring import Ring
from factwire.journal.sqlite.rows import all_records, chunk_holding, reading
from factwire.journal.sqlite.schema import (
    connect,
    ensure_sqlite,
    get_meta,
    migrate,
    set_meta,
    version,
)
from factwire.journal.sqlite.segments import Segments
from factwire.journal.sqlite.state import Place, State, load_place
from factwire.journal.sqlite.upkeep import Upkeep
from factwire.journal.sqlite.writer import Writer

POLL_SECONDS: Final = 0.025
"""How often a read-only handle looks whether the writing process has committed."""

CHECKPOINT_WAIT_MS: Final = 200
"""How long a checkpoint may wait for readers while appends wait for it."""


class Store:
    """What a journal has while it is open; `writer` is None in a read-only handle."""

    def __init__(self, path: str, *, read_only: bool, vfs: str | None) -> None:
        ensure_sqlite()
        self.path = path
        self.vfs = vfs
        self.bell = Bell()
        self.ring = Ring()
        self.readers = Readers()
        self.segments = Segments()
        self.writer: Writer | None = None
        self.closing = False
        self.poll = POLL_SECONDS if read_only else None
        with reading():
            if read_only:
                self._open_beside()
            else:
                self._open_for_writing()
        self.pool = ReaderPool(lambda: connect(path, vfs=vfs, read_only=True))

    def writing(self) -> Writer:
        """The writer; raises `JournalReadOnly` where there is none."""
        if self.writer is None:
            raise JournalReadOnly(f"{self.path} is open read-only; open it without ?mode=ro")
        return self.writer

    async def place(self) -> Place:
        """Where the journal begins and ends now."""
        if self.writer is not None:
            return self.writer.state.place
        return (await self.pool.run(load_place)).ensure_whole()

    async def seal(self) -> None:
        """Index on disk everything that is there now."""
        state = self.writing().state
        head = state.place.head
        while state.place.sealed < head:
            begun = await asyncio.wrap_future(self.writing().look(self._upkeep.begin_seal))
            await asyncio.wrap_future(begun)

    async def close(self) -> None:
        self.closing = True
        self.bell.ring()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _open_for_writing(self) -> None:
        self._lock = WriterLock(self.path)
        try:
            mark = read_mark(self.path)
            connection = connect(self.path, vfs=self.vfs)
            migrate(connection)
            drop_leftovers(connection)
            self.epoch = _claim(connection, self.path, mark)
            state = State(connection, self.epoch)
        except BaseException:
            self._lock.release()
            raise
        checkpointer = connect(self.path, vfs=self.vfs)
        checkpointer.set_busy_timeout(CHECKPOINT_WAIT_MS)
        self._mark = MarkFile(self.path)
        self._upkeep = Upkeep(connect(self.path, vfs=self.vfs, read_only=True), checkpointer)
        self.writer = Writer(
            state,
            bell=self.bell,
            ring=self.ring,
            mark=self._mark,
            committed=self._upkeep.committed,
        )
        self._upkeep.start(self.writer)
        self.writer.start()

    def _open_beside(self) -> None:
        if not Path(self.path).exists():
            raise JournalError(f"there is no journal at {self.path}; open it without ?mode=ro")
        mark = read_mark(self.path)
        connection = connect(self.path, vfs=self.vfs, read_only=True)
        try:
            if version(connection) == 0:
                raise JournalError(f"{self.path} is not a journal yet; open it without ?mode=ro")
            self.epoch = _epoch(connection, self.path, mark) or new_epoch()
        finally:
            connection.close()

    def _close(self) -> None:
        self.pool.close()
        if self.writer is not None:
            self._upkeep.stop()
            self.writer.stop(self._note_head)
            self._upkeep.close()
            # The last to close takes the log away, which only a writing connection can.
            self.writer.state.connection.close()
            self._mark.close()
            self._lock.release()

    def _note_head(self) -> None:
        """Note how far the journal has come, so that a missing end shows."""
        state = self.writing().state
        set_meta(state.connection, "reached", state.place.head)


def _claim(connection: Database, path: str, mark: Mark | None) -> str:
    epoch = _epoch(connection, path, mark)
    if epoch is None:
        epoch = new_epoch()
        connection.execute("BEGIN IMMEDIATE")
        set_meta(connection, "epoch", epoch)
        set_meta(connection, "file", file_identity(path))
        connection.execute("COMMIT")
    return epoch


def _epoch(connection: Database, path: str, mark: Mark | None) -> str | None:
    """The stored epoch, if the file is the one it was stored in and has not gone back."""
    epoch = get_meta(connection, "epoch")
    same = get_meta(connection, "file") == file_identity(path)
    return epoch if isinstance(epoch, str) and same and _on_chain(connection, mark) else None


def _on_chain(connection: Database, mark: Mark | None) -> bool:
    try:
        return mark is None or mark.hash in _hashes_at(connection, mark.seq)
    except JournalCorrupt:
        # Where the chain is damaged nobody can say; those who read it will be told.
        return False


def _hashes_at(connection: Database, seq: int) -> set[bytes]:
    """The hashes that the chain has had while it ended at a seq."""
    place = load_place(connection)
    if seq > place.head or seq < place.base:
        return set()
    found = {record.hash for record in all_records(connection) if record.after == seq}
    if seq > place.base:
        return found | {anchor_in(chunk_holding(connection, seq), seq)}
    return found | {place.base_hash if seq else GENESIS}
