"""Answering open actions: at the terminal where there is one, else by saying how to do it.

One question at a time. A question that is answered elsewhere is taken back.
"""

import getpass
import os
from collections.abc import Awaitable, Callable
from typing import Protocol

from rich.text import Text

from factwire.cli.run.displays import Display, Drawn
from factwire.cli.run.keyboard import Keyboard
from factwire.cli.run.questions import (
    ANSWERS,
    Always,
    choices,
    explained,
    how_to_answer,
    question,
)
from factwire.cli.terminal_text import harmless
from factwire.projection.actions import Action
from factwire.runtime import RuntimeRefused
from factwire.runtime.policy import Rule

Decide = Callable[[Action, str, str | None], Awaitable[None]]
"""Action, decision and reason; raises `RuntimeRefused`."""


class Answerer(Protocol):
    """Deals with an action that waits for a person."""

    @property
    def deciding(self) -> bool:
        """Whether the answer is given here, and is on its way to the disk."""
        ...

    async def answer(self, action: Action) -> None: ...


class Telling:
    """Nobody is here to answer: says who could."""

    deciding = False

    def __init__(self, display: Display, flags: str = "") -> None:
        self._display = display
        self._flags = flags

    async def answer(self, action: Action) -> None:
        self._display.say(*question(action), how_to_answer(action, self._flags))


class Asking:
    """Asks at the terminal."""

    def __init__(
        self,
        display: Display,
        keyboard: Keyboard,
        always: Always | None,
        decide: Decide,
        flags: str = "",
    ) -> None:
        self._display = display
        self._keyboard = keyboard
        self._always = always
        self._decide = decide
        self._flags = flags
        self.deciding = False

    async def answer(self, action: Action) -> None:
        rule = self._always.allows(action) if self._always else None
        if rule is not None:
            words = f"✓ allowed by {harmless(str(rule))}: {harmless(action.prompt or '', 80)}"
            self._display.say(Text(words, style="green"))
            await self._decided(action, "approve", f"always: {rule}")
            return
        if isinstance(self._display, Drawn):
            self._display.rest()
        await self._ask(action)

    async def _ask(self, action: Action) -> None:
        proposed = self._always.proposed(action) if self._always else None
        self._keyboard.forget()
        self._display.say(*question(action), choices(proposed))
        key = await self._chosen(action, proposed)
        reason = None
        if key == "a" and proposed is not None and self._always is not None:
            self._always.add(proposed)
            reason = f"always: {proposed}"
        decision = ANSWERS[key]
        mark, style = ("✓ allowed", "green") if decision == "approve" else ("✗ denied", "red")
        self._display.say(Text(f"  {mark}", style=style))
        await self._decided(action, decision, reason)

    async def _chosen(self, action: Action, proposed: Rule | None) -> str:
        while True:
            key = (await self._keyboard.key()).lower()
            if key == "?":
                told = explained(action, proposed, self._flags)
                self._display.say(*told, choices(proposed))
            elif key in ANSWERS and (key != "a" or proposed is not None):
                return key

    async def _decided(self, action: Action, decision: str, reason: str | None) -> None:
        self.deciding = True
        try:
            await self._decide(action, decision, reason)
        except RuntimeRefused as error:
            self._display.say(Text(f"  {error.code}: {harmless(str(error))}", style="yellow"))
        finally:
            self.deciding = False


def this_user() -> str:
    """Who decides here."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.geteuid()}"
