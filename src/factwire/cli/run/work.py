"""`Work`: the thread that a session watches, wherever its turns run.

A session draws, asks and interrupts; what that does to a turn is decided here. There are two: a
runtime in this process, and an Edge (`over_edge`).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from factwire.facts import Fact
from factwire.projection import Changes, ProjectionState
from factwire.projection.actions import Action
from factwire.runtime import LiveThread, Runtime, RuntimeRefused

Noted = Callable[[Fact, Changes], None]
"""Hears of a fact that is durable, once the state has it."""


class Work(Protocol):
    """One thread, as it goes on."""

    @property
    def thread_id(self) -> str: ...

    @property
    def state(self) -> ProjectionState: ...

    def watch(self, noted: Noted) -> Callable[[], None]:
        """Tell `noted` of every fact, until what is returned is called."""
        ...

    async def over(self, turn_id: str | None) -> str:
        """Wait for the end of a turn, or of whatever runs; how it ended."""
        ...

    async def decide(self, action: Action, decision: str, reason: str | None, by: str) -> None:
        """Answer an open action; raises `RuntimeRefused`."""
        ...

    async def cancel(self, turn_id: str | None) -> bool:
        """Stop a turn, or whatever runs; true where it never began and no fact tells its end."""
        ...


class LocalWork:
    """A thread of a runtime in this process."""

    def __init__(self, runtime: Runtime, thread: LiveThread) -> None:
        self._runtime = runtime
        self._thread = thread

    @property
    def thread_id(self) -> str:
        return self._thread.thread_id

    @property
    def state(self) -> ProjectionState:
        return self._thread.projection.state

    def watch(self, noted: Noted) -> Callable[[], None]:
        return self._thread.log.watch(noted)

    async def over(self, turn_id: str | None) -> str:
        if turn_id is not None:
            return await self._thread.wait_settled(turn_id)
        await self._thread.wait_idle()
        return self.state.runtime.latest_turn_status or "completed"

    async def decide(self, action: Action, decision: str, reason: str | None, by: str) -> None:
        await self._runtime.decide(
            self.thread_id,
            action.action_id,
            decision,
            by=by,
            reason=reason,
            args_hash=action.args_hash,
        )

    async def cancel(self, turn_id: str | None) -> bool:
        running = self._thread.turn
        target = turn_id or (running.turn_id if running is not None else None)
        if target is None:
            return False
        # What is refused has ended by itself meanwhile.
        with suppress(RuntimeRefused):
            await self._runtime.cancel(self.thread_id, target, "interrupted")
        return target == turn_id and self._thread.outcome(target) is None
