"""Fan-out of a Hub beside that of an Edge, in one run; what a socket costs; a message to everybody.

Both deliver the same bytes in the same ticks, but a Hub's frames are numbered for each reader. A
message to a group is timed until it is durable and until the last member has it; an Edge's fact, as
durable and to as many readers, stands beside it. The servers are in `bench.edge_servers` and
`bench.hub_server`, and take turns.
"""

import selectors
import socket
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from bench.edge_fanout import (
    FILTERED,
    Server,
    connect_sockets,
    measure_deliveries,
    open_server,
)
from bench.edge_servers import TICK
from bench.measure import Row

SOCKETS: Final = (100, 500)
MEMBERS: Final = 1_000
READERS: Final = 100
ROUNDS: Final = 9
IDLE: Final = 500
_PATH: Final = "/client/ws?n={}"
_WHOLE: Final = "/v1/facts?since=now"
_MARKS: Final = (b'"message.new"', b'"at":')
"""By which a message of the Hub or a fact of the Edge is known."""

_WAIT: Final = 60


def _connect(server: Server, numbers: range) -> list[socket.socket]:
    """Sockets of the Hub that were greeted, some at a time."""
    found: list[socket.socket] = []
    for number in numbers:
        found += connect_sockets(server.port, 1, _PATH.format(number))
    while server.ask("settled")["readers"] < numbers.stop:
        time.sleep(0.01)
    _drain(found)
    return found


def _drain(sockets: list[socket.socket]) -> None:
    """Read what is there until nothing has come for a moment."""
    buffer = bytearray(1 << 16)
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        while ready := selector.select(1.5):
            for key, _ in ready:
                key.fileobj.recv_into(buffer)  # type: ignore[union-attr]


def _connect_edge(server: Server, count: int, path: str) -> list[socket.socket]:
    found = [each for _ in range(0, count, 50) for each in connect_sockets(server.port, 50, path)]
    _drain(found)
    return found


def _fan_out(count: int) -> list[Row]:
    ticks = 6_000 // count
    rates: dict[str, list[float]] = {"edge": [], "hub": []}
    seconds: dict[str, list[float]] = {"edge": [], "hub": []}
    with open_server("edge") as edge, open_server("hub") as hub:
        hub.ask(f"join {count}")
        readers = {
            "edge": _connect_edge(edge, count, FILTERED),
            "hub": _connect(hub, range(count)),
        }
        servers = {"edge": edge, "hub": hub}
        for number in range(ROUNDS + 1):
            for kind in ("edge", "hub") if number % 2 else ("hub", "edge"):
                rate = measure_deliveries(servers[kind], readers[kind], ticks)
                # The first round finds nothing prepared.
                if number:
                    rates[kind].append(rate)
                    seconds[kind].append(servers[kind].processor_seconds)
    pairs = zip(rates["hub"], rates["edge"], strict=True)
    deliveries = ticks * (TICK - 1) * count
    of_hub, of_edge = (statistics.median(seconds[kind]) for kind in ("hub", "edge"))
    shared = {"baseline": "the Edge's streams", "goal": "≥ 0.8"}
    return [
        Row(
            name=f"{count} sockets of a Hub, by the clock",
            value=statistics.median(rates["hub"]),
            unit="deliveries/s",
            ratio=statistics.median(own / other for own, other in pairs),
            **shared,
        ),
        Row(
            name=f"{count} sockets of a Hub, of its processor",
            value=deliveries / of_hub,
            unit="deliveries/s",
            ratio=of_edge / of_hub,
            **shared,
        ),
    ]


def _measure_memory(kind: str) -> float:
    """Kilobytes of an idle socket."""
    with open_server(kind) as server:

        def connect(count: int) -> list[socket.socket]:
            if kind == "hub":
                return _connect(server, range(count))
            return _connect_edge(server, count, FILTERED)

        for each in connect(50):
            each.close()
        while server.ask("settled")["readers"]:
            time.sleep(0.01)
        before = server.ask("memory")["memory"]
        readers = connect(IDLE)
        memory = (server.ask("memory")["memory"] - before) / IDLE / 1000
        for each in readers:
            each.close()
    return memory


