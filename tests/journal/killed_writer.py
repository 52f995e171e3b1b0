"""A process that appends with eight producers until it is killed, telling of every answer it got.

It is started from a server that has everything imported, so that a round takes milliseconds. An
eager one runs a journal whose writer answers as soon as it has admitted, before it commits.
"""

import asyncio
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from factwire.journal import AppendResult, Journal, open_journal
from factwire.journal.commit_group import CommitGroup
from factwire.journal.sqlite import writer
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


def _run(url: str, round_number: int, eager: bool, acks: Connection, path: list[str]) -> None:
    sys.path[:] = path
    if eager:
        writer._admit_appends = _answered_at_once
    asyncio.run(_produce(url, round_number, acks))


_admitted = writer._admit_appends


def _answered_at_once(
    group: CommitGroup, appends: Sequence[writer.SqliteAppend]
) -> list[AppendResult | Exception]:
    answers = _admitted(group, appends)
    writer._answer(appends, answers)
    return answers


async def _produce(url: str, round_number: int, acks: Connection) -> None:
    async with open_journal(url) as journal:
        await asyncio.gather(
            *(_lane(journal, f"{round_number}-{lane}", acks) for lane in range(PRODUCERS))
        )


async def _lane(journal: Journal, lane: str, acks: Connection) -> None:
    for number in range(1_000_000):
        batch = [make_fact(f"{lane}-{number}-{part}", lane) for part in range(BATCH)]
        await journal.append(batch)
        acks.send_bytes(f"{lane}-{number}".encode())
