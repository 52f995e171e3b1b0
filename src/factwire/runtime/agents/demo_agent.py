"""`demo`: needs no key and no network, and really does what it shows. A word of the prompt
chooses the theme.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.projection import ThreadReadModel
from factwire.runtime.agents import demo_scenes
from factwire.runtime.agents.demo_scenes import DemoStage, DemoStopped, Sleep, answer_steers
from factwire.runtime.provider import (
    CancelTurn,
    ReadThread,
    RespondAction,
    StartTurn,
    read_from_facts,
)
from factwire.runtime.toolbox import Toolbox

Beat = Callable[[DemoStage], Awaitable[None]]

_WORD: Final = re.compile(r"[a-z]+")


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """`words` choose it, `about` says what is to be seen."""

    name: str
    words: frozenset[str]
    about: str
    beats: tuple[Beat, ...]


async def _help(stage: DemoStage) -> None:
    await stage.say(help_text())


_TEAM: Final[tuple[Beat, ...]] = (
    demo_scenes.gather_team,
    demo_scenes.reader_works,
    demo_scenes.hand_over,
    demo_scenes.writer_works,
    demo_scenes.dismiss_team,
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
        about="a command that waits for your approval",
        beats=(
            demo_scenes.greet,
            demo_scenes.write_notes,
            demo_scenes.ask_first,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="fail",
        words=frozenset({"fail", "failure", "error", "break"}),
        about="a turn that fails, with a category and a hint",
        beats=(demo_scenes.greet, demo_scenes.break_down),
    ),
    Theme(
        name="files",
        words=frozenset({"files", "file", "diff", "patch", "write"}),
        about="files that are written, patched and read, with their diffs",
        beats=(
            demo_scenes.greet,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.read_notes,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="long",
        words=frozenset({"long", "output", "big"}),
        about="five megabytes of output, most of it behind a ref",
        beats=(demo_scenes.greet, demo_scenes.say_a_lot, demo_scenes.close),
    ),
    Theme(
        name="plan",
        words=frozenset({"plan", "planning"}),
        about="a plan for you to approve, and then its steps",
        beats=(
            demo_scenes.greet,
            demo_scenes.show_plan,
            demo_scenes.ask_about_plan,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.check,
            demo_scenes.close,
        ),
    ),
    Theme(
        name="slow",
        words=frozenset({"slow", "wait", "cancel", "stop"}),
        about="a slow command to watch or stop",
        beats=(demo_scenes.greet, demo_scenes.take_long, demo_scenes.close),
    ),
    Theme(
        name="team",
        words=frozenset({"team", "subagents", "subagent", "handoff", "agents"}),
        about="two subagents with work of their own, and a handoff",
        beats=(demo_scenes.greet, demo_scenes.write_notes, *_TEAM, demo_scenes.close),
    ),
    Theme(
        name="tour",
        words=frozenset({"tour"}),
        about="a bit of everything; also the default",
        beats=(
            demo_scenes.greet,
            demo_scenes.show_plan,
            demo_scenes.write_notes,
            demo_scenes.edit_notes,
            demo_scenes.run_command,
            demo_scenes.ask_first,
            *_TEAM,
            demo_scenes.check,
            demo_scenes.make_artifact,
            demo_scenes.close,
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


MANIFEST: Final = CapabilityManifest(
    agent_id="demo",
    title=f"Demo: {', '.join(THEMES)}",
    version="1",
    streaming=Streaming(text="yes", reasoning="no", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval", "delegated_permission", "plan_decision"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "retry"),
    topologies=("solo_run", "coordinator_team", "specialist_handoff"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="yes",
    subagents="yes",
    artifacts="yes",
    evidence="yes",
    sandbox="yes",
    cost="yes",
)


class DemoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`pace` is how many seconds a word takes."""

    pace: float = 0.004


class DemoAgent:
    """Plays the theme that a prompt names."""

    def __init__(self, options: DemoOptions | None = None, *, sleep: Sleep = asyncio.sleep) -> None:
        self.manifest = MANIFEST
        self._options = options or DemoOptions()
        self._sleep = sleep
        self._running: dict[str, Toolbox] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        toolbox = self._running[turn.turn_id] = Toolbox(turn.host)
        stage = DemoStage(turn, toolbox, pace=self._options.pace, sleep=self._sleep)
        try:
            await _play(stage)
        except DemoStopped:
            # The runtime knows that it was told to stop, and ends the turn so.
            return
        finally:
            del self._running[turn.turn_id]
        yield stage.end()

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        toolbox = self._running.get(cancel.turn_id)
        if toolbox is not None:
            await toolbox.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return read_from_facts(read)


async def _play(stage: DemoStage) -> None:
    theme, first = theme_of(stage.turn.prompt), stage.first
    for number, beat in enumerate(theme.beats):
        if number < first:
            continue
        stage.enter(theme.name, number)
        await answer_steers(stage)
        if not stage.is_over:
            await beat(stage)
    await answer_steers(stage)
