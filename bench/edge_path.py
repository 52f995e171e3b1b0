"""The whole path: `POST /v1/facts` until every reader has the fact, against a bare prototype.

The Edge is the command itself, with its guard, redaction, lists, a watched thread and a hundred
subscribers. The prototype is `bench.edge_path_servers`. Both get the same bytes in one run, from
this process, which does as little as it can; ratios are what counts.
"""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import httpx
import msgspec
import psutil

from bench.measure import Row
from bench.workload import events
from factwire.edge.records import read_records
from factwire.facts import Fact
from factwire.journal import open_journal
from factwire.journal.chunks import decode_line

READERS: Final = 100
BATCH: Final = 16
IN_FLIGHT: Final = (64, 1_024)
"""Facts that are on their way at the same time, in batches of sixteen."""

FACTS: Final = 8_192
ROUNDS: Final = 3
TOKEN: Final = "bench-0123456789-abcdefghij"  # noqa: S105 - of an Edge that lives for a moment
_EDGE: Final = "from factwire.cli import main; main()"
_HELLO: Final = """
import socket, uvicorn, uvloop
from litestar import Litestar, get
@get("/v1/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}
listening = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
server = uvicorn.Server(uvicorn.Config(Litestar([health]), loop="none", log_config=None))
uvloop.run(server.serve([listening]))
"""
_FACT: Final = b'"fact":{'
_AT: Final = re.compile(rb'"at":(\d+)')
_PORT: Final = re.compile(r"127\.0\.0\.1:(\d+)")


class Target:
    """A server in a process of its own; `ports` are for facts and for readers."""

    def __init__(self, process: subprocess.Popen[str], ports: tuple[int, int], path: str) -> None:
        self.process = process
        self.ports = ports
        self.path = path

    def memory(self) -> int:
        return psutil.Process(self.process.pid).memory_info().rss


@contextmanager
def _process(
    *arguments: str, folder: str, variables: Mapping[str, str] | None = None
) -> Generator[subprocess.Popen[str]]:
    """A program with compiled files of its own, so that the second start finds them."""
    surroundings = {**os.environ, "PYTHONPYCACHEPREFIX": f"{tempfile.gettempdir()}/bench-compiled"}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, *arguments],
        env={**surroundings, "HOME": folder, "PYTHONPATH": str(Path.cwd()), **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _edge_flags(folder: str, program: str = _EDGE) -> list[str]:
    places = ("--data", f"{folder}/data", "--journal", f"sqlite:{folder}/edge.db")
    return ["-c", program, "edge", "--port", "0", "--workspace", folder, "--token", TOKEN, *places]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


@contextmanager
def _edge() -> Generator[Target]:
    with tempfile.TemporaryDirectory() as folder, start_edge(folder) as target:
        yield target


@contextmanager
def start_edge(
    folder: str, program: str = _EDGE, variables: Mapping[str, str] | None = None
) -> Generator[Target]:
    """An Edge on the journal of a folder."""
    with _process(*_edge_flags(folder, program), folder=folder, variables=variables) as process:
        found = _PORT.search(_line(process))
        assert found
        port = int(found[1])
        yield Target(process, (port, port), "/v1/facts?since=now")


@contextmanager
def _bare() -> Generator[Target]:
    with (
        tempfile.TemporaryDirectory() as folder,
        _process("-m", "bench.edge_path_servers", folder, folder=folder) as process,
    ):
        facts, readers = map(int, _line(process).split())
        yield Target(process, (facts, readers), "/")


class _Reader(asyncio.Protocol):
    """Reads and counts; `waits` are the ages of what was stamped, in milliseconds."""

    def __init__(self, path: str, *, stamps: bool = False) -> None:
        self.facts = 0
        self.is_lost = False
        self.waits: list[float] = []
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._path = path
        self._stamps = stamps
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            f"Authorization: Bearer {TOKEN}\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            "".encode()
        )

    def data_received(self, data: bytes) -> None:
        if not self.open.done():
            assert data.startswith(b"HTTP/1.1 101"), data
            self.open.set_result(None)
            return
        self.facts += (self._tail + data).count(_FACT)
        self._tail = data[1 - len(_FACT) :]
        if self._stamps:
            now = time.monotonic_ns()
            self.waits += [(now - int(found[1])) / 1e6 for found in _AT.finditer(data)]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.is_lost = True


