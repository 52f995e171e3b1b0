"""Waking followers at once, from any thread, and knowing how far each has come.

A follower takes the bell's count, looks for facts, and waits only if the count is still the same:
whatever is committed in between changes the count, so no commit can slip through.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from threading import Lock

import msgspec

from factwire.journal.protocol import FollowerStats

_Waiter = asyncio.Future[None]


class CommitSignal:
    """Rung on every commit and on closing."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()
        self._waiters: dict[asyncio.AbstractEventLoop, set[_Waiter]] = {}

    def notify(self) -> None:
        """Wake all who wait; callable from any thread."""
        with self._lock:
            self.count += 1
            if not self._waiters:
                return
            waiting, self._waiters = self._waiters, {}
        for loop, waiters in waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiters)

    async def wait(self, seen: int, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Return once the count is no longer `seen`, or after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self.count != seen:
                return
            waiter = loop.create_future()
            self._waiters.setdefault(loop, set()).add(waiter)
        try:
            await asyncio.wait_for(waiter, timeout)
        except TimeoutError:
            return
        finally:
            with self._lock:
                self._waiters.get(loop, set[_Waiter]()).discard(waiter)


class ReaderPosition(msgspec.Struct):
    """An open read or follow; everything up to `position` has been handed out."""

    name: str
    position: int
    follows: bool
    keeps_commits: bool = False
    """Whether it goes on from the end of a commit, so that what follows must not be thinned out."""


class ReaderRegistry:
    """Every open reader, so that retention can wait for the slowest."""

    def __init__(self) -> None:
        self._open: dict[str, ReaderPosition] = {}
        self._numbers = count(1)
        self._removing = Lock()

    @contextmanager
    def open_reader(
        self, position: int = 0, *, follows: bool, chain: str | None = None
    ) -> Generator[ReaderPosition]:
        """A reader that counts as open inside the block; `chain` names one of commits."""
        kind = chain or ("follow" if follows else "read")
        name = f"{kind}-{next(self._numbers)}"
        reader = ReaderPosition(name, position, follows, keeps_commits=chain is not None)
        self._open[reader.name] = reader
        try:
            yield reader
        finally:
            del self._open[reader.name]

    @asynccontextmanager
    async def hold_removals(self) -> AsyncGenerator[None]:
        """Nothing is removed while the block finds out where a reader may begin.

        The block must not wait for a thread that removes.
        """
        if not self._removing.acquire(blocking=False):
            await asyncio.get_running_loop().run_in_executor(None, self._removing.acquire)
        try:
            yield
        finally:
            self._removing.release()

    @contextmanager
    def hold_readers(self) -> Generator[None]:
        """No reader begins while the block looks who reads, and removes."""
        with self._removing:
            yield

    def positions(self) -> dict[str, int]:
        return {reader.name: reader.position for reader in tuple(self._open.values())}

    def list_commit_positions(self) -> list[int]:
        """Where those are who go on from the end of a commit."""
        return [each.position for each in tuple(self._open.values()) if each.keeps_commits]

    def stats(self, head: int) -> tuple[FollowerStats, ...]:
        followers = (reader for reader in tuple(self._open.values()) if reader.follows)
        return tuple(
            FollowerStats(name=each.name, position=each.position, lag=max(0, head - each.position))
            for each in followers
        )


def _wake(waiters: set[_Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
