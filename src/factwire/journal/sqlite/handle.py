"""An open SQLite journal: its lock, its connections and threads, and the work beside writing.

Opening decides the epoch: a new journal gets one, and so does a copy of another or an older state
of itself. Maintenance seals ids and keys into indexes, merges id runs and checkpoints the log, in
steps that are short enough for those who append and wait.
"""

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Final

import apsw
import msgspec

from factwire.journal.chunks import GENESIS, find_anchor
from factwire.journal.cursor import new_epoch
from factwire.journal.errors import (
    JournalCorrupt,
    JournalError,
    JournalReadOnly,
    JournalUnwritable,
    MirrorBroken,
)
from factwire.journal.followers import CommitSignal, ReaderRegistry
from factwire.journal.sqlite.indexes import (
    RUN_IDS,
    IdPiece,
    SegmentCache,
    SegmentRow,
    UnindexedFacts,
    build_pieces,
    build_segment,
    count_pieces,
    drop_leftovers,
    find_next_run,
    insert_piece,
    insert_segment,
    merge_pieces,
)
from factwire.journal.sqlite.journal_state import JournalEnds, WriterState, load_ends, save_records
from factwire.journal.sqlite.reader_pool import ChunkRing, ReaderPool
from factwire.journal.sqlite.schema import (
    Database,
    connect,
    ensure_sqlite,
    get_meta,
    load_all_records,
    load_chunk_holding,
    migrate,
    set_meta,
    translate_damage,
    version,
)
from factwire.journal.sqlite.writer import (
    HeadMark,
    MarkFile,
    SqliteWriter,
    WriterLock,
    read_file_identity,
    read_mark,
)

CHECKPOINT_PAGES: Final = 1_000
"""Pages in the write-ahead log after which they are copied into the database."""

RESTART_PAGES: Final = 32_000
"""Pages after which the writer waits for the copying to end, which bounds the log's size."""

PIECES_AT_ONCE: Final = 16
"""Pieces of a merged run that go into one transaction."""


class SealJob(msgspec.Struct, frozen=True):
    """The facts of `first`–`last`, whose ids and keys are to be moved out of memory."""

    facts: UnindexedFacts
    first: int
    last: int
    done: "Future[None]"


