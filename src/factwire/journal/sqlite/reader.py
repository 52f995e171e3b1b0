"""Reading without holding up anyone: a few connections, each used by one thread at a time."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue
from typing import Final, TypeVar

import apsw
import msgspec

from factwire.journal.chunk import Chunk, Stretch, stretch_of
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter
from factwire.journal.sqlite.database import Database
from factwire.journal.sqlite.rows import chunk_at, chunks_after, outlines_after, reading
from factwire.journal.sqlite.schema import get_meta
from factwire.journal.sqlite.segments import Segments

READERS: Final = 4
"""Reading connections of a journal."""

FETCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes of lines that one trip to a reading thread brings back, more or less."""

T = TypeVar("T")


class Fetched(msgspec.Struct, frozen=True):
    """Stretches, and the seq up to which they leave nothing out."""

    stretches: list[Stretch]
    reached: int


class ReaderPool:
    """Runs functions on reading connections, off the event loop, in a read transaction each."""

    def __init__(self, connect: Callable[[], Database]) -> None:
        self._connections: LifoQueue[Database] = LifoQueue()
        self._connect = connect
        _keep_freed_memory()
        for _ in range(READERS):
            self._connections.put(connect())
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="factwire-reader")

    async def run(self, function: Callable[[Database], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._run, function)

    def close(self) -> None:
        self._threads.shutdown()
        while not self._connections.empty():
            self._connections.get().close()

    def _run(self, function: Callable[[Database], T]) -> T:
        connection = self._connections.get()
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
            connection = self._connect()
            if isinstance(error, apsw.Error):
                raise JournalCorrupt(f"reading failed: {error}") from error
            raise
        finally:
            self._connections.put(connection)


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
