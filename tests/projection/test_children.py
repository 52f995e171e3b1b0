"""Children of a thread that only lineage marks: whose turn it is, whose words, and facts that come
before the one that names the child.
"""

import random
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.edge.records import Records
from factwire.evidence.run_account import RunLedger
from factwire.facts import Fact, verify
from factwire.projection import Projection, project
from factwire.projection.limits import WAITING_CHILD_FACTS
from factwire.runtime import Gates
from tests.projection.fact_maker import FactMaker, as_json, codes, project_facts, watch_facts
from tests.projection.generated_streams import build_stream
from tests.projection.test_turns import ENDS, FAILURE, TURN, own_run

LINEAGE: dict[str, dict[str, Any]] = {
    "thread": {"parentThreadId": "thread"},
    "thread in the payload": {"payload": {"parentThreadId": "thread"}},
    "thread in snake case": {"payload": {"parent_thread_id": "thread"}},
    "session": {"parentSessionId": "session"},
    "session in the payload": {"payload": {"parentSessionId": "session"}},
    "another session": {"sessionId": "inner", "parentSessionId": "session"},
    "task": {"parentTaskId": "above"},
    "task in the payload": {"payload": {"parentTaskId": "above"}},
    "task and its own": {"parentTaskId": "above", "taskId": "task"},
    "both in the payload": {"payload": {"parentTaskId": "above", "taskId": "task"}},
}


def opening(make: FactMaker) -> list[Fact]:
    return [
        make("turn.started", **TURN, runId="run"),
        make("model.delta", **TURN, delta="I ask a colleague."),
        make("subagent.spawned", **TURN, subagentId="sub", taskId="task", parentTaskId="above"),
    ]


