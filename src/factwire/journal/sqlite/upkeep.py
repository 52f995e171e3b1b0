"""What a journal does beside writing: sealing, merging id runs, checkpointing.

It runs on a thread of its own with its own connections, so that no append waits for a sort or for a
checkpoint's sync; what must be written goes through the writer in small transactions.
"""

from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import Final

import apsw
import msgspec

from factwire.journal.errors import JournalCorrupt, JournalUnwritable
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.identity import (
    RUN_IDS,
    Piece,
    insert_piece,
    merged_pieces,
    new_pieces,
    next_run,
    piece_count,
)
from factwire.journal.sqlite.recent import Recent
from factwire.journal.sqlite.roster import save_records
from factwire.journal.sqlite.rows import reading
from factwire.journal.sqlite.schema import set_meta
from factwire.journal.sqlite.segments import Row, insert_segment, new_segment
from factwire.journal.sqlite.state import State
from factwire.journal.sqlite.writer import Writer

CHECKPOINT_PAGES: Final = 1_000
"""Pages in the write-ahead log after which they are copied into the database."""

RESTART_PAGES: Final = 32_000
"""Pages after which the writer waits for the copying to end, which bounds the log's size."""

PIECES_AT_ONCE: Final = 16
"""Pieces of a merged run that go into one transaction."""


class Seal(msgspec.Struct, frozen=True):
    """The facts of `first`–`last`, whose ids and keys are to be moved out of memory."""

    facts: Recent
    first: int
    last: int
    done: "Future[None]"


class Upkeep:
    """`committed` is called by the writer's thread after each commit."""

    def __init__(self, reader: Database, checkpointer: Database) -> None:
        self._reader = reader
        self._checkpointer = checkpointer
        self._queue: SimpleQueue[Seal | int | None] = SimpleQueue()
        self._checkpointing = False
        self._sealing: Future[None] = Future()
        self._sealing.set_result(None)
        self._thread = Thread(target=self._run, name="factwire-upkeep", daemon=True)

    def start(self, writer: Writer) -> None:
        self._writer = writer
        self._state: State = writer.state
        self._state.connection.set_wal_hook(self._log_grew)
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def close(self) -> None:
        """Copy the log into the database, as far as readers let it, and close."""
        self._checkpoint(0)
        self._checkpointer.close()
        self._reader.close()

    def committed(self) -> None:
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
            state.sealing, state.recent = state.recent, Recent()
            self._sealing = Future()
            place = state.place
            first = max(place.sealed, place.base) + 1
            self._queue.put(Seal(state.sealing, first, place.head, self._sealing))
        return self._sealing

    def _log_grew(self, _connection: Database, _name: str, pages: int) -> int:
        if pages >= CHECKPOINT_PAGES and not self._checkpointing:
            self._checkpointing = True
            self._queue.put(pages)
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            if isinstance(job, Seal):
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

    def _seal(self, seal: Seal) -> None:
        try:
            self._try_seal(seal)
            seal.done.set_result(None)
            self._merge_due_runs()
        except (JournalUnwritable, apsw.Error) as error:
            self._writer.look(self._unseal).result()
            _fail(seal, error)
        except JournalCorrupt as error:
            # Damaged chunks are not sealed; their ids stay in memory, and readers are told.
            _fail(seal, error)

    def _try_seal(self, seal: Seal) -> None:
        with reading():
            firsts = _firsts(self._reader, seal.first, seal.last)
        row = new_segment(seal.facts.keys_of_chunks(firsts), seal.first, seal.last)
        pieces = new_pieces(seal.facts.digests, seal.facts.seqs.values())
        number = self._writer.look(lambda: next_run(self._state.connection)).result()
        self._writer.call(
            lambda: self._write_seal(seal, row, number, pieces),
            lambda: self._sealed(seal, number),
        ).result()

    def _merge_due_runs(self) -> None:
        while (due := self._state.runs.due()) is not None:
            self._merge_runs(*due)

    def _write_seal(self, seal: Seal, row: Row, number: int, pieces: list[Piece]) -> None:
        connection = self._state.connection
        for piece in pieces:
            insert_piece(connection, number, piece)
        connection.execute("INSERT INTO id_runs VALUES(?, 0)", (number,))
        insert_segment(connection, row)
        save_records(connection, self._state.dirty_records())
        set_meta(connection, "sealed", seal.last)

    def _sealed(self, seal: Seal, number: int) -> None:
        state = self._state
        state.runs.add(number, 0)
        state.place = msgspec.structs.replace(state.place, sealed=seal.last)
        state.sealing = Recent()
        state.cleaned()

    def _unseal(self) -> None:
        state = self._state
        state.sealing, state.recent = Recent(), state.sealing.and_then(state.recent)

    def _merge_runs(self, level: int, runs: list[int]) -> None:
        state, writer = self._state, self._writer
        number = writer.look(lambda: next_run(state.connection)).result()
        pieces = merged_pieces(self._reader, level, runs)
        while batch := list(islice(pieces, PIECES_AT_ONCE)):
            writer.call(partial(self._write_pieces, number, batch)).result()
        writer.call(
            lambda: self._replace_runs(number, level + 1, runs),
            lambda: state.runs.replace(runs, number, level + 1),
        ).result()
        for run in runs:
            for lowest in range(0, piece_count(level), PIECES_AT_ONCE):
                writer.call(partial(self._drop_pieces, run, lowest)).result()

    def _write_pieces(self, number: int, pieces: list[Piece]) -> None:
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


def _firsts(connection: Database, first: int, last: int) -> list[int]:
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


def _fail(seal: Seal, error: Exception) -> None:
    if not seal.done.done():
        seal.done.set_exception(error)
