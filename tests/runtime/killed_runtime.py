"""A runtime that works until it is killed, telling of every fact that became durable.

It is started from a server that has everything imported, so that a round takes little time. What it
is doing when it dies is one of: streaming an answer, waiting for a person, or running a program
that says a lot. A second turn waits behind the first.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from factwire.facts import Fact
from factwire.journal import Journal
from factwire.journal.blobs import FileBlobs
from factwire.journal.protocol import open_journal
from factwire.runtime import Provider, Runtime, StartTurn, TurnResources
from factwire.runtime.agents import ShellAgent
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes
from factwire.runtime.sandbox import SandboxPolicy
from tests.runtime.agents import Agent, make_fact

THREAD = "thread"
PROMPTS = {
    "answer": ("talker", "on and on"),
    "approval": ("shell", "touch approved"),
    "output": ("shell", "sh chatter.sh"),
}
CHATTER = "trap '' PIPE\necho $$ > pid\nwhile :; do echo chatter || sleep 0.1; done\n"
"""Goes on when nobody reads any more, so that only a runtime ends it."""


async def endlessly(turn: StartTurn) -> AsyncIterator[Fact]:
    """Talks until it is stopped; asked for one word, says that."""
    words = 1 if turn.prompt == "once" else 1_000_000
    for _ in range(words):
        yield make_fact(turn.host, "model.delta", {"delta": "word "}, message_id=turn.turn_id)
        await asyncio.sleep(0)
    yield make_fact(turn.host, "turn.completed")


def runtime_in(folder: Path, journal: Journal, doing: str) -> Runtime:
    """A runtime with everything in one folder."""
    blobs = FileBlobs(folder / "blobs")
    workspace = folder / "workspace"
    allow = [] if doing == "approval" else ["Bash"]
    means = TurnResources(
        blobs=blobs,
        policy=Policy.of("default", allow=allow),
        processes=Processes(folder / "data", workspaces=[workspace], blobs=blobs),
        sandbox=SandboxPolicy(mode="off"),
    )
    agents: dict[str, Provider] = {"talker": Agent(endlessly), "shell": ShellAgent()}
    return Runtime(journal, blobs, agents, workspace=workspace, resources=means)


def start(folder: Path, doing: str) -> tuple[BaseProcess, Connection]:
    """The process, and the end of the pipe on which it names durable facts."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.runtime.killed_runtime"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(str(folder), doing, sender, list(sys.path)))
    process.start()
    sender.close()
    return process, receiver


def _run(folder: str, doing: str, sender: Connection, path: list[str]) -> None:
    sys.path[:] = path
    asyncio.run(_work(Path(folder), doing, sender))


async def _work(folder: Path, doing: str, sender: Connection) -> None:
    agent, prompt = PROMPTS[doing]
    async with (
        open_journal(f"sqlite:{folder / 'journal.db'}") as journal,
        runtime_in(folder, journal, doing) as runtime,
    ):
        thread = await runtime.thread(THREAD)
        thread.log.watch(lambda fact, _: sender.send_bytes((fact.event_class or "").encode()))
        await runtime.submit(THREAD, agent, prompt, turn_id="first")
        await runtime.submit(THREAD, "talker", "once", turn_id="second")
        await asyncio.Event().wait()
