"""One thread, watched until its turn has ended, with whoever can answer and stop it.

Drawing follows the facts and never holds them up. How a session ends is how its turn did. The
first interrupt asks, the second one means it: Ctrl-C, SIGTERM and a terminal that hangs up are the
same, and after the second the process ends within a moment; the next one finds the turn.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from factwire.cli.action_prompts import (
    AlwaysRules,
    Answerer,
    ApprovalMode,
    HintAnswerer,
    Keyboard,
    Say,
    TerminalAnswerer,
    UnattendedAnswerer,
    open_keyboard,
)
from factwire.cli.local_runtime import WatchedThread
from factwire.cli.terminal import DONE, INTERRUPTED, ISSUES, LINE, terminal_safe
from factwire.cli.turn_display import (
    Display,
    JsonDisplay,
    LiveDisplay,
    PipeAwareConsole,
    PlainDisplay,
    Transcript,
)
from factwire.facts import Fact
from factwire.facts.status_words import THREAD_WORDS, word_of
from factwire.projection import Changes
from factwire.projection.actions import Action

_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")

_MOMENT: Final = 1.0
"""Seconds in which a process that is told twice ends by itself, before it is ended."""


class Interrupts:
    """`first` is called for an interrupt, `second` for another one before `settled`."""

    def __init__(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        self._first = first
        self._second = second
        self._is_requested = False

    def settle(self) -> None:
        """What the first interrupt asked for is done; the next one is a first again."""
        self._is_requested = False

    def interrupt(self) -> None:
        if self._is_requested:
            self._second()
        else:
            self._is_requested = True
            self._first()

    def ask(self) -> None:
        """As a first interrupt, if there was none; never as a second."""
        if not self._is_requested:
            self.interrupt()

    @contextmanager
    def hear_signals(self) -> Generator[None]:
        """Hear signals for as long as the context lasts."""
        loop = asyncio.get_running_loop()
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        for number in numbers:
            loop.add_signal_handler(number, self.interrupt)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def end_soon() -> None:
    """See to it that the process ends, whatever keeps it."""
    timer = threading.Timer(_MOMENT, _end_process)
    timer.daemon = True
    timer.start()


def _end_process() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(INTERRUPTED)


EXIT_CODES: Final = {"completed": DONE, "failed": ISSUES, "canceled": INTERRUPTED}
"""How a turn ended → the exit code."""

Begin = Callable[[], Awaitable[None]]

_FRAME: Final = 1 / 20
"""Seconds from one drawing to the next, at least."""

_TICK: Final = 1.0
"""Seconds after which a terminal is drawn again though nothing came, for the durations on it."""


class Quit(Exception):
    """The second interrupt: the turn is left where it is."""


class TurnSession:
    """Watches a thread; `turn_id` is the turn it is about, None for whatever runs."""

    def __init__(self, work: WatchedThread, turn_id: str | None) -> None:
        self._work = work
        self._turn_id = turn_id
        self._changed = asyncio.Event()
        self._opened = asyncio.Event()
        self._quit = asyncio.Event()
        self._canceled = asyncio.Event()
        self._canceling: asyncio.Task[None] | None = None
        self._cancel_error: Exception | None = None
        self._interrupts = Interrupts(self._cancel_first, self._quit.set)
        self.last_end: Fact | None = None
        """The fact that ended the turn that ended last."""

    def lose_reader(self) -> None:
        """Nobody reads any more what is shown: the turn is cancelled."""
        self._interrupts.ask()

    async def watch(
        self,
        begin: Begin,
        display: Display,
        answerer: Answerer | None,
        keyboard: Keyboard | None,
    ) -> str:
        """How the turn ended; raises `Quit`, or what kept the turn from its end."""
        self._display = display
        with ExitStack() as stack:
            stack.callback(self._work.watch(self._note))
            stack.enter_context(self._interrupts.hear_signals())
            if keyboard is not None:
                stack.enter_context(keyboard.listen())
            await begin()
            helping = [asyncio.create_task(self._draw(display))]
            if answerer is not None:
                helping.append(asyncio.create_task(self._answer(answerer)))
            try:
                return await self._wait_for_end(helping)
            finally:
                await _stop_tasks(*helping)
                display.close(self._work.state)

    async def _wait_for_end(self, helping: "list[asyncio.Task[None]]") -> str:
        over = asyncio.create_task(self._work.wait_for_end(self._turn_id))
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
            if self._cancel_error is not None:
                raise self._cancel_error
            if canceled.done():
                return "canceled"
            end_soon()
            raise Quit
        finally:
            await _stop_tasks(over, quitting, canceled)

    def _note(self, fact: Fact, changes: Changes) -> None:
        del changes
        turn = self._work.state.turns.get(fact.turn_id or "")
        if turn is not None and turn.entity is None and turn.ended_by == fact.id:
            self.last_end = fact
        self._display.fact(fact)
        self._changed.set()
        if fact.action_id is not None:
            self._opened.set()

    async def _draw(self, display: Display) -> None:
        drawn = isinstance(display, LiveDisplay)
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
            action = self._next_action(done)
            if action is None:
                await self._opened.wait()
                continue
            done.add(action.action_id)
            await self._answer_one(answerer, action)

    async def _answer_one(self, answerer: Answerer, action: Action) -> None:
        self.asking = True
        answering = asyncio.create_task(answerer.answer(action))
        closed = asyncio.create_task(self._wait_until_closed(action.action_id))
        try:
            self._display.show(self._work.state)
            await asyncio.wait({answering, closed}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() or answerer.is_deciding:
                await answering
            else:
                self._display.say(_decision_line(self._current_action(action)))
        finally:
            self.asking = False
            self._changed.set()
            await _stop_tasks(answering, closed)

    async def _wait_until_closed(self, action_id: str) -> None:
        while self._work.state.actions[action_id].status == "pending":
            self._opened.clear()
            await self._opened.wait()

    def _current_action(self, action: Action) -> Action:
        return self._work.state.actions.get(action.action_id, action)

    def _next_action(self, done: set[str]) -> Action | None:
        for action in self._work.state.actions.values():
            if action.status == "pending" and action.action_id not in done:
                return action
        return None

    def _cancel_first(self) -> None:
        self._display.say(Text("cancelling… (Ctrl-C again quits at once)", style="yellow"))
        if isinstance(self._display, LiveDisplay):
            self._display.foot = "cancelling"
        self._canceling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        try:
            never_began = await self._work.cancel(self._turn_id)
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the end
            self._cancel_error = error
            never_began = True
        if never_began:
            self._canceled.set()
        if isinstance(self._display, LiveDisplay):
            self._display.foot = None
        self._interrupts.settle()


def _decision_line(action: Action) -> Text:
    decision = action.decision or action.status
    by = f" by {action.decided_by}" if action.decided_by else ""
    return Text(f"  {decision}{by}", style="yellow")


async def _stop_tasks(
    *tasks: "asyncio.Task[object] | asyncio.Task[None] | asyncio.Task[str]",
) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


_OUTCOME_MARKS = {"completed": ("✓", "green"), "failed": ("✗", "red"), "canceled": ("-", "yellow")}

_REASON = 5 * LINE
"""Characters of why a turn failed: what a program said last stands at the end of it."""


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, or without one whatever runs on the thread; `begin` starts it.

    `always` is what a person allows for the rest of the run; `left` is said where they quit.
    `flags` are what other commands need to reach the same turn; `approve` is who answers.
    """

    work: WatchedThread
    turn_id: str | None
    begin: Callable[[], Awaitable[None]]
    always: AlwaysRules | None = None
    left: str = "left as it is; continue with factwire resume"
    flags: str = ""
    approve: ApprovalMode = "ask"