@pytest.mark.requirement("projection.child-lineage")
@pytest.mark.parametrize("turn_id", ["turn", "inner"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", LINEAGE)
def test_a_turn_that_lineage_marks_as_a_childs_ends_the_child_alone(
    form: str, end: str, turn_id: str
):
    make = FactMaker()
    before = opening(make)
    carried = {"turnId": turn_id, **LINEAGE[form]}
    failure = FAILURE if end == "turn.failed" else {}
    child = [make("turn.started", **carried), make(end, **{**carried, **failure})]
    state = project_facts(*before, *child)
    assert own_run(state) == own_run(project_facts(*before))
    thread = state.subagents.threads["sub"]
    assert (thread.status, thread.failure_category) == (ENDS[end], failure.get("failureCategory"))
    assert state.team_workbench.roster_nodes["sub"].status == ENDS[end]
    assert state.graph.nodes["subagent:sub"].status == ENDS[end]
    if form == "another session":
        return  # Only a state has the thread's own session to compare with.
    gates = Gates()
    for fact in (*before, *child):
        gates.feed(msgspec.structs.replace(fact, sequence=None))
    assert gates.active_turn == "turn"


@pytest.mark.requirement("projection.child-lineage")
@pytest.mark.parametrize("form", LINEAGE)
@pytest.mark.parametrize("carries", [True, False])
def test_what_a_child_says_and_does_is_the_childs(form: str, carries: bool):
    make = FactMaker()
    begun = {"turnId": "inner", **LINEAGE[form]}
    fields: dict[str, Any] = begun if carries else {"turnId": "inner"}
    state = project_facts(
        *opening(make),
        make("turn.started", **begun),
        make("model.completed", **fields, text="The child's answer."),
        make("tool.started", **fields, toolCallId="call"),
        make("action.required", **fields, actionId="action", toolCallId="call"),
    )
    own, child = state.messages
    assert (own.subagent_id, child.subagent_id) == (None, "sub")
    assert state.tools["call"].subagent_id == "sub"
    assert state.actions["action"].subagent_id == "sub"
    assert {entry.subagent_id for entry in state.timeline[-3:]} == {"sub"}


@pytest.mark.requirement("projection.child-lineage")
def test_a_child_that_nobody_has_named_goes_by_its_thread():
    make, child = FactMaker(), FactMaker(thread="child")
    state = project_facts(
        make("turn.started", **TURN),
        child("model.completed", turnId="inner", parentThreadId="thread", text="Hello."),
    )
    assert [message.subagent_id for message in state.messages] == ["child"]


@pytest.mark.requirement("projection.child-lineage")
@pytest.mark.parametrize("form", ["thread", "session", "task", "task and its own"])
def test_a_thread_that_has_a_parent_ends_with_its_own_turn(form: str):
    parents = {"parentThreadId": "main", "parentSessionId": "main", "parentTaskId": "above"}
    named = {"thread": 3, "session": 2, "task": 3, "task and its own": 3}[form]
    own: dict[str, Any] = {"turnId": "inner", **dict(list(parents.items())[:named])}
    make = FactMaker()
    state = project_facts(
        make("turn.started", **own),
        make("model.completed", **own, text="Mine."),
        make("turn.completed", **own),
    )
    assert (state.runtime.status, state.messages[0].subagent_id) == ("completed", None)


@pytest.mark.requirement("projection.child-lineage")
def test_of_two_who_are_at_work_neither_is_taken_for_a_child_that_names_nobody():
    make = FactMaker()
    spawned = [make("subagent.spawned", **TURN, subagentId=key, taskId=key) for key in "ab"]
    inner = {"turnId": "inner", "parentThreadId": "thread"}
    ends = [make("turn.started", **inner), make("turn.completed", **inner)]
    state = project_facts(make("turn.started", **TURN), *spawned, *ends)
    assert [row.status for row in state.subagents.threads.values()] == ["spawned", "spawned"]
    assert state.runtime.status == "running"


def child_facts(**lineage: Any) -> list[Fact]:
    child = FactMaker(thread="child")
    ids = {"turnId": "inner", **lineage}
    return [
        child("turn.started", **ids),
        child("model.delta", **ids, messageId="m", delta="Hel"),
        child("model.completed", **ids, messageId="m", text="Hello."),
        child("tool.started", **ids, toolCallId="call"),
        child("tool.result", **ids, toolCallId="call", output="1"),
        child("turn.completed", **ids),
    ]


def without_counts(projection: Projection) -> dict[str, Any]:
    state = as_json(projection.state)
    for name in ("latestEventId",):
        state["runtime"].pop(name)
    return {key: value for key, value in state.items() if key not in ("timeline", "graph")} | {
        "timeline": sorted(str(entry) for entry in state["timeline"]),
        "nodes": sorted(str(node) for node in state["graph"]["nodes"].values()),
    }


@pytest.mark.requirement("projection.early-children")
@pytest.mark.parametrize("lineage", [{}, {"parentTaskId": "task"}])
@given(early=st.integers(0, 6), cut=st.integers(0, 9))
def test_facts_of_a_child_that_come_before_it_is_spawned_are_taken_once_it_is(
    lineage: dict[str, Any], early: int, cut: int
):
    make = FactMaker()
    start = make("turn.started", **TURN)
    names = {"taskId": "task", **({} if lineage else {"subagentThreadId": "child"})}
    spawned = make("subagent.spawned", **TURN, subagentId="sub", **names)
    child = child_facts(**lineage)
    arrival = [start, *child[:early], spawned, *child[early:]]
    watched = watch_facts(arrival)
    expected = watch_facts([start, spawned, *child])
    assert without_counts(watched.projection) == without_counts(expected.projection)
    whole = watched.state.hydration
    assert (whole.status, whole.received, whole.event_count, whole.dropped) == ("live", 8, 8, 0)
    assert (codes(watched.state), whole.ignored) == ([], [])
    assert watched.state.subagents.threads["sub"].status == "completed"
    first = Projection("thread")
    first.apply_all(arrival[:cut])
    restored = Projection.restore(first.checkpoint())
    restored.apply_all(arrival[cut:])
    assert restored.snapshot() == watched.projection.snapshot()


@pytest.mark.requirement("projection.early-children")
def test_facts_of_a_child_in_any_order_of_threads_come_to_the_same():
    make = FactMaker()
    start = make("turn.started", **TURN)
    spawned = make("subagent.spawned", **TURN, subagentId="s", taskId="t", childThreadId="child")
    child = child_facts()[:3]
    states = {
        msgspec.json.encode(without_counts(watch_facts([start, *rest]).projection), order="sorted")
        for rest in permutations([spawned, *child])
        if [fact for fact in rest if fact.thread_id == "child"] == child
    }
    assert len(states) == 1
    assert msgspec.json.decode(states.pop())["messages"][0]["subagentId"] == "s"


@pytest.mark.requirement("projection.early-children")
def test_facts_of_a_thread_that_is_nobodys_child_stay_out_and_are_counted():
    make, other = FactMaker(), FactMaker(thread="other")
    strangers = [other("model.delta", turnId="x", delta="?") for _ in range(3)]
    state = project_facts(make("turn.started", **TURN), *strangers, make("run.status", **TURN))
    assert (state.messages, state.hydration.dropped, codes(state)) == ([], 3, ["foreign_thread"])
    assert project([*strangers, make("turn.completed", **TURN)], "thread").messages == []


@pytest.mark.requirement("projection.early-children")
def test_no_more_facts_wait_for_their_thread_than_the_limit_says():
    make, other = FactMaker(), FactMaker(thread="other")
    projection = Projection("thread")
    projection.apply(make("turn.started", **TURN))
    projection.apply_all(
        other("run.status", turnId="x", createdAt="2026-06-10T00:00:00Z")
        for _ in range(WAITING_CHILD_FACTS + 5)
    )
    ids: dict[str, Any] = {"subagentId": "s", "taskId": "t", "childThreadId": "other"}
    projection.apply(make("subagent.spawned", **TURN, **ids))
    whole = projection.state.hydration
    assert (whole.dropped, whole.event_count) == (5, WAITING_CHILD_FACTS + 2)
    assert whole.received == whole.event_count + whole.dropped


ABOVE: dict[str, Any] = {"parentTaskId": "above"}
NAMED: dict[str, Any] = {**ABOVE, "taskId": "task"}
WORKER: dict[str, Any] = {"workerId": "worker"}
CARRIED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "the end": ({}, {}, ABOVE),
    "the start": ({}, ABOVE, {}),
    "start and end": ({}, ABOVE, ABOVE),
    "everything": (ABOVE, ABOVE, ABOVE),
    "everything with its task": (NAMED, NAMED, NAMED),
    "everything with a worker": (WORKER, WORKER, WORKER),
    "everything in the payload": ({"payload": ABOVE}, {"payload": ABOVE}, {"payload": ABOVE}),
}


@pytest.mark.requirement("projection.own-task-turn")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("where", CARRIED)
def test_a_turn_of_the_thread_ends_though_its_facts_name_a_task_above(where: str, end: str):
    make, (prompt, start, close) = FactMaker(), CARRIED[where]
    failure = FAILURE if end == "turn.failed" else {}
    facts = [
        fact
        for turn in ("one", "two")
        for fact in (
            make("turn.submitted", turnId=turn, prompt="Go.", **prompt),
            make("turn.started", turnId=turn, **start),
            make("model.delta", turnId=turn, messageId=turn, delta="Done.", **start),
            make("tool.started", turnId=turn, toolCallId=turn),
            make("tool.result", turnId=turn, toolCallId=turn),
            make(end, turnId=turn, **{**close, **failure}),
        )
    ]
    state, outcome = project_facts(*facts), end.removeprefix("turn.")
    assert [(turn.entity, turn.status) for turn in state.turns.values()] == [(None, outcome)] * 2
    assert (state.runtime.status, state.runtime.latest_turn_id) == (outcome, "two")
    assert state.runtime.active_turn_id is None
    assert {message.subagent_id for message in state.messages} == {None}
    gates, records = Gates(), Records()
    for seq, fact in enumerate(facts, 1):
        gates.feed(msgspec.structs.replace(fact, sequence=None))
        gates = Gates.of(project(facts[:seq])) if seq % 2 else gates
        records.apply(seq, fact)
    assert gates.active_turn is None
    status = {"completed": "finished", "canceled": "cancelled"}.get(outcome, outcome)
    assert [(run.turn_id, run.status) for run in records.runs.newest()] == [
        ("two", status),
        ("one", status),
    ]
    assert verify(facts) == []
    again = make("turn.completed", turnId="two", **close)
    assert [found.code for found in verify([*facts, again])] == ["turn_terminal_repeated"]
    ledger = RunLedger()
    for fact in facts:
        ledger.note(fact, main=True)
    rows = [turn for turn in ledger.turns().values() if turn.turn_id]
    assert [(turn.outcome or {}).get("status") for turn in rows] == [outcome] * 2
    assert not any(turn.is_beside for turn in rows)


@pytest.mark.requirement("projection.own-task-turn")
@pytest.mark.parametrize("turn_id", ["turn", "inner"])
@pytest.mark.parametrize("mark", [ABOVE, NAMED, WORKER])
@pytest.mark.parametrize("end", ENDS)
def test_a_child_that_only_a_task_above_marks_does_not_end_the_run_of_an_edge(
    end: str, mark: dict[str, Any], turn_id: str
):
    make, records = FactMaker(), Records()
    carried = {"turnId": turn_id, **mark}
    facts = [*opening(make), make("turn.started", **carried), make(end, **carried)]
    for seq, fact in enumerate(facts, 1):
        records.apply(seq, fact)
    assert [(run.turn_id, run.status) for run in records.runs.newest()] == [("turn", "running")]


@pytest.mark.requirement("projection.turn-owner")
@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("turn_id", ["turn", "inner"])
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_workers_turn_ends_the_worker_alone(end: str, turn_id: str, opens: bool):
    make = FactMaker()
    carried = {"turnId": turn_id, **WORKER}
    before = [
        make("turn.started", **TURN, runId="run"),
        make("worker.started", **TURN, **WORKER, taskId="task"),
    ]
    inner = [make("turn.started", **carried)] if opens else []
    facts = [*before, *inner, make(end, **carried)]
    state = project_facts(*facts)
    assert own_run(state) == own_run(project_facts(*before))
    assert state.runtime.phase not in ("completed", "failed", "cancelled")
    assert state.subagents.threads["worker"].status == ENDS[end]
    assert state.graph.nodes["subagent:worker"].status == ENDS[end]
    gates, records = Gates(), Records()
    for seq, fact in enumerate(facts, 1):
        gates.feed(msgspec.structs.replace(fact, sequence=None))
        records.apply(seq, fact)
    assert gates.active_turn == "turn"
    assert [(run.turn_id, run.status) for run in records.runs.newest()] == [("turn", "running")]


@pytest.mark.requirement("projection.turn-owner")
@pytest.mark.parametrize(
    ("end", "status", "phase"),
    [
        ("turn.completed", "failed", "failed"),
        ("turn.completed", "canceled", "cancelled"),
        ("turn.completed", "completed", "completed"),
        ("turn.failed", "failed", "failed"),
        ("turn.canceled", "canceled", "cancelled"),
    ],
)
def test_the_phase_of_a_run_is_how_its_turn_ended(end: str, status: str, phase: str):
    make = FactMaker()
    start = make("turn.started", **TURN)
    runtime = project_facts(start, make(end, **TURN, status=status)).runtime
    shown = "canceled" if phase == "cancelled" else phase
    assert (runtime.status, runtime.phase, runtime.latest_turn_status) == (shown, phase, shown)
    other = project_facts(start, make(end, turnId="another", status=status)).runtime
    assert (other.status, other.phase) == ("running", project_facts(start).runtime.phase)


CHILD_FORMS = {name: form for name, form in LINEAGE.items() if name != "session"}


@pytest.mark.requirement("projection.order.main-thread")
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("form", [*CHILD_FORMS, "named by the parent"])
def test_a_complete_input_is_about_the_thread_above_whichever_fact_comes_first(
    form: str, early: bool, numbered: bool
):
    make, child = FactMaker(), FactMaker(thread="child")
    at = {"createdAt": f"2026-06-{9 if early else 11:02}T00:00:00Z"}
    lineage = CHILD_FORMS.get(form, {})
    names = {"childThreadId": "child"} if form == "named by the parent" else {}
    own = [
        make("task.created", taskId="above", **TURN),
        make("subagent.spawned", **TURN, subagentId="sub", taskId="task", **names),
        make("turn.completed", **TURN),
    ]
    below = [
        child("turn.started", turnId="inner", **at, **lineage),
        child("turn.completed", turnId="inner", **at, **lineage),
    ]
    facts = [*below, *own]
    if not numbered:
        facts = [msgspec.structs.replace(fact, sequence=None) for fact in facts]
    for mixed in permutations(facts) if numbered else (facts, facts[::-1], [*own, *below]):
        state = project(mixed)
        counts = state.hydration
        assert (state.thread_id, counts.event_count, counts.dropped) == ("thread", 5, 0)
        assert state.runtime.latest_turn_id == "turn"


@pytest.mark.requirement("projection.order.main-thread")
@pytest.mark.parametrize("stated", ["by the child", "by the parent", "by the child's second fact"])
@pytest.mark.parametrize("seed", range(6))
def test_a_live_stream_that_a_child_begins_is_in_doubt(seed: int, stated: str):
    source = random.Random(seed)
    made = (build_stream(each, turns=2) for each in range(seed * 100, seed * 100 + 100))
    facts = next(each for each in made if any(fact.parent_thread_id for fact in each))
    first = next(fact for fact in facts if fact.parent_thread_id)
    hidden = {"by the parent": facts, "by the child's second fact": [first]}.get(stated, [])
    facts = [
        msgspec.structs.replace(fact, parent_thread_id=None) if fact in hidden else fact
        for fact in facts
    ]
    place = next(number for number, fact in enumerate(facts) if fact.id == first.id)
    facts = [facts[place], *facts[:place], *facts[place + 1 :]]
    live = Projection()
    for fact in facts:
        live.apply(fact)
        if source.random() < 0.02:
            live = Projection.restore(live.checkpoint())
    counts = live.state.hydration
    assert (counts.status, counts.reasons) == ("stale", ["parent_left_out"])
    assert counts.received == len(facts) == counts.event_count + counts.dropped
    known = Projection("thread/main~1")
    known.apply_all(facts)
    assert known.state.hydration.status == "live"
