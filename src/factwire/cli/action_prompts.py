"""Asking a person about an open action: what is shown, what the keys mean, who answers.

Everything that the answer is bound to is shown, made safe and not cut. *Always* is offered only
where a rule of the policy can say exactly what was asked about, and would allow it. One question
at a time; one that is answered elsewhere is taken back. A key that was pressed before a question
was asked does not answer it.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import msgspec
from rich.text import Text

from factwire.cli.terminal import DIM, LINE, NAME, terminal_safe, terminal_safe_block
from factwire.cli.terminal_keys import KeyReader, keys_at_once
from factwire.cli.turn_display import Display, LiveDisplay
from factwire.projection.actions import Action
from factwire.runtime.control import ControlError, ControlRefusal, Controls, DecideRequest
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    PolicyRule,
    evaluate,
    hash_request,
    propose_rule,
)

_READ: Final = 1024


class Keyboard:
    """The terminal that is standard input."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._reader = KeyReader()
        self._pressed: asyncio.Queue[str] = asyncio.Queue()
        self.gone = False

    @contextmanager
    def listen(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        with keys_at_once(self._terminal):
            loop.add_reader(self._terminal, self._read)
            try:
                yield
            finally:
                loop.remove_reader(self._terminal)

    def discard_pressed(self) -> None:
        """Drop what was pressed so far."""
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        self._pressed = asyncio.Queue()

    async def next_key(self) -> str:
        """The next key."""
        return await self._pressed.get()

    def _read(self) -> None:
        try:
            data = os.read(self._terminal, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.gone = True
            asyncio.get_running_loop().remove_reader(self._terminal)
            return
        for key in self._reader.feed(data):
            self._pressed.put_nowait(key)


def open_keyboard() -> Keyboard | None:
    """The keyboard, where somebody sits at a terminal."""
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            return Keyboard(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):
        pass
    return None


DecisionWord = Literal["approve", "deny"]

ANSWERS: Final[dict[str, DecisionWord]] = {"y": "approve", "n": "deny", "a": "approve"}
"""Key → decision; *a* makes a rule of it, too."""


def question_lines(action: Action) -> list[Text]:
    """What is asked, by whom, and exactly about what."""
    prompt = action.prompt or action.title or "Allow this?"
    head = Text.assemble(("? ", "bold yellow"), (terminal_safe(prompt, LINE), "bold"))
    if action.severity:
        head.append(f"  {terminal_safe(action.severity, NAME)}", style="red")
    who = action.requested_by or action.agent_id or "unknown"
    about = Text(
        f"  {terminal_safe(action.action_id)} · requested by {terminal_safe(who, NAME)}", style=DIM
    )
    return [head, about, *_shown_lines(action)]


def _shown_lines(action: Action) -> Iterator[Text]:
    for line in terminal_safe_block(action.shown or ""):
        yield Text.assemble(("  │ ", "yellow"), line)


def choices_line(rule: PolicyRule | None) -> Text:
    """The keys, in a line."""
    always = "" if rule is None else f"  [a] always allow {terminal_safe(str(rule), LINE)}"
    return Text(f"  [y] allow  [n] deny{always}  [?] help", style="bold")


def help_lines(action: Action, rule: PolicyRule | None, flags: str = "") -> list[Text]:
    """The keys, in sentences."""
    words = [
        "  y  allow exactly what is shown, this once",
        "  n  deny it; the agent continues without it",
        "  Ctrl-C cancels the turn",
        f"  from another terminal: factwire approve {terminal_safe(action.action_id + flags)}",
    ]
    if rule is not None:
        always = (
            f"  a  allow it, and anything {terminal_safe(str(rule))} allows, until this run ends"
        )
        words.insert(1, always)
    return [Text(word) for word in words]


def how_to_answer_line(action: Action, flags: str = "") -> Text:
    """For where nobody can press a key; `flags` say which journal is meant."""
    key = terminal_safe(action.action_id + flags)
    words = f"waiting for a decision: factwire approve {key}  or  factwire deny {key}"
    return Text(words, style="bold")


class AlwaysRules:
    """What a person allowed for the rest of a run."""

    def __init__(self, policy: Policy, workspace: Path) -> None:
        self._policy = policy
        self._workspace = str(workspace)
        self._rules: tuple[PolicyRule, ...] = ()

    def propose(self, action: Action) -> PolicyRule | None:
        """The rule that *always* would make; None where none is exact, or none would help."""
        request = self._to_request(action)
        rule = None if request is None else propose_rule(request)
        if request is None or rule is None or not self._is_allowed(request, (*self._rules, rule)):
            return None
        return rule

    def add(self, rule: PolicyRule) -> None:
        self._rules = (*self._rules, rule)

    def find_allowing(self, action: Action) -> PolicyRule | None:
        """The rule under which an action needs no question."""
        request = self._to_request(action)
        if request is None or not self._is_allowed(request, self._rules):
            return None
        alone = (Policy(allow=(rule,)) for rule in self._rules)
        for rule, policy in zip(self._rules, alone, strict=True):
            if evaluate(policy, request).rule == str(rule):
                return rule
        return None

    def _is_allowed(self, request: PolicyRequest, rules: tuple[PolicyRule, ...]) -> bool:
        policy = msgspec.structs.replace(self._policy, allow=(*self._policy.allow, *rules))
        return evaluate(policy, request).decision == "allow"

    def _to_request(self, action: Action) -> PolicyRequest | None:
        """The request that an action asks about, if it can be had exactly: the hash says so."""
        command = _to_command(action.command)
        if command is None or not action.tool_name:
            return None
        request = PolicyRequest(
            tool=action.tool_name,
            workspace=self._workspace,
            cwd=action.cwd,
            command=command,
        )
        return request if hash_request(request) == action.args_hash else None


def _to_command(command: Any) -> str | tuple[str, ...] | None:
    if isinstance(command, list):
        return tuple(map(str, cast("list[Any]", command)))
    return command if isinstance(command, str) and command else None


class Answerer(Protocol):
    """Deals with an action that waits for a person."""

    @property
    def is_deciding(self) -> bool:
        """Whether the answer is given here, and is on its way to the disk."""
        ...

    async def answer(self, action: Action) -> None: ...


class HintAnswerer:
    """Nobody is here to answer: says who could."""

    is_deciding = False

    def __init__(self, display: Display, flags: str = "") -> None:
        self._display = display
        self._flags = flags

    async def answer(self, action: Action) -> None:
        self._display.say(*question_lines(action), how_to_answer_line(action, self._flags))


class TerminalAnswerer:
    """Asks at the terminal."""

    def __init__(
        self,
        display: Display,
        keyboard: Keyboard,
        always: AlwaysRules | None,
        controls: Controls,
        flags: str = "",
    ) -> None:
        self._display = display
        self._keyboard = keyboard
        self._always = always
        self._controls = controls
        self._flags = flags
        self.is_deciding = False

    async def answer(self, action: Action) -> None:
        rule = self._always.find_allowing(action) if self._always else None
        if rule is not None:
            words = (
                f"✓ allowed by {terminal_safe(str(rule))}: {terminal_safe(action.prompt or '', 80)}"
            )
            self._display.say(Text(words, style="green"))
            await self._send_decision(action, "approve", f"always: {rule}")
            return
        if isinstance(self._display, LiveDisplay):
            self._display.pause()
        await self._ask(action)

    async def _ask(self, action: Action) -> None:
        proposed = self._always.propose(action) if self._always else None
        self._keyboard.discard_pressed()
        self._display.say(*question_lines(action), choices_line(proposed))
        key = await self._choose(action, proposed)
        reason = None
        if key == "a" and proposed is not None and self._always is not None:
            self._always.add(proposed)
            reason = f"always: {proposed}"
        decision = ANSWERS[key]
        mark, style = ("✓ allowed", "green") if decision == "approve" else ("✗ denied", "red")
        self._display.say(Text(f"  {mark}", style=style))
        await self._send_decision(action, decision, reason)

    async def _choose(self, action: Action, proposed: PolicyRule | None) -> str:
        while True:
            key = (await self._keyboard.next_key()).lower()
            if key == "?":
                explanation = help_lines(action, proposed, self._flags)
                self._display.say(*explanation, choices_line(proposed))
            elif key in ANSWERS and (key != "a" or proposed is not None):
                return key

    async def _send_decision(
        self, action: Action, decision: DecisionWord, reason: str | None
    ) -> None:
        request = DecideRequest(
            action_id=action.action_id,
            decision=decision,
            reason=reason,
            args_hash=action.args_hash,
        )
        self.is_deciding = True
        try:
            reply = await self._controls.decide(request)
        except ControlError as error:
            self._say_refusal(error.code, str(error))
        else:
            if isinstance(reply, ControlRefusal):
                self._say_refusal(reply.code, reply.message)
        finally:
            self.is_deciding = False

    def _say_refusal(self, code: str, message: str) -> None:
        self._display.say(Text(f"  {code}: {terminal_safe(message)}", style="yellow"))
