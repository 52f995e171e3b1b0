"""The one writer: a thread that commits whatever has gathered, in one transaction.

Each request is admitted on its own, over what the requests before it in the group have staged, so
a refusal touches nobody else. State moves only after the commit; a commit that fails leaves
everything as it was, and the next one is free to succeed.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

import apsw
import msgspec

from factwire.journal.admission import Admitted, Entry, Known, Placed, admit, admit_one
from factwire.journal.chunk import Chunk, merged, new_chunk
from factwire.journal.errors import JournalCorrupt, JournalError, JournalUnwritable
from factwire.journal.live import Bell
from factwire.journal.protocol import Appended
from factwire.journal.sqlite.lineage import Mark, MarkFile
from factwire.journal.sqlite.ring import Ring
from factwire.journal.sqlite.rows import DAMAGE, insert_chunk
from factwire.journal.sqlite.schema import roll_back
from factwire.journal.sqlite.state import State

GROUP_REQUESTS: Final = 4_096
"""Requests that one commit takes in; more wait for the next, so that nobody waits for long."""

CHUNK_FACTS: Final = 1_024
"""Facts of one chunk, so that reading a part of it stays cheap."""

CHUNK_BYTES: Final = 512 * 1024
"""Bytes after which a chunk is closed."""

LOOSE_FACTS: Final = 64
"""A chunk of fewer facts is loose: worth merging with its neighbours."""

LOOSE_CHUNKS: Final = 128
"""Loose chunks in a row that are merged into one."""

LOOSE_ENOUGH: Final = 16
"""Loose chunks between bigger ones that are worth merging."""

T = TypeVar("T")


class Append(msgspec.Struct, gc=False):
    """A batch and who waits for it to be durable."""

    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Appended]"
    entries: Sequence[Entry]
    expected: Mapping[str, int | None] | None


class Call(msgspec.Struct):
    """Something else to do on the writer's thread; `then` follows once it is committed."""

    function: Callable[[], Any]
    then: Callable[[], None] | None
    future: "Future[Any]"
    writes: bool


_NEW: Final = (False,)
_REPEATED: Final = (True,)

_Outcome = tuple["asyncio.Future[Appended]", "Appended | None", "Exception | None"]


