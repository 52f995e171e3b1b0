"""The one writer: a thread that commits whatever has gathered, in one transaction.

Each request is admitted on its own, over what the requests before it in the group have staged, so
a refusal touches nobody else. State moves only after the commit; a commit that fails leaves
everything as it was, and the next one is free to succeed.

One process writes, held by a lock that dies with its holder. After each commit it marks how far it
has come, without a sync: a journal whose mark is ahead of its chain, or whose file is another one
than noted inside, is an older copy and gets a new epoch. A mark that lags behind is fine.
"""

import asyncio
import errno
import fcntl
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import copy
from hashlib import sha256
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, TypeVar

import apsw
import msgspec

from factwire.facts.fact import id_of
from factwire.journal.admission import PreparedFact
from factwire.journal.chunks import Chunk, build_chunk, group_by_keys, merge_chunks
from factwire.journal.commit_group import CommitGroup
from factwire.journal.errors import JournalBusy, JournalCorrupt, JournalError, JournalUnwritable
from factwire.journal.filter import Groups, Keys
from factwire.journal.followers import CommitSignal
from factwire.journal.protocol import AppendResult
from factwire.journal.sqlite.indexes import digest_ids
from factwire.journal.sqlite.journal_state import WriterState, insert_private_threads
from factwire.journal.sqlite.reader_pool import ChunkRing
from factwire.journal.sqlite.schema import DAMAGE, insert_chunk, roll_back


def _open_beside(path: str, flags: int) -> int:
    """A file beside a journal. A link there, as in a cloned repository, would have its target
    overwritten, and a pipe would be waited for.
    """
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


