"""`demo`: needs no key and no network, and really does what it shows.

What it says is a script; files, commands, checks and approvals go through the runtime like those of
any agent, so that every surface has something true to show.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.projection import ThreadReadModel
from factwire.runtime.agents.demo.stage import Sleep, Stage, Stopped
from factwire.runtime.agents.demo.talk import heed
from factwire.runtime.agents.demo.themes import THEMES, theme_of
from factwire.runtime.provider import CancelTurn, ReadThread, RespondAction, StartTurn
from factwire.runtime.toolbox import Toolbox

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
        stage = Stage(turn, toolbox, pace=self._options.pace, sleep=self._sleep)
        try:
            await _play(stage)
        except Stopped:
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

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:  # noqa: ARG002
        return None


async def _play(stage: Stage) -> None:
    theme, first = theme_of(stage.turn.prompt), stage.first
    for number, beat in enumerate(theme.beats):
        if number < first:
            continue
        stage.enter(theme.name, number)
        await heed(stage)
        if not stage.is_over:
            await beat(stage)
    await heed(stage)
