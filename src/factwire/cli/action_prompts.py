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
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import msgspec
from rich.text import Text

from factwire.cli.terminal import (
    DIM,
    LINE,
    NAME,
    KeyReader,
    keys_at_once,
    terminal_safe,
    terminal_safe_block,
)
from factwire.cli.turn_display import Display, LiveDisplay
from factwire.facts.resources import DecisionCard
from factwire.projection.actions import Action
from factwire.runtime.action_cards import bind_place
from factwire.runtime.control import (
    CardRequest,
    ControlError,
    ControlRefusal,
    Controls,
    DecideRequest,
)
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    PolicyRule,
    evaluate,
    hash_request,
    propose_rule,
)
from factwire.runtime.standing_rules import folder_of

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


def question_lines(action: Action, card: DecisionCard) -> list[Text]:
    """What is asked, by whom, and exactly about what."""
    prompt = card.prompt or action.prompt or action.title or "Allow this?"
    head = Text.assemble(("? ", "bold yellow"), (terminal_safe(prompt, LINE), "bold"))
    if action.severity:
        head.append(f"  {terminal_safe(action.severity, NAME)}", style="red")
    who = action.requested_by or action.agent_id or "unknown"
    about = Text(
        f"  {terminal_safe(action.action_id)} · requested by {terminal_safe(who, NAME)}", style=DIM
    )
    return [head, about, *card_lines(card)]


def card_lines(card: DecisionCard) -> Iterator[Text]:
    """Exactly what a decision is about, and what is special about the text."""
    for line in terminal_safe_block(card.shown or ""):
        yield Text.assemble(("  │ ", "yellow"), line)
    if card.shown is None:
        yield Text(f"  {terminal_safe(card.reason or '')}", style="red")
    if card.masks:
        yield Text(f"  secrets masked: {card.masks}, each within one word", style=DIM)
    if card.has_open_secret:
        yield Text("  a secret is shown here: a mask could have hidden what runs", style="yellow")


def choices_line(card: DecisionCard, rule: PolicyRule | None) -> Text:
    """The keys, in a line; what cannot be shown cannot be allowed."""
    if card.shown is None:
        return Text("  [n] deny  [?] help", style="bold")
    always = "" if rule is None else f"  [a] always allow {terminal_safe(str(rule), LINE)}"
    return Text(f"  [y] allow  [n] deny{always}  [?] help", style="bold")


def help_lines(card: DecisionCard, rule: PolicyRule | None, flags: str = "") -> list[Text]:
    """The keys, in sentences."""
    words = [
        "  y  allow exactly what is shown, this once",
        "  n  deny it; the agent continues without it",
        "  Ctrl-C cancels the turn",
        f"  from another terminal: {approve_command(card, flags)}",
    ]
    if rule is not None:
        always = (
            f"  a  allow it, and anything {terminal_safe(str(rule))} allows, until this run ends"
        )
        words.insert(1, always)
    return [Text(word) for word in words]


HASH_DIGITS: Final = 16
"""Digits of a hash that stand for it in a command."""


def approve_command(card: DecisionCard, flags: str = "") -> str:
    """The command that allows what a card shows, and nothing else; `flags` say which journal is
    meant.
    """
    digits = (card.args_hash or "").removeprefix("sha256:")[:HASH_DIGITS]
    return f"factwire approve {terminal_safe(f'{card.request_id} --hash {digits}{flags}')}"


def how_to_answer_line(card: DecisionCard, flags: str = "") -> Text:
    """For where nobody can press a key."""
    allow = f"{approve_command(card, flags)}  or  " if card.shown is not None else ""
    deny = f"factwire deny {terminal_safe(card.request_id + flags)}"
    return Text(f"waiting for a decision: {allow}{deny}", style="bold")


class AlwaysRules:
    """What a person allowed for the rest of a run."""

    def __init__(self, policy: Policy, workspace: Path) -> None:
        self._policy = policy
        self._workspace = str(workspace)
        self._rules: tuple[tuple[str, PolicyRule], ...] = ()

    def propose(self, action: Action) -> PolicyRule | None:
        """The rule that *always* would make; None where none is exact, or none would help."""
        request = self._to_request(action)
        rule = None if request is None else propose_rule(request)
        if request is None or rule is None:
            return None
        return rule if self._is_allowed(request, (*self._rules_for(request), rule)) else None

    def add(self, rule: PolicyRule, action: Action) -> None:
        """Allow what matches a rule, in the folder of an action alone."""
        self._rules = (*self._rules, (folder_of(action, Path(self._workspace)), rule))

    def _rules_for(self, request: PolicyRequest) -> tuple[PolicyRule, ...]:
        folder = os.path.realpath(request.cwd or self._workspace)
        return tuple(rule for place, rule in self._rules if place == folder)

    def allows(self, action: Action) -> bool:
        """Whether the policy, or what was allowed always, allows an action without a person."""
        request = self._to_request(action)
        return request is not None and self._is_allowed(request, self._rules_for(request))

    def find_allowing(self, action: Action) -> PolicyRule | None:
        """The rule under which an action needs no question."""
        request = self._to_request(action)
        rules = () if request is None else self._rules_for(request)
        if request is None or not self._is_allowed(request, rules):
            return None
        for rule in rules:
            if evaluate(Policy(allow=(rule,)), request).rule == str(rule):
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
        forms = (bind_place(request), request)
        return next((form for form in forms if hash_request(form) == action.args_hash), None)


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


