"""Workspaces: the folders that turns may work in, by where they really are.

The attack: a path that leads out by `..` or by a link. A path is followed to its end before it is
compared, and again when the turn starts; an empty list allows none.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from factwire.runtime.errors import WorkspaceNotAllowed


class Workspaces:
    """The folders that are allowed, and all below them."""

    def __init__(self, allowed: Iterable[str | Path] = ()) -> None:
        self.allowed = tuple(Path(folder) for folder in allowed)

    def real(self, folder: str | Path) -> Path:
        """Where a folder really is; raises `WorkspaceNotAllowed`."""
        try:
            found = Path(os.path.realpath(folder, strict=True))
        except (OSError, ValueError) as error:
            raise WorkspaceNotAllowed(f"there is no folder {str(folder)!r} to work in") from error
        roots = [Path(os.path.realpath(root)) for root in self.allowed]
        if not found.is_dir() or not any(found.is_relative_to(root) for root in roots):
            wanted = ", ".join(map(str, roots)) or "none is allowed"
            raise WorkspaceNotAllowed(f"{found} is no folder of an allowed workspace ({wanted})")
        return found
