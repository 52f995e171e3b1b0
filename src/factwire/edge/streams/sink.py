"""`Sink`: where the frames of one reader go.

A sink takes whole frames without waiting and says when it is full. What it has not been able to
pass on is counted, so that the memory of a reader is a number; whoever writes decides by it.
"""

from typing import Protocol

from factwire.edge.streams.closing import Closing


class Watcher(Protocol):
    """Told by a sink about itself, at once and in the event loop."""

    def blocked(self) -> None:
        """Enough is unsent; write no more for now."""
        ...

    def resumed(self) -> None:
        """There is room again."""
        ...

    def gone(self) -> None:
        """Nothing reaches the reader any more."""
        ...


class Sink(Protocol):
    """The way to one reader."""

    @property
    def ended_by(self) -> Closing | None:
        """Why this side ended it; None while it has not, or where the reader left."""
        ...

    @property
    def is_blocked(self) -> bool: ...

    @property
    def is_gone(self) -> bool: ...

    @property
    def unsent(self) -> int:
        """Bytes that this process holds for the reader."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Tell one watcher, in place of the one before."""
        ...

    def write(self, frames: bytes) -> None:
        """Pass on whole frames; ignored once the reader is gone."""
        ...

    def close(self, closing: Closing) -> None:
        """Say why, let what was written go out for a while, then cut."""
        ...

    def lost(self) -> None:
        """The reader has left: pass on nothing more."""
        ...


class Unwatched:
    """A watcher that does nothing; the one a sink starts with."""

    def blocked(self) -> None:
        """Nobody writes yet."""

    def resumed(self) -> None:
        """Nobody waits yet."""

    def gone(self) -> None:
        """Nobody has to be told yet."""
