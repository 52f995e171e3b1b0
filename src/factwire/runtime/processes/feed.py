"""The feed: what a process tells, in order, until its one reader takes it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

Event = TypeVar("Event")


class Feed(Generic[Event]):
    """`limit` is how much may wait before `room` does; without one, the writer knows a bound."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._events: deque[tuple[Event, int]] = deque()
        self._size = 0
        self._open = True
        self._kept = True
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """The size of what was not taken yet."""
        return self._size

    def put(self, event: Event, size: int = 0) -> None:
        if self._kept:
            self._events.append((event, size))
            self._size += size
            self._changed.set()

    async def room(self) -> None:
        """Wait until there is room, or nobody reads any more."""
        while self._kept and self._limit is not None and self._size >= self._limit:
            self._changed.clear()
            await self._changed.wait()

    def lift(self) -> None:
        """Make room without end: what still comes is known to be little."""
        self._limit = None
        self._changed.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._open = False
        self._changed.set()

    def abandon(self) -> None:
        """Nobody will read: drop what waits and all that comes."""
        self._kept = False
        self._events.clear()
        self._size = 0
        self.close()

    async def read(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event, size = self._events.popleft()
                self._size -= size
                self._changed.set()
                yield event
            if not self._open:
                return
            self._changed.clear()
            await self._changed.wait()
