"""`Room`: how many turns are at work at once.

A turn that waits for a person does nothing, so it gives its place to another one: a question that
nobody answers must not keep everybody else from working. Once it is answered it goes on at once,
even where that makes one more than there are places; a person who has decided does not wait again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from factwire.facts import Fact
from factwire.projection.changes import Changes
from factwire.runtime.thread_log import ThreadLog


class Room:
    """So many places, taken in the order in which they were asked for."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Take a place, as soon as there is one."""
        if self._free > 0:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            with suppress(ValueError):
                self._waiting.remove(place)
            raise

    def leave(self) -> None:
        """Give a place back."""
        self._free += 1
        while self._free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                self._free -= 1
                place.set_result(None)

    @asynccontextmanager
    async def shared(self, log: ThreadLog) -> AsyncGenerator[None]:
        """Hold the place of a turn, except while it waits for a person."""
        holds = True

        def look(fact: Fact | None, changes: Changes | None) -> None:
            nonlocal holds
            del changes
            if fact is not None and fact.action_id is None:
                return
            if holds is bool(log.gates.open_actions):
                holds = not holds
                if holds:
                    self._free -= 1
                else:
                    self.leave()

        look(None, None)
        stop = log.watch(look)
        try:
            yield
        finally:
            stop()
            if holds:
                self.leave()