async def watch_turn(watched: WatchRequest, transcript: Transcript, *, as_json: bool) -> int:
    """Watch until the turn has ended; the exit code that says how."""
    session = TurnSession(watched.work, watched.turn_id)
    keys = None if as_json else open_keyboard()
    display = _choose_display(session, transcript, as_json=as_json, at_terminal=keys is not None)
    say = _print_to_stderr if as_json else display.say
    answerer = _choose_answerer(watched, display, say, keys)
    try:
        outcome = await session.watch(watched.begin, display, answerer, keys)
    except Quit:
        display.say(Text(watched.left, style="yellow"))
        return INTERRUPTED
    display.say(*_ending_lines(watched.work, session, outcome))
    return EXIT_CODES.get(outcome, 1)


def _choose_display(
    session: TurnSession, transcript: Transcript, *, as_json: bool, at_terminal: bool
) -> Display:
    if as_json:
        return JsonDisplay(session.lose_reader)
    console = PipeAwareConsole(highlight=False)
    if at_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console, transcript, session.lose_reader)
    return PlainDisplay(console, transcript, session.lose_reader)


def _print_to_stderr(*lines: Text) -> None:
    """Print for a person beside what a program reads from standard output."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def _choose_answerer(
    watched: WatchRequest, display: Display, say: Say, keys: Keyboard | None
) -> Answerer:
    controls = watched.work.controls
    if watched.approve != "ask":
        return UnattendedAnswerer(say, controls, watched.approve, watched.always)
    if keys is None:
        return HintAnswerer(say, controls, watched.flags)
    return TerminalAnswerer(display, keys, watched.always, controls, watched.flags)


def _ending_lines(work: WatchedThread, session: TurnSession, outcome: str) -> list[Text]:
    mark, style = _OUTCOME_MARKS.get(outcome, ("·", "default"))
    line = Text(f"{mark} {word_of(THREAD_WORDS, outcome)}", style=style)
    payload = session.last_end.payload if session.last_end is not None else {}
    words = ("failureCategory", "message", "recoveryHint") if outcome == "failed" else ("reason",)
    for word in words:
        if payload.get(word):
            line.append(f" · {terminal_safe(str(payload[word]), _REASON)}")
    line.append(f" · thread {terminal_safe(work.thread_id)}", style="bright_black")
    sys.stdout.flush()
    return [line]
