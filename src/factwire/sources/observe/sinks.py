"""Where observed facts go. Nothing leaves unredacted.

A sink is used by the one thread that sends. `Away` means that the same facts may be taken later,
`Refused` that they never will be.
"""

from collections.abc import Callable
from typing import Protocol

from factwire.facts import Fact

Read = Callable[[Fact], list[Fact]]
"""Makes a fact of one run fit to be sent; with it come notes on what was mended."""


class Away(Exception):
    """Nobody takes facts there now."""


class Refused(Exception):
    """These facts are not taken."""


class Sink(Protocol):
    def reader(self) -> Read:
        """What facts of one run go through first."""
        ...

    def send(self, facts: list[Fact]) -> None:
        """Send facts, all or none; raises `Away` or `Refused`."""
        ...

    def close(self) -> None: ...
