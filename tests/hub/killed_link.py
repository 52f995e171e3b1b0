"""The two ends of a link as processes that can be killed: an Edge under load, and a Hub's mirrors.

`python -m tests.hub.killed_link hub FOLDER PORT [eager]` serves mirrors; an eager one acknowledges
what it has not stored yet. `… edge FOLDER PORT ROUND [rest]` runs an Edge that uploads, with four
producers unless it rests. Each prints a line once it is ready.
"""

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from factwire.edge.hub_upload import UPLOAD_FILE, HubTarget, UploadMark, UploadSession
from factwire.edge.startup import EdgeSettings, open_edge
from factwire.hub.mirror.mirror_store import EdgeMirror
from factwire.journal import Journal
from factwire.journal.chunks import ChainBatch
from tests.edge.edges import TOKEN, configuration_in
from tests.hub.mirrors import HUB_TOKEN, running_mirror
from tests.journal.contract import make_fact

PRODUCERS = 4


async def serve_hub(folder: Path, port: int, *, eager: bool) -> None:
    if eager:
        EdgeMirror.take_chain = _acknowledge_early
    async with running_mirror(folder, port):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
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


async def run_edge(folder: Path, port: int, round_name: str, *, rests: bool) -> None:
    hub = HubTarget(url=f"http://127.0.0.1:{port}", token=HUB_TOKEN)
    settings = EdgeSettings(token=TOKEN, hub=hub)
    conf = configuration_in(folder)
    async with open_edge(conf, Path(conf.workspaces[0]), settings) as edge:
        sys.stdout.write(f"{edge.context.edge_id}\n")
        sys.stdout.flush()
        if rests:
            await asyncio.Event().wait()
        lanes = (_produce(edge.context.journal, f"{round_name}-{n}") for n in range(PRODUCERS))
        await asyncio.gather(*lanes)


async def _produce(journal: Journal, lane: str) -> None:
    for number in count():
        await journal.append([make_fact(f"{lane}-{number}-{part}", lane) for part in range(3)])
        await asyncio.sleep(0.002)


class KilledProcess:
    """One end of the link, in a process of its own; `name` is the line that it printed."""

    def __init__(self, *args: object) -> None:
        command = [sys.executable, "-m", "tests.hub.killed_link", *map(str, args)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.name = self._process.stdout.readline().strip()
        assert self.name

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def killed_after(*args: object) -> Generator[KilledProcess]:
    """A process that does not outlive the block."""
    process = KilledProcess(*args)
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


if __name__ == "__main__":
    role, where, at, *rest = sys.argv[1:]
    if role == "hub":
        asyncio.run(serve_hub(Path(where), int(at), eager="eager" in rest))
    else:
        asyncio.run(run_edge(Path(where), int(at), rest[0], rests="rest" in rest))
