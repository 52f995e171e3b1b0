"""One turn of an agent of an SDK that runs in this process.

A run of such an SDK has no lines of its own around it, so they are written here, as a recorder
would: where it begins, what it waits for, what was decided, how it ends. Stopping cancels the run
where it is; each SDK cleans up after itself.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.policy import Evaluation
from factwire.runtime.provider import Decision
from factwire.sources.live.agent import Work
from factwire.sources.live.sdk_failures import failed_line
from factwire.sources.live.sdk_judging import judged
from factwire.sources.live.turn import LiveTurn


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a person or the policy said to a question."""

    allowed: bool
    reason: str | None = None
    response: Any = None

    def line(self, question: str) -> dict[str, Any]:
        """The decision as a recorder writes it."""
        said = {"reason": self.reason, "answer": self.response}
        told = {key: value for key, value in said.items() if value is not None}
        return {"id": question, "approved": self.allowed, **told}


class SdkWork(Work):
    """A turn that is one run, however often it waits for a person."""

    def __init__(self, live: LiveTurn) -> None:
        super().__init__(live)
        self._running: asyncio.Task[None] | None = None
        self._verdicts: dict[str, Verdict] = {}
        self._news = asyncio.Event()

    @abstractmethod
    async def follow(self) -> None:
        """Run the agent to its end, or until it raises."""

    async def run(self) -> None:
        self._running = asyncio.create_task(self.follow())
        try:
            await self._running
        except asyncio.CancelledError:
            if not self.live.is_stopping or _is_cancelled():
                raise
        except RuntimeRefused:
            raise
        except Exception as error:  # noqa: BLE001 - whatever an agent raises ends its turn
            if not self.live.is_stopping:
                self.live.take(failed_line(error))
        if self.live.is_stopping:
            self.live.take({"type": "run.cancelled", "reason": "requested"})

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._running

    async def answer(self, question: str, decision: Decision) -> None:
        self._verdicts[question] = Verdict(
            allowed=decision.allowed, reason=decision.reason, response=decision.response
        )
        self._news.set()

    def judge(self, call_id: str, tool: str, args: Any) -> bool:
        """Whether the policy has decided about a call, so that nobody is asked."""
        said = judged(self.live, call_id, tool, args)
        if said is not None:
            self._verdicts[call_id] = _ruled(said)
        return said is not None

    async def decided(self, questions: Iterable[str]) -> dict[str, Verdict]:
        """What was said to each question, once all of them are answered."""
        wanted = list(questions)
        while not all(each in self._verdicts for each in wanted):
            self._news.clear()
            await self._news.wait()
        return {each: self._verdicts.pop(each) for each in wanted}

    def begin(self, decisions: dict[str, Verdict] | None = None) -> None:
        """A run begins, or goes on with what was decided."""
        if decisions is None:
            self.live.take({"type": "run.started", "input": self.live.turn.prompt})
        else:
            told = [verdict.line(question) for question, verdict in decisions.items()]
            self.live.take({"type": "run.started", "decisions": told})


def _ruled(said: Evaluation) -> Verdict:
    return Verdict(allowed=said.decision == "allow", reason=said.message)


def _is_cancelled() -> bool:
    """Whether the turn itself is being ended, not only what it runs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
