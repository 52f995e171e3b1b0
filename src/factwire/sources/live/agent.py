"""`LiveAgent`: an outside agent as the runtime sees it.

Everything that is the same for all of them: a turn is followed to its end, whoever is asked to
stop it, a decision finds the turn that waits for it, and what the agent leaves open is closed. One
source adds how its agent is started, heard, answered and stopped.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import suppress

from factwire.facts import CapabilityManifest, Fact
from factwire.projection import ThreadReadModel
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import CancelTurn, Decision, ReadThread, RespondAction, StartTurn
from factwire.sources.live.turn import LiveTurn
from factwire.sources.source import Source


class LiveAgent(ABC):
    """One outside agent; a turn is one `Work`."""

    def __init__(
        self, source: Source, manifest: CapabilityManifest, *, keep_raw: bool = False
    ) -> None:
        self.manifest = manifest
        self.source = source
        self._keep_raw = keep_raw
        self._running: dict[str, Work] = {}

    @abstractmethod
    def work(self, live: LiveTurn) -> "Work":
        """The work of a turn that begins."""

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        live = LiveTurn(self.source, turn, keep_raw=self._keep_raw)
        work = self._running[turn.turn_id] = self.work(live)
        task = asyncio.create_task(_done(work, live))
        try:
            async for fact in live.facts():
                yield fact
            await task
        finally:
            del self._running[turn.turn_id]
            await _over(task)

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        work = self._running.get(cancel.turn_id)
        if work is not None:
            work.live.is_stopping = True
            await work.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        work = self._running.get(respond.turn_id)
        decision = respond.decision
        question = work and work.live.tell.question(decision.action_id)
        if work is None or question is None:
            raise TurnFailed("decision_not_delivered", "nobody waits for this decision any more")
        work.live.tell.decided(decision.action_id)
        await work.answer(question, decision)
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:  # noqa: ARG002
        return None


class Work(ABC):
    """What one turn of an outside agent takes."""

    def __init__(self, live: LiveTurn) -> None:
        self.live = live

    @abstractmethod
    async def run(self) -> None:
        """Do the turn; hand each item to `live.take`. Returning ends the turn."""

    @abstractmethod
    async def answer(self, question: str, decision: Decision) -> None:
        """Hand a decision to the agent; `question` is what the agent calls it."""

    @abstractmethod
    async def stop(self) -> None:
        """Ask the agent to stop; `run` returns soon after, or is cancelled."""


async def _done(work: Work, live: LiveTurn) -> None:
    """Let a turn work; however it ends, its stream does too."""
    try:
        await work.run()
    except TurnFailed as failed:
        live.fail(failed)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in an adapter ends its turn
        live.fail(TurnFailed("provider_error", f"{type(error).__name__}: {error}"))
    finally:
        live.end()


async def _over(task: "asyncio.Task[None]") -> None:
    """Wait until nothing of a turn is left; what it raised was told where it was awaited."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
