"""The log of a process: all of its output, readable by bytes while it runs and afterwards.

Each stream is a file that only grows. What came through the cap of a run stays a file; a longer
log moves to the blob store when the program has ended, and the file leaves the ref in its place.
Memory does not depend on the length of a log. Ids of processes are checked before they name files.
"""

import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from factwire.facts import Ref
from factwire.journal.blobs import BlobStore
from factwire.journal.blobs.disk import on_disk
from factwire.runtime.processes import limits
from factwire.runtime.processes.batches import STREAMS, Stream
from factwire.runtime.processes.errors import LogUnavailable

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
            return await on_disk(_read_file, folder / stream, offset, length)
        try:
            ref = (await on_disk((folder / f"{stream}.ref").read_bytes)).decode()
        except FileNotFoundError:
            raise LogUnavailable(f"there is no log of process {process_id}") from None
        if self._blobs is None:
            raise LogUnavailable(f"the log is {ref}, and no blob store was given to read it from")
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
            await on_disk(_write_all, self._files[stream], data)
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
            await on_disk(partial(_leave_ref, path, ref.ref))
        except Exception as error:  # noqa: BLE001 - any store may fail in its own way; the file stays
            self.error = f"the log stays a file: {error}"
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
        return os.pread(file, length, offset)
    finally:
        os.close(file)


def _leave_ref(path: Path, ref: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(ref.encode())
    unfinished.replace(path.with_suffix(".ref"))
    path.unlink()


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    at = 0
    while piece := await on_disk(_read_file, path, at, _COPY_BYTES):
        yield piece
        at += len(piece)
