"""The NATS backend against the best that nats-py does by hand with the same bytes.

The hand-written loop publishes one message of 256 encoded facts and waits for its ack; it keeps no
ids, no chain, no index and no catalogue. Both talk to one throw-away server that flushes every
message before it acknowledges it (`sync_interval: always`).
"""

import asyncio
import gc
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StorageType, StreamConfig

from bench.measure import Row
from bench.workload import facts
from factwire.facts.fact import Fact
from factwire.facts.shapes import encode_fact
from factwire.journal.chunks import decode_line
from factwire.journal.nats import NatsJournal

GROUP = 256
FACTS = 100 * GROUP
ROUNDS = 5
RAW = "one message of 256 facts, acked, by hand"
ENCODED = "the same, encoding its facts"

_names = count(1)

Contender = Callable[[], Awaitable[float]]


def rows() -> list[Row]:
    """The report's lines."""
    with _server() as address:
        return asyncio.run(_measure(address))


async def _measure(address: str) -> list[Row]:
    lines = facts(FACTS)
    stored = [decode_line(line) for line in lines]
    contenders: dict[str, Contender] = {
        RAW: lambda: _by_hand(address, lines),
        ENCODED: lambda: _by_hand_encoding(address, stored),
        "append, 256 producers, a fact each": lambda: _producers(address, stored, 256, 1),
        "append, 64 producers, batches of 16": lambda: _producers(address, stored, 64, 16),
        "append, 8 producers, batches of 256": lambda: _producers(address, stored, 8, 256),
    }
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            gc.collect()
            seen[name].append(await run())
    medians = {name: statistics.median(values) for name, values in seen.items()}
    report = [Row(name=RAW, value=medians[RAW], unit="facts/s")]
    for name, value in medians.items():
        if name != RAW:
            goal = "≥ 0.6" if name.startswith("append") else ""
            ratio = value / medians[RAW]
            report.append(
                Row(name=name, value=value, unit="facts/s", ratio=ratio, baseline=RAW, goal=goal)
            )
    return report


async def _by_hand(address: str, lines: Sequence[bytes]) -> float:
    return await _publish(address, lambda: _join_lines(lines))


async def _by_hand_encoding(address: str, stored: Sequence[Fact]) -> float:
    return await _publish(address, lambda: _encode_groups(stored))


async def _publish(address: str, bodies: Callable[[], Iterator[bytes]]) -> float:
    client = Client()
    await client.connect(address)
    stream = JetStreamContext(client)
    name = f"raw{next(_names)}"
    config = StreamConfig(name=name, subjects=[name], storage=StorageType.FILE)
    await cast("Any", stream).add_stream(config)
    start = time.perf_counter()
    for body in bodies():
        await stream.publish(name, body)
    took = time.perf_counter() - start
    await stream.delete_stream(name)
    await client.close()
    return FACTS / took


def _join_lines(lines: Sequence[bytes]) -> Iterator[bytes]:
    for at in range(0, FACTS, GROUP):
        yield b"\n".join(lines[at : at + GROUP]) + b"\n"


def _encode_groups(stored: Sequence[Fact]) -> Iterator[bytes]:
    for at in range(0, FACTS, GROUP):
        yield b"\n".join([encode_fact(fact) for fact in stored[at : at + GROUP]]) + b"\n"


async def _producers(address: str, stored: Sequence[Fact], producers: int, batch: int) -> float:
    batches = iter([stored[at : at + batch] for at in range(0, FACTS, batch)])
    async with NatsJournal(f"{address}/bench{next(_names)}?sync=always") as journal:
        # The workload is one thread in order, so producers take turns as one queue hands them out.
        async def produce() -> None:
            for each in batches:
                await journal.append(each)

        start = time.perf_counter()
        await asyncio.gather(*(produce() for _ in range(producers)))
        took = time.perf_counter() - start
        assert (await journal.head()).seq == FACTS
    return FACTS / took


@contextmanager
def _server() -> Generator[str]:
    folder = Path(tempfile.mkdtemp(prefix="factwire-bench-"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    store = f'store_dir: "{folder / "data"}", sync_interval: always'
    (folder / "conf").write_text(f'listen: "127.0.0.1:{port}"\njetstream {{ {store} }}\n')
    program = Path(sys.executable).with_name("nats-server")
    server = subprocess.Popen(  # noqa: S603
        [program, "-c", folder / "conf"], stderr=subprocess.DEVNULL
    )
    try:
        _await_port(port)
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _await_port(port: int) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)
        else:
            return