class Stage:
    """What the requests of a group have been promised so far."""

    def __init__(self, state: State) -> None:
        self.new: list[Placed] = []
        self._state = state
        self._epoch = state.epoch
        self._next = state.place.head + 1
        self._ids: dict[str, Placed] = {}
        self._lasts: dict[str, int] = {}

    def known(self, fact_id: str) -> Known | None:
        placed = self._ids.get(fact_id)
        if placed is not None:
            return Known(placed.seq, placed.sequence, placed.line)
        return self._state.known(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        last = self._lasts.get(thread_id)
        return self._state.last_sequence(thread_id) if last is None else last

    def admit(self, request: Append) -> Appended:
        """Promise a batch its places; raises `AppendRefused`, having promised nothing."""
        if len(request.entries) == 1 and not request.expected:
            return self._admit_one(request.entries[0])
        next_seq = self._next + len(self.new)
        answer = admit(request.entries, self, next_seq, request.expected)
        self._take(answer)
        return Appended(
            self._epoch,
            tuple(answer.seqs),
            tuple(answer.sequences),
            tuple(answer.repeated),
        )

    def _admit_one(self, entry: Entry) -> Appended:
        next_seq = self._next + len(self.new)
        found = admit_one(entry, self, next_seq, self._lasts)
        if found.__class__ is Known:
            return Appended(self._epoch, (found.seq,), (found.sequence,), _REPEATED)
        self.new.append(found)  # pyright: ignore[reportArgumentType]
        self._ids[entry.fact.id] = found  # pyright: ignore[reportArgumentType]
        return Appended(self._epoch, (found.seq,), (found.sequence,), _NEW)

    def _take(self, answer: Admitted) -> None:
        self.new += answer.new
        self._lasts.update(answer.last_sequences)
        for placed in answer.new:
            self._ids[placed.entry.fact.id] = placed


class Writer:
    """Owns the writing connection and its thread; `committed` is told after each commit."""

    def __init__(
        self,
        state: State,
        *,
        bell: Bell,
        ring: Ring,
        mark: MarkFile,
        committed: Callable[[], None],
    ) -> None:
        self.state = state
        self._connection = state.connection
        self._bell = bell
        self._ring = ring
        self._mark = mark
        self._committed = committed
        self._loose: list[Chunk] = []
        self._loose_bytes = 0
        self._ended: list[Chunk] = []
        self._queue: SimpleQueue[Append | Call | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="factwire-writer", daemon=True)

    def start(self) -> None:
        self._mark_head()
        self._thread.start()

    def append(
        self, entries: Sequence[Entry], expected: Mapping[str, int | None] | None
    ) -> "asyncio.Future[Appended]":
        """Queue a batch; the future is done when the batch is durable, or refused."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended] = loop.create_future()
        self._queue.put(Append(loop, future, entries, expected))
        return future

    def call(
        self, function: Callable[[], T], then: Callable[[], None] | None = None
    ) -> "Future[T]":
        """Queue a function that writes, in a transaction of its own."""
        future: Future[T] = Future()
        self._queue.put(Call(function, then, future, writes=True))
        return future

    def look(self, function: Callable[[], T]) -> "Future[T]":
        """Queue a function that needs the writer's state to hold still, and writes nothing."""
        future: Future[T] = Future()
        self._queue.put(Call(function, None, future, writes=False))
        return future

    def stop(self, last: Callable[[], None]) -> None:
        """Finish what is queued and end the thread, `last` being the last that is written."""
        self.call(last)
        self._queue.put(None)
        self._thread.join()

    def settle(self) -> None:
        """Merge the loose chunks at the end, so that none of what is there now will change.

        Only for the writer's own thread, between two transactions.
        """
        loose, self._loose, self._loose_bytes = self._loose, [], 0
        if len(loose) > 1:
            self.transact(lambda: self._merge(loose))

    def moved(self) -> None:
        """Take note that a call changed the chain."""
        self._loose, self._loose_bytes = [], 0
        self._mark_head()

    def _run(self) -> None:
        running = True
        while running:
            jobs = self._gather()
            appends = [job for job in jobs if isinstance(job, Append)]
            if appends:
                self._answer_all(appends)
            for job in jobs:
                if isinstance(job, Call):
                    self._perform(job)
            running = jobs[-1] is not None

    def _gather(self) -> list[Append | Call | None]:
        jobs = [self._queue.get()]
        try:
            while jobs[-1] is not None and len(jobs) < GROUP_REQUESTS:
                jobs.append(self._queue.get_nowait())
        except Empty:
            pass
        return jobs

    def _answer_all(self, appends: Sequence[Append]) -> None:
        try:
            self._commit(appends)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, those who wait must hear of it, and the thread must live on.
            _answer(appends, [(request.future, None, error) for request in appends])

    def _commit(self, appends: Sequence[Append]) -> None:
        stage = Stage(self.state)
        outcomes: list[_Outcome] = []
        for request in appends:
            try:
                outcomes.append((request.future, stage.admit(request), None))
            except JournalError as error:
                outcomes.append((request.future, None, error))
            except DAMAGE as error:
                outcomes.append((request.future, None, JournalCorrupt(str(error))))
            except apsw.Error as error:
                outcomes.append((request.future, None, JournalUnwritable(str(error))))
        if stage.new:
            chunks = _chunks(self.state.place.hash, self.state.place.head + 1, stage.new)
            try:
                self.transact(lambda: self._insert(chunks))
            except JournalError as error:
                outcomes = [(future, None, failed or copy(error)) for future, _, failed in outcomes]
            else:
                self._advance(chunks, stage.new)
        _answer(appends, outcomes)
        self._merge_when_due()
        self._committed()

    def _insert(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            insert_chunk(self._connection, chunk)

    def _advance(self, chunks: Sequence[Chunk], new: Sequence[Placed]) -> None:
        self.state.advance(chunks, new)
        self._mark_head()
        for chunk in chunks:
            self._ring.add(chunk)
            self._note_loose(chunk)
        self._bell.ring()

    def _note_loose(self, chunk: Chunk) -> None:
        if chunk.facts >= LOOSE_FACTS:
            self._ended, self._loose = self._loose, []
            self._loose_bytes = 0
            return
        self._loose.append(chunk)
        self._loose_bytes += len(chunk.data)
        if self._loose_bytes >= CHUNK_BYTES or len(self._loose) >= LOOSE_CHUNKS:
            self._ended, self._loose = self._loose, []
            self._loose_bytes = 0

    def _merge_when_due(self) -> None:
        ended, self._ended = self._ended, []
        if len(ended) >= LOOSE_ENOUGH:
            # Merging only makes reading faster; the next append hears of a full disk anyway.
            with suppress(JournalUnwritable):
                self.transact(lambda: self._merge(ended))

    def _merge(self, loose: Sequence[Chunk]) -> None:
        whole = merged(loose)
        self._connection.execute(
            "DELETE FROM chunks WHERE first BETWEEN ? AND ?", (whole.first, whole.last)
        )
        insert_chunk(self._connection, whole)

    def _perform(self, call: Call) -> None:
        try:
            result = self.transact(call.function) if call.writes else call.function()
            if call.then is not None:
                call.then()
            call.future.set_result(result)
        except Exception as error:  # noqa: BLE001
            call.future.set_exception(error)

    def transact(self, function: Callable[[], T]) -> T:
        """Run a function in a transaction; the disk's refusal becomes `JournalUnwritable`."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            result = function()
            self._connection.execute("COMMIT")
            return result
        except apsw.CorruptError as error:
            roll_back(self._connection)
            raise JournalCorrupt(str(error)) from error
        except apsw.Error as error:
            roll_back(self._connection)
            raise JournalUnwritable(str(error)) from error
        except BaseException:
            roll_back(self._connection)
            raise

    def _mark_head(self) -> None:
        self._mark.write(Mark(self.state.place.head, self.state.place.hash))


def _chunks(prev: bytes, first: int, new: Sequence[Placed]) -> list[Chunk]:
    chunks: list[Chunk] = []
    start = size = 0
    for end, placed in enumerate(new, start=1):
        size += len(placed.line)
        if end == len(new) or end - start == CHUNK_FACTS or size >= CHUNK_BYTES:
            part = new[start:end]
            lines = [each.line for each in part]
            keys = (each.entry.keys for each in part)
            chunks.append(new_chunk(prev, first + start, lines, keys))
            prev, start, size = chunks[-1].hash, end, 0
    return chunks


def _answer(appends: Sequence[Append], outcomes: Sequence[_Outcome]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for request, outcome in zip(appends, outcomes, strict=True):
        loops.setdefault(request.loop, []).append(outcome)
    for loop, settled in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, settled)


def _settle(outcomes: Sequence[_Outcome]) -> None:
    for future, appended, error in outcomes:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        elif appended is not None:
            future.set_result(appended)
