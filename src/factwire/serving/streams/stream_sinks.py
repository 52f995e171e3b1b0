"""Where the frames of one reader go, and why a stream ends.

A sink takes whole frames without waiting and says when it is full. What it has not been able to
pass on is counted, so that the memory of a reader is a number; whoever writes decides by it. The
close codes are a table that clients may rely on: a code with `reconnect` invites the client to
come again with its last cursor; after the others it would only be closed again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from factwire.serving.limits import CLOSE_SECONDS


class CloseReason(msgspec.Struct, frozen=True):
    """One reason for the end of a stream."""

    code: int
    reason: str
    reconnect: bool


MALFORMED: Final = CloseReason(1002, "malformed frame", reconnect=False)
NOT_TEXT: Final = CloseReason(1007, "text is not UTF-8", reconnect=False)
UNASKED: Final = CloseReason(1008, "streams take no messages", reconnect=False)
TOO_BIG: Final = CloseReason(1009, "message too big", reconnect=False)
FAULT: Final = CloseReason(1011, "internal error", reconnect=True)
DEAD: Final = CloseReason(1011, "keepalive ping timeout", reconnect=True)
RESTART: Final = CloseReason(1012, "service restart", reconnect=True)
SLOW: Final = CloseReason(1013, "reader too slow, resume from the last cursor", reconnect=True)
UNAVAILABLE: Final = CloseReason(1013, "journal unavailable, try again", reconnect=True)
REVOKED: Final = CloseReason(4401, "token revoked", reconnect=False)
CURSOR_INVALID: Final = CloseReason(4400, "cursor invalid, take a snapshot", reconnect=True)
CURSOR_EXPIRED: Final = CloseReason(4410, "cursor expired, take a snapshot", reconnect=True)

CLOSE_NAMES: Final[dict[CloseReason | None, str]] = {
    MALFORMED: "malformed",
    NOT_TEXT: "not_text",
    UNASKED: "unasked",
    TOO_BIG: "too_big",
    FAULT: "fault",
    DEAD: "dead",
    RESTART: "restart",
    SLOW: "slow",
    UNAVAILABLE: "unavailable",
    REVOKED: "revoked",
    CURSOR_INVALID: "cursor_invalid",
    CURSOR_EXPIRED: "cursor_expired",
    None: "left",
}
"""Each reason in one word, for logs and figures; None is a reader that left by itself."""

CLOSE_REASONS: Final = (
    MALFORMED,
    NOT_TEXT,
    UNASKED,
    TOO_BIG,
    FAULT,
    DEAD,
    RESTART,
    SLOW,
    UNAVAILABLE,
    REVOKED,
    CURSOR_INVALID,
    CURSOR_EXPIRED,
)
"""Every way in which a stream may be ended by this side, but for what the guard refuses."""


class SinkWatcher(Protocol):
    """Told by a sink about itself, at once and in the event loop."""

    def on_blocked(self) -> None:
        """Enough is unsent; write no more for now."""
        ...

    def on_resumed(self) -> None:
        """There is room again."""
        ...

    def on_gone(self) -> None:
        """Nothing reaches the reader any more."""
        ...


class StreamSink(Protocol):
    """The way to one reader."""

    @property
    def ended_by(self) -> CloseReason | None:
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

    def watch(self, watcher: SinkWatcher) -> None:
        """Tell one watcher, in place of the one before."""
        ...

    def limit_unsent(self, size: int) -> None:
        """Be full past so many unsent bytes, in place of those that a transport has by default."""
        ...

    def write(self, frames: bytes) -> None:
        """Pass on whole frames; ignored once the reader is gone."""
        ...

    def close(self, closing: CloseReason) -> None:
        """Say why, let what was written go out for a while, then cut."""
        ...

    def mark_gone(self) -> None:
        """The reader has left: pass on nothing more."""
        ...


class NullWatcher:
    """A watcher that does nothing; the one a sink starts with."""

    def on_blocked(self) -> None:
        """Nobody writes yet."""

    def on_resumed(self) -> None:
        """Nobody waits yet."""

    def on_gone(self) -> None:
        """Nobody has to be told yet."""


_HIGH: Final = 64 * 1024
"""Bytes past which a sink is full: what a transport holds by default."""

Deliver = Callable[[bytes], Awaitable[None]]
Finish = Callable[[CloseReason], Awaitable[None]]


class PumpedSink:
    """A `StreamSink`; `deliver` passes on frames, `finish` the last word, and both may wait.

    `ended` waits for its task, which a reader that takes nothing cannot keep beyond a deadline.
    """

    def __init__(self, deliver: Deliver, finish: Finish) -> None:
        self.is_blocked = False
        self.is_gone = False
        self._deliver = deliver
        self._finish = finish
        self._watcher: SinkWatcher = NullWatcher()
        self._waiting: list[bytes] = []
        self._size = 0
        self._limit = _HIGH
        self._closing: CloseReason | None = None
        self._something = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="factwire-pump")

    @property
    def ended_by(self) -> CloseReason | None:
        return self._closing

    @property
    def unsent(self) -> int:
        return self._size

    def watch(self, watcher: SinkWatcher) -> None:
        self._watcher = watcher

    def limit_unsent(self, size: int) -> None:
        self._limit = size

    def write(self, frames: bytes) -> None:
        if self.is_gone:
            return
        self._waiting.append(frames)
        self._size += len(frames)
        self._something.set()
        if self._size > self._limit and not self.is_blocked:
            self.is_blocked = True
            self._watcher.on_blocked()

    def close(self, closing: CloseReason) -> None:
        if not self.is_gone:
            self._closing = closing
            self._something.set()
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._task.cancel)
            self.mark_gone()

    def mark_gone(self) -> None:
        """Nothing written from now on would arrive."""
        if not self.is_gone:
            self.is_gone = True
            if self._closing is None:
                self._task.cancel()
            self._watcher.on_gone()
            self._watcher = NullWatcher()

    async def wait_until_ended(self) -> bool:
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
            self.mark_gone()
            return False
        return True

    async def _pass_on(self) -> None:
        frames, self._waiting = b"".join(self._waiting), []
        if frames:
            await self._deliver(frames)
        self._size -= len(frames)
        if self.is_blocked and self._size <= self._limit and not self.is_gone:
            self.is_blocked = False
            self._watcher.on_resumed()
