"""Which file a program's name means: looked up once, in absolute folders alone.

A relative entry of PATH would let a workspace put its own `git` before the real one.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from factwire.runtime.processes.errors import ProgramNotFound


def find_program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The absolute path of a program; one with a slash is taken from `folder`."""
    if "/" in name:
        found = folder / name
        if _runs(found):
            return str(found)
        raise ProgramNotFound(f"{found} is not a program that may be run")
    for entry in environment.get("PATH", os.defpath).split(os.pathsep):
        if entry.startswith("/") and _runs(Path(entry) / name):
            return str(Path(entry) / name)
    raise ProgramNotFound(f"no program {name!r} on PATH; install it or give its whole path")


def _runs(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False
