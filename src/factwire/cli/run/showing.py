"""Which display a command gets, who answers on it, and the last lines of a turn."""

import sys
from collections.abc import Awaitable, Callable

import msgspec
from rich.text import Text

from factwire.cli.failures import INTERRUPTED
from factwire.cli.run.answering import Answerer, Asking, Telling, this_user
from factwire.cli.run.displays import Display, Drawn, Facts, Paper, Plain
from factwire.cli.run.keyboard import Keyboard, keyboard
from factwire.cli.run.questions import Always
from factwire.cli.run.session import EXIT_CODES, Quit, Session
from factwire.cli.run.transcript import Transcript
from factwire.cli.run.work import Work
from factwire.cli.sections.lines import LINE
from factwire.cli.terminal_text import harmless
from factwire.projection.actions import Action

_MARKS = {"completed": ("✓", "green"), "failed": ("✗", "red"), "canceled": ("-", "yellow")}

_REASON = 5 * LINE
"""Characters of why a turn failed: what a program said last stands at the end of it."""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, or without one whatever runs on the thread; `begin` starts it.

    `always` is what a person allows for the rest of the run; `left` is said where they quit.
    `flags` are what other commands need to reach the same turn.
    """

    work: Work
    turn_id: str | None
    begin: Callable[[], Awaitable[None]]
    always: Always | None = None
    left: str = "left as it is; factwire resume goes on from there"
    flags: str = ""


async def watch(watched: Watched, transcript: Transcript, *, as_json: bool) -> int:
    """Watch until the turn has ended; the exit code that says how."""
    session = Session(watched.work, watched.turn_id)
    keys = None if as_json else keyboard()
    display = _display(session, transcript, as_json=as_json, at_terminal=keys is not None)
    answerer = None if as_json else _answerer(watched, display, keys)
    try:
        outcome = await session.watched(watched.begin, display, answerer, keys)
    except Quit:
        display.say(Text(watched.left, style="yellow"))
        return INTERRUPTED
    display.say(*_ending(watched.work, session, outcome))
    return EXIT_CODES.get(outcome, 1)


def _display(
    session: Session, transcript: Transcript, *, as_json: bool, at_terminal: bool
) -> Display:
    if as_json:
        return Facts(session.lost)
    console = Paper(highlight=False)
    if at_terminal and not console.is_dumb_terminal:
        return Drawn(console, transcript, session.lost)
    return Plain(console, transcript, session.lost)


def _answerer(watched: Watched, display: Display, keys: Keyboard | None) -> Answerer:
    if keys is None:
        return Telling(display, watched.flags)

    async def decide(action: Action, decision: str, reason: str | None) -> None:
        await watched.work.decide(action, decision, reason, this_user())

    return Asking(display, keys, watched.always, decide, watched.flags)


def _ending(work: Work, session: Session, outcome: str) -> list[Text]:
    mark, style = _MARKS.get(outcome, ("·", "default"))
    line = Text(f"{mark} {outcome}", style=style)
    said = session.last_end.payload if session.last_end is not None else {}
    words = ("failureCategory", "message", "recoveryHint") if outcome == "failed" else ("reason",)
    for word in words:
        if said.get(word):
            line.append(f" · {harmless(str(said[word]), _REASON)}")
    line.append(f" · thread {harmless(work.thread_id)}", style="bright_black")
    sys.stdout.flush()
    return [line]
