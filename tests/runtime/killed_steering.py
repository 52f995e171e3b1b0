"""A runtime that is steered, or that tries again, until it is killed; it tells what is durable."""

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
from factwire.runtime import RetryPolicy, Runtime, StartTurn, TurnFailed, TurnSettings
from tests.runtime.agents import make_fact
from tests.runtime.steered import Steerable

THREAD = "thread"
POLICY = RetryPolicy(
    attempts=10, delay_seconds=0.02, factor=1.0, categories=("rate_limited", "runtime_restarted")
)


async def talk_and_listen(turn: StartTurn) -> AsyncIterator[Fact]:
    """Talks, and hears what was said now and then; any other prompt is answered at once."""
    for number in range(1_000_000 if turn.prompt == "work" else 1):
        yield make_fact(turn.host, "model.delta", {"delta": "word "}, message_id=turn.turn_id)
        await asyncio.sleep(0.001)
        if number % 7 == 6:
            await turn.host.take_steers()
    yield make_fact(turn.host, "turn.completed")


async def fail_turn(turn: StartTurn) -> AsyncIterator[Fact]:
    yield make_fact(turn.host, "model.delta", {"delta": "trying "}, message_id=turn.turn_id)
    raise TurnFailed("rate_limited", "not now")


async def complete_turn(turn: StartTurn) -> AsyncIterator[Fact]:
    yield make_fact(turn.host, "turn.completed")


SCRIPTS = {"listening": talk_and_listen, "failing": fail_turn, "working": complete_turn}


def runtime_in(folder: Path, journal: Journal, doing: str) -> Runtime:
    agents = {"agent": Steerable(SCRIPTS[doing])}
    return Runtime(
        journal,
        FileBlobs(folder / "blobs"),
        agents,
        workspace=folder,
        settings=TurnSettings(retry=POLICY, interrupt_seconds=0.01),
    )


def start(folder: Path, doing: str) -> tuple[BaseProcess, Connection]:
    """The process, and the end of the pipe on which it says what is done."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.runtime.killed_steering"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(str(folder), doing, sender, list(sys.path)))
    process.start()
    sender.close()
    return process, receiver


def _run(folder: str, doing: str, sender: Connection, path: list[str]) -> None:
    sys.path[:] = path
    asyncio.run(_work(Path(folder), doing, sender))


async def _work(folder: Path, doing: str, sender: Connection) -> None:
    async with (
        open_journal(f"sqlite:{folder / 'journal.db'}") as journal,
        runtime_in(folder, journal, doing) as runtime,
    ):
        await runtime.submit(THREAD, "agent", "work", turn_id="turn")
        if doing != "listening":
            thread = await runtime.thread(THREAD)
            thread.log.watch(lambda fact, _: sender.send_bytes((fact.event_class or "").encode()))
            await asyncio.Event().wait()
        for number in range(1_000_000):
            await runtime.steer(THREAD, f"to {number}", steer_id=f"s{number}")
            sender.send_bytes(f"s{number}".encode())
            await asyncio.sleep(0.002)
