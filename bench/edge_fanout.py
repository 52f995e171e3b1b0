"""Fan-out: the same facts to many sockets, by the Edge's streams, by plain sends, by a bare loop.

The servers are in `bench.edge_servers`; this process reads raw sockets as cheaply as it can, so as
not to be what is measured. The Edge has its filter, its checkpoints and its rule for slow readers
on. All contenders deliver the same frames in one run; ratios are what counts.
"""

import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from bench.edge_servers import TICK
from bench.measure import Row
from bench.workload import events

SOCKETS: Final = (100, 500)
ROUNDS: Final = 3
_THREAD: Final = events(1)[0]["threadId"]
FILTERED: Final = f"/v1/facts?since=now&threadId={_THREAD}"
_WHOLE: Final = "/v1/facts?since=now"
_AT: Final = re.compile(rb'"at":(\d+)')


class Server:
    """A server in a process of its own, asked line by line."""

    def __init__(self, kind: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "bench.edge_servers", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._input, self.output = self._process.stdin, self._process.stdout
        self.processor_seconds = 0.0
        """What the last answer took of its processor."""

        self.port: int = self.answer()["port"]

    def ask(self, command: str) -> dict[str, Any]:
        self.tell(command)
        return self.answer()

    def tell(self, command: str) -> None:
        print(command, file=self._input, flush=True)

    def answer(self) -> dict[str, Any]:
        found = json.loads(self.output.readline())
        self.processor_seconds = found.get("processor", 0.0)
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def open_server(kind: str) -> Generator[Server]:
    server = Server(kind)
    try:
        yield server
    finally:
        server.end()


def connect_sockets(port: int, count: int, path: str) -> list[socket.socket]:
    """Sockets that have shaken hands."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    found = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for each in found:
        each.sendall(request)
    for each in found:
        head = b""
        while b"\r\n\r\n" not in head:
            head += each.recv(4096)
        assert head.startswith(b"HTTP/1.1 101"), head
    return found


class SocketReading:
    """What a run of a server brought; reading ends a moment after the server says it is done."""

    def __init__(self, server: Server, sockets: list[socket.socket]) -> None:
        self.server = server
        self.bytes = 0
        self.last = 0.0
        self.waits: list[float] = []
        self.answer: dict[str, Any] = {}
        self._stamped = set(sockets[:10])
        self._buffer = bytearray(1 << 20)
        self._selector = selectors.DefaultSelector()
        for each in sockets:
            self._selector.register(each, selectors.EVENT_READ)
        self._selector.register(server.output, selectors.EVENT_READ)

    def read(self, *, stamps: bool = False) -> None:
        done = False
        with self._selector:
            while ready := self._selector.select(0.3 if done else 60):
                for key, _ in ready:
                    if key.fileobj is self.server.output:
                        self.answer = self.server.answer()
                        self._selector.unregister(self.server.output)
                        done = True
                    else:
                        self._take(key.fileobj, stamps=stamps)

    def _take(self, reader: Any, *, stamps: bool) -> None:
        size = reader.recv_into(self._buffer)
        assert size, "the server closed a reader that keeps up"
        self.bytes += size
        self.last = time.perf_counter()
        if stamps and reader in self._stamped:
            now = time.monotonic_ns()
            for found in _AT.finditer(self._buffer, 0, size):
                self.waits.append((now - int(found[1])) / 1e6)


def measure_deliveries(server: Server, sockets: list[socket.socket], ticks: int) -> float:
    reading = SocketReading(server, sockets)
    start = time.perf_counter()
    server.tell(f"publish {ticks}")
    reading.read()
    delivered = ticks * (TICK - 1) * len(sockets)
    assert reading.bytes > 300 * delivered, "not everything arrived"
    return delivered / (reading.last - start)


def _rates(count: int) -> dict[str, float]:
    """Deliveries per second of each contender, in turns."""
    ticks = {"edge": 60_000 // count, "bare": 60_000 // count, "plain": 6_000 // count}
    seen: dict[str, list[float]] = {kind: [] for kind in ticks}
    with open_server("edge") as edge, open_server("bare") as bare, open_server("plain") as plain:
        servers = {"edge": edge, "bare": bare, "plain": plain}
        readers = {
            kind: connect_sockets(each.port, count, FILTERED) for kind, each in servers.items()
        }
        for kind, server in servers.items():
            while server.ask("settled")["readers"] < count:
                time.sleep(0.01)
            measure_deliveries(server, readers[kind], max(1, ticks[kind] // 10))
        for _ in range(ROUNDS):
            for kind, server in servers.items():
                seen[kind].append(measure_deliveries(server, readers[kind], ticks[kind]))
    return {kind: statistics.median(found) for kind, found in seen.items()}


def _fan_out(count: int) -> list[Row]:
    rate = _rates(count)
    return [
        Row(
            name=f"{count} sockets, a send per socket and fact (Litestar)",
            value=rate["plain"],
            unit="deliveries/s",
        ),
        Row(name=f"{count} sockets, a bare loop", value=rate["bare"], unit="deliveries/s"),
        Row(
            name=f"{count} sockets, the Edge's streams",
            value=rate["edge"],
            unit="deliveries/s",
            ratio=rate["edge"] / rate["plain"],
            baseline="a send per socket and fact",
            goal="≥ 8",
        ),
        Row(
            name=f"{count} sockets, the Edge's streams",
            value=rate["edge"],
            unit="deliveries/s",
            ratio=rate["edge"] / rate["bare"],
            baseline="a bare loop",
            goal="≥ 0.6",
        ),
    ]


def _sockets() -> list[Row]:
    """What a socket costs."""
    count = 500
    with open_server("edge") as server:
        for each in connect_sockets(server.port, 50, FILTERED):
            each.close()
        before = server.ask("memory")["memory"]
        start = time.perf_counter()
        readers = connect_sockets(server.port, count, FILTERED)
        elapsed = time.perf_counter() - start
        memory = (server.ask("memory")["memory"] - before) / count / 1000
        for each in readers:
            each.close()
    return [
        Row(name="connects", value=count / elapsed, unit="sockets/s"),
        Row(name="memory of an idle socket", value=memory, unit="KB", goal="≤ 25"),
    ]


def _waits(server: Server, seconds: int = 3) -> tuple[float, float]:
    """Milliseconds from append to receive on 100 sockets: the median and the 99th percentile."""
    watchers = connect_sockets(server.port, 100, _WHOLE)
    reading = SocketReading(server, watchers)
    server.tell(f"stamp 1000 {seconds}")
    reading.read(stamps=True)
    for each in watchers:
        each.close()
    waits = sorted(reading.waits)
    return waits[len(waits) // 2], waits[len(waits) * 99 // 100]


def _latency() -> list[Row]:
    """How long a fact is on its way through a journal on disk, and what stopped readers add."""
    name = "append to receive, 100 sockets, 1,000 facts/s"
    with open_server("edge") as server:
        _waits(server, 1)
        median, late = _waits(server)
        stopped = connect_sockets(server.port, 20, _WHOLE)
        _, later = _waits(server)
        for each in stopped:
            each.close()
    return [
        Row(name=f"{name}, median", value=median, unit="ms"),
        Row(name=f"{name}, p99", value=late, unit="ms"),
        Row(
            name=f"{name}, p99, beside 20 stopped readers",
            value=later,
            unit="ms",
            ratio=later / late,
            baseline="without them",
            goal="≤ 2",
        ),
    ]


def _connect_readers(server: Server) -> list[socket.socket]:
    """A thousand readers, some at a time."""
    return [each for _ in range(20) for each in connect_sockets(server.port, 50, _WHOLE)]


def _storm() -> list[Row]:
    """What is left of the publisher's rate while a thousand readers leave and come back."""
    with open_server("edge") as server:
        readers = _connect_readers(server)
        reading = SocketReading(server, readers)
        server.tell("append 3")
        reading.read()
        for each in readers:
            each.close()
        server.tell("append 3")
        again = _connect_readers(server)
        rough = server.answer()["rate"]
        for each in again:
            each.close()
    calm = reading.answer["rate"]
    return [
        Row(
            name="appends while 1,000 readers leave and come back",
            value=rough,
            unit="facts/s",
            ratio=rough / calm,
            baseline="while they stay",
            goal="≥ 0.5",
        )
    ]


def rows() -> list[Row]:
    """All rows of the group."""
    fan_out = [row for count in SOCKETS for row in _fan_out(count)]
    return fan_out + _sockets() + _latency() + _storm()