Say = Callable[..., None]
"""Prints lines for a person."""


class HintAnswerer:
    """Nobody is here to answer: says who could."""

    is_deciding = False

    def __init__(self, say: Say, controls: Controls, flags: str = "") -> None:
        self._say = say
        self._controls = controls
        self._flags = flags

    async def answer(self, action: Action) -> None:
        card = await read_card(self._controls, action.action_id, self._say)
        if card is not None:
            self._say(*question_lines(action, card), how_to_answer_line(card, self._flags))


ApprovalMode = Literal["ask", "never", "policy"]
"""Who answers what a run asks: a person; nobody, so that it is denied; or the policy alone."""


class UnattendedAnswerer:
    """Answers without a person: by the policy where that may decide, else with a no."""

    def __init__(
        self, say: Say, controls: Controls, mode: ApprovalMode, always: AlwaysRules | None
    ) -> None:
        self._say = say
        self._controls = controls
        self._mode: ApprovalMode = mode
        self._always = always if mode == "policy" else None
        self.is_deciding = False

    async def answer(self, action: Action) -> None:
        card = await read_card(self._controls, action.action_id, self._say)
        if card is None:
            return
        is_allowed = self._always is not None and self._always.allows(action)
        decision: DecisionWord = "approve" if is_allowed else "deny"
        outcome = "allowed" if is_allowed else "denied"
        prompt = terminal_safe(card.prompt or action.prompt or action.action_id, LINE)
        self._say(Text(f"{outcome} by --approve {self._mode}: {prompt}", style="yellow"))
        self.is_deciding = True
        try:
            reason = f"{outcome} by --approve {self._mode}"
            await send_decision(self._controls, card, decision, reason, self._say)
        finally:
            self.is_deciding = False


async def read_card(controls: Controls, action_id: str, say: Say) -> DecisionCard | None:
    """What a person decides about, from the runtime that asks; a refusal is printed."""
    try:
        reply = await controls.card(CardRequest(action_id=action_id))
    except ControlError as error:
        say(_refusal_line(error.code, str(error)))
        return None
    if isinstance(reply, ControlRefusal):
        say(_refusal_line(reply.code, reply.message))
        return None
    return reply.card


async def send_decision(
    controls: Controls, card: DecisionCard, decision: DecisionWord, reason: str | None, say: Say
) -> None:
    """Send a decision about what a card shows; a refusal is printed."""
    request = DecideRequest(
        action_id=card.request_id, decision=decision, reason=reason, args_hash=card.args_hash or ""
    )
    try:
        reply = await controls.decide(request)
    except ControlError as error:
        say(_refusal_line(error.code, str(error)))
        return
    if isinstance(reply, ControlRefusal):
        say(_refusal_line(reply.code, reply.message))
    elif reply.later is not msgspec.UNSET:
        say(Text(f"  {terminal_safe(reply.later)}", style="yellow"))


def _refusal_line(code: str, message: str) -> Text:
    return Text(f"  {code}: {terminal_safe(message)}", style="yellow")


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
        card = await read_card(self._controls, action.action_id, self._display.say)
        if card is None:
            return
        rule = self._always.find_allowing(action) if self._always else None
        if rule is not None:
            words = (
                f"✓ allowed by {terminal_safe(str(rule))}: {terminal_safe(action.prompt or '', 80)}"
            )
            self._display.say(Text(words, style="green"))
            await self._send_decision(card, "approve", f"always: {rule}")
            return
        if isinstance(self._display, LiveDisplay):
            self._display.pause()
        await self._ask(action, card)

    async def _ask(self, action: Action, card: DecisionCard) -> None:
        proposed = self._always.propose(action) if self._always else None
        self._keyboard.discard_pressed()
        self._display.say(*question_lines(action, card), choices_line(card, proposed))
        key = await self._choose(card, proposed)
        reason = None
        if key == "a" and proposed is not None and self._always is not None:
            self._always.add(proposed, action)
            reason = f"always: {proposed}"
        decision = ANSWERS[key]
        mark, style = ("✓ allowed", "green") if decision == "approve" else ("✗ denied", "red")
        self._display.say(Text(f"  {mark}", style=style))
        await self._send_decision(card, decision, reason)

    async def _choose(self, card: DecisionCard, proposed: PolicyRule | None) -> str:
        while True:
            key = (await self._keyboard.next_key()).lower()
            if key == "?":
                explanation = help_lines(card, proposed, self._flags)
                self._display.say(*explanation, choices_line(card, proposed))
            elif card.shown is None and key != "n":
                continue
            elif key in ANSWERS and (key != "a" or proposed is not None):
                return key

    async def _send_decision(
        self, card: DecisionCard, decision: DecisionWord, reason: str | None
    ) -> None:
        self.is_deciding = True
        try:
            await send_decision(self._controls, card, decision, reason, self._display.say)
        finally:
            self.is_deciding = False