class _Sender(asyncio.Protocol):
    """Sends one request after another on a connection of its own."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 "):
            assert data.startswith(b"HTTP/1.1 200"), data[:2000]
        if data.endswith((b"}", b"]")) and not self._answer.done():
            self._answer.set_result(None)

    async def send(self, request: bytes) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._answer


def _request(facts: list[dict[str, Any]]) -> bytes:
    body = msgspec.json.encode({"facts": facts})
    return (
        f"POST /v1/facts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _lane(lane: str, count: int) -> list[bytes]:
    """Requests with the facts of one thread, in order."""
    facts = [
        {**event, "id": f"{event['id']}{lane}", "threadId": f"thread-{lane}", "runtimeId": "bench"}
        for event in events(count)
    ]
    return [_request(facts[at : at + BATCH]) for at in range(0, count, BATCH)]


async def _connect_senders(target: Target, count: int) -> list[_Sender]:
    loop, port = asyncio.get_running_loop(), target.ports[0]
    found = [await loop.create_connection(_Sender, "127.0.0.1", port) for _ in range(count)]
    return [sender for _, sender in found]


async def _open_reader(target: Target, path: str, *, stamps: bool = False) -> _Reader:
    loop, port = asyncio.get_running_loop(), target.ports[1]
    _, reader = await loop.create_connection(
        lambda: _Reader(path, stamps=stamps), "127.0.0.1", port
    )
    await reader.open
    return reader


async def _wait_for_readers(readers: list[_Reader], count: int) -> None:
    """Wait until every reader has so many facts."""
    async with asyncio.timeout(60):
        while any(reader.facts < count for reader in readers):
            assert not any(reader.is_lost for reader in readers), "a reader was closed as too slow"
            await asyncio.sleep(0.001)


class _Load:
    """One target with its readers, loaded as often as asked."""

    def __init__(self, target: Target, name: str) -> None:
        self.target = target
        self._name = name
        self._round = 0
        self._sent = 0
        self._readers: list[_Reader] = []

    async def open(self) -> None:
        [sender] = await _connect_senders(self.target, 1)
        await sender.send(_lane(f"{self._name}-watched", BATCH)[0])
        self._readers = [await _open_reader(self.target, self.target.path) for _ in range(READERS)]
        if self._name == "edge":
            thread = f"thread-{self._name}-watched"
            await _open_reader(self.target, f"/v1/threads/{thread}/projection/stream")

    async def rate(self, in_flight: int) -> float:
        """Facts a second, from the first request until every reader has every fact."""
        self._round += 1
        lanes = in_flight // BATCH
        names = [f"{self._name}-{self._round}-{lane}" for lane in range(lanes)]
        requests = [_lane(name, FACTS // lanes) for name in names]
        senders = await _connect_senders(self.target, lanes)
        count = sum(map(len, requests)) * BATCH
        self._sent += count
        start = time.perf_counter()
        await asyncio.gather(*map(_send_all, senders, requests))
        await _wait_for_readers(self._readers, self._sent)
        return count / (time.perf_counter() - start)


async def _send_all(sender: _Sender, requests: list[bytes]) -> None:
    for request in requests:
        await sender.send(request)


async def _rates(in_flight: int) -> dict[str, float]:
    seen: dict[str, list[float]] = {"edge": [], "bare": []}
    with _edge() as edge, _bare() as bare:
        loads = {"edge": _Load(edge, "edge"), "bare": _Load(bare, "bare")}
        for load in loads.values():
            await load.open()
            await load.rate(in_flight)
        for _ in range(ROUNDS):
            for name, load in loads.items():
                seen[name].append(await load.rate(in_flight))
    return {name: statistics.median(found) for name, found in seen.items()}


def _path() -> Iterator[Row]:
    for in_flight in IN_FLIGHT:
        rates = asyncio.run(_rates(in_flight))
        what = f"POST until {READERS} readers have it, {in_flight:,} facts in flight"
        yield Row(name=f"{what}, bare prototype", value=rates["bare"], unit="facts/s")
        yield Row(
            name=f"{what}, Edge",
            value=rates["edge"],
            unit="facts/s",
            ratio=rates["edge"] / rates["bare"],
            baseline="bare prototype",
            goal="≥ 0.4",
        )


async def _ages(target: Target) -> list[float]:
    """Ages of facts at readers, at five hundred facts a second, one a request."""
    readers = [await _open_reader(target, target.path, stamps=at < 10) for at in range(READERS)]
    senders = await _connect_senders(target, 8)
    [event] = events(1)
    loop = asyncio.get_running_loop()
    start, sent = loop.time(), 0
    while sent < 1_500:
        await asyncio.sleep(max(0.0, start + sent / 500 - loop.time()))
        lane = sent % len(senders)
        fact = {**event, "id": f"aged-{sent}", "threadId": f"aged-{lane}", "runtimeId": "bench"}
        fact |= {"sequence": sent // len(senders) + 1, "eventClass": "run.status"}
        fact["payload"] = {"status": "running", "at": time.monotonic_ns()}
        await senders[lane].send(_request([fact]))
        sent += 1
    await asyncio.sleep(0.2)
    return sorted(wait for reader in readers for wait in reader.waits)


def _latency() -> Iterator[Row]:
    with _edge() as target:
        ages = asyncio.run(_ages(target))
    name = f"publish to receive, {READERS} readers, 500 facts/s"
    yield Row(name=f"{name}, median", value=ages[len(ages) // 2], unit="ms")
    yield Row(name=f"{name}, p99", value=ages[len(ages) * 99 // 100], unit="ms")


def _start_seconds(*arguments: str, folder: str) -> float:
    start = time.perf_counter()
    with _process(*arguments, folder=folder) as process:
        found = _PORT.search(_line(process))
        assert found
        answer = httpx.get(f"http://127.0.0.1:{found[1]}/v1/health", trust_env=False)
        assert answer.status_code == 200
        return time.perf_counter() - start


def _start() -> Iterator[Row]:
    seen: dict[str, list[float]] = {"edge": [], "hello": []}
    with tempfile.TemporaryDirectory() as folder:
        programs = {"edge": _edge_flags(folder), "hello": ["-c", _HELLO]}
        for _ in range(1 + ROUNDS):
            for name, arguments in programs.items():
                seen[name].append(_start_seconds(*arguments, folder=folder))
    edge, hello = (statistics.median(seen[name][1:]) for name in ("edge", "hello"))
    name = "start until the first request is answered"
    yield Row(name=f"{name}, Litestar with one answer", value=hello, unit="s")
    yield Row(
        name=f"{name}, Edge",
        value=edge,
        unit="s",
        ratio=edge / hello,
        baseline="Litestar with one answer",
    )


async def _rebuilt(count: int) -> float:
    """Seconds that an Edge takes to make its lists anew from so many facts."""
    lines = [msgspec.json.encode(event) for event in events(count)]
    facts: list[Fact] = [decode_line(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        async with open_journal(f"sqlite:{folder}/journal.db") as journal:
            for at in range(0, count, 5_000):
                await journal.append(facts[at : at + 5_000])
            start = time.perf_counter()
            await read_records(journal, Path(folder))
            return time.perf_counter() - start


def _rebuild() -> Iterator[Row]:
    count = 200_000
    yield Row(
        name=f"lists made anew from {count:,} facts", value=asyncio.run(_rebuilt(count)), unit="s"
    )


async def _threads(target: Target, count: int) -> float:
    [sender] = await _connect_senders(target, 1)
    await _send_all(sender, [_lane(f"warm-{at}", BATCH)[0] for at in range(100)])
    before = target.memory()
    await _send_all(sender, [_lane(f"thread-{at}", BATCH)[0] for at in range(count)])
    return (target.memory() - before) / count / 1_000


def _memory() -> Iterator[Row]:
    with _edge() as target:
        yield Row(
            name="memory of a thread that nobody watches",
            value=asyncio.run(_threads(target, 2_000)),
            unit="KB",
        )


def rows() -> list[Row]:
    """All rows of the group."""
    return [*_path(), *_latency(), *_start(), *_rebuild(), *_memory()]


if __name__ == "__main__":
    from bench.measure import show

    show("Edge: from a request to every reader", rows())
