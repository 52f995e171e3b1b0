"""Files of our own: written whole or not at all, and private to one user.

A file is written under another name beside its target, synced, and renamed last; then the folder is
synced, so that a name that was reported is there after a loss of power. A full disk, a kill or an
error leaves the old content, or nothing. What is left of a writer that was killed is a hidden file
that nobody reads, and that the next writer of the same target removes.

Only regular files are replaced. A device or a pipe is written to, and a symbolic link keeps
pointing to the file that gets the new content.
"""

import errno
import glob
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import BinaryIO, Final

PRIVATE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_RANDOM: Final = "[0-9a-f]" * 16
_ABANDONED_SECONDS: Final = 24 * 3600
"""Age from which an unfinished file counts as left behind; no writer takes that long."""


def replace_file(path: Path, data: bytes, mode: int = PRIVATE_MODE) -> None:
    """Give a file new content, or leave it as it is; raises `OSError`.

    For files that only this program has a name for: a link in their place is replaced.
    """
    with _open_unfinished(path, mode) as (stream, unfinished):
        stream.write(data)
        _sync(stream)
        unfinished.replace(path)
    sync_folder(path.parent)


def create_file(path: Path, data: bytes, mode: int = PRIVATE_MODE) -> None:
    """Make a file that is not there yet; raises `FileExistsError`. Of two writers at once, one
    succeeds, and its content is the one that counts.
    """
    with _open_unfinished(path, mode) as (stream, unfinished):
        stream.write(data)
        _sync(stream)
        os.link(unfinished, path)
        unfinished.unlink()
    sync_folder(path.parent)


@contextmanager
def open_target(path: Path, mode: int = PRIVATE_MODE) -> Generator[BinaryIO]:
    """A stream to what a person named as the target; a regular file appears when the block ends
    without an error, and only then.
    """
    regular = _find_regular_target(path)
    if regular is None:
        # Not created: a target that is gone meanwhile must not become a file.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "wb") as stream:
            yield stream
        return
    with _open_unfinished(regular, mode) as (stream, unfinished):
        yield stream
        _sync(stream)
        unfinished.replace(regular)
    sync_folder(regular.parent)


def write_target(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a text to what a person named as the target."""
    with open_target(path, mode) as stream:
        stream.write(text.encode())


def read_regular_file(
    path: Path, limit: int, *, follow_links: bool = True
) -> tuple[bytes, os.stat_result]:
    """At most `limit` bytes of a file, and what the system says of the very file that was read;
    raises `OSError`, also for what is no regular file. A pipe in its place keeps nobody waiting.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    file = os.open(path, flags)
    try:
        about = os.fstat(file)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        with open(file, "rb", closefd=False) as stream:
            return stream.read(min(limit, about.st_size)), about
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_private_folder(folder: Path) -> str | None:
    """Make a folder that only this user can write to; raises `OSError` where there can be none.

    One of this user's that others may write to is closed to them, and the answer says so: who could
    replace a key or a token in it would decide what this program does.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    about = folder.stat()
    exposure = find_exposure(about, writing=True)
    if exposure is None:
        return None
    if is_foreign(about):
        raise PermissionError(errno.EPERM, f"it {exposure}", str(folder))
    folder.chmod(_FOLDER_MODE)
    return f"{folder} {exposure}; its mode is now {_FOLDER_MODE:03o}"


def is_foreign(about: os.stat_result) -> bool:
    """Whether something belongs to another user than this one or the system."""
    return about.st_uid not in (0, os.geteuid())


def find_exposure(about: os.stat_result, *, writing: bool = False) -> str | None:
    """Why a file or a folder is not private: another owner than this user or the system, or a mode
    that lets others in; with `writing`, only one that lets them write.
    """
    if is_foreign(about):
        return f"belongs to another user (uid {about.st_uid})"
    others = stat.S_IRWXG | stat.S_IRWXO
    if about.st_mode & (others & 0o022 if writing else others):
        verb = "changed" if about.st_mode & 0o022 else "read"
        return f"can be {verb} by other users (mode {stat.S_IMODE(about.st_mode):03o})"
    return None


def _find_regular_target(path: Path) -> Path | None:
    """The file that a name leads to, there or not; None for a target that is no regular file."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return path.resolve() if path.is_symlink() else path
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(about.st_mode):
        return None
    real = path.resolve()
    with suppress(OSError):
        if os.path.samestat(real.stat(), about):
            return real
    # A file without a name, such as one behind /proc/self/fd: there is nothing to rename to.
    return None


@contextmanager
def reserve_unfinished(path: Path) -> Generator[Path]:
    """A name beside a target for what is still being made; afterwards, nothing has that name, nor
    one that begins with it.
    """
    _remove_abandoned(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.unfinished")
    try:
        yield unfinished
    finally:
        for each in path.parent.glob(f"{glob.escape(unfinished.name)}*"):
            each.unlink(missing_ok=True)


def name_database(unfinished: Path, path: Path) -> None:
    """Give a closed SQLite journal its name; raises `FileExistsError` where there is one by now."""
    os.link(unfinished, path)
    mark = unfinished.with_name(f"{unfinished.name}-mark")
    if mark.exists():
        # After the journal: a mark without its journal would speak against the next one.
        mark.replace(path.with_name(f"{path.name}-mark"))
    sync_folder(path.parent)


@contextmanager
def _open_unfinished(path: Path, mode: int) -> Generator[tuple[BinaryIO, Path]]:
    """A new file beside a target; gone afterwards, unless it was renamed."""
    with reserve_unfinished(path) as unfinished:
        try:
            file = os.open(unfinished, _NEW, mode)
        except OSError as error:
            # The name that a person knows is that of the target.
            raise OSError(error.errno, error.strerror, str(path)) from error
        with os.fdopen(file, "wb") as stream:
            yield stream, unfinished


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _remove_abandoned(path: Path) -> None:
    """Remove what killed writers of the same target left."""
    for entry in path.parent.glob(f".{glob.escape(path.name)}.{_RANDOM}.unfinished*"):
        with suppress(FileNotFoundError):
            if time() - entry.lstat().st_mtime > _ABANDONED_SECONDS:
                entry.unlink()
