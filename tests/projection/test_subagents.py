"""Subagents: each a thread of its own, with the descent that its facts state and no other."""

import pytest

from factwire.projection.limits import LANE_EVENTS_KEPT, LANES
from tests.projection.fact_maker import (
    THREAD,
    FactMaker,
    as_json,
    codes,
    project_facts,
    watch_facts,
)

IDS = {"turnId": "turn", "subagentId": "s", "taskId": "k"}


@pytest.mark.requirement("projection.subagent.life")
@pytest.mark.parametrize(
    ("name", "status", "active"),
    [
        ("subagent.spawned", "spawned", True),
        ("subagent.started", "running", True),
        ("subagent.progress", "running", True),
        ("subagent.completed", "completed", False),
        ("subagent.failed", "failed", False),
        ("subagent.closed", "closed", False),
    ],
)
def test_a_class_puts_a_subagent_into_its_state(name: str, status: str, active: bool):
    tell = FactMaker()
    state = project_facts(tell("subagent.spawned", **IDS), tell(name, **IDS))
    assert state.subagents.threads["s"].status == status
    assert state.subagents.active_thread_ids == (["s"] if active else [])
    assert state.team_workbench.roster_nodes["s"].status == status


@pytest.mark.requirement("projection.subagent.lineage")
def test_descent_is_what_facts_state():
    tell = FactMaker()
    state = project_facts(
        tell(
            "subagent.spawned",
            **IDS,
            parentTaskId="p",
            toolCallId="call",
            payload={"role": "reviewer", "parentSubagentId": "boss"},
        ),
    )
    thread = state.subagents.threads["s"]
    found = (thread.lineage, thread.task_id, thread.parent_task_id, thread.parent_subagent_id)
    assert found == ("known", "k", "p", "boss")
    assert as_json(state.subagents.delegation_calls["call"])["subagentId"] == "s"
    edges = {(edge.source, edge.target, edge.kind) for edge in state.graph.edges.values()}
    assert ("subagent:boss", "subagent:s", "spawned") in edges
    assert ("tool:call", "subagent:s", "delegated") in edges


@pytest.mark.requirement("projection.subagent.lineage")
def test_descent_that_no_fact_states_is_missing_and_no_edge_is_drawn():
    tell = FactMaker()
    state = project_facts(
        tell("worker.started", workerId="w"), tell("worker.completed", workerId="w")
    )
    thread = state.subagents.threads["w"]
    assert (thread.lineage, thread.task_id, thread.parent_subagent_id) == (
        "unavailable",
        None,
        None,
    )
    assert codes(state) == ["lineage_missing"]
    assert state.graph.edges == {}


@pytest.mark.requirement("projection.subagent.lineage")
def test_descent_that_comes_later_is_taken():
    tell = FactMaker()
    state = project_facts(
        tell("worker.started", workerId="w"), tell("worker.completed", workerId="w", taskId="k")
    )
    assert state.subagents.threads["w"].lineage == "known"
    assert state.tasks["k"].subagent_ids == ["w"]


@pytest.mark.requirement("projection.subagent.threads")
def test_a_child_thread_is_followed_in_its_own_order():
    tell, child = FactMaker(), FactMaker(thread="child")
    ids = {**IDS, "turnId": "inner", "parentThreadId": THREAD}
    one, two = child("model.delta", **ids, delta="a"), child("model.delta", **ids, delta="b")
    three = child("model.completed", **ids, text="ab")
    state = project_facts(tell("turn.started", turnId="turn"), one, three, tell("run.status"))
    assert state.hydration.status == "stale"
    gaps = [as_json(gap) for gap in state.hydration.gaps]
    assert gaps == [{"fromSequence": 2, "toSequence": 2, "threadId": "child"}]
    assert state.hydration.cursor == 2
    state = project_facts(tell("turn.started", turnId="turn", sequence=1), one, three, two)
    assert state.hydration.status == "live"
    assert state.messages[0].thread_id == "child"


@pytest.mark.requirement("projection.subagent.threads")
def test_a_child_thread_is_known_by_its_spawning_alone():
    tell, child = FactMaker(), FactMaker(thread="child")
    state = project_facts(
        tell("subagent.spawned", **IDS, childThreadId="child"),
        child("model.delta", turnId="inner", delta="a"),
    )
    assert [message.thread_id for message in state.messages] == ["child"]


@pytest.mark.requirement("projection.subagent.threads")
def test_a_grandchilds_thread_belongs_here_too():
    tell, child, grandchild = FactMaker(), FactMaker(thread="child"), FactMaker(thread="grandchild")
    state = project_facts(
        tell("turn.started", turnId="turn"),
        child("turn.started", turnId="c", parentThreadId=THREAD),
        grandchild("model.delta", turnId="g", parentThreadId="child", delta="deep"),
    )
    assert [message.thread_id for message in state.messages] == ["grandchild"]


@pytest.mark.requirement("projection.subagent.threads")
def test_only_so_many_threads_are_ordered():
    tell = FactMaker()
    seen = watch_facts([tell("turn.started", turnId="turn")])
    for number in range(LANES + 2):
        child = FactMaker(thread=f"child-{number}")
        seen.projection.apply(child("run.status", parentThreadId=THREAD))
    assert seen.state.hydration.event_count == LANES + 1


@pytest.mark.requirement("projection.bounded")
def test_what_subagents_did_is_kept_as_far_as_there_is_room():
    tell = FactMaker()
    seen = watch_facts([tell("subagent.spawned", **IDS)])
    for number in range(LANE_EVENTS_KEPT + 10):
        seen.projection.apply(tell("subagent.progress", **IDS, message=f"step {number}"))
    activities = seen.state.subagents.activities
    assert len(activities) == LANE_EVENTS_KEPT
    assert activities[-1].message == f"step {LANE_EVENTS_KEPT + 9}"


@pytest.mark.requirement("projection.subagent.life")
def test_a_teammate_that_no_fact_names_is_remarked_on():
    state = project_facts(FactMaker()("agent.changed", turnId="turn"))
    assert state.subagents.threads == {}
    assert codes(state) == ["teammate_unnamed"]
