"""What a fact costs does not grow with what is in the state: the work is counted, not timed."""

from collections.abc import Iterator
from typing import Any

import pytest

from factwire.facts import Fact
from factwire.projection import Projection
from tests.projection.fact_maker import THREAD, FactMaker, project_facts


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
