"""Reading without holding up anyone: a few connections, each used by one thread at a time."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import apsw
import msgspec

from factwire.journal.chunk import Chunk, Stretch, stretch_of
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.rows import (
    chunk_at,
    chunks_after,
    extents_after,
    outlines_after,
    reading,
)
from factwire.journal.sqlite.schema import get_meta
from factwire.journal.sqlite.segments import Segments

READERS: Final = 4
"""Reading connections of a journal."""


FETCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes of lines that one trip to a reading thread brings back, more or less."""

PLANNED_CHUNKS: Final = 1_024
"""Chunks that a trip looks ahead at, to say where those after it end."""

T = TypeVar("T")


class Fetched(msgspec.Struct, frozen=True):
    """Stretches, the seq up to which they leave nothing out, and where later trips may end."""

    stretches: list[Stretch]
    reached: int
    cuts: tuple[int, ...] = ()


class Lane:
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
            with reading():
                connection.execute("BEGIN")
                result = function(connection)
                connection.execute("COMMIT")
                return result
        except BaseException as error:
            # What failed may have left a statement open, which would pin this connection to the
            # past; a new one takes its place.
            connection.close(True)  # noqa: FBT003
            self._connection = self._connect()
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
        self._lanes = [Lane(number, connect) for number in range(READERS)]
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
    segments: Segments,
) -> Fetched:
    """What lies past `after` and up to `upto`, as much as one trip brings."""
    if wanted is None and limit is None:
        return _fetch_whole(connection, epoch, after, upto)
    left, size = limit, 0
    found: list[Stretch] = []
    for chunk in _chunks(connection, wanted, after, upto, segments):
        stretch = stretch_of(chunk, epoch, after=after, wanted=wanted, limit=left)
        if stretch.seqs or wanted is None:
            found.append(stretch)
            size += len(stretch.data)
            left = None if left is None else left - len(stretch.seqs)
        if left == 0 or size >= FETCH_BYTES:
            return Fetched(found, stretch.last)
    return Fetched(found, max(upto, found[-1].last if found else upto))


def _fetch_whole(connection: Database, epoch: str, after: int, upto: int) -> Fetched:
    """Chunks as they are; only the first may have to be cut."""
    found: list[Stretch] = []
    size = 0
    for extent in extents_after(connection, after, upto):
        cut = extent.first <= after
        found.append(
            stretch_of(extent.chunk(), epoch, after=after) if cut else extent.stretch(epoch)
        )
        size += len(extent.data)
        if size >= FETCH_BYTES:
            return Fetched(found, extent.last, _cuts(connection, extent.last, upto))
    return Fetched(found, found[-1].last if found else upto)


def _cuts(connection: Database, after: int, upto: int) -> tuple[int, ...]:
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


def _chunks(
    connection: Database, wanted: Filter | None, after: int, upto: int, segments: Segments
) -> Iterator[Chunk]:
    if wanted is None:
        return chunks_after(connection, after, upto)
    firsts = _candidates(connection, wanted, after, upto, segments)
    return (chunk_at(connection, first) for first in firsts)


def _candidates(
    connection: Database, wanted: Filter, after: int, upto: int, segments: Segments
) -> Iterator[int]:
    sealed = get_meta(connection, "sealed")
    ends = sealed if isinstance(sealed, int) else 0
    if after < ends:
        yield from segments.candidates(connection, wanted, after, min(upto, ends))
    if upto > ends:
        for outline in outlines_after(connection, max(after, ends), upto):
            if wanted.select(outline.groups()):
                yield outline.first
