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
from factwire.facts import Fact, decode_fact, kind_of, status_of
from factwire.projection import Projection, fold_changes

_COUNT = 40_000
_FEW, _MANY = 1_000, 50_000
_MEMORY_COUNT = 200_000
_TURNS = 400
_SWAPPED = 8
_GOALS = {SMALL: "≥ 20", LARGE: "≥ 200"}


def rows() -> list[Row]:
    """All rows of the group."""
    return [*_mix(), *_shapes(), *_lengths(), _memory(), *_peers(SMALL), *_peers(LARGE)]


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


def _shapes() -> list[Row]:
    """Streams that cost more than text does: whole turns with what their end cuts off, subagents
    that take turns on threads of their own, and facts that come after the state went on.
    """
    ends, children = list(_cut_turns(_TURNS)), list(_child_turns(_TURNS))
    found = rates(
        {
            "turns that cut off open calls": partial(_ours, ends),
            "turns of subagents on child threads": partial(_ours, children),
            f"each run of {_SWAPPED} facts backwards": partial(_ours, _swap(ends)),
        }
    )
    return [Row(name=name, value=rate, unit="facts/s") for name, rate in found.items()]


def _cut_turns(turns: int) -> Iterator[Fact]:
    number = 0
    for turn_number in range(turns):
        ids = {"turn_id": f"turn_{turn_number}"}
        calls = [{"tool_call_id": f"call_{turn_number}_{n}", **ids} for n in range(3)]
        end = ("turn.completed", "turn.failed", "turn.canceled")[turn_number % 3]
        rows = [("turn.submitted", ids), ("turn.started", ids)]
        rows += [("tool.started", call) for call in calls]
        for name, fields in [*rows, ("model.delta", {**ids, "message_id": "m"}), (end, ids)]:
            number += 1
            yield _fact(number, name, "thread_1", **fields)


def _child_turns(turns: int) -> Iterator[Fact]:
    for number in range(turns):
        who = {"turn_id": "turn_1", "subagent_id": f"subagent_{number}", "task_id": "task_1"}
        child = f"thread_1_{number}"
        spawned = _fact(number + 1, "subagent.spawned", "thread_1", **who)
        yield msgspec.structs.replace(spawned, payload={"childThreadId": child})
        names = ("turn.started", *["model.delta"] * 8, "tool.started", "tool.result")
        for place, name in enumerate([*names, "turn.completed"], 1):
            ids = {"turn_id": f"turn_1_{number}", "message_id": "m", "tool_call_id": "call_1"}
            yield _fact(place, name, child, parent_thread_id="thread_1", **ids)


def _fact(number: int, name: str, thread: str, **ids: str) -> Fact:
    fact = Fact(
        id=f"{thread}_{number}",
        kind=kind_of(name),
        status=status_of(name),
        title=name,
        created_at="2026-06-10T00:00:00.000Z",
        schema_version="factwire-fact/v1",
        runtime_id="edge-01",
        sequence=number,
        event_class=name,
        session_id="session_1",
        thread_id=thread,
        payload={"delta": "word "} if name == "model.delta" else {},
    )
    return msgspec.structs.replace(fact, **ids)


def _swap(stream: list[Fact]) -> list[Fact]:
    """The facts in runs, each of which comes backwards."""
    starts = range(0, len(stream), _SWAPPED)
    return [fact for start in starts for fact in reversed(stream[start : start + _SWAPPED])]


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
