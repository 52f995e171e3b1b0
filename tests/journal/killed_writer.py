"""A process that appends with eight producers until it is killed, telling of every answer it got.

It is started from a server that has everything imported, so that a round takes milliseconds.
"""

import asyncio
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from factwire.journal import Journal, open_journal
from tests.journal.contract import make_fact

PRODUCERS = 8
BATCH = 3


def start(url: str, round_number: int, *, eager: bool) -> tuple[BaseProcess, Connection]:
    """The process, and the end of the pipe on which it names acknowledged batches."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.journal.killed_writer"])
    receiver, sender = context.Pipe(duplex=False)
    path = list(sys.path)
    process = context.Process(target=_run, args=(url, round_number, eager, sender, path))
    process.start()
    sender.close()
    return process, receiver


def _run(url: str, round_number: int, eager: bool, told: Connection, path: list[str]) -> None:
    sys.path[:] = path
    asyncio.run(_produce(url, round_number, eager, told))


async def _produce(url: str, round_number: int, eager: bool, told: Connection) -> None:
    async with open_journal(url) as journal:
        await asyncio.gather(
            *(_lane(journal, f"{round_number}-{lane}", eager, told) for lane in range(PRODUCERS))
        )


async def _lane(journal: Journal, lane: str, eager: bool, told: Connection) -> None:
    for number in range(1_000_000):
        batch = [make_fact(f"{lane}-{number}-{part}", lane) for part in range(BATCH)]
        name = f"{lane}-{number}".encode()
        if eager:
            told.send_bytes(name)
        await journal.append(batch)
        if not eager:
            told.send_bytes(name)