class Maintenance:
    """`committed` is called by the writer's thread after each commit."""

    def __init__(self, reader: Database, checkpointer: Database) -> None:
        self._reader = reader
        self._checkpointer = checkpointer
        self._queue: SimpleQueue[SealJob | int | None] = SimpleQueue()
        self._checkpointing = False
        self._sealing: Future[None] = Future()
        self._sealing.set_result(None)
        self._thread = Thread(target=self._run, name="factwire-upkeep", daemon=True)

    def start(self, writer: SqliteWriter) -> None:
        self._writer = writer
        self._state: WriterState = writer.state
        self._state.connection.set_wal_hook(self._note_log_growth)
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def close(self) -> None:
        """Copy the log into the database, as far as readers let it, and close."""
        self._checkpoint(0)
        self._checkpointer.close()
        self._reader.close()

    def note_commit(self) -> None:
        """Begin to seal when enough has gathered."""
        state = self._state
        if len(state.recent.seqs) < RUN_IDS or state.sealing.seqs:
            return
        # What cannot be sealed now is sealed after a later commit.
        with suppress(JournalUnwritable):
            self.begin_seal()

    def begin_seal(self) -> "Future[None]":
        """Hand what is recent to the upkeep thread; for the writer's thread alone.

        The future is that of the seal which is under way.
        """
        state = self._state
        if state.recent.seqs and not state.sealing.seqs:
            self._writer.settle()
            state.sealing, state.recent = state.recent, UnindexedFacts()
            self._sealing = Future()
            # One of those who wait may give up; the others, and the seal, go on.
            self._sealing.set_running_or_notify_cancel()
            place = state.place
            first = max(place.sealed, place.base) + 1
            self._queue.put(SealJob(state.sealing, first, place.head, self._sealing))
        return self._sealing

    def _note_log_growth(self, _connection: Database, _name: str, pages: int) -> int:
        if pages >= CHECKPOINT_PAGES and not self._checkpointing:
            self._checkpointing = True
            self._queue.put(pages)
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            if isinstance(job, SealJob):
                self._seal(job)
            else:
                self._checkpoint(job)

    def _checkpoint(self, pages: int) -> None:
        # A checkpoint that cannot be made now is made after a later commit.
        with suppress(apsw.Error):
            mode = apsw.SQLITE_CHECKPOINT_PASSIVE
            if pages >= RESTART_PAGES:
                mode = apsw.SQLITE_CHECKPOINT_RESTART
            self._checkpointer.wal_checkpoint(mode=mode)
        self._checkpointing = False

    def _seal(self, seal: SealJob) -> None:
        try:
            self._try_seal(seal)
        except JournalCorrupt as error:
            # Damaged chunks are not sealed; their ids stay in memory, and readers are told.
            seal.done.set_exception(error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, those who wait must hear of it, and the thread must live on.
            self._writer.inspect(self._unseal).result()
            seal.done.set_exception(error)
        else:
            seal.done.set_result(None)
            # Runs that cannot be merged now are merged after a later seal. The next one may have
            # begun: what it seals is not to be touched.
            with suppress(JournalError, apsw.Error):
                self._merge_due_runs()

    def _try_seal(self, seal: SealJob) -> None:
        with translate_damage():
            firsts = _find_chunk_starts(self._reader, seal.first, seal.last)
        row = build_segment(seal.facts.list_keys_of_chunks(firsts), seal.first, seal.last)
        pieces = build_pieces(seal.facts.digests, seal.facts.seqs.values())
        number = self._writer.inspect(lambda: find_next_run(self._state.connection)).result()
        self._writer.call(
            lambda: self._write_seal(seal, row, number, pieces),
            lambda: self._note_sealed(seal, number),
        ).result()

    def _merge_due_runs(self) -> None:
        while (due := self._state.runs.find_due()) is not None:
            self._merge_runs(*due)

    def _write_seal(
        self, seal: SealJob, row: SegmentRow, number: int, pieces: list[IdPiece]
    ) -> None:
        connection = self._state.connection
        for piece in pieces:
            insert_piece(connection, number, piece)
        connection.execute("INSERT INTO id_runs VALUES(?, 0)", (number,))
        insert_segment(connection, row)
        save_records(connection, self._state.dirty_records())
        set_meta(connection, "sealed", seal.last)

    def _note_sealed(self, seal: SealJob, number: int) -> None:
        state = self._state
        state.runs.add(number, 0)
        state.place = msgspec.structs.replace(state.place, sealed=seal.last)
        state.sealing = UnindexedFacts()
        state.mark_clean()

    def _unseal(self) -> None:
        state = self._state
        state.sealing, state.recent = UnindexedFacts(), state.sealing.join(state.recent)

    def _merge_runs(self, level: int, runs: list[int]) -> None:
        state, writer = self._state, self._writer
        number = writer.inspect(lambda: find_next_run(state.connection)).result()
        pieces = merge_pieces(self._reader, level, runs)
        while batch := list(islice(pieces, PIECES_AT_ONCE)):
            writer.call(partial(self._write_pieces, number, batch)).result()
        writer.call(
            lambda: self._replace_runs(number, level + 1, runs),
            lambda: state.runs.replace(runs, number, level + 1),
        ).result()
        for run in runs:
            for lowest in range(0, count_pieces(level), PIECES_AT_ONCE):
                writer.call(partial(self._drop_pieces, run, lowest)).result()

    def _write_pieces(self, number: int, pieces: list[IdPiece]) -> None:
        for piece in pieces:
            insert_piece(self._state.connection, number, piece)

    def _replace_runs(self, number: int, level: int, old: list[int]) -> None:
        connection = self._state.connection
        connection.execute("INSERT INTO id_runs VALUES(?, ?)", (number, level))
        connection.executemany("DELETE FROM id_runs WHERE run = ?", [(run,) for run in old])

    def _drop_pieces(self, run: int, lowest: int) -> None:
        self._state.connection.execute(
            "DELETE FROM id_pieces WHERE run = ? AND piece BETWEEN ? AND ?",
            (run, lowest, lowest + PIECES_AT_ONCE - 1),
        )


def _find_chunk_starts(connection: Database, first: int, last: int) -> list[int]:
    """Where the chunks begin that have the seqs of a range, which begins and ends with one."""
    sql = "SELECT first, last FROM chunks WHERE first BETWEEN ? AND ? ORDER BY first"
    firsts: list[int] = []
    place = first
    for start, end in connection.execute(sql, (first, last)):
        if start != place:
            break
        firsts.append(start)
        place = end + 1
    if place != last + 1:
        raise JournalCorrupt("a chunk is missing", first=place)
    return firsts


POLL_SECONDS: Final = 0.025
"""How often a read-only handle looks whether the writing process has committed."""

CHECKPOINT_WAIT_MS: Final = 200
"""How long a checkpoint may wait for readers while appends wait for it."""


class SqliteHandle:
    """What a journal has while it is open; `writer` is None in a read-only handle."""

    def __init__(self, path: str, *, read_only: bool, vfs: str | None) -> None:
        ensure_sqlite()
        self.path = path
        self.vfs = vfs
        self.bell = CommitSignal()
        self.ring = ChunkRing()
        self.readers = ReaderRegistry()
        self.segments = SegmentCache()
        self.writer: SqliteWriter | None = None
        self.closing = False
        self.poll = POLL_SECONDS if read_only else None
        with translate_damage():
            if read_only:
                self._open_read_only()
            else:
                self._open_for_writing()

    def _open_readers(self) -> ReaderPool:
        return ReaderPool(lambda: connect(self.path, vfs=self.vfs, read_only=True))

    def require_writer(self) -> SqliteWriter:
        """The writer; raises `JournalReadOnly` where there is none."""
        if self.writer is None:
            raise JournalReadOnly(f"{self.path} is open read-only; open it without ?mode=ro")
        return self.writer

    def require_author(self) -> SqliteWriter:
        """The writer of a journal that makes its own facts; raises `JournalReadOnly` for a mirror,
        which only takes in what another journal has.
        """
        if self.mirrored:
            raise JournalReadOnly(
                f"{self.path} mirrors another journal and takes no facts of its own"
            )
        return self.require_writer()

    def mark_mirrored(self, epoch: str) -> None:
        """Take on the epoch of the journal that is mirrored; for the writer's thread alone."""
        state = self.require_writer().state
        if state.place.head and (not self.mirrored or self.epoch != epoch):
            raise MirrorBroken(f"{self.path} holds the facts of another journal; use an empty one")
        set_meta(state.connection, "epoch", epoch)
        set_meta(state.connection, "mirror", 1)
        self.epoch, state.epoch, self.mirrored = epoch, epoch, True

    async def load_ends(self) -> JournalEnds:
        """Where the journal begins and ends now."""
        if self.writer is not None:
            return self.writer.state.place
        return (await self.pool.run(load_ends)).ensure_whole()

    async def seal(self) -> None:
        """Index on disk everything that is there now."""
        state = self.require_writer().state
        head = state.place.head
        while state.place.sealed < head:
            begun = await asyncio.wrap_future(
                self.require_writer().inspect(self._maintenance.begin_seal)
            )
            await asyncio.wrap_future(begun)

    async def close(self) -> None:
        self.closing = True
        self.bell.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _open_for_writing(self) -> None:
        with ExitStack() as opened:
            # Whatever cannot be opened leaves nothing behind, the lock least of all.
            self._lock = WriterLock(self.path)
            opened.callback(self._lock.release)
            mark = read_mark(self.path)
            connection = connect(self.path, vfs=self.vfs)
            opened.callback(connection.close, True)  # noqa: FBT003
            migrate(connection)
            drop_leftovers(connection)
            self.epoch = _claim_epoch(connection, self.path, mark)
            self.mirrored = is_mirror(connection)
            state = WriterState(connection, self.epoch)
            checkpointer = connect(self.path, vfs=self.vfs)
            opened.callback(checkpointer.close, True)  # noqa: FBT003
            checkpointer.set_busy_timeout(CHECKPOINT_WAIT_MS)
            self._mark = MarkFile(self.path)
            opened.callback(self._mark.close)
            reader = connect(self.path, vfs=self.vfs, read_only=True)
            opened.callback(reader.close, True)  # noqa: FBT003
            self.pool = self._open_readers()
            opened.pop_all()
        self._maintenance = Maintenance(reader, checkpointer)
        self.writer = SqliteWriter(
            state,
            bell=self.bell,
            ring=self.ring,
            mark=self._mark,
            on_commit=self._maintenance.note_commit,
        )
        self._maintenance.start(self.writer)
        self.writer.start()

    def _open_read_only(self) -> None:
        if not Path(self.path).exists():
            raise JournalError(f"no journal at {self.path}; open it without ?mode=ro")
        mark = read_mark(self.path)
        connection = connect(self.path, vfs=self.vfs, read_only=True)
        try:
            if version(connection) == 0:
                raise JournalError(f"{self.path} is not a journal yet; open it without ?mode=ro")
            self.epoch = _load_epoch(connection, self.path, mark) or new_epoch()
            self.mirrored = is_mirror(connection)
        finally:
            connection.close()
        self.pool = self._open_readers()

    def _close(self) -> None:
        self.pool.close()
        if self.writer is not None:
            self._maintenance.stop()
            self.writer.stop(self._note_head)
            self._maintenance.close()
            # The last to close takes the log away, which only a writing connection can.
            self.writer.state.connection.close()
            self._mark.close()
            self._lock.release()

    def _note_head(self) -> None:
        """Note how far the journal has come, so that a missing end shows."""
        state = self.require_writer().state
        set_meta(state.connection, "reached", state.place.head)


def _claim_epoch(connection: Database, path: str, mark: HeadMark | None) -> str:
    epoch = _load_epoch(connection, path, mark)
    if epoch is None:
        epoch = new_epoch()
        connection.execute("BEGIN IMMEDIATE")
        set_meta(connection, "epoch", epoch)
        set_meta(connection, "file", read_file_identity(path))
        connection.execute("COMMIT")
    return epoch


def is_mirror(connection: Database) -> bool:
    """Whether the journal mirrors another one."""
    return get_meta(connection, "mirror") == 1


def _load_epoch(connection: Database, path: str, mark: HeadMark | None) -> str | None:
    """The stored epoch, if the file is the one it was stored in and has not gone back. A mirror
    that has gone back is only behind: whatever it takes in next must continue its chain.
    """
    epoch = get_meta(connection, "epoch")
    if isinstance(epoch, str) and is_mirror(connection):
        return epoch
    same = get_meta(connection, "file") == read_file_identity(path)
    return epoch if isinstance(epoch, str) and same and _is_on_chain(connection, mark) else None


def _is_on_chain(connection: Database, mark: HeadMark | None) -> bool:
    try:
        return mark is None or mark.hash in load_hashes_at(connection, mark.seq)
    except JournalCorrupt:
        # Where the chain is damaged nobody can say; those who read it will be told.
        return False


def load_hashes_at(connection: Database, seq: int) -> set[bytes]:
    """The hashes that the chain has had while it ended at a seq."""
    place = load_ends(connection)
    if seq > place.head or seq < place.base:
        return set()
    found = {record.hash for record in load_all_records(connection) if record.after == seq}
    if seq > place.base:
        return found | {find_anchor(load_chunk_holding(connection, seq), seq)}
    return found | {place.base_hash if seq else GENESIS}
