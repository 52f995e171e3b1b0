"""The stage: what a scripted agent says and does, as any agent would.

Words stream at a pace, and whatever is done is really done, through the toolbox. A script is a row
of beats. A beat that uses a tool begins with it and depends on nothing that only memory holds, so
that after a restart the script goes on with the beat in which a person was asked.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from factwire.facts import Fact
from factwire.projection.actions import Action
from factwire.runtime.agents.pending import pending_call
from factwire.runtime.minting import Scope
from factwire.runtime.provider import StartTurn
from factwire.runtime.toolbox import Outcome, Toolbox

MODEL: Final = "demo"

_WORD: Final = re.compile(r"\s*\S+\s*")

Sleep = Callable[[float], Awaitable[None]]


class Stopped(Exception):
    """Raised to leave a script that was told to stop."""


class Stage:
    """Where the script of one turn plays."""

    def __init__(self, turn: StartTurn, toolbox: Toolbox, *, pace: float, sleep: Sleep) -> None:
        self.turn = turn
        self.host = turn.host
        self.toolbox = toolbox
        self.pace = pace
        self.failure: dict[str, str] | None = None
        self.is_over = False
        self.undone: set[str] = set()
        self._sleep = sleep
        self._words = 0
        self._step = ""
        self._pending = pending_call(turn)

    @property
    def first(self) -> int:
        """The beat to begin with: that in which a person was asked, else the first."""
        if self._pending is None:
            return 0
        number = (self._pending.tool.step_id or "").rpartition("-")[2]
        return int(number) if number.isdecimal() else 0

    def enter(self, theme: str, beat: int) -> None:
        self._step = f"{theme}-{beat}"

    def name(self, prefix: str, word: str) -> str:
        """An id that is the same after a restart."""
        return f"{prefix}_{word}_{self.turn.turn_id}"

    def open_action(self) -> Action | None:
        """The request that this beat made before a restart; only once."""
        pending, self._pending = self._pending, None
        return None if pending is None else pending.action

    def fact(
        self,
        event_class: str,
        payload: dict[str, Any] | None = None,
        scope: Scope | None = None,
        **ids: Any,
    ) -> Fact:
        return self.host.mint.fact(self._scope(scope), event_class, payload, **ids)

    def put(
        self,
        event_class: str,
        payload: dict[str, Any] | None = None,
        scope: Scope | None = None,
        **ids: Any,
    ) -> None:
        self.host.emit(self.fact(event_class, payload, scope, **ids))

    async def say(self, text: str, scope: Scope | None = None) -> None:
        """Say something, word by word."""
        message = self.host.mint.ids("msg")
        asked = {"model": MODEL, "provider": "factwire"}
        self.put("model.requested", asked, scope, message_id=message)
        for word in _WORD.findall(text):
            if self.toolbox.is_stopping:
                raise Stopped
            self.put("model.delta", {"delta": word}, scope, message_id=message)
            self._words += 1
            await self._sleep(self.pace)
        whole = {"text": text, "finishReason": "stop"}
        self.put("model.completed", whole, scope, message_id=message)

    def think(self, summary: str) -> None:
        message = self.host.mint.ids("msg")
        self.put("reasoning.started", message_id=message)
        self.put("reasoning.summary", {"summary": summary}, message_id=message)
        self.put("reasoning.completed", message_id=message)

    async def call(
        self,
        tool: str,
        args: dict[str, Any],
        scope: Scope | None = None,
        *,
        always_ask: bool = False,
    ) -> Outcome:
        """Use a tool, or go on with the use that a person was asked about before a restart."""
        narrowed, action = self._scope(scope), self.open_action()
        if action is not None:
            outcome = await self.toolbox.resume(action, args, scope=narrowed)
        else:
            outcome = await self.toolbox.call(tool, args, scope=narrowed, always_ask=always_ask)
        if self.toolbox.is_stopping:
            raise Stopped
        return outcome

    def fail(self, category: str, message: str, hint: str) -> None:
        """End the turn as failed, once the script is over."""
        self.failure = {"failureCategory": category, "message": message, "recoveryHint": hint}

    def end(self) -> Fact:
        asked = len(self.turn.prompt.split())
        used = {"inputTokens": asked, "outputTokens": self._words, "totalCostUsd": 0.0}
        self._step = ""
        self.put("cost.recorded", {"model": MODEL, "provider": "factwire", **used})
        if self.failure is not None:
            return self.fact("turn.failed", dict(self.failure))
        return self.fact("turn.completed")

    def _scope(self, scope: Scope | None) -> Scope:
        return (scope or self.host.scope).within(step_id=self._step or None)
