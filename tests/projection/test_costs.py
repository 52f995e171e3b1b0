"""What a fact costs does not grow with what is in the state: the work is counted, not timed."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import msgspec
import pytest

from factwire.facts import KNOWN_CLASSES, Fact
from factwire.facts.fact import CORRELATION_IDS
from factwire.projection import Changes, Projection
from factwire.projection.artifacts import ArtifactVersion
from tests.projection.fact_maker import THREAD, FactMaker, project_facts, watch_facts


class CountedRows(dict[str, Any]):
    """A table that counts how often it is gone through."""

    searches = 0

    def __iter__(self) -> Iterator[str]:
        self.searches += 1
        return super().__iter__()

    def items(self) -> Any:
        self.searches += 1
        return super().items()

    def values(self) -> Any:
        self.searches += 1
        return super().values()


def children(tell: FactMaker, count: int) -> list[Fact]:
    """Subagents, each at work on a thread of its own, beside a remote task and a job."""
    facts = [tell("turn.started", turnId="t")]
    for number in range(count):
        who = {"subagentId": f"s{number}", "taskId": f"k{number}"}
        facts += [
            tell("subagent.spawned", turnId="t", **who, payload={"childThreadId": f"c{number}"}),
            tell("task.started", taskId=f"k{number}", remoteTaskId=f"r{number}"),
            tell("job.created", jobId=f"j{number}"),
            tell("job.item.started", jobId=f"j{number}", jobItemId=f"i{number}"),
        ]
    return facts


def facts_beside(tell: FactMaker, number: int) -> list[Fact]:
    """Turns of whoever works beside the thread, named by what the state has to look up."""
    child = FactMaker(thread=f"c{number}")
    lineage = {"parentThreadId": THREAD, "parentSessionId": "above", "parentTaskId": "above"}
    own = {"turnId": f"own{number}"}
    remote = {"turnId": f"remote{number}", "remoteTaskId": f"r{number}"}
    item = {"turnId": f"item{number}", "jobItemId": f"i{number}"}
    return [
        child("turn.started", **own, **lineage),
        child("tool.started", **own, **lineage, toolCallId=f"call{number}"),
        child("turn.completed", **own, **lineage),
        tell("turn.started", **remote),
        tell("turn.completed", **remote),
        tell("turn.started", **item),
        tell("turn.completed", **item),
    ]


@pytest.mark.parametrize("count", [2, 40])
def test_whoever_takes_a_turn_is_found_without_a_search(count: int) -> None:
    tell = FactMaker()
    projection = Projection()
    projection.apply_all(children(tell, count))
    state = projection.state
    tables = [CountedRows(table) for table in (state.subagents.threads, state.tasks, state.jobs)]
    state.subagents.threads, state.tasks, state.jobs = tables
    for number in range(count):
        projection.apply_all(facts_beside(tell, number))
    assert {turn.status for turn in state.turns.values() if turn.turn_id != "t"} == {"completed"}
    assert [row.status for row in state.subagents.threads.values()] == ["completed"] * count
    assert [row.status for row in state.tasks.values()] == ["completed"] * count
    searches = {"subagents": 1, "tasks": 1, "jobs": 0}  # The two assertions above.
    assert dict(zip(searches, (table.searches for table in tables), strict=True)) == searches


def test_entry_and_node_have_lists_of_their_own_though_the_refs_are_read_once() -> None:
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="t"),
        tell("tool.started", turnId="t", toolCallId="c", refIds=["output:1"]),
        tell("tool.result", turnId="t", toolCallId="c", refIds=["output:2"]),
    )
    entry = next(entry for entry in state.timeline if entry.entry_id == "tool:c")
    node = state.graph.nodes["tool:c"]
    assert (entry.refs, node.refs) == (["output:1", "output:2"], ["output:1", "output:2"])
    assert entry.refs is not node.refs


class CountedText(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def count_texts(value: object) -> None:
    """Let every text in a list of a state count its comparisons."""
    if isinstance(value, ArtifactVersion):
        value.version_id = CountedText(value.version_id)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            count_texts(getattr(value, field))
    elif isinstance(value, dict):
        for row in cast("dict[str, object]", value).values():
            count_texts(row)
    elif isinstance(value, list):
        rows = cast("list[object]", value)
        for row in rows:
            count_texts(row)
        rows[:] = [CountedText(row) if type(row) is str else row for row in rows]


_WORK = {"turnId": "t", "taskId": "k"}
GROWING: dict[str, Callable[[FactMaker, int], Fact]] = {
    "file.changed": lambda tell, n: tell(
        "file.changed", turnId="t", artifactId="f", path="a.py", diffRef=f"diff:{n}"
    ),
    "artifact.changed": lambda tell, n: tell(
        "artifact.changed", turnId="t", artifactId="a", refIds=[f"output:{n}"]
    ),
    "artifact.versioned": lambda tell, n: tell(
        "artifact.versioned", turnId="t", artifactId="a", versionId=f"v{n}"
    ),
    "evidence.changed": lambda tell, n: tell(
        "evidence.changed", turnId="t", evidenceId="e", refIds=[f"output:{n}"]
    ),
    "task.progress": lambda tell, n: tell(
        "task.progress", **_WORK, refIds=[f"output:{n}"], artifactRefs=[f"artifact:{n}"]
    ),
    "tool.progress": lambda tell, n: tell(
        "tool.progress", turnId="t", toolCallId="c", refIds=[f"output:{n}"]
    ),
    "subagent.spawned": lambda tell, n: tell("subagent.spawned", **_WORK, subagentId=f"s{n}"),
    "subagent.progress": lambda tell, n: tell(
        "subagent.progress", **_WORK, subagentId="s", evidenceRefs=[f"evidence:{n}"]
    ),
}
"""Class → facts of it that let the same lists grow."""


def cost_of_next(name: str, count: int) -> tuple[int, int]:
    """What the next fact costs behind many like it: texts that are compared, and characters of its
    changes.
    """
    tell, build, projection = FactMaker(1_000_000), GROWING[name], Projection()
    projection.apply(tell("turn.submitted", turnId="t"))
    for number in range(count):
        projection.apply(build(tell, 1_000_000 + number))
    count_texts(projection.state)
    CountedText.comparisons = 0
    changes = projection.apply(build(tell, 2_000_000))
    return CountedText.comparisons, sum(len(str(each.value)) for each in changes.ops)


@pytest.mark.requirement("projection.cost.lists")
@pytest.mark.parametrize("name", GROWING)
def test_a_fact_that_lets_a_list_grow_costs_the_same_however_long_it_is(name: str):
    comparisons, sent = cost_of_next(name, 300)
    later_comparisons, later_sent = cost_of_next(name, 1_200)
    assert max(comparisons, later_comparisons) < 9
    assert later_sent < sent + 9  # A counter has one more digit, or the oldest row makes room.


@pytest.mark.requirement("projection.cost.lists")
@pytest.mark.parametrize("order", [1, -1])
def test_subagents_leave_the_list_of_those_at_work_one_by_one(order: int):
    tell, names = FactMaker(), [f"s{number}" for number in range(80)]
    facts = [tell("subagent.spawned", **_WORK, subagentId=name) for name in names]
    facts += [tell("subagent.completed", **_WORK, subagentId=name) for name in names[::order][:60]]
    state = watch_facts(facts).state
    assert state.subagents.active_thread_ids == (names[60:] if order == 1 else names[:20])


SHARED_IDS = {"sessionId", "threadId", "turnId", "taskId", "jobId", "toolCallId", "evidenceId"}
"""Ids that all facts of a growing class have in common: what they add to has these."""

OWN_IDS = {
    "subagent": ("subagentId",),
    "worker": ("workerId",),
    "job": ("jobId", "jobItemId"),
}
WHOSE_IDS = {"subagentId", "workerId", "jobId", "jobItemId", "remoteTaskId"}
"""Ids that make a fact somebody else's, but for the families of `OWN_IDS`."""


