"""Where runtimes listen: `control/` in the data folder, a socket each, for its user alone.

The folder is private before a socket is made in it, and a folder of somebody else, or a link, is
not used. A socket gets its name only once somebody listens on it, so that one on which nobody does
is left over from a process that died.
"""

import os
import socket
import stat
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from factwire.runtime.control.errors import ControlUnavailable
from factwire.runtime.control.limits import CONNECTIONS, SOCKET_PATH_BYTES

FOLDER: Final = "control"
_SUFFIX: Final = ".sock"
_FOLDER_MODE: Final = 0o700
_SOCKET_MODE: Final = 0o600
_OPEN_FILES: Final = Path("/proc/self/fd")
_CREDENTIALS: Final = struct.Struct("iII")
"""Process, user and group, as Linux tells them."""


def listen(data: Path) -> tuple[socket.socket, Path]:
    """A socket that listens in a data folder, and its place there."""
    folder = _private(data / FOLDER)
    name = token_hex(8)
    unnamed, named = folder / f".{name}", folder / f"{name}{_SUFFIX}"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(unnamed) as path:
            listening.bind(path)
        unnamed.chmod(_SOCKET_MODE)
        listening.listen(CONNECTIONS)
        listening.settimeout(0)
        unnamed.rename(named)
    except OSError as error:
        listening.close()
        unnamed.unlink(missing_ok=True)
        raise ControlUnavailable(f"no socket can be made in {folder}: {error}") from error
    return listening, named


def sockets(data: Path) -> list[Path]:
    """The sockets of a data folder, the newest first."""
    found: list[tuple[int, Path]] = []
    with suppress(OSError):
        for path in (data / FOLDER).iterdir():
            if path.name.endswith(_SUFFIX):
                about = path.lstat()
                if stat.S_ISSOCK(about.st_mode) and about.st_uid == os.geteuid():
                    found.append((about.st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def remove(path: Path) -> None:
    """Take a socket away; somebody else may have done so."""
    path.unlink(missing_ok=True)


@contextmanager
def short(path: Path) -> Generator[str]:
    """A path that fits a socket's address: the path itself, or one by way of an open folder."""
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        yield str(path)
        return
    if not _OPEN_FILES.is_dir():
        raise ControlUnavailable(
            f"the path {path} is too long for a socket; use another data folder"
        )
    opened = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(_OPEN_FILES / str(opened) / path.name)
    finally:
        os.close(opened)


def peer_user(connected: socket.socket) -> int | None:
    """The user at the other end, where the system tells; elsewhere the modes alone hold."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(told)
    return user


def _private(folder: Path) -> Path:
    """The folder, made or made private; raises unless it is a folder of this user."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        with suppress(FileExistsError):
            folder.mkdir(mode=_FOLDER_MODE)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            raise ControlUnavailable(f"{folder} is not a folder of this user; remove it")
        folder.chmod(_FOLDER_MODE)
    except OSError as error:
        raise ControlUnavailable(f"the folder {folder} cannot be used: {error}") from error
    return folder
