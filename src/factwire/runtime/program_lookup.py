"""Programs by their names, where PATH leads to a folder that agents may write to.

Such a folder is a workspace, and so is whatever a relative or an empty entry of PATH means while
Factwire works in one. What Factwire runs by itself, such as git, bubblewrap or an agent's program,
is never taken from there. A command of an agent may be, but no rule allows its name then: whoever
allowed `make` did not mean a file that the agent has put in front of it. A path, which has a slash
in it, names its file, and is nobody's surprise.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_AGENT_FOLDERS: Final[set[Path]] = set()


def note_agent_folders(folders: Iterable[str | Path]) -> None:
    """Take no program of Factwire's own from these folders in this process, ever again. Whoever
    lets agents work in the whole file system has no other place for programs.
    """
    real = (Path(os.path.realpath(folder)) for folder in folders)
    _AGENT_FOLDERS.update(folder for folder in real if folder != folder.parent)


def list_own_path(path: str | None = None) -> list[str]:
    """The folders of PATH, or of `path`, in which no agent may write."""
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return [entry for entry in entries if entry.startswith("/") and not _is_written(entry, ())]


def find_own_program(name: str, path: str | None = None) -> str | None:
    """The program of a name that no agent can have written, or the file that a path names."""
    if "/" in name:
        return name if is_program(name) else None
    files = (os.path.join(entry, name) for entry in list_own_path(path))  # noqa: PTH118
    return next((file for file in files if is_program(file) and not _is_written(file, ())), None)


def find_planted_program(name: str, *workspaces: str) -> str | None:
    """The file that a command of this name runs, if an agent may have written it."""
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        file = os.path.join(entry, name)  # noqa: PTH118 - it may be no path
        if entry.startswith("/") and is_program(file):
            roots = tuple(Path(os.path.realpath(folder)) for folder in workspaces)
            return file if _is_written(entry, roots) or _is_written(file, roots) else None
    return None


def is_program(path: str | Path) -> bool:
    """Whether there is a file that may be run."""
    try:
        return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113
    except (OSError, ValueError):
        return False


def _is_written(path: str, more: tuple[Path, ...]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in (*_AGENT_FOLDERS, *more))
