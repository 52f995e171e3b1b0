"""Reading without holding up anyone: a few connections, each used by one thread at a time.

Beside them, the newest chunks in memory, shared by all followers. A follower is only a position: it
takes what lies past it, or learns that the ring has moved on and reads from disk. What a slow
follower costs is therefore nothing, and what the ring costs a number.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Final, TypeVar

import apsw
import msgspec

from factwire.journal.chunks import Chunk, FactBatch, select_batch
from factwire.journal.errors import JournalCorrupt, JournalUnavailable
from factwire.journal.filter import Filter, Groups
from factwire.journal.sqlite.indexes import SegmentCache
from factwire.journal.sqlite.journal_state import load_record
from factwire.journal.sqlite.schema import (
    Database,
    get_meta,
    load_chunk_at,
    load_chunks_after,
    load_extents_after,
    load_outlines_after,
    translate_damage,
)

RING_BYTES: Final = 4 * 1024 * 1024
"""Bytes of lines that the ring holds on to."""


class RingChunk:
    """A chunk in the ring; its index is decoded for the first who filters."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._groups: Groups | None = None

    def to_batch(self, epoch: str, after: int, wanted: Filter | None) -> FactBatch:
        if wanted is not None and self._groups is None:
            self._groups = self.chunk.groups()
        return select_batch(self.chunk, epoch, after=after, wanted=wanted, groups=self._groups)


class ChunkRing:
    """Filled by the writer, read by followers of any thread."""

    def __init__(self) -> None:
        self._held: deque[RingChunk] = deque()
        self._bytes = 0
        self._lock = Lock()

    def add(self, chunk: Chunk) -> None:
        with self._lock:
            self._held.append(RingChunk(chunk))
            self._bytes += len(chunk.data)
            while self._bytes > RING_BYTES and len(self._held) > 1:
                self._bytes -= len(self._held.popleft().chunk.data)

    def since(self, position: int) -> list[RingChunk] | None:
        """Everything past a position, or None where the ring no longer has all of it."""
        with self._lock:
            if not self._held or self._held[0].chunk.first > position + 1:
                return None
            newer: list[RingChunk] = []
            for held in reversed(self._held):
                if held.chunk.last <= position:
                    break
                newer.append(held)
        return newer[::-1]


READERS: Final = 4
"""Reading connections of a journal."""


FETCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes of lines that one trip to a reading thread brings back, more or less."""

PLANNED_CHUNKS: Final = 1_024
"""Chunks that a trip looks ahead at, to say where those after it end."""

T = TypeVar("T")


class FetchResult(msgspec.Struct, frozen=True):
    """Stretches, the seq up to which they leave nothing out, and where later trips may end."""

    batches: list[FactBatch]
    reached: int
    cuts: tuple[int, ...] = ()


_NO_ROOM: Final = (apsw.CantOpenError, apsw.FullError)
"""What SQLite raises where a disk has no room, or no inode, for the files that it reads beside the
database: nothing is wrong with the journal."""


class ReaderThread:
    """A thread and the connection that only it uses; `load` is what waits for it or runs."""

    def __init__(self, number: int, connect: Callable[[], Database]) -> None:
        self.load = 0
        self._connect = connect
        self._connection = connect()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"factwire-reader-{number}")

    def submit(self, function: Callable[[Database], T]) -> "Future[T]":
        self.load += 1
        return self._thread.submit(self._run, function)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _run(self, function: Callable[[Database], T]) -> T:
        connection = self._connection
        try:
            with translate_damage():
                connection.execute("BEGIN")
                result = function(connection)
                connection.execute("COMMIT")
                return result
        except BaseException as error:
            # What failed may have left a statement open, which would pin this connection to the
            # past; a new one takes its place.
            connection.close(True)  # noqa: FBT003
            self._connection = self._connect()
            if isinstance(error, _NO_ROOM):
                raise JournalUnavailable(f"the journal cannot be read now: {error}") from error
            if isinstance(error, apsw.Error):
                raise JournalCorrupt(f"reading failed: {error}") from error
            raise
        finally:
            self.load -= 1


class ReaderPool:
    """Runs functions on reading connections, off the event loop, in a read transaction each.

    The first lane that is free is taken. A lone reader so stays on one thread, whose memory and
    whose pages are warm; an allocator keeps what was freed for the thread that freed it.
    """

    def __init__(self, connect: Callable[[], Database]) -> None:
        _keep_freed_memory()
        self._lanes = [ReaderThread(number, connect) for number in range(READERS)]
        self.ahead = 0
        """Trips that were begun before anybody asked for what they bring."""

    def run(self, function: Callable[[Database], T]) -> "asyncio.Future[T]":
        lane = min(self._lanes, key=lambda lane: lane.load)
        return asyncio.wrap_future(lane.submit(function))

    def may_look_ahead(self) -> bool:
        """Whether one more trip may begin before it is asked for."""
        return self.ahead < READERS

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


def _keep_freed_memory() -> None:
    """Let the allocator keep what reading frees, instead of giving it back a chunk at a time.

    A freed block of this size is what tells glibc so; elsewhere it is one allocation, once.
    """
    bytes(4 * FETCH_BYTES)


def fetch(
    connection: Database,
    *,
    epoch: str,
    after: int,
    upto: int,
    wanted: Filter | None,
    limit: int | None,
    segments: SegmentCache,
) -> FetchResult:
    """What lies past `after` and up to `upto`, as much as one trip brings."""
    if wanted is None and limit is None:
        return _fetch_whole(connection, epoch, after, upto)
    left, size = limit, 0
    found: list[FactBatch] = []
    for chunk in _load_chunks(connection, wanted, after, upto, segments):
        batch = select_batch(chunk, epoch, after=after, wanted=wanted, limit=left)
        if batch.seqs or wanted is None:
            found.append(batch)
            size += len(batch.data)
            left = None if left is None else left - len(batch.seqs)
        if left == 0 or size >= FETCH_BYTES:
            return FetchResult(found, batch.last)
    return FetchResult(found, max(upto, found[-1].last if found else upto))


def _fetch_whole(connection: Database, epoch: str, after: int, upto: int) -> FetchResult:
    """Chunks as they are; only the first may have to be cut."""
    found: list[FactBatch] = []
    size = 0
    for extent in load_extents_after(connection, after, upto):
        cut = extent.first <= after
        found.append(
            select_batch(extent.to_chunk(), epoch, after=after) if cut else extent.to_batch(epoch)
        )
        size += len(extent.data)
        if size >= FETCH_BYTES:
            return FetchResult(found, extent.last, _plan_cuts(connection, extent.last, upto))
    return FetchResult(found, found[-1].last if found else upto)


def _plan_cuts(connection: Database, after: int, upto: int) -> tuple[int, ...]:
    """Where the trips after this one end, so that several can be under way."""
    sql = "SELECT last, length(data) FROM chunks WHERE first > ? AND first <= ? ORDER BY first"
    cuts: list[int] = []
    size = 0
    rows = connection.execute(f"{sql} LIMIT {PLANNED_CHUNKS}", (after, upto))
    for last, length in rows:
        size += length
        if size >= FETCH_BYTES:
            cuts.append(last)
            size = 0
    return tuple(cuts)


def _load_chunks(
    connection: Database, wanted: Filter | None, after: int, upto: int, segments: SegmentCache
) -> Iterator[Chunk]:
    if wanted is None:
        return load_chunks_after(connection, after, upto)
    firsts = _find_candidates(connection, wanted, after, upto, segments)
    return (load_chunk_at(connection, first) for first in firsts)


def _narrow_to_thread(
    connection: Database, wanted: Filter, after: int, upto: int
) -> tuple[int, int]:
    """Where sealed facts of a thread can be: the catalogue on disk has its first and its last."""
    record = None if wanted.thread is None else load_record(connection, wanted.thread)
    if record is None:
        return after, upto
    return max(after, record.first_seq - 1), min(upto, record.last_seq)


def _find_candidates(
    connection: Database, wanted: Filter, after: int, upto: int, segments: SegmentCache
) -> Iterator[int]:
    sealed = get_meta(connection, "sealed")
    ends = sealed if isinstance(sealed, int) else 0
    lower, upper = _narrow_to_thread(connection, wanted, after, min(upto, ends))
    if lower < upper:
        yield from segments.candidates(connection, wanted, lower, upper)
    if upto > ends:
        for outline in load_outlines_after(connection, max(after, ends), upto):
            if wanted.select(outline.groups()):
                yield outline.first
