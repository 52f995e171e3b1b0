"""Themes: what a demo can show, chosen by a word of the prompt."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from factwire.runtime.agents.demo import talk, team, work
from factwire.runtime.agents.demo.stage import Stage

Beat = Callable[[Stage], Awaitable[None]]

_WORD: Final = re.compile(r"[a-z]+")


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """`words` choose it, `about` says what is to be seen."""

    name: str
    words: frozenset[str]
    about: str
    beats: tuple[Beat, ...]


async def _help(stage: Stage) -> None:
    await stage.say(help_text())


_TEAM: Final[tuple[Beat, ...]] = (
    team.gather_team,
    team.reader_works,
    team.hand_over,
    team.writer_works,
    team.dismiss_team,
)

_ROWS: Final = (
    Theme(
        name="help",
        words=frozenset({"help", "themes"}),
        about="this list",
        beats=(_help,),
    ),
    Theme(
        name="approve",
        words=frozenset({"approve", "approval", "ask", "permission"}),
        about="a command that waits for your yes or no",
        beats=(talk.greet, work.write_notes, work.ask_first, talk.close),
    ),
    Theme(
        name="fail",
        words=frozenset({"fail", "failure", "error", "break"}),
        about="a turn that fails, with a category and a hint",
        beats=(talk.greet, work.break_down),
    ),
    Theme(
        name="files",
        words=frozenset({"files", "file", "diff", "patch", "write"}),
        about="files that are written, patched and read, with their diffs",
        beats=(talk.greet, work.write_notes, work.edit_notes, work.read_notes, talk.close),
    ),
    Theme(
        name="long",
        words=frozenset({"long", "output", "big"}),
        about="five megabytes of output, most of it behind a ref",
        beats=(talk.greet, work.say_a_lot, talk.close),
    ),
    Theme(
        name="plan",
        words=frozenset({"plan", "planning"}),
        about="a plan that you decide about, and then its steps",
        beats=(
            talk.greet,
            talk.show_plan,
            talk.ask_about_plan,
            work.write_notes,
            work.edit_notes,
            work.check,
            talk.close,
        ),
    ),
    Theme(
        name="slow",
        words=frozenset({"slow", "wait", "cancel", "stop"}),
        about="a command that takes its time, to be watched or stopped",
        beats=(talk.greet, work.take_long, talk.close),
    ),
    Theme(
        name="team",
        words=frozenset({"team", "subagents", "subagent", "handoff", "agents"}),
        about="two subagents with work of their own, and a handoff",
        beats=(talk.greet, work.write_notes, *_TEAM, talk.close),
    ),
    Theme(
        name="tour",
        words=frozenset({"tour"}),
        about="a bit of everything; also what you get without any of these words",
        beats=(
            talk.greet,
            talk.show_plan,
            work.write_notes,
            work.edit_notes,
            work.run_command,
            work.ask_first,
            *_TEAM,
            work.check,
            work.make_artifact,
            talk.close,
        ),
    ),
)

THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in _ROWS}


def theme_of(prompt: str) -> Theme:
    """The theme whose word comes first in a prompt; without one, the tour."""
    for word in _WORD.findall(prompt.lower()):
        for theme in THEMES.values():
            if word in theme.words:
                return theme
    return THEMES["tour"]


def help_text() -> str:
    rows = (f"- `demo: {theme.name}`: {theme.about}" for theme in THEMES.values())
    return "I can show:\n\n" + "\n".join(rows)
