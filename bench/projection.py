"""Projection against a bare reducer, against itself at other lengths, and against public peers.

The bare reducer does the least that could be called one: it finds the message and adds the piece.
Ours also keeps order, tells repeats, writes timeline and graph and answers with the changes. Peers
take the same turn in their own form (`bench.peers`), so seconds for that turn compare.
"""

import gc
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from bench.measure import Row, rates
from bench.peers import PeerResult, peer_results, problem_row
from bench.turns import LARGE, SMALL, Size, turn
from bench.workload import facts
from factwire.facts import Fact, decode_fact
from factwire.projection import Projection, fold_changes

_COUNT = 40_000
_FEW, _MANY = 1_000, 50_000
_MEMORY_COUNT = 200_000
_GOALS = {SMALL: "≥ 20", LARGE: "≥ 200"}


def rows() -> list[Row]:
    """All rows of the group."""
    return [*_mix(), *_lengths(), _memory(), *_peers(SMALL), *_peers(LARGE)]


def _mix() -> list[Row]:
    mix = [decode_fact(line) for line in facts(_COUNT)]
    found = rates(
        {"bare": partial(_bare, mix), "ours": partial(_ours, mix), "wire": partial(_wire, mix)}
    )
    against = "a bare reducer"
    return [
        Row(name="bare reducer, realistic mix", value=found["bare"], unit="facts/s"),
        Row(
            name="projection, realistic mix",
            value=found["ours"],
            unit="facts/s",
            ratio=found["ours"] / found["bare"],
            baseline=against,
            goal="≥ 300k/s",
        ),
        Row(
            name="projection and its changes as JSON, 16 facts at a time",
            value=found["wire"],
            unit="facts/s",
            ratio=found["wire"] / found["bare"],
            baseline=against,
        ),
    ]


def _lengths() -> list[Row]:
    few, many = list(_deltas(_FEW)), list(_deltas(_MANY))
    repeated = partial(_repeatedly, few, _MANY // _FEW)
    found = rates({"few": repeated, "many": partial(_ours, many)})
    ratio = found["few"] / found["many"]
    name = f"cost of a delta in a message of {_MANY:,}"
    return [
        Row(name=f"deltas in messages of {_FEW:,}", value=found["few"], unit="facts/s"),
        Row(
            name=name,
            value=1e6 / found["many"],
            unit="µs",
            ratio=ratio,
            baseline=f"messages of {_FEW:,}",
            goal="≤ 1.3",
        ),
    ]


def _memory() -> Row:
    lines = facts(_MEMORY_COUNT)
    gc.collect()
    tracemalloc.start()
    projection = Projection()
    for line in lines:
        projection.apply(decode_fact(line))
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    per_million = size * (1_000_000 / _MEMORY_COUNT) / 2**20
    return Row(name="memory of a state, realistic mix", value=per_million, unit="MiB per 1M facts")


def _peers(size: Size) -> list[Row]:
    stream = turn(*size)
    ours = sorted(_seconds(stream) for _ in range(7))[3]
    label = f"{size.deltas:,} deltas and {size.tools:,} tools"
    head = Row(name=f"projection, {label}", value=len(stream) / ours, unit="facts/s")
    return [head, *(_peer_row(result, ours) for result in peer_results(size))]


def _peer_row(result: PeerResult, ours: float) -> Row:
    if result.problem:
        return problem_row(result)
    return Row(
        name=f"  {result.name}",
        value=result.rate,
        unit="events/s",
        ratio=result.seconds / ours,
        baseline="its time / ours",
        goal=_GOALS[result.size],
    )


def _seconds(stream: list[Fact]) -> float:
    gc.collect()
    start = time.perf_counter()
    _ours(stream)
    return time.perf_counter() - start


def _ours(stream: list[Fact]) -> int:
    apply = Projection().apply
    for fact in stream:
        apply(fact)
    return len(stream)


def _repeatedly(stream: list[Fact], times: int) -> int:
    return sum(_ours(stream) for _ in range(times))


def _wire(stream: list[Fact]) -> int:
    projection, encoder = Projection(), msgspec.json.Encoder()
    for start in range(0, len(stream), 16):
        encoder.encode(
            fold_changes([projection.apply(fact) for fact in stream[start : start + 16]])
        )
    return len(stream)


def _bare(stream: Iterable[Fact]) -> int:
    texts: dict[object, list[str]] = {}
    seen = 0
    for fact in stream:
        seen += 1
        if fact.event_class == "model.delta":
            texts.setdefault(fact.payload.get("messageId"), []).append(fact.payload["delta"])
    return seen


def _deltas(count: int) -> Iterator[Fact]:
    for fact in turn(count, 0):
        if fact.event_class == "model.delta":
            yield fact
