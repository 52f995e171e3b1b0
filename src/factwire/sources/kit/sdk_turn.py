"""One turn of an agent of an SDK that runs in this process.

A run of such an SDK has no lines of its own around it, so they are written here, as a recorder
would: where it begins, what it waits for, what was decided, how it ends. Stopping cancels the
run where it is; each SDK cleans up after itself. Objects are recognised by the names of their
types, so that no SDK is imported to look; a name can lie, but whoever names an object in a
configuration runs its module anyway.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.policy import Evaluation
from factwire.runtime.provider import Decision
from factwire.sources.kit.live_agent import LiveTurn, TurnDriver
from factwire.sources.kit.policy_check import check_tool_policy
from factwire.sources.kit.sdk_values import failed_line

T = TypeVar("T")


def is_instance_of(loaded: object, package: str, *names: str) -> bool:
    """Whether an object is of one of these types of a package, or of one beneath them."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package
        for kind in type(loaded).__mro__
    )


def read_sdk_options(settings: AgentSettings, shape: type[T], title: str) -> T:
    """The options of a configured agent; raises `InvalidAgent`."""
    for name in ("model", "base_url", "api_key_env"):
        if getattr(settings, name) is not None:
            raise InvalidAgent(f"{name}: the model of an agent of {title} is set in its own code")
    try:
        return msgspec.convert(settings.options, shape)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of an agent of {title}: {error}") from error


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a person or the policy said to a question."""

    allowed: bool
    reason: str | None = None
    response: Any = None

    def to_line(self, question: str) -> dict[str, Any]:
        """The decision as a recorder writes it."""
        optional = {"reason": self.reason, "answer": self.response}
        extra = {key: value for key, value in optional.items() if value is not None}
        return {"id": question, "approved": self.allowed, **extra}


class SdkDriver(TurnDriver):
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

    def check_policy(self, call_id: str, tool: str, args: Any) -> bool:
        """Whether the policy has decided about a call, so that nobody is asked."""
        evaluation = check_tool_policy(self.live, call_id, tool, args)
        if evaluation is not None:
            self._verdicts[call_id] = _to_verdict(evaluation)
        return evaluation is not None

    async def wait_for_verdicts(self, questions: Iterable[str]) -> dict[str, Verdict]:
        """What was said to each question, once all of them are answered."""
        wanted = list(questions)
        while not all(each in self._verdicts for each in wanted):
            self._news.clear()
            await self._news.wait()
        return {each: self._verdicts.pop(each) for each in wanted}

    def begin_run(self, decisions: dict[str, Verdict] | None = None) -> None:
        """A run begins, or goes on with what was decided."""
        if decisions is None:
            self.live.take({"type": "run.started", "input": self.live.turn.prompt})
        else:
            lines = [verdict.to_line(question) for question, verdict in decisions.items()]
            self.live.take({"type": "run.started", "decisions": lines})


def _to_verdict(evaluation: Evaluation) -> Verdict:
    return Verdict(allowed=evaluation.decision == "allow", reason=evaluation.message)


def _is_cancelled() -> bool:
    """Whether the turn itself is being ended, not only what it runs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
