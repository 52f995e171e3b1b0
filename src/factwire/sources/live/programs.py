"""Where the program of an outside agent is: named by the user, on the path, or in a package.

What is not there is said with how to have it; nothing is fetched.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from factwire.runtime.agents import AgentError


class NotInstalled(AgentError):
    """`install` is what to type to have it."""

    code = "agent_not_installed"

    def __init__(self, title: str, install: str) -> None:
        self.install = install
        super().__init__(f"{title} is not installed here; to have it: {install}")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program. `packaged` looks for it in installed packages; `install` says how to get it."""

    title: str
    name: str
    install: str
    packaged: Callable[[], Path | None] = lambda: None

    def found(self, wanted: str | None = None) -> str:
        """The program to run; raises `NotInstalled`."""
        there = self.where(wanted)
        if there is None:
            raise NotInstalled(self.title if wanted is None else wanted, self.install)
        return there

    def where(self, wanted: str | None = None) -> str | None:
        """Where it is, if it is there."""
        there = shutil.which(wanted or self.name)
        if there is None and wanted is None and (inside := self.packaged()) is not None:
            return str(inside)
        return there
