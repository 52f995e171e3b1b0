"""The way of output: pipe, bytes, text, redacted text, log, batches, feed.

Pipes never block; a log is readable while the process runs and afterwards; the feed keeps order
for its one reader.
"""

import asyncio
import os
import re
import shutil
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from factwire.facts import Ref
from factwire.facts.delta_redaction import DeltaRedactor
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs import BlobStore
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.processes import limits
from factwire.runtime.processes.process_spec import (
    STREAMS,
    Batch,
    Batches,
    InputClosed,
    InputPiece,
    LogUnavailable,
    OutputPiece,
    Stream,
    Utf8Text,
    whole_characters,
)

_CLOSED: Final = -1


class ReadPipe:
    """Gives what there is; an empty read is the end."""

    def __init__(self, file: int) -> None:
        os.set_blocking(file, False)
        self._file = file
        self._ready: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether a reader waits for a program to write, rather than the other way round."""
        return self._ready is not None

    async def read(self) -> bytes:
        while self._file != _CLOSED:
            try:
                return os.read(self._file, limits.READ_BYTES)
            except BlockingIOError:
                await self._readable()
        return b""

    def close(self) -> None:
        """End it, for a reader that waits as well."""
        if self._file == _CLOSED:
            return
        file, self._file = self._file, _CLOSED
        if self._ready is not None:
            _wake(self._ready)
            asyncio.get_running_loop().remove_reader(file)
        os.close(file)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        file, self._ready = self._file, loop.create_future()
        loop.add_reader(file, _wake, self._ready)
        try:
            await self._ready
        finally:
            self._ready = None
            if self._file != _CLOSED:
                loop.remove_reader(file)


class WritePipe:
    """Takes input, one writer after the other; waits while the program does not read."""

    def __init__(self, file: int) -> None:
        os.set_blocking(file, False)
        self._file = file
        self._turn = asyncio.Lock()
        self._ready: asyncio.Future[None] | None = None

    async def write(self, data: bytes, *, written: Callable[[], None] = lambda: None) -> None:
        """Write all of it; `written` is called before the next writer may start."""
        async with self._turn:
            view = memoryview(data)
            while view:
                view = view[await self._some(view) :]
            written()

    def close(self) -> None:
        if self._file == _CLOSED:
            return
        file, self._file = self._file, _CLOSED
        if self._ready is not None:
            _wake(self._ready)
            asyncio.get_running_loop().remove_writer(file)
        os.close(file)

    async def finish(self) -> None:
        """Close after what is being written."""
        async with self._turn:
            self.close()

    async def _some(self, view: memoryview) -> int:
        while self._file != _CLOSED:
            try:
                return os.write(self._file, view)
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                break
        raise InputClosed("the program no longer accepts input")

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        file, self._ready = self._file, loop.create_future()
        loop.add_writer(file, _wake, self._ready)
        try:
            await self._ready
        finally:
            self._ready = None
            if self._file != _CLOSED:
                loop.remove_writer(file)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


Event = TypeVar("Event")


class ProcessFeed(Generic[Event]):
    """`wait_for_room` waits at `limit`; without one, the writer knows a bound."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._events: deque[tuple[Event, int]] = deque()
        self._size = 0
        self._open = True
        self._kept = True
        self._changed = asyncio.Event()

    @property
    def pending_bytes(self) -> int:
        """The size of what was not taken yet."""
        return self._size

    def put(self, event: Event, size: int = 0) -> None:
        if self._kept:
            self._events.append((event, size))
            self._size += size
            self._changed.set()

    async def wait_for_room(self) -> None:
        """Wait until there is room, or nobody reads any more."""
        while self._kept and self._limit is not None and self._size >= self._limit:
            self._changed.clear()
            await self._changed.wait()

    def lift(self) -> None:
        """Make room without end: what still comes is known to be little."""
        self._limit = None
        self._changed.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._open = False
        self._changed.set()

    def abandon(self) -> None:
        """Nobody will read: drop what waits and all that comes."""
        self._kept = False
        self._events.clear()
        self._size = 0
        self.close()

    async def read(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event, size = self._events.popleft()
                self._size -= size
                self._changed.set()
                yield event
            if not self._open:
                return
            self._changed.clear()
            await self._changed.wait()


PROCESS_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""An id that is safe as the name of a file."""

_COPY_BYTES: Final = 256 * 1024


class LogFolder:
    """The logs of all processes, by id."""

    def __init__(self, path: Path, blobs: BlobStore | None = None) -> None:
        self._path = path
        self._blobs = blobs

    def create(self, process_id: str) -> "ProcessLog":
        folder = self._folder(process_id)
        folder.mkdir(mode=0o700, parents=True)
        return ProcessLog(folder, self._blobs)

    async def read(self, process_id: str, stream: Stream, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on; empty at or past the end."""
        if stream not in STREAMS or offset < 0 or length < 0:
            raise LogUnavailable(f"expected a stream and a range, got {stream!r} from {offset}")
        folder = self._folder(process_id)
        length = min(length, limits.LOG_READ_BYTES)
        with suppress(FileNotFoundError):
            return await run_disk_work(_read_file, folder / stream, offset, length)
        try:
            ref = (await run_disk_work((folder / f"{stream}.ref").read_bytes)).decode()
        except FileNotFoundError:
            raise LogUnavailable(f"process {process_id} has no log") from None
        if self._blobs is None:
            raise LogUnavailable(
                f"the log is stored as {ref}, but there is no blob store to read it from"
            )
        pieces = self._blobs.get(ref, start=offset, end=offset + length)
        return b"".join([piece async for piece in pieces])

    def remove(self, process_id: str) -> None:
        """Remove what is kept here; a blob goes with the facts that name it."""
        shutil.rmtree(self._folder(process_id), ignore_errors=True)

    def _folder(self, process_id: str) -> Path:
        if not PROCESS_ID.fullmatch(process_id):
            raise LogUnavailable(f"{process_id!r} is not the id of a process")
        return self._path / process_id


class ProcessLog:
    """The log of one process while it is written. A disk that takes no more ends the log, never
    the program: `error` says so.
    """

    def __init__(self, folder: Path, blobs: BlobStore | None) -> None:
        self._folder = folder
        self._blobs = blobs
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._files = {stream: os.open(folder / stream, flags, 0o600) for stream in STREAMS}
        self.sizes: dict[Stream, int] = dict.fromkeys(STREAMS, 0)
        self.error: str | None = None

    async def append(self, stream: Stream, data: bytes) -> None:
        if self.error is not None:
            return
        try:
            await run_disk_work(_write_all, self._files[stream], data)
        except OSError as error:
            self.error = error.strerror or str(error)
        else:
            self.sizes[stream] += len(data)

    async def move(self, stream: Stream) -> Ref | None:
        """Move a stream to the blob store; None, and nothing is lost, where that is not possible.

        The ref is written before the file goes, so that a reader finds one of them.
        """
        if self._blobs is None:
            return None
        path = self._folder / stream
        try:
            ref = await self._blobs.put(_pieces(path), kind="output")
            await run_disk_work(partial(_leave_ref, path, ref.ref))
        except Exception as error:  # noqa: BLE001 - any store may fail in its own way; the file stays
            self.error = f"the log was not stored as a blob and remains a file: {error}"
            return None
        return ref

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _read_file(path: Path, offset: int, length: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # The system refuses an offset that no file can have.
        return os.pread(file, length, offset) if offset < os.fstat(file).st_size else b""
    finally:
        os.close(file)


def _leave_ref(path: Path, ref: str) -> None:
    replace_file(path.with_suffix(".ref"), ref.encode())
    path.unlink()


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    at = 0
    while piece := await run_disk_work(_read_file, path, at, _COPY_BYTES):
        yield piece
        at += len(piece)


ProcessEvent = OutputPiece | InputPiece


class ProcessOutput:
    """Both streams of one process; without a log, it is a protocol."""

    def __init__(
        self,
        feed: ProcessFeed[ProcessEvent],
        *,
        log: ProcessLog | None,
        cap: int,
        batch_seconds: float,
        batch_bytes: int,
    ) -> None:
        self._feed = feed
        self._log = log
        self._left = cap
        self._cut: dict[Stream, int] = {}
        self._redactor = DeltaRedactor()
        self._batches = Batches(seconds=batch_seconds, size=batch_bytes)
        self._timer: asyncio.TimerHandle | None = None

    async def pump(self, pipe: ReadPipe, stream: Stream) -> None:
        """Take all of a pipe; returns at its end."""
        text = Utf8Text()
        try:
            while data := await pipe.read():
                await self._take(stream, text.feed(data))
            await self._take(stream, text.end(), last=True)
        finally:
            pipe.close()

    async def finish(self) -> None:
        """Tell the rest, and where what was cut off is."""
        self._flush()
        for stream, offset in self._cut.items():
            if self._log is not None:
                written = self._log.sizes[stream]
                ref = await self._log.move(stream)
                piece = OutputPiece(
                    stream=stream,
                    offset=offset,
                    text="",
                    truncated=True,
                    bytes_written=written,
                    ref=ref,
                )
                self._feed.put(piece)

    async def _take(self, stream: Stream, text: str, *, last: bool = False) -> None:
        if self._log is None:
            # Whoever speaks a protocol waits for what was said.
            self._show(stream, text.encode())
            self._flush()
            await self._feed.wait_for_room()
            return
        shown, _ = self._redactor.feed(stream, text)
        if last:
            shown += self._redactor.flush(stream)[0]
        data = shown.encode()
        if data:
            await self._log.append(stream, data)
            self._show_capped(stream, data)

    def _show_capped(self, stream: Stream, data: bytes) -> None:
        if stream in self._cut:
            return
        fits = whole_characters(data, self._left)
        self._left -= fits
        self._show(stream, data[:fits])
        if fits == len(data):
            return
        # One byte more than the cap on either stream ends both: the order stays true.
        self._left = 0
        self._flush()
        offset = self._batches.offsets[stream]
        self._cut[stream] = offset
        self._feed.put(OutputPiece(stream=stream, offset=offset, text="", truncated=True))

    def _show(self, stream: Stream, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._put_batches(self._batches.add(stream, data, loop.time()))
        due = self._batches.due
        if due is not None and self._timer is None:
            self._timer = loop.call_at(due, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._put_batches(self._batches.flush())

    def _put_batches(self, batches: list[Batch]) -> None:
        for batch in batches:
            piece = OutputPiece(stream=batch.stream, offset=batch.offset, text=batch.text)
            self._feed.put(piece, len(batch.text))
        if batches and self._timer is not None and self._batches.due is None:
            self._timer.cancel()
            self._timer = None
