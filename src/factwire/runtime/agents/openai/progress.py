"""How far a turn is: what it acts with, and whether it may be cut off where it is."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from factwire.runtime.toolbox import Toolbox


class Progress:
    """A turn under way. A model that speaks is cut off; a tool that acts is told to stop and comes
    to its own end, so that what it did is told.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self._task: asyncio.Task[None] | None = None
        self._is_acting = False

    @property
    def is_stopping(self) -> bool:
        return self.toolbox.is_stopping

    @contextmanager
    def acting(self) -> Generator[None]:
        """While tools are at work."""
        self._is_acting = True
        try:
            yield
        finally:
            self._is_acting = False

    async def follow(self, task: "asyncio.Task[None]") -> bool:
        """Wait for the turn; whether it came to its end, and was not stopped."""
        self._task = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self.is_stopping:
            return False
        task.result()
        return True

    async def stop(self) -> None:
        await self.toolbox.stop()
        if self._task is not None and not self._is_acting:
            self._task.cancel()