class WriterLock:
    """An exclusive lock on `PATH-lock`, in which the holder leaves its process id."""

    def __init__(self, path: str) -> None:
        self._file = _open_beside(f"{path}-lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise JournalBusy(path, int(holder) if holder.isdigit() else None) from None
        # A full disk must not keep a journal from being opened; the lock itself is what counts.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        os.close(self._file)


_SUM: Final = 16


class HeadMark(msgspec.Struct, frozen=True, array_like=True):
    """How far the journal had come, and the chain's hash there."""

    seq: int
    hash: bytes


class MarkFile:
    """`PATH-mark`, rewritten in place."""

    def __init__(self, path: str) -> None:
        self._file = _open_beside(f"{path}-mark", os.O_RDWR | os.O_CREAT)

    def write(self, mark: HeadMark) -> None:
        body = msgspec.msgpack.encode(mark)
        # Without this write the mark lags behind, which is allowed; the commit stands either way.
        with suppress(OSError):
            os.pwrite(self._file, sha256(body).digest()[:_SUM] + body, 0)

    def close(self) -> None:
        os.close(self._file)


def read_mark(path: str) -> HeadMark | None:
    """The mark beside a journal; None where there is none, or one that a power cut tore."""
    try:
        with open(_open_beside(f"{path}-mark", os.O_RDONLY), "rb") as file:
            content = file.read(256)
    except FileNotFoundError:
        return None
    for end in range(_SUM + 1, len(content) + 1):
        if sha256(content[_SUM:end]).digest()[:_SUM] == content[:_SUM]:
            return msgspec.msgpack.decode(content[_SUM:end], type=HeadMark)
    return None


def read_file_identity(path: str) -> str:
    """What makes this file another one than a copy of it."""
    found = os.stat(path)  # noqa: PTH116
    return f"{found.st_dev}:{found.st_ino}"


T = TypeVar("T")


class Inbox(Generic[T]):
    """In order of arrival; one thread alone may take."""

    def __init__(self) -> None:
        self._jobs: deque[T] = deque()
        self._waits = False
        self._bell: SimpleQueue[None] = SimpleQueue()

    def put(self, job: T) -> None:
        self._jobs.append(job)
        if self._waits:
            self._waits = False
            self._bell.put(None)

    def take(self, most: int) -> list[T]:
        """What there is, at least one and at most so many; waits for the first."""
        jobs = self._jobs
        while not jobs:
            self._waits = True
            if not jobs:
                self._bell.get()
        take = jobs.popleft
        return [take() for _ in range(min(most, len(jobs)))]


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


class SqliteAppend(msgspec.Struct, gc=False):
    """A batch and who waits for it to be durable."""

    future: "asyncio.Future[AppendResult]"
    entries: Sequence[PreparedFact]
    expected: Mapping[str, int | None] | None


class WriterCall(msgspec.Struct):
    """Something else to do on the writer's thread; `then` follows once it is committed."""

    function: Callable[[], Any]
    then: Callable[[], None] | None
    future: "Future[Any]"
    writes: bool


class ChunkPart(msgspec.Struct):
    """The facts of a group that become one chunk."""

    first: int
    lines: Sequence[bytes]
    keys: Groups


_Answer = AppendResult | Exception


class SqliteWriter:
    """Owns the writing connection and its thread; `committed` is told after each commit."""

    def __init__(
        self,
        state: WriterState,
        *,
        bell: CommitSignal,
        ring: ChunkRing,
        mark: MarkFile,
        on_commit: Callable[[], None],
    ) -> None:
        self.state = state
        self._connection = state.connection
        self._bell = bell
        self._ring = ring
        self._mark = mark
        self._on_commit = on_commit
        self._loose: list[Chunk] = []
        self._loose_bytes = 0
        self._ended: list[Chunk] = []
        self._inbox: Inbox[SqliteAppend | WriterCall | None] = Inbox()
        self._thread = Thread(target=self._run, name="factwire-writer", daemon=True)

    def start(self) -> None:
        self._mark_head()
        self._thread.start()

    def append(
        self, entries: Sequence[PreparedFact], expected: Mapping[str, int | None] | None
    ) -> "asyncio.Future[AppendResult]":
        """Queue a batch; the future is done when the batch is durable, or refused."""
        future: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        self._inbox.put(SqliteAppend(future, entries, expected))
        return future

    def call(
        self, function: Callable[[], T], then: Callable[[], None] | None = None
    ) -> "Future[T]":
        """Queue a function that writes, in a transaction of its own."""
        future: Future[T] = Future()
        self._inbox.put(WriterCall(function, then, future, writes=True))
        return future

    def inspect(self, function: Callable[[], T]) -> "Future[T]":
        """Queue a function that needs the writer's state to hold still, and writes nothing."""
        future: Future[T] = Future()
        self._inbox.put(WriterCall(function, None, future, writes=False))
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

    def note_chain_change(self) -> None:
        """Take note that a call changed the chain."""
        self._loose, self._loose_bytes = [], 0
        self._mark_head()

    def note_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Take note of chunks that a call committed, as of those that were appended."""
        self._announce(chunks)
        self._finish_commit()

    def _run(self) -> None:
        running = True
        while running:
            jobs = self._inbox.take(GROUP_REQUESTS)
            appends = [job for job in jobs if isinstance(job, SqliteAppend)]
            if appends:
                self._answer_all(appends)
            for job in jobs:
                if isinstance(job, WriterCall):
                    self._perform(job)
            running = jobs[-1] is not None

    def _answer_all(self, appends: Sequence[SqliteAppend]) -> None:
        try:
            answers = self._commit(appends)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, those who wait must hear of it, and the thread must live on.
            answers = [error] * len(appends)
        _answer(appends, answers)
        self._finish_commit()

    def _finish_commit(self) -> None:
        # All have been answered; what goes wrong from here on, the next commit or a reader meets.
        with suppress(Exception):
            self._mark_head()
            self._merge_when_due()
            self._on_commit()

    def _commit(self, appends: Sequence[SqliteAppend]) -> list[_Answer]:
        state = self.state
        ids = [entry.fact.id for request in appends for entry in request.entries]
        digests = digest_ids(ids)
        doubtful = state.doubtful(ids, digests)
        first = state.place.head + 1
        group = CommitGroup(state, epoch=state.epoch, first=first, doubtful=doubtful)
        answers = _admit_appends(group, appends)
        if group.lines:
            try:
                self._write(group, digests if len(group.lines) == len(ids) else None)
            except JournalError as error:
                return [copy(error) if isinstance(each, AppendResult) else each for each in answers]
        return answers

    def _write(self, group: CommitGroup, digests: Sequence[bytes] | None) -> None:
        """Make a group durable and take it in; `digests` are those of its ids, where known."""
        state = self.state
        descendants = _find_descendants(group, state.private) if state.private else {}
        if descendants:
            # Before the commit: a kill in between leaves nothing public of these threads.
            self.transact(lambda: insert_private_threads(self._connection, descendants))
            state.note_private(descendants)
        parts = _cut_parts(group, state.private_keys)
        chunks = _build_chunks(state.place.hash, parts)
        self._store(chunks)
        ids = [entry.fact.id for entry in group.entries]
        recent = self.state.recent
        recent.add(ids, digests or digest_ids(ids), range(group.first, group.first + len(ids)))
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
            with self._roll_back_on_error():
                self._insert(chunks)

    def _insert(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            insert_chunk(self._connection, chunk)

    def _announce(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self._ring.add(chunk)
            self._note_loose(chunk)
        self._bell.notify()

    def _note_loose(self, chunk: Chunk) -> None:
        # A record stands between two chunks of a mirror that do not follow each other.
        if self._loose and self._loose[-1].hash != chunk.prev:
            self._end_loose()
        if chunk.facts >= LOOSE_FACTS or chunk.seqs is not None:
            self._end_loose()
            return
        self._loose.append(chunk)
        self._loose_bytes += len(chunk.data)
        if self._loose_bytes >= CHUNK_BYTES or len(self._loose) >= LOOSE_CHUNKS:
            self._end_loose()

    def _end_loose(self) -> None:
        if self._loose:
            self._ended, self._loose, self._loose_bytes = self._loose, [], 0

    def _merge_when_due(self) -> None:
        ended, self._ended = self._ended, []
        if len(ended) >= LOOSE_ENOUGH:
            # Merging only makes reading faster; the next append hears of a full disk anyway.
            with suppress(JournalUnwritable):
                self.transact(lambda: self._merge(ended))

    def _merge(self, loose: Sequence[Chunk]) -> None:
        whole = merge_chunks(loose)
        self._connection.execute(
            "DELETE FROM chunks WHERE first BETWEEN ? AND ?", (whole.first, whole.last)
        )
        insert_chunk(self._connection, whole)

    def _perform(self, call: WriterCall) -> None:
        # What nobody waits for any more is not begun, and what has begun cannot be cancelled.
        if not call.future.set_running_or_notify_cancel():
            return
        try:
            result = self.transact(call.function) if call.writes else call.function()
            if call.then is not None:
                call.then()
            call.future.set_result(result)
        except Exception as error:  # noqa: BLE001
            call.future.set_exception(error)

    def transact(self, function: Callable[[], T]) -> T:
        """Run a function in a transaction; the disk's refusal becomes `JournalUnwritable`."""
        with self._roll_back_on_error():
            self._connection.execute("BEGIN IMMEDIATE")
            result = function()
            self._connection.execute("COMMIT")
            return result

    @contextmanager
    def _roll_back_on_error(self) -> Generator[None]:
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
        self._mark.write(HeadMark(self.state.place.head, self.state.place.hash))


def _admit_appends(group: CommitGroup, appends: Sequence[SqliteAppend]) -> list[_Answer]:
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


def _find_descendants(group: CommitGroup, private: Mapping[str, int]) -> dict[str, int]:
    """Threads that begin below a private one, such as those of subagents and forks: they are
    private from their first fact on.
    """
    found: dict[str, int] = {}
    for seq, entry, _, _ in group.list_placed():
        thread = entry.thread
        if thread is None or thread in private or thread in found:
            continue
        parent = id_of(entry.fact, "parentThreadId")
        if parent is not None and (parent in private or parent in found):
            found[thread] = seq - 1
    return found


def _cut_parts(group: CommitGroup, private: AbstractSet[str]) -> list[ChunkPart]:
    """The chunks of a group; none has both facts with private keys and facts without."""
    keys = [entry.keys for entry in group.entries]
    ends = list(_find_chunk_ends(group.lines))
    if private:
        ends = sorted({*ends, *_find_privacy_changes(keys, private)})
    parts: list[ChunkPart] = []
    start = 0
    for end in ends:
        parts.append(
            ChunkPart(group.first + start, group.lines[start:end], group_by_keys(keys[start:end]))
        )
        start = end
    return parts


def _find_privacy_changes(keys: Sequence[Keys], private: AbstractSet[str]) -> Iterator[int]:
    """Where facts that stay in this journal meet others."""
    before = private.isdisjoint(keys[0])
    for at, own in enumerate(keys):
        is_public = private.isdisjoint(own)
        if is_public != before:
            yield at
        before = is_public


def _build_chunks(prev: bytes, parts: Sequence[ChunkPart]) -> list[Chunk]:
    chunks: list[Chunk] = []
    for part in parts:
        chunks.append(build_chunk(prev, part.first, part.lines, part.keys))
        prev = chunks[-1].hash
    return chunks


def _find_chunk_ends(lines: Sequence[bytes]) -> Iterator[int]:
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


def _answer(appends: Sequence[SqliteAppend], answers: Sequence[_Answer]) -> None:
    pairs = [*zip(appends, answers, strict=True)]
    loops = {request.future.get_loop() for request in appends}
    for loop in loops:
        own = pairs if len(loops) == 1 else [each for each in pairs if _is_waiting_on(loop, each)]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, own)


def _is_waiting_on(loop: asyncio.AbstractEventLoop, pair: tuple[SqliteAppend, _Answer]) -> bool:
    return pair[0].future.get_loop() is loop


def _settle(pairs: Sequence[tuple[SqliteAppend, _Answer]]) -> None:
    for request, answer in pairs:
        future = request.future
        if future.done():
            continue
        if isinstance(answer, AppendResult):
            future.set_result(answer)
        else:
            future.set_exception(answer)
