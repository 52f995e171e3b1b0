"""The one writer: a thread that commits whatever has gathered, in one transaction.

Each request is admitted on its own, over what the requests before it in the group have staged, so
a refusal touches nobody else. State moves only after the commit; a commit that fails leaves
everything as it was, and the next one is free to succeed.
"""

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import copy
from threading import Thread
from typing import Any, Final, TypeVar

import apsw
import msgspec

from factwire.journal.admission import Entry
from factwire.journal.chunk import Chunk, grouped, merged, new_chunk
from factwire.journal.errors import JournalCorrupt, JournalError, JournalUnwritable
from factwire.journal.filter import Groups
from factwire.journal.group import Group
from factwire.journal.live import Bell
from factwire.journal.protocol import Appended
from factwire.journal.sqlite.identity import id_digests
from factwire.journal.sqlite.inbox import Inbox
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

    future: "asyncio.Future[Appended]"
    entries: Sequence[Entry]
    expected: Mapping[str, int | None] | None


class Call(msgspec.Struct):
    """Something else to do on the writer's thread; `then` follows once it is committed."""

    function: Callable[[], Any]
    then: Callable[[], None] | None
    future: "Future[Any]"
    writes: bool


class Part(msgspec.Struct):
    """The facts of a group that become one chunk."""

    first: int
    lines: Sequence[bytes]
    keys: Groups


_Answer = Appended | Exception


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
        self._inbox: Inbox[Append | Call | None] = Inbox()
        self._thread = Thread(target=self._run, name="factwire-writer", daemon=True)

    def start(self) -> None:
        self._mark_head()
        self._thread.start()

    def append(
        self, entries: Sequence[Entry], expected: Mapping[str, int | None] | None
    ) -> "asyncio.Future[Appended]":
        """Queue a batch; the future is done when the batch is durable, or refused."""
        future: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._inbox.put(Append(future, entries, expected))
        return future

    def call(
        self, function: Callable[[], T], then: Callable[[], None] | None = None
    ) -> "Future[T]":
        """Queue a function that writes, in a transaction of its own."""
        future: Future[T] = Future()
        self._inbox.put(Call(function, then, future, writes=True))
        return future

    def look(self, function: Callable[[], T]) -> "Future[T]":
        """Queue a function that needs the writer's state to hold still, and writes nothing."""
        future: Future[T] = Future()
        self._inbox.put(Call(function, None, future, writes=False))
        return future

    def stop(self, last: Callable[[], None]) -> None:
        """Finish what is queued and end the thread, `last` being the last that is written."""
        self.call(last)
        self._inbox.put(None)
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
            jobs = self._inbox.take(GROUP_REQUESTS)
            appends = [job for job in jobs if isinstance(job, Append)]
            if appends:
                self._answer_all(appends)
            for job in jobs:
                if isinstance(job, Call):
                    self._perform(job)
            running = jobs[-1] is not None

    def _answer_all(self, appends: Sequence[Append]) -> None:
        try:
            answers = self._commit(appends)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, those who wait must hear of it, and the thread must live on.
            answers = [error] * len(appends)
        _answer(appends, answers)
        # All have been answered; what goes wrong from here on, the next commit or a reader meets.
        with suppress(Exception):
            self._mark_head()
            self._merge_when_due()
            self._committed()

    def _commit(self, appends: Sequence[Append]) -> list[_Answer]:
        state = self.state
        ids = [entry.fact.id for request in appends for entry in request.entries]
        digests = id_digests(ids)
        doubtful = state.doubtful(ids, digests)
        first = state.place.head + 1
        group = Group(state, epoch=state.epoch, first=first, doubtful=doubtful)
        answers = _admitted(group, appends)
        if group.lines:
            try:
                self._write(group, digests if len(group.lines) == len(ids) else None)
            except JournalError as error:
                return [copy(error) if isinstance(each, Appended) else each for each in answers]
        return answers

    def _write(self, group: Group, digests: Sequence[bytes] | None) -> None:
        """Make a group durable and take it in; `digests` are those of its ids, where known."""
        parts = _parts(group)
        chunks = _chunks(self.state.place.hash, parts)
        self._store(chunks)
        ids = [entry.fact.id for entry in group.entries]
        recent = self.state.recent
        recent.add(ids, digests or id_digests(ids), range(group.first, group.first + len(ids)))
        recent.keys += [(part.first, part.keys) for part in parts]
        self.state.advance(chunks[-1], group)
        self._announce(chunks)

    def _store(self, chunks: Sequence[Chunk]) -> None:
        """Write chunks as one transaction."""
        if len(chunks) > 1:
            self.transact(lambda: self._insert(chunks))
        else:
            # One statement is a transaction by itself, and gives the interpreter away only once:
            # from its first byte until it is synced, the event loop has it.
            with self._undoing():
                self._insert(chunks)

    def _insert(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            insert_chunk(self._connection, chunk)

    def _announce(self, chunks: Sequence[Chunk]) -> None:
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
        with self._undoing():
            self._connection.execute("BEGIN IMMEDIATE")
            result = function()
            self._connection.execute("COMMIT")
            return result

    @contextmanager
    def _undoing(self) -> Generator[None]:
        try:
            yield
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


def _admitted(group: Group, appends: Sequence[Append]) -> list[_Answer]:
    """What each request is answered, if the group can be committed."""
    answers: list[_Answer] = []
    for request in appends:
        try:
            answers.append(group.admit(request.entries, request.expected))
        except JournalError as error:
            answers.append(error)
        except DAMAGE as error:
            answers.append(JournalCorrupt(str(error)))
        except apsw.Error as error:
            answers.append(JournalUnwritable(str(error)))
    return answers


def _parts(group: Group) -> list[Part]:
    keys = [entry.keys for entry in group.entries]
    parts: list[Part] = []
    start = 0
    for end in _ends(group.lines):
        parts.append(Part(group.first + start, group.lines[start:end], grouped(keys[start:end])))
        start = end
    return parts


def _chunks(prev: bytes, parts: Sequence[Part]) -> list[Chunk]:
    chunks: list[Chunk] = []
    for part in parts:
        chunks.append(new_chunk(prev, part.first, part.lines, part.keys))
        prev = chunks[-1].hash
    return chunks


def _ends(lines: Sequence[bytes]) -> Iterator[int]:
    """Where chunks end."""
    start = size = 0
    if len(lines) > CHUNK_FACTS or sum(map(len, lines)) > CHUNK_BYTES:
        for end, line in enumerate(lines, start=1):
            size += len(line)
            if end - start == CHUNK_FACTS or size >= CHUNK_BYTES:
                yield end
                start, size = end, 0
    if start < len(lines):
        yield len(lines)


def _answer(appends: Sequence[Append], answers: Sequence[_Answer]) -> None:
    pairs = [*zip(appends, answers, strict=True)]
    loops = {request.future.get_loop() for request in appends}
    for loop in loops:
        own = pairs if len(loops) == 1 else [each for each in pairs if _waits_on(loop, each)]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, own)


def _waits_on(loop: asyncio.AbstractEventLoop, pair: tuple[Append, _Answer]) -> bool:
    return pair[0].future.get_loop() is loop


def _settle(pairs: Sequence[tuple[Append, _Answer]]) -> None:
    for request, answer in pairs:
        future = request.future
        if future.done():
            continue
        if isinstance(answer, Appended):
            future.set_result(answer)
        else:
            future.set_exception(answer)