def _memory() -> Row:
    own, other = _measure_memory("hub"), _measure_memory("edge")
    return Row(
        name="memory of an idle socket",
        value=own,
        unit="KB",
        ratio=own / other,
        baseline="the Edge's",
        goal="≤ 40 KB",
    )


def _time_message(server: Server, members: list[socket.socket], number: int) -> tuple[float, float]:
    """Milliseconds until a message is durable, as the server says, and until the last has it."""
    buffer, waiting = bytearray(1 << 16), set(members)
    with selectors.DefaultSelector() as selector:
        for each in members:
            selector.register(each, selectors.EVENT_READ)
        start = time.perf_counter()
        server.tell(f"message {number}")
        while waiting:
            ready = selector.select(_WAIT)
            assert ready, "a message did not arrive"
            for key, _ in ready:
                size = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                if any(mark in buffer[:size] for mark in _MARKS):
                    waiting.discard(key.fileobj)  # type: ignore[arg-type]
        last = time.perf_counter() - start
    return server.answer().get("seconds", 0.0) * 1_000, last * 1_000


def _time_messages(
    groups: Mapping[str, tuple[Server, list[socket.socket]]], commits: Server
) -> dict[str, float]:
    """Medians of what takes turns: a message to each group, and a bare commit."""
    durable: dict[str, list[float]] = {kind: [] for kind in ("commit", *groups)}
    last: dict[str, list[float]] = {kind: [] for kind in groups}
    for number in range(ROUNDS):
        for kind, (server, members) in groups.items():
            found = _time_message(server, members, number)
            durable[kind].append(found[0])
            last[kind].append(found[1])
        durable["commit"].append(commits.ask(f"commit {number}")["seconds"] * 1_000)
    return {
        **{f"durable {kind}": statistics.median(found) for kind, found in durable.items()},
        **{kind: statistics.median(found) for kind, found in last.items()},
    }


def _messages() -> list[Row]:
    with ExitStack() as stack:
        edge, few, many, whole = (
            stack.enter_context(open_server(kind)) for kind in ("edge", "hub", "hub", "hub")
        )
        for server, members in ((few, READERS), (many, READERS), (whole, MEMBERS)):
            server.ask(f"join {members}")
        groups = {
            "edge": (edge, _connect_edge(edge, MEMBERS, _WHOLE)),
            "few": (few, _connect(few, range(READERS))),
            "many": (many, _connect(many, range(READERS))),
            "whole": (whole, _connect(whole, range(MEMBERS))),
        }
        others = _connect(many, range(READERS, 10 * READERS))
        _drain([each for _, sockets in groups.values() for each in sockets])
        found = _time_messages(groups, whole)
        for each in others:
            each.close()
    return [
        Row(
            name=f"message to a group of {MEMBERS:,}: durable",
            value=found["durable whole"],
            unit="ms",
            ratio=found["durable whole"] / found["durable commit"],
            baseline="a bare commit",
        ),
        Row(
            name=f"the same: the last of {MEMBERS:,} members has it",
            value=found["whole"],
            unit="ms",
            ratio=found["whole"] / found["edge"],
            baseline=f"a fact of an Edge to {MEMBERS:,} readers",
        ),
        Row(
            name=f"message to the last of {READERS} members, {9 * READERS} other sockets open",
            value=found["many"],
            unit="ms",
            ratio=found["many"] / found["few"],
            baseline="no others open",
            goal="≤ 1.3",
        ),
    ]


def rows() -> list[Row]:
    """All rows of the group."""
    fan_out = [row for count in SOCKETS for row in _fan_out(count)]
    return [*fan_out, _memory(), *_messages()]
