"""A runtime around a program of ours that speaks an agent's protocol, and mostly wrongly."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import Provider, Runtime, TurnResources, TurnSettings
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes, StopEscalation
from tests.agents.driving import AGENT, DrivenAgent

FOLDER = Path(__file__).resolve().parent
INTERRUPT_SECONDS = 3.0
"""Long enough for a program on a busy machine to heed an interrupt, and short for one that never
does.
"""


def program(script: str, folder: Path) -> str:
    """A script of this folder, as a program of its own."""
    path = folder / script.removesuffix(".py")
    path.write_text(f"#!{sys.executable}\n{(FOLDER / script).read_text('utf-8')}", "utf-8")
    path.chmod(0o755)
    return str(path)


@asynccontextmanager
async def driven(
    agent: Provider, folder: Path, *, policy: Policy | None = None
) -> AsyncGenerator[DrivenAgent]:
    """The agent in a runtime that may run programs in `workspace`, and is quick to stop them."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    blobs, ladder = MemoryBlobs(), StopEscalation(terminate=0.5)
    processes = Processes(folder / "data", workspaces=[workspace], blobs=blobs, ladder=ladder)
    means = TurnResources(blobs=blobs, processes=processes, policy=policy or Policy())
    async with (
        open_journal("memory:") as journal,
        Runtime(
            journal,
            blobs,
            {AGENT: agent},
            workspace=workspace,
            resources=means,
            settings=TurnSettings(interrupt_seconds=INTERRUPT_SECONDS),
        ) as runtime,
    ):
        yield DrivenAgent(runtime)
