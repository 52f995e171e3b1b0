"""The timeline and the graph: what happened, and what hangs on what."""

from typing import Any

import pytest

from factwire.facts import KNOWN_CLASSES
from factwire.projection import project
from tests.facts.samples import EXTRA_IDS, FULL_PAYLOADS
from tests.projection.fact_maker import FactMaker, as_json, project_facts
from tests.projection.generated_streams import THREAD as STREAM_THREAD
from tests.projection.generated_streams import build_stream

TURN = {"turnId": "turn"}
CALL = {"turnId": "turn", "toolCallId": "call"}


@pytest.mark.requirement("projection.timeline.entries")
def test_the_facts_of_one_thing_are_one_entry_that_goes_on():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL, title="Run"),
        tell("tool.output.delta", **CALL, delta="x"),
        tell("tool.result", **CALL, title="Ran", refIds=["blob:1"], payload={"summary": "ok"}),
    )
    assert as_json(state.timeline) == [
        {
            "entryId": "tool:call",
            "sequence": 1,
            "kind": "tool",
            "eventClass": "tool.result",
            "phase": state.timeline[0].phase,
            "owner": "tool",
            "surface": state.timeline[0].surface,
            "status": "completed",
            "title": "Ran",
            "detail": "ok",
            "refs": ["blob:1"],
            "sourceEventIds": ["thread-1", "thread-3"],
            "turnId": "turn",
            "createdAt": "2026-06-10T00:00:01Z",
            "completedAt": "2026-06-10T00:00:03Z",
        }
    ]


@pytest.mark.requirement("projection.timeline.entries")
@pytest.mark.parametrize(
    "name", ["model.delta", "reasoning.delta", "plan.delta", "tool.output.delta", "process.output"]
)
def test_deltas_are_one_entry(name: str):
    tell = FactMaker()
    ids = {"messageId": "m", "partId": "p", "toolCallId": "c", "processId": "p"}
    facts = [tell(name, **TURN, **ids, delta="x", text="x") for _ in range(5)]
    timeline = project_facts(*facts).timeline
    assert [entry.source_event_ids for entry in timeline] == [["thread-1"]]


@pytest.mark.requirement("projection.timeline.entries")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_every_class_is_in_the_timeline(name: str):
    ids = {**EXTRA_IDS, "threadId": "thread", "turnId": "turn"}
    payload = {"path": "x", "reasonCode": "x", "status": "x", "failureCategory": "x"}
    payload |= FULL_PAYLOADS.get(name, {})
    state = project_facts(FactMaker()(name, **ids, refIds=["blob:1"], payload=payload))
    assert [entry.event_class for entry in state.timeline] == [name]
    assert state.timeline[0].degraded is None


@pytest.mark.requirement("projection.timeline.entries")
def test_ids_with_colons_do_not_make_two_things_one():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **TURN, messageId="a:b", partId="c", delta="x"),
        tell("model.delta", **TURN, messageId="a", partId="b:c", delta="x"),
    )
    assert len(state.timeline) == 2


@pytest.mark.requirement("projection.timeline.entries")
def test_parts_of_the_same_name_in_two_turns_are_two_entries():
    tell = FactMaker()
    facts = [
        tell("model.delta", turnId=turn, messageId="m", partId="p", delta="x") for turn in "ab"
    ]
    assert len(project_facts(*facts).timeline) == 2


@pytest.mark.requirement("projection.timeline.order")
@pytest.mark.parametrize("seed", range(4))
def test_entries_stand_in_the_order_in_which_they_began(seed: int):
    state = project(build_stream(seed, children=False), STREAM_THREAD)
    places: list[Any] = [entry.sequence for entry in state.timeline]
    assert places == sorted(places)
    assert len({entry.entry_id for entry in state.timeline}) == len(places)


@pytest.mark.requirement("projection.graph.nodes")
def test_what_hangs_on_what_follows_from_ids():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("task.created", **TURN, taskId="k", payload={"title": "Work"}),
        tell("subagent.spawned", **TURN, taskId="k", subagentId="s"),
        tell("tool.started", **CALL, subagentId="s", taskId="k", toolName="shell"),
        tell("action.required", **CALL, subagentId="s", actionId="a"),
    )
    parents = {key: node.parent_id for key, node in state.graph.nodes.items()}
    assert parents == {
        "turn:turn": None,
        "task:k": "turn:turn",
        "subagent:s": "task:k",
        "tool:call": "subagent:s",
        "action:a": "tool:call",
    }
    kinds = {edge.target: edge.kind for edge in state.graph.edges.values()}
    assert kinds == {
        "task:k": "contains",
        "subagent:s": "spawned",
        "tool:call": "called",
        "action:a": "asked",
    }
    assert (state.graph.nodes["tool:call"].title, state.graph.nodes["task:k"].title) == (
        "shell",
        "Work",
    )


@pytest.mark.requirement("projection.graph.nodes")
def test_a_node_that_is_only_named_reads_unknown():
    state = project_facts(FactMaker()("tool.started", **CALL))
    assert state.graph.nodes["turn:turn"].status == "unknown"


@pytest.mark.requirement("projection.graph.nodes")
def test_a_node_has_the_state_of_what_it_stands_for():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("tool.started", **CALL),
        tell("tool.failed", **CALL, failureCategory="timeout"),
        tell("turn.completed", **TURN),
    ]
    nodes = project_facts(*facts).graph.nodes
    assert (nodes["tool:call"].status, nodes["turn:turn"].status) == ("output-error", "completed")


@pytest.mark.requirement("projection.graph.nodes")
def test_a_call_that_a_turn_cancels_is_cancelled_in_the_graph_and_the_timeline_too():
    tell = FactMaker()
    state = project_facts(tell("tool.started", **CALL), tell("turn.canceled", **TURN))
    assert state.graph.nodes["tool:call"].status == "cancelled"
    assert state.timeline[0].status == "canceled"


@pytest.mark.requirement("projection.graph.sound")
@pytest.mark.parametrize("seed", range(8))
def test_every_edge_and_parent_is_a_node(seed: int):
    graph = project(build_stream(seed, hostile=True), STREAM_THREAD).graph
    ends = {end for edge in graph.edges.values() for end in (edge.source, edge.target)}
    parents = {node.parent_id for node in graph.nodes.values() if node.parent_id}
    assert (ends | parents) <= set(graph.nodes)
    assert all(key == node.node_id for key, node in graph.nodes.items())


@pytest.mark.requirement("projection.graph.sound")
def test_no_node_is_its_own_parent_or_ancestor():
    tell = FactMaker()
    state = project_facts(
        tell("task.created", taskId="a", parentTaskId="b"),
        tell("task.created", taskId="b", parentTaskId="a"),
        tell("task.created", taskId="c", parentTaskId="c"),
    )
    for key in state.graph.nodes:
        line: list[str] = []
        node: str | None = key
        while node is not None and node not in line:
            line.append(node)
            node = state.graph.nodes[node].parent_id
        assert node is None, line