def build_growing(tell: FactMaker, name: str, number: int, *, is_one: bool) -> Fact:
    """A fact of a class that adds to whatever facts of the class add to: on one thing of each kind,
    or on many.
    """
    family = name.partition(".")[0]
    lineage = {"parentThreadId", "parentSessionId", "parentTaskId"}
    named = {*CORRELATION_IDS} - lineage - WHOSE_IDS | {*OWN_IDS.get(family, ())}
    ids = {key: key if is_one or key in SHARED_IDS else f"{key}-{number}" for key in named}
    text = f"text-{number}"
    stated = {
        **dict.fromkeys(("text", "name", "path", "versionId", "dependsOnTaskId", "hookId"), text),
        "delta": "x",
        "refIds": [f"output:{number}"],
        "items": [{"id": text, "ref": f"output:{number}"}],
        "steps": [{"title": text}],
    }
    own = {key: value for key, value in ids.items() if key not in ("sessionId", "threadId")}
    return tell(name, payload=stated, **own)


def count_lines(work: Callable[[], object]) -> int:
    """How many lines of Python something goes through; each round of a loop counts."""
    lines = 0

    def trace(_: FrameType, event: str, __: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def measure_growing(name: str, count: int, *, is_one: bool) -> tuple[int, int]:
    """The lines that the next facts of a class take behind many like them, and what they send."""
    tell, projection = FactMaker(1_000_000), Projection()
    projection.apply(tell("turn.submitted", turnId="turnId"))
    for number in range(count):
        projection.apply(build_growing(tell, name, 1_000_000 + number, is_one=is_one))
    lines: list[int] = []
    sent: list[int] = []
    for number in range(3):
        fact = build_growing(tell, name, 2_000_000 + number, is_one=is_one)
        changes: list[Changes] = []
        lines.append(
            count_lines(lambda fact=fact, kept=changes: kept.append(projection.apply(fact)))
        )
        sent.append(sum(len(str(each.value)) for each in changes[0].ops))
    return min(lines), min(sent)


@pytest.mark.requirement("projection.cost.lists")
@pytest.mark.parametrize("is_one", [True, False], ids=["one", "many"])
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_a_fact_of_any_class_costs_the_same_behind_four_times_as_many(name: str, is_one: bool):
    lines, sent = measure_growing(name, 60, is_one=is_one)
    later_lines, later_sent = measure_growing(name, 240, is_one=is_one)
    assert later_lines < lines + 60
    assert later_sent < sent + 60
