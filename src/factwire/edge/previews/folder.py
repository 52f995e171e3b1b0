"""A served folder: held open, and walked from there without following a link.

The attack: a path that leads out by `..`, by a link, or by a folder that is swapped for a link
between a look and its use. A path is first followed to where it really leads, which must be below
the folder; then exactly that is opened, folder by folder, and a link on the way is refused. The
folder itself must still lie where the run works at every request. Names that begin with a dot and
what belongs to the Edge are never served: settings, keys and repositories are no output of a run.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.runtime.processes.errors import FolderRefused
from factwire.runtime.processes.workspace import folder_inside, real_path

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SHOWN: Final = ".well-known"


class PathRefused(Exception):
    """A path that leads to nothing that may be served."""


class PathMissing(Exception):
    """Nothing is there that could be served."""


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A plain file that is held open, as it was then."""

    file: int
    name: str
    size: int
    tag: str

    def read(self, at: int, count: int) -> bytes:
        return os.pread(self.file, count, at)

    def close(self) -> None:
        os.close(self.file)


class ServedFolder:
    """A folder below `within`; `own` are beginnings of real paths that are never served."""

    def __init__(self, file: int, path: Path, *, within: Path, own: tuple[str, ...]) -> None:
        self.path = path
        self._file: int | None = file
        self._within = within
        self._own = own

    @classmethod
    def open(
        cls, run_folder: str, path: str, workspaces: Iterable[Path], own: tuple[str, ...]
    ) -> "ServedFolder":
        """A folder below a run's; raises `FolderRefused`, `PathRefused` or `PathMissing`."""
        with folder_inside(run_folder, workspaces) as run:
            parts = located(run.path, path)
            found = run.path.joinpath(*parts)
            _ensure_servable(found, parts, own)
            file = _walked(run.file, parts, _FOLDER)
            return cls(file, found, within=run.path, own=own)

    def find(self, path: str) -> OpenFile | None:
        """A file by its path, or None where that is a folder; raises `PathRefused` or
        `PathMissing`.
        """
        root = self._root()
        parts = located(root, path)
        _ensure_servable(root.joinpath(*parts), parts, self._own)
        file = _walked(self._held(), parts, _ANY)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode):
            tag = f'"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"'
            name = path.rpartition("/")[2]
            return OpenFile(file=file, name=name, size=found.st_size, tag=tag)
        os.close(file)
        if stat.S_ISDIR(found.st_mode):
            return None
        raise PathMissing

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _held(self) -> int:
        if self._file is None:
            raise PathMissing
        return self._file

    def _root(self) -> Path:
        """Where the folder is now; it may have been moved since it was opened."""
        try:
            here = real_path(self._held(), str(self.path))
        except (FolderRefused, OSError) as error:
            raise PathMissing from error
        if not here.is_relative_to(self._within):
            raise PathRefused
        return here


def located(root: Path, path: str) -> tuple[str, ...]:
    """The names that really lead from a folder to where a path goes; raises `PathRefused`."""
    if path.startswith("/") or "\0" in path:
        raise PathRefused
    try:
        real = Path(os.path.realpath(root / path))
    except (OSError, ValueError) as error:
        raise PathMissing from error
    if not real.is_relative_to(root):
        raise PathRefused
    return real.relative_to(root).parts


def _ensure_servable(real: Path, parts: Sequence[str], own: tuple[str, ...]) -> None:
    if any(part.startswith(".") and part != _SHOWN for part in parts):
        raise PathRefused
    if f"{real}{os.sep}".startswith(own):
        raise PathRefused


def _walked(root: int, parts: Sequence[str], flags: int) -> int:
    """Open what lies at the end of these names; a link among them is nothing."""
    at = os.dup(root)
    try:
        for place, part in enumerate(parts):
            inner = os.open(part, flags if place == len(parts) - 1 else _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
    except (OSError, ValueError) as error:
        with suppress(OSError):
            os.close(at)
        raise PathMissing from error
    return at
