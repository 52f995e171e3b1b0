"""Runs whose facts the journal refused: brought to an end and told of, once it takes facts again.

A turn whose facts cannot be written down does not go on. Nobody has to ask for the thread, and
nobody has to restart the Edge: as soon as the journal takes facts, the run is closed, and a fact
says that what it did since its last one was not recorded.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from factwire.edge.limits import RETRY_SECONDS
from factwire.edge.logs import logger
from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.tracing import new_trace_id
from factwire.journal import JournalError
from factwire.runtime import LiveThread, RuntimeRefused

EVENT_CLASS: Final = "run.persistence_error"

_log: Final = logger("factwire.edge")


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread is owed: to be read again and, where a run was under way, a fact about it."""

    thread_id: str
    run_id: str | None
    error: str


class Persistence:
    """Hears from a runtime of threads that failed, and settles them."""

    def __init__(self) -> None:
        self._owed: deque[Owed] = deque()
        self._came = asyncio.Event()
        self._pause = 0.0

    @property
    def owed(self) -> tuple[Owed, ...]:
        """What could not be told yet."""
        return tuple(self._owed)

    def note(self, thread: LiveThread) -> None:
        """Take in a thread that failed; one that failed of anything else is none of ours."""
        if not thread.log.has_failed:
            return
        owed = Owed(
            thread_id=thread.thread_id,
            run_id=thread.projection.state.runtime.active_run_id,
            error=_words(thread.failure),
        )
        known = {(each.thread_id, each.run_id) for each in self._owed}
        if (owed.thread_id, owed.run_id) not in known:
            _log.warning("facts_refused", thread_id=owed.thread_id, detail=owed.error)
            self._owed.append(owed)
        self._came.set()

    @asynccontextmanager
    async def telling(self, machine: Machine) -> AsyncGenerator[None]:
        """Settle what is owed for as long as the block lasts."""
        task = asyncio.create_task(self._settle(machine), name="factwire-persistence")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _settle(self, machine: Machine) -> None:
        while True:
            await self._came.wait()
            try:
                await self._settle_first(machine, self._owed[0])
            except JournalError:
                self._pause = min(RETRY_SECONDS, 2 * self._pause or RETRY_SECONDS / 32)
                await asyncio.sleep(self._pause)
                continue
            except (RuntimeRefused, Problem) as error:
                _log.warning("facts_refused_untold", code=error.code, detail=str(error))
            self._pause = 0.0
            self._owed.popleft()
            if not self._owed:
                self._came.clear()

    async def _settle_first(self, machine: Machine, owed: Owed) -> None:
        await machine.runtime.current(owed.thread_id)
        if owed.run_id is None:
            return
        said: dict[str, Any] = {"runId": owed.run_id, "error": owed.error}
        await machine.write(
            owed.thread_id, (EVENT_CLASS, said), trace_id=new_trace_id(), run_id=owed.run_id
        )


def _words(failure: Exception | None) -> str:
    code = getattr(failure, "code", None) or type(failure).__name__
    return f"{code}: {failure}"
