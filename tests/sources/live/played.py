"""An outside agent that is a program which prints what it was given, line by line, and waits where
it is told to: the real pipe, with nobody's model behind it.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest
from factwire.journal.blobs import MemoryBlobs
from factwire.journal.protocol import open_journal
from factwire.runtime import Decision, Runtime, TurnFailed, TurnSettings
from factwire.runtime.processes import Processes
from factwire.runtime.turn_resources import TurnResources
from factwire.sources import find_source
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn, TurnDriver
from factwire.sources.kit.program import JsonPipe, open_pipe

PROGRAM: Final = """
import sys
for line in open(sys.argv[1]):
    if line.startswith("WAIT"):
        sys.stdin.readline()
    elif line.startswith("DIE"):
        sys.exit(line.split(" ", 1)[1].strip())
    else:
        sys.stdout.write(line)
        sys.stdout.flush()
"""

WAIT: Final = "WAIT"
"""A line at which the program waits for one of ours."""


class Player(LiveAgent):
    """Plays a script for every turn; what it was answered is in `answers`."""

    def __init__(self, source: str, script: Path, **settings: Any) -> None:
        manifest = CapabilityManifest(agent_id=source, title="Played")
        super().__init__(find_source(source), manifest, **settings)
        self.script = script
        self.answers: list[tuple[str, bool, str | None]] = []
        self.known_as: list[str | None] = []

    def make_driver(self, live: LiveTurn) -> "PlayedDriver":
        return PlayedDriver(self, live)


class PlayedDriver(TurnDriver):
    def __init__(self, player: Player, live: LiveTurn) -> None:
        super().__init__(live)
        self._player = player
        self._pipe: JsonPipe | None = None

    async def run(self) -> None:
        history = self.live.turn.history
        sessions = (history and history.agent_sessions) or {}
        self._player.known_as.append(sessions.get("agent"))
        self.live.builder.set_agent_session("session-1")
        argv = [sys.executable, "-c", PROGRAM, str(self._player.script)]
        async with open_pipe(self.live.host, argv, env={}) as pipe:
            self._pipe = pipe
            async for item in pipe.items():
                await self.live.hear(item)
            code = await pipe.wait_for_exit()
            if code.exit_code != 0 and not self.live.is_stopping:
                raise TurnFailed("agent_died", pipe.describe_exit(code), "Try again.")

    async def answer(self, question: str, decision: Decision) -> None:
        assert self._pipe is not None
        self._player.answers.append((question, decision.allowed, decision.reason))
        await self._pipe.send({"go": "on"})

    async def stop(self) -> None:
        assert self._pipe is not None
        await self._pipe.stop()


def script(folder: Path, *lines: str | dict[str, Any]) -> Path:
    path = folder / "script.jsonl"
    payloads = [
        line if isinstance(line, str) else msgspec.json.encode(line).decode() for line in lines
    ]
    path.write_text("".join(f"{line}\n" for line in payloads))
    return path


@asynccontextmanager
async def runtime_with(
    agent: LiveAgent, folder: Path
) -> AsyncGenerator[tuple[Runtime, TurnResources]]:
    """A runtime that can run programs in `folder`."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    blobs = MemoryBlobs()
    means = TurnResources(blobs=blobs, processes=Processes(folder / "data", workspaces=[workspace]))
    async with (
        open_journal("memory:") as journal,
        Runtime(
            journal,
            blobs,
            {"agent": agent},
            workspace=workspace,
            resources=means,
            settings=TurnSettings(interrupt_seconds=5),
        ) as runtime,
    ):
        yield runtime, means
