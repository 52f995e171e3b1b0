"""The working directory: opened first, looked at then, used through what was opened.

A path that is checked and then used can be swapped for a symlink in between. So the folder is
opened, the system is asked where the opened folder really is, and that must lie inside an allowed
workspace; the program is started in the opened folder, whatever the path has become meanwhile.
"""

import os
import stat
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from factwire.runtime.processes.errors import FolderRefused


class OpenFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is held open: where it really is, and the workspace that it lies in."""

    file: int
    path: Path
    workspace: Path


@contextmanager
def folder_inside(path: str, workspaces: Iterable[Path]) -> Generator[OpenFolder]:
    """Open a folder that lies inside one of the workspaces; raises `FolderRefused`."""
    file = _open(path)
    try:
        real = real_path(file, path)
        yield OpenFolder(file=file, path=real, workspace=_workspace_of(real, workspaces))
    finally:
        os.close(file)


def real_path(file: int, path: str) -> Path:
    """Where an open folder is, free of symlinks."""
    if sys.platform == "linux":
        return Path(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115 - no path, a link of proc
    found = Path(path).resolve()
    if not os.path.samestat(found.stat(), os.fstat(file)):
        raise FolderRefused(f"the folder {path!r} was exchanged while it was opened")
    return found


def _open(path: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FolderRefused(f"expected a folder to work in, got {path!r}: {reason}") from error
    if not stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise FolderRefused(f"expected a folder to work in, got {path!r}")
    return file


def _workspace_of(real: Path, workspaces: Iterable[Path]) -> Path:
    roots = [workspace.resolve() for workspace in workspaces]
    inside = [root for root in roots if real == root or root in real.parents]
    if not inside:
        wanted = ", ".join(str(root) for root in roots) or "none is allowed"
        raise FolderRefused(f"{real} is in no allowed workspace ({wanted}); add it to use it")
    return max(inside, key=lambda root: len(root.parts))
