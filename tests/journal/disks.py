"""Disks that fail: SQLite file systems on top of the real one.

`PowerCut` remembers which writes were synced; at a moment of the test's choosing it draws what the
disk would hold if power went out then: all that was synced, any part of the rest, the last torn.
`FaultyDisk` refuses writes and syncs on demand.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import apsw

_names = count(1)
_Write = tuple[int, bytes | None]


class _Image:
    """One file: what is safe, and what was written since, in order; None cuts the file."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.pending: list[_Write] = []

    def after_cut(self, random: Random) -> bytes:
        content = bytearray(self.safe)
        kept = [write for write in self.pending if random.random() < 0.5]
        for at, (offset, data) in enumerate(kept):
            if data is not None and at == len(kept) - 1:
                data = data[: random.randrange(len(data) + 1)]  # noqa: PLW2901
            _apply(content, (offset, data))
        return bytes(content)

    def sync(self) -> None:
        for write in self.pending:
            _apply(self.safe, write)
        self.pending.clear()


class PowerCut(apsw.VFS):
    """Counts writes and syncs; `at_step` is called, once, before that one of them."""

    def __init__(self, step: int, at_step: Callable[[], None]) -> None:
        self.name = f"power-cut-{next(_names)}"
        self._step = step
        self._at_step = at_step
        self._steps = 0
        self._lock = Lock()
        self._images: dict[str, _Image] = {}
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> "_CutFile":  # noqa: N802
        path = name if isinstance(name, str) or name is None else name.filename()
        return _CutFile(self, name, str(path), flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self._lock:
            self._images.pop(filename, None)
        super().xDelete(filename, syncdir)

    def image(self, path: str) -> _Image:
        with self._lock:
            return self._images.setdefault(path, _Image())

    def step(self) -> None:
        with self._lock:
            self._steps += 1
            due = self._steps == self._step
        if due:
            self._at_step()

    def after_cut(self, random: Random) -> dict[str, bytes]:
        """File name → what the disk may hold."""
        with self._lock:
            return {
                Path(path).name: image.after_cut(random) for path, image in self._images.items()
            }


class _CutFile(apsw.VFSFile):
    def __init__(self, disk: PowerCut, name: Any, path: str, flags: list[int]) -> None:
        self._disk = disk
        self._image = disk.image(path)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step()
        self._image.pending.append((offset, bytes(data)))
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType]

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._image.pending.append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        self._disk.step()
        self._image.sync()


class FaultyDisk(apsw.VFS):
    """While `fault` is set, writes raise it; while `sync_fault` is set, syncs raise that."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.fault: type[apsw.Error] | None = None
        self.sync_fault: type[apsw.Error] | None = None
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> "_FaultyFile":  # noqa: N802
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._disk.fault is not None:
            raise self._disk.fault("the disk takes nothing")
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType]

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.sync_fault is not None:
            raise self._disk.sync_fault("the disk cannot sync")
        super().xSync(flags)


def _apply(content: bytearray, write: _Write) -> None:
    offset, data = write
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
