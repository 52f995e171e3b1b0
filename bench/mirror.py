"""The upload of a long journal to a Hub against a plain copy through the same journal.

Both read a journal on SQLite and make another one durable, in the same sizes of commits. The upload
goes over HTTP to a process of its own, hashes every commit and decodes every fact once; the copy
decodes and appends in one process.
"""

import asyncio
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec

from bench.evidence import write_journal
from bench.measure import Row
from factwire.edge.hub_upload import CHAIN_MEDIA_TYPE, UploadSession, UploadStart
from factwire.edge.limits import UPLOAD_BYTES
from factwire.journal.sqlite.journal import SqliteJournal

FACTS = 100_000
"""Facts by default; `--facts 1000000` takes some minutes."""

_COPIED = 500
_ROUNDS = 3

_HUB = """
import asyncio, sys
from pathlib import Path
import uvicorn
from contextlib import asynccontextmanager
from factwire.hub.mirror.mirror_app import MirrorAccess, MirrorApp
from factwire.hub.mirror.mirror_store import MirrorStore
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

@asynccontextmanager
async def authorize(scope, edge_id, purpose):
    yield MirrorAccess(stream_key="bench")

async def main():
    async with MirrorStore(Path(sys.argv[1]), lambda: "") as store:
        config = uvicorn.Config(
            MirrorApp(store, authorize), port=int(sys.argv[2]), http=FactwireHttpProtocol,
            lifespan="off", log_config=None, **socket_settings())
        await uvicorn.Server(config).serve()

asyncio.run(main())
"""


def rows(facts: int = FACTS) -> list[Row]:
    """All rows of the group."""
    copied, uploaded = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(write_journal(folder / "edge.db", facts))
        # A journal of a million is long enough to be measured once.
        for number in range(_ROUNDS if facts <= FACTS else 1):
            copied.append(asyncio.run(_copy(folder / "edge.db", folder / f"copy-{number}.db")))
            with _start_hub(folder / f"hub-{number}") as port:
                uploaded.append(asyncio.run(_upload(folder / "edge.db", port, facts)))
    pairs = zip(copied, uploaded, strict=True)
    return [
        Row(
            name=f"plain copy of {facts:,} facts",
            value=facts / statistics.median(copied),
            unit="facts/s",
        ),
        Row(
            name=f"upload of {facts:,} facts to a Hub",
            value=facts / statistics.median(uploaded),
            unit="facts/s",
            ratio=statistics.median(copy / upload for copy, upload in pairs),
            baseline="plain copy",
            goal="≥ 0.5",
        ),
    ]


@contextmanager
def _start_hub(folder: Path) -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [sys.executable, "-c", _HUB, str(folder), str(port)]
    hub = subprocess.Popen(command)  # noqa: S603 - our own command
    try:
        yield port
    finally:
        hub.terminate()
        hub.wait()


async def _copy(source: Path, target: Path) -> float:
    async with SqliteJournal(str(source)) as journal, SqliteJournal(str(target)) as copy:
        start = time.perf_counter()
        async for batch in journal.read():
            facts = [fact for _, fact in batch.facts()]
            for at in range(0, len(facts), _COPIED):
                await copy.append(facts[at : at + _COPIED])
        return time.perf_counter() - start


async def _upload(source: Path, port: int, facts: int) -> float:
    path = f"http://127.0.0.1:{port}/v1/edges/edge_1/mirror"
    headers = {"content-type": CHAIN_MEDIA_TYPE}
    async with SqliteJournal(str(source)) as journal, httpx.AsyncClient(timeout=60) as http:
        start = UploadStart(epoch=(await journal.head()).epoch, runtime_id="bench")
        while True:
            try:
                answer = await http.post(f"{path}/sessions", content=msgspec.json.encode(start))
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        began = time.perf_counter()
        end = msgspec.json.decode(answer.content, type=UploadSession)
        while (batch := await journal.read_chain(end.point, b"", UPLOAD_BYTES)).chunks:
            body = msgspec.msgpack.encode(batch)
            answer = await http.post(
                f"{path}/chain?session={end.session}", content=body, headers=headers
            )
            end = msgspec.json.decode(answer.content, type=UploadSession)
        assert end.acked_seq == facts
        return time.perf_counter() - began
