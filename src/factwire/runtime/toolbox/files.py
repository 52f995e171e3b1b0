"""Files of a workspace: reached by folders that are held open, never through a link.

The attack: a path that leads out by `..`, by a link, or by a folder that is swapped for a link
after it was looked at. A path is first followed to where it really leads, which must be inside.
Then it is walked from the workspace on, folder by folder, and a link on the way is refused: what
was checked is what is opened.
"""

import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.runtime.toolbox.limits import FILE_BYTES
from factwire.runtime.toolbox.outcomes import ToolRefused

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A file that gets another text; `before` is absent where there was no file."""

    path: str
    before: str | None
    after: str

    @property
    def kind(self) -> str:
        return "created" if self.before is None else "modified"


class WorkspaceFiles:
    """The files below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def locate(self, path: str) -> str:
        """Where a path really leads, from the workspace on; raises `ToolRefused`."""
        try:
            path.encode()
            real = Path(os.path.realpath(self.root / path))
        except ValueError as error:
            raise ToolRefused("invalid_arguments", f"{path!r} is no path: {error}") from error
        if not path or (real != self.root and self.root not in real.parents):
            raise ToolRefused("outside_workspace", f"{path!r} leads out of the workspace")
        return real.relative_to(self.root).as_posix()

    def text(self, path: str) -> str:
        """The text of a file at its real path; raises `ToolRefused`."""
        with _told(path), self._folder(path) as (folder, name):
            return _decoded(_content(folder, name, path), path)

    def text_if_any(self, path: str) -> str | None:
        """The text of a file, or None where there is none."""
        try:
            return self.text(path)
        except ToolRefused as refusal:
            if refusal.category != "not_found":
                raise
            return None

    def apply(self, changes: Sequence[Change]) -> None:
        """Write all changes or none; raises `ToolRefused`, also where a file is no longer as it
        was when the change was made.
        """
        done: list[Change] = []
        try:
            for change in changes:
                self._write(change)
                done.append(change)
        except BaseException:
            for change in reversed(done):
                self._undo(change)
            raise

    def _write(self, change: Change) -> None:
        if self.text_if_any(change.path) != change.before:
            raise ToolRefused("conflict", f"{change.path} changed meanwhile; look at it again")
        with _told(change.path), self._folder(change.path, make=True) as (folder, name):
            _replace(folder, name, change.after.encode())

    def _undo(self, change: Change) -> None:
        with suppress(OSError, ToolRefused), self._folder(change.path) as (folder, name):
            if change.before is None:
                os.unlink(name, dir_fd=folder)
            else:
                _replace(folder, name, change.before.encode())

    @contextmanager
    def _folder(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """The folder of a file, open, and the file's name in it."""
        *folders, name = path.split("/")
        if name in ("", ".", ".."):
            raise ToolRefused("not_a_file", f"{path} is a folder")
        at = os.open(self.root, _FOLDER)
        try:
            for folder in folders:
                inner = _entered(at, folder, make=make)
                os.close(at)
                at = inner
            yield at, name
        finally:
            os.close(at)


def _entered(at: int, folder: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(folder, dir_fd=at)
    return os.open(folder, _FOLDER, dir_fd=at)


def _content(folder: int, name: str, path: str) -> bytes:
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ToolRefused("not_a_file", f"{path} is no plain file")
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(FILE_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > FILE_BYTES:
        raise ToolRefused("too_big", f"{path} has more than {FILE_BYTES} bytes")
    return data


def _decoded(data: bytes, path: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolRefused("not_text", f"{path} is not text in UTF-8") from error
    if "\0" in text:
        raise ToolRefused("not_text", f"{path} holds a NUL, as text never does")
    return text


def _replace(folder: int, name: str, data: bytes) -> None:
    """Put a whole file in place of another, with its permissions; a link there is replaced."""
    unfinished = f".factwire-{secrets.token_hex(8)}.new"
    file = os.open(unfinished, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            with suppress(FileNotFoundError):
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    os.fchmod(opened.fileno(), stat.S_IMODE(mode) & 0o777)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)
        raise


_CATEGORIES: Final[dict[type[OSError], str]] = {
    FileNotFoundError: "not_found",
    NotADirectoryError: "not_found",
    IsADirectoryError: "not_a_file",
}


@contextmanager
def _told(path: str) -> Generator[None]:
    """What the system says against a path, with a stable category."""
    try:
        yield
    except OSError as error:
        category = _CATEGORIES.get(type(error), "io_error")
        raise ToolRefused(category, f"{path}: {error.strerror or error}") from error
