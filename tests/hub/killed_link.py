"""The two ends of a link as processes that can be killed: an Edge under load, and a Hub's mirrors.

`serve_mirrors` serves mirrors; eager ones acknowledge what they have not stored yet. `run_edge` is
an Edge that uploads, with four producers unless it rests. Each says its name once it is ready.
They are forked by a process that has imported all that they need, because that takes longer than
everything else in a round.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import msgspec

from factwire.edge.hub_access import HubTarget
from factwire.edge.hub_upload import UPLOAD_FILE, UploadMark, UploadSession
from factwire.edge.startup import EdgeSettings, open_edge
from factwire.hub.mirror.mirror_store import EdgeMirror
from factwire.journal import Journal
from factwire.journal.chunks import ChainBatch
from tests.edge.edges import TOKEN, configuration_in
from tests.hub.mirrors import HUB_TOKEN, running_mirror
from tests.journal.contract import make_fact

PRODUCERS = 4
START_SECONDS: Final = 240
Ready = Callable[[str], None]

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    ["tests.hub.killed_link", "tests.hub.test_link_faults", "tests.hub.supervising_agents"]
)


async def serve_mirrors(ready: Ready, folder: Path, port: int, eager: str = "") -> None:
    if eager:
        EdgeMirror.take_chain = _acknowledge_early
    async with running_mirror(folder, port):
        ready("mirrors")
        await asyncio.Event().wait()


_take_chain = EdgeMirror.take_chain
_late: set[asyncio.Task[UploadSession]] = set()


async def _acknowledge_early(
    self: EdgeMirror, session: int, batch: ChainBatch, body: bytes
) -> UploadSession:
    while len(_late) > 2:
        await asyncio.wait(_late, return_when=asyncio.FIRST_COMPLETED)

    async def store() -> UploadSession:
        await asyncio.sleep(0.3)
        return await _take_chain(self, session, batch, body)

    if not batch.chunks:
        return await _take_chain(self, session, batch, body)
    task = asyncio.create_task(store())
    _late.add(task)
    task.add_done_callback(_late.discard)
    last = batch.chunks[-1]
    return UploadSession(
        session=session, acked_seq=last.last, acked_hash=last.hash.hex(), record=""
    )


async def run_edge(ready: Ready, folder: Path, port: int, round_name: str, rests: str = "") -> None:
    hub = HubTarget(url=f"http://127.0.0.1:{port}", token=HUB_TOKEN)
    settings = EdgeSettings(token=TOKEN, hub=hub)
    conf = configuration_in(folder)
    async with open_edge(conf, Path(conf.workspaces[0]), settings) as edge:
        ready(edge.context.edge_id)
        if rests:
            await asyncio.Event().wait()
        lanes = (_produce(edge.context.journal, f"{round_name}-{n}") for n in range(PRODUCERS))
        await asyncio.gather(*lanes)


async def _produce(journal: Journal, lane: str) -> None:
    for number in count():
        await journal.append([make_fact(f"{lane}-{number}-{part}", lane) for part in range(3)])
        await asyncio.sleep(0.002)


class KilledProcess:
    """One end of the link, in a process of its own; `name` is what it said when it was ready."""

    def __init__(self, run: Callable[..., Awaitable[None]], *args: object) -> None:
        here, there = _forks.Pipe(duplex=False)
        self._process = _forks.Process(target=_run, args=(there, run, *args), daemon=True)
        self._process.start()
        there.close()
        with here:
            assert here.poll(START_SECONDS), args
            self.name: str = here.recv()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _run(ready: Connection, run: Callable[..., Awaitable[None]], *args: object) -> None:
    os.umask(0o077)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)

    async def run_until_killed() -> None:
        await run(ready.send, *args)

    asyncio.run(run_until_killed())


@contextmanager
def killed_after(run: Callable[..., Awaitable[None]], *args: object) -> Generator[KilledProcess]:
    """A process that does not outlive the block."""
    process = KilledProcess(run, *args)
    try:
        yield process
    finally:
        process.kill()


def read_acked(folder: Path) -> int:
    """What an Edge knows to be acknowledged."""
    try:
        content = (folder / "data" / UPLOAD_FILE).read_bytes()
    except FileNotFoundError:
        return 0
    return msgspec.json.decode(content, type=UploadMark).acked_seq
