"""Blobs as files: `aa/bb/<hash>` below one folder, for several processes at once.

A put writes to `incoming/`, syncs, and renames; what stands under a hash is therefore whole. Puts
hold the lock shared while they settle, a collection holds it alone for each file it removes and
looks again first: a put either comes before and makes the file young, or comes after and writes it
anew. Names are hashes from start to end, so no ref can point outside the folder.
"""

import fcntl
import os
import re
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from secrets import token_hex
from time import time_ns
from typing import Final

from factwire.facts.refs import Ref, RefKind
from factwire.journal.blobs.blob_store import (
    BLOCK,
    GRACE,
    BlobCorrupt,
    BlobStat,
    CollectedBlobs,
    Content,
    Referenced,
    Sealer,
    build_ref,
    compute_content_or_stored_size,
    compute_content_size,
    cut_blocks,
    drop_referenced,
    parse_digest,
    read_content,
    read_seal,
    run_disk_work,
    stream_pieces,
    translate_read_errors,
    translate_write_errors,
    without_own_secrets,
)

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_FAN: Final = re.compile(r"[0-9a-f]{2}")
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_SECOND: Final = 1_000_000_000


class FileBlobs:
    """Implements `BlobStore` in a folder, which the first put creates."""

    def __init__(self, path: str | Path) -> None:
        self._root = Path(path)
        self._synced: set[Path] = set()
        self._clock = time_ns

    async def put(self, content: Content, *, kind: RefKind) -> Ref:
        content = without_own_secrets(content)
        with translate_write_errors():
            if isinstance(content, bytes):
                digest = sha256(content).hexdigest()
                if await run_disk_work(self._settle, digest):
                    return build_ref(kind, digest, len(content))
            incoming = await run_disk_work(self._begin)
        try:
            async for block in cut_blocks(stream_pieces(content)):
                with translate_write_errors():
                    await run_disk_work(incoming.write, block)
            with translate_write_errors():
                await run_disk_work(self._publish, incoming)
        finally:
            await run_disk_work(incoming.close)
        return build_ref(kind, incoming.sealer.digest, incoming.sealer.size)

    async def get(
        self, ref: Ref | str, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        digest = parse_digest(ref)
        with translate_read_errors(digest):
            file = await run_disk_work(self._open, digest)
            try:
                length = os.fstat(file).st_size
                async for piece in read_content(
                    digest, length, partial(_read_pieces, file), start, end
                ):
                    yield piece
            finally:
                os.close(file)

    async def stat(self, ref: Ref | str) -> BlobStat:
        digest = parse_digest(ref)
        with translate_read_errors(digest):
            found = await run_disk_work(os.stat, self._path(digest), follow_symlinks=False)
        return BlobStat(
            bytes=compute_content_size(digest, found.st_size), stored_at=found.st_mtime_ns / _SECOND
        )

    async def exists(self, ref: Ref | str) -> bool:
        return await run_disk_work(self._path(parse_digest(ref)).is_file)

    async def collect_garbage(
        self, referenced: Referenced, *, grace: float = GRACE
    ) -> CollectedBlobs:
        before = self._clock() - round(grace * _SECOND)
        old = await run_disk_work(self._list_older, before)
        unreferenced = await drop_referenced(old, referenced)
        return await run_disk_work(self._sweep, unreferenced, before)

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:4] / digest

    def _open(self, digest: str) -> int:
        return os.open(self._path(digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _begin(self) -> "_Incoming":
        folder = self._root / "incoming"
        self._make(folder)
        return _Incoming(folder / token_hex(16))

    def _publish(self, incoming: "_Incoming") -> None:
        incoming.seal()
        digest = incoming.sealer.digest
        if self._settle(digest):
            return
        folder = self._path(digest).parent
        self._make(folder)
        with self._hold_lock(fcntl.LOCK_SH):
            now = self._clock()
            os.utime(incoming.path, ns=(now, now))
            incoming.path.replace(self._path(digest))
            _sync_folder(folder)

    def _settle(self, digest: str) -> bool:
        """Whether the content is there and sound; it then counts as put just now.

        The folder is synced even so: whoever put it first may not have come that far.
        """
        path = self._path(digest)
        if not path.exists():
            return False
        with self._hold_lock(fcntl.LOCK_SH):
            if not self._is_sound(digest):
                return False
            now = max(self._clock(), path.stat().st_mtime_ns + 1)
            os.utime(path, ns=(now, now))
            self._make(path.parent)
            _sync_folder(path.parent)
        return True

    def _is_sound(self, digest: str) -> bool:
        """Whether a later read would succeed; a put relies on no copy that it did not check."""
        try:
            file = self._open(digest)
        except FileNotFoundError:
            return False
        with os.fdopen(file, "rb", buffering=0) as stored:
            try:
                length = os.fstat(file).st_size
                size = compute_content_size(digest, length)
                read_seal(digest, size, os.pread(file, length - size, size))
            except BlobCorrupt:
                return False
            whole = sha256()
            for at in range(0, size, BLOCK):
                whole.update(stored.read(min(BLOCK, size - at)))
            return whole.hexdigest() == digest

    def _list_older(self, before: int) -> dict[str, int]:
        """Hash → time of every blob that was last put at or before `before`."""
        found: dict[str, int] = {}
        for path in self._blobs():
            with suppress(FileNotFoundError):
                stored = path.stat(follow_symlinks=False).st_mtime_ns
                if stored <= before:
                    found[path.name] = stored
        return found

    def _blobs(self) -> Iterator[Path]:
        for outer in _list_entries(self._root, _FAN):
            for inner in _list_entries(outer, _FAN):
                yield from _list_entries(inner, _NAME)

    def _sweep(self, unreferenced: dict[str, int], before: int) -> CollectedBlobs:
        removed: list[str] = []
        freed = 0
        for digest, stored in sorted(unreferenced.items()):
            with suppress(FileNotFoundError), self._hold_lock(fcntl.LOCK_EX):
                found = self._path(digest).stat(follow_symlinks=False)
                if found.st_mtime_ns == stored:
                    self._path(digest).unlink()
                    removed.append(digest)
                    freed += compute_content_or_stored_size(digest, found.st_size)
        leftovers = sum(_remove_abandoned(path, before) for path in self._remove_unfinished())
        return CollectedBlobs(removed=tuple(removed), freed=freed, leftovers=leftovers)

    def _remove_unfinished(self) -> list[Path]:
        folder = self._root / "incoming"
        return list(folder.iterdir()) if folder.is_dir() else []

    def _make(self, folder: Path) -> None:
        """Create a folder so that it, and the way to it, survive a loss of power."""
        if folder in self._synced:
            return
        above = [folder, *folder.parents]
        missing = [each for each in above if not each.exists()]
        for each in reversed(missing):
            each.mkdir(_FOLDER_MODE, exist_ok=True)
        # Another process may have made them just now and not have synced them yet.
        unsynced = takewhile(lambda each: each != self._root.parent, above)
        for each in dict.fromkeys([*missing, *unsynced]):
            _sync_folder(each.parent)
        self._synced.add(folder)

    @contextmanager
    def _hold_lock(self, how: int) -> Generator[None]:
        file = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)


class _Incoming:
    """An unfinished put; its lock tells a collection that somebody still writes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sealer = Sealer()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(path, flags, _FILE_MODE)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def write(self, block: bytes) -> None:
        self.sealer.feed(block)
        self._write(block)

    def seal(self) -> None:
        self._write(self.sealer.footer())
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file; one that was not renamed is removed."""
        os.close(self._file)
        self.path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]


async def _read_pieces(file: int, start: int, end: int) -> AsyncIterator[bytes]:
    while start < end:
        piece = await run_disk_work(os.pread, file, min(BLOCK, end - start), start)
        if not piece:
            return
        yield piece
        start += len(piece)


def _list_entries(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are matched before they become paths
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in sorted(names) if pattern.fullmatch(name)]


def _remove_abandoned(path: Path, before: int) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(file).st_mtime_ns > before:
            return False
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
