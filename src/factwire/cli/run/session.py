"""A session: one thread, watched until its turn has ended, with whoever can answer and stop it.

Drawing follows the facts and never holds them up. How a session ends is how its turn did.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

from rich.text import Text

from factwire.cli.failures import DONE, INTERRUPTED, ISSUES
from factwire.cli.run.answering import Answerer
from factwire.cli.run.displays import Display, Drawn
from factwire.cli.run.interrupts import Interrupts, end_soon
from factwire.cli.run.keyboard import Keyboard
from factwire.cli.run.work import Work
from factwire.facts import Fact
from factwire.projection import Changes
from factwire.projection.actions import Action

EXIT_CODES: Final = {"completed": DONE, "failed": ISSUES, "canceled": INTERRUPTED}
"""How a turn ended → the exit code."""

Begin = Callable[[], Awaitable[None]]

_FRAME: Final = 1 / 20
"""Seconds from one drawing to the next, at least."""

_TICK: Final = 1.0
"""Seconds after which a terminal is drawn again though nothing came, for the durations on it."""


class Quit(Exception):
    """The second interrupt: the turn is left where it is."""


class Session:
    """Watches a thread; `turn_id` is the turn it is about, None for whatever runs."""

    def __init__(self, work: Work, turn_id: str | None) -> None:
        self._work = work
        self._turn_id = turn_id
        self._changed = asyncio.Event()
        self._opened = asyncio.Event()
        self._quit = asyncio.Event()
        self._canceled = asyncio.Event()
        self._canceling: asyncio.Task[None] | None = None
        self._interrupts = Interrupts(self._first, self._quit.set)
        self.last_end: Fact | None = None
        """The fact that ended the turn that ended last."""

    def lost(self) -> None:
        """Nobody reads any more what is shown: the turn is cancelled."""
        self._interrupts.ask()

    async def watched(
        self,
        begin: Begin,
        display: Display,
        answerer: Answerer | None,
        keyboard: Keyboard | None,
    ) -> str:
        """How the turn ended; raises `Quit`, or what kept the turn from its end."""
        self._display = display
        with ExitStack() as stack:
            stack.callback(self._work.watch(self._noted))
            stack.enter_context(self._interrupts.heard())
            if keyboard is not None:
                stack.enter_context(keyboard.listening())
            await begin()
            helping = [asyncio.create_task(self._draw(display))]
            if answerer is not None:
                helping.append(asyncio.create_task(self._answer(answerer)))
            try:
                return await self._ended(helping)
            finally:
                await _stopped(*helping)
                display.close(self._work.state)

    async def _ended(self, helping: "list[asyncio.Task[None]]") -> str:
        over = asyncio.create_task(self._work.over(self._turn_id))
        quitting = asyncio.create_task(self._quit.wait())
        canceled = asyncio.create_task(self._canceled.wait())
        try:
            waiting = {over, quitting, canceled, *helping}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in helping:
                if task.done():
                    task.result()
            if over.done():
                return over.result()
            if canceled.done():
                return "canceled"
            end_soon()
            raise Quit
        finally:
            await _stopped(over, quitting, canceled)

    def _noted(self, fact: Fact, changes: Changes) -> None:
        del changes
        if fact.event_class in ("turn.completed", "turn.failed", "turn.canceled"):
            self.last_end = fact
        self._display.fact(fact)
        self._changed.set()
        if fact.action_id is not None:
            self._opened.set()

    async def _draw(self, display: Display) -> None:
        drawn = isinstance(display, Drawn)
        while True:
            if not self.asking:
                display.show(self._work.state)
            await asyncio.sleep(_FRAME)
            try:
                async with asyncio.timeout(_TICK if drawn else None):
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()

    asking = False
    """Whether a question stands on the terminal; nothing is drawn meanwhile."""

    async def _answer(self, answerer: Answerer) -> None:
        done: set[str] = set()
        while True:
            self._opened.clear()
            action = self._next(done)
            if action is None:
                await self._opened.wait()
                continue
            done.add(action.action_id)
            await self._answered(answerer, action)

    async def _answered(self, answerer: Answerer, action: Action) -> None:
        self.asking = True
        answering = asyncio.create_task(answerer.answer(action))
        closed = asyncio.create_task(self._closed(action.action_id))
        try:
            self._display.show(self._work.state)
            await asyncio.wait({answering, closed}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() or answerer.deciding:
                await answering
            else:
                self._display.say(_elsewhere(self._action(action)))
        finally:
            self.asking = False
            self._changed.set()
            await _stopped(answering, closed)

    async def _closed(self, action_id: str) -> None:
        while self._work.state.actions[action_id].status == "pending":
            self._opened.clear()
            await self._opened.wait()

    def _action(self, action: Action) -> Action:
        return self._work.state.actions.get(action.action_id, action)

    def _next(self, done: set[str]) -> Action | None:
        for action in self._work.state.actions.values():
            if action.status == "pending" and action.action_id not in done:
                return action
        return None

    def _first(self) -> None:
        self._display.say(Text("cancelling… (Ctrl-C again quits at once)", style="yellow"))
        if isinstance(self._display, Drawn):
            self._display.foot = "cancelling"
        self._canceling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        if await self._work.cancel(self._turn_id):
            self._canceled.set()
        if isinstance(self._display, Drawn):
            self._display.foot = None
        self._interrupts.settled()


def _elsewhere(action: Action) -> Text:
    said = action.decision or action.status
    by = f" by {action.decided_by}" if action.decided_by else ""
    return Text(f"  {said}{by}", style="yellow")


async def _stopped(*tasks: "asyncio.Task[object] | asyncio.Task[None] | asyncio.Task[str]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
