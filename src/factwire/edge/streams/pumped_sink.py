"""`PumpedSink`: a sink over ASGI's `send`, for event streams and for servers without our protocol.

`send` waits while a reader is slow, so a task of its own passes on what was written. What waits for
that task is counted; past the high mark the sink says that it is full.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from factwire.edge.limits import CLOSE_SECONDS
from factwire.edge.streams.closing import Closing
from factwire.edge.streams.sink import Unwatched, Watcher

_HIGH: Final = 64 * 1024
"""Bytes past which a sink is full: what a transport holds by default."""

Deliver = Callable[[bytes], Awaitable[None]]
Finish = Callable[[Closing], Awaitable[None]]


class PumpedSink:
    """A `Sink`; `deliver` passes on frames, `finish` the last word, and both may wait.

    `ended` waits for its task, which a reader that takes nothing cannot keep beyond a deadline.
    """

    def __init__(self, deliver: Deliver, finish: Finish) -> None:
        self.is_blocked = False
        self.is_gone = False
        self._deliver = deliver
        self._finish = finish
        self._watcher: Watcher = Unwatched()
        self._waiting: list[bytes] = []
        self._size = 0
        self._closing: Closing | None = None
        self._something = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="factwire-pump")

    @property
    def ended_by(self) -> Closing | None:
        return self._closing

    @property
    def unsent(self) -> int:
        return self._size

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def write(self, frames: bytes) -> None:
        if self.is_gone:
            return
        self._waiting.append(frames)
        self._size += len(frames)
        self._something.set()
        if self._size > _HIGH and not self.is_blocked:
            self.is_blocked = True
            self._watcher.blocked()

    def close(self, closing: Closing) -> None:
        if not self.is_gone:
            self._closing = closing
            self._something.set()
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._task.cancel)
            self.lost()

    def lost(self) -> None:
        """Nothing written from now on would arrive."""
        if not self.is_gone:
            self.is_gone = True
            if self._closing is None:
                self._task.cancel()
            self._watcher.gone()
            self._watcher = Unwatched()

    async def ended(self) -> bool:
        """Wait for the task; whether the reader took everything, the last word included."""
        await asyncio.wait((self._task,))
        return not self._task.cancelled() and self._task.result()

    async def _run(self) -> bool:
        try:
            while self._closing is None or self._waiting:
                await self._something.wait()
                self._something.clear()
                await self._pass_on()
            await self._finish(self._closing)
        except OSError:
            # How a server says that the reader has left.
            self.lost()
            return False
        return True

    async def _pass_on(self) -> None:
        frames, self._waiting = b"".join(self._waiting), []
        if frames:
            await self._deliver(frames)
        self._size -= len(frames)
        if self.is_blocked and self._size <= _HIGH and not self.is_gone:
            self.is_blocked = False
            self._watcher.resumed()
