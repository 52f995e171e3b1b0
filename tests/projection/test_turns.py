"""Whose a turn, a failure or an end is, and what is kept of each turn."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, verify
from factwire.projection import Projection, ProjectionState, task_snapshot, thread_read_model
from tests.projection.fact_maker import FactMaker, as_json, project_facts, watch_facts

TURN = {"turnId": "turn"}

ENTITIES: dict[str, dict[str, Any]] = {
    "subagent": {"subagentId": "sub", "taskId": "task"},
    "subagent in the payload": {"payload": {"subagent_id": "sub", "task_id": "task"}},
    "subagent turn of a worker": {
        "workerId": "sub",
        "taskId": "task",
        "runtimeEntity": "subagent_turn",
    },
    "job": {"jobId": "job"},
    "job in the payload": {"payload": {"job_id": "job"}},
    "automation job": {"jobId": "job", "runtimeEntity": "automation_job"},
    "job item": {"jobId": "job", "jobItemId": "item"},
    "remote task": {"remoteTaskId": "remote", "taskId": "task"},
    "remote task in the payload": {"payload": {"remoteTaskId": "remote", "taskId": "task"}},
    "external task": {"taskId": "task", "runtimeEntity": "external_task"},
    "work item": {"taskId": "task", "runtimeEntity": "work_item"},
    "work item in the payload": {"payload": {"taskId": "task", "runtimeEntity": "work_item"}},
    "child thread": {"childThreadId": "child"},
    "thread with this parent": {"parentThreadId": "thread", "subagentId": "sub", "taskId": "task"},
}
ENDS = {"turn.completed": "completed", "turn.failed": "failed", "turn.canceled": "cancelled"}
FAILURE = {"failureCategory": "rate_limited", "message": "Too fast.", "recoveryHint": "Wait."}


def own_run(state: ProjectionState) -> dict[str, Any]:
    """What a screen shows of the thread's own run, and nothing of those who work beside it."""
    runtime = as_json(state.runtime)
    for name in ("latestEventId", "latestSequence"):
        runtime.pop(name, None)
    model = thread_read_model(state)
    return {
        "runtime": runtime,
        "outcome": as_json(model.last_outcome),
        "status": model.status,
        "turns": [
            {**as_json(turn), "endedBy": None}
            for turn in state.turns.values()
            if turn.entity is None
        ],
        "messages": [
            as_json(message.parts) for message in state.messages if message.subagent_id is None
        ],
        "tools": [tool.state for tool in state.tools.values() if tool.subagent_id is None],
        "permissions": as_json(state.permissions.pending),
        "entry": [
            (entry.status, entry.event_class, entry.completed_at)
            for entry in state.timeline
            if entry.entry_id in ("turn:turn", "run:run")
        ],
        "node": [
            (node.status, node.completed_at)
            for key, node in state.graph.nodes.items()
            if key in ("turn:turn", "run:run")
        ],
    }


def statuses(state: ProjectionState, entity: str) -> list[tuple[str, str | None]]:
    """Status and category of what a kind of entity is shown as, wherever it is shown."""
    if "job" in entity:
        job = state.jobs["job"]
        return [(job.status, job.failure_category)]
    if "subagent" in entity or "parent" in entity:
        thread, node = state.subagents.threads["sub"], state.graph.nodes["subagent:sub"]
        roster = state.team_workbench.roster_nodes["sub"]
        return [
            (thread.status, thread.failure_category),
            (roster.status, thread.failure_category),
            (node.status, thread.failure_category),
        ]
    task, item = state.tasks["task"], state.team_workbench.work_items["task"]
    return [
        (task.status, task.failure_category),
        (item.status, task.failure_category),
        (state.graph.nodes["task:task"].status, task.failure_category),
    ]


@pytest.mark.requirement("projection.turn-owner")
@pytest.mark.parametrize("turn_id", ["turn", "child"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("entity", ENTITIES)
def test_an_end_ends_whoever_it_carries_and_leaves_the_thread_running(
    entity: str, end: str, turn_id: str
):
    make = FactMaker()
    carried = {"turnId": turn_id, "runId": "run", **ENTITIES[entity]}
    failure = FAILURE if end == "turn.failed" else {}
    before = (
        make("turn.submitted", **TURN, prompt="Go."),
        make("turn.started", **TURN, runId="run"),
        make("run.status", **TURN, runId="run", status="running"),
        make("model.delta", **TURN, delta="I am "),
        make("tool.started", **TURN, toolCallId="call", toolName="shell"),
    )
    child = (make("turn.started", **carried), make(end, **{**carried, **failure}))
    state = project_facts(*before, *child)
    assert own_run(state) == own_run(project_facts(*before))
    if entity == "child thread":
        return
    expected = (ENDS[end], failure.get("failureCategory"))
    if entity == "job item":
        job = state.jobs["job"]
        counts = (job.items_running, job.items_completed, job.items_failed)
        assert counts == (0, end == "turn.completed", end == "turn.failed")
    else:
        assert set(statuses(state, entity)) == {expected}


@pytest.mark.requirement("projection.turn-owner")
@pytest.mark.parametrize(
    "carried",
    [{}, {"runtimeEntity": "agent_turn", "jobId": "job", "parentTaskId": "above"}],
)
def test_an_end_that_carries_nobody_else_ends_the_thread(carried: dict[str, Any]):
    make = FactMaker()
    task = {"taskId": "task", **carried}
    state = project_facts(make("turn.started", **TURN), make("turn.failed", **TURN, **task))
    assert (state.runtime.status, state.turns["turn"].status) == ("failed", "failed")


@pytest.mark.requirement("projection.turn-owner")
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("run.status", {"status": "blocked", "message": "stuck"}),
        ("model.requested", {"model": "small", "provider": "p"}),
        ("model.failed", {"message": "gone", "failureCategory": "x"}),
        ("runtime.error", {"message": "gone"}),
        ("sandbox.blocked", {"reasonCode": "network"}),
        ("quota.blocked", {"message": "none left"}),
        ("routing.not_possible", {"reason": "none", "model": "small"}),
        ("permission.denied", {"reasonCode": "no"}),
        ("run.failed", FAILURE),
        ("run.finished", {}),
    ],
)
@pytest.mark.parametrize("entity", ENTITIES)
def test_what_is_reported_of_somebody_else_is_not_reported_of_the_thread(
    entity: str, name: str, fields: dict[str, Any]
):
    if entity == "child thread" and not name.startswith("run."):
        return
    make = FactMaker()
    before = make("turn.started", **TURN, runId="run"), make("model.delta", **TURN, delta="Hm")
    carried: dict[str, Any] = {**TURN, "runId": "run", **ENTITIES[entity]}
    carried["payload"] = {**fields, **carried.get("payload", {})}
    state = project_facts(*before, make(name, **carried))
    expected = own_run(project_facts(*before))
    assert {**own_run(state), "messages": []} == {**expected, "messages": []}


def child_turns() -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    """A whole turn of somebody else, with work in it."""

    def build(entity: str, end: str, turn: str, thread: str | None, busy: bool):
        carried = {"turnId": turn, "runId": "run", **ENTITIES[entity]}
        if thread is not None:
            carried |= {"threadId": thread, "parentThreadId": "thread"}
        work = [
            ("model.requested", {**carried, "model": "other"}),
            (
                "reasoning.delta",
                {**carried, "messageId": "m-sub", "subagentId": "sub", "delta": "hm"},
            ),
            ("model.delta", {**carried, "messageId": "m-sub", "subagentId": "sub", "delta": "x"}),
            ("tool.started", {**carried, "subagentId": "sub", "toolCallId": "sub-call"}),
        ]
        return [
            ("turn.submitted", {**carried, "prompt": "Do your part."}),
            ("turn.started", carried),
            ("run.status", {**carried, "status": "running", "message": "busy"}),
            *(work if busy else []),
            (end, {**carried, **(FAILURE if end == "turn.failed" else {})}),
        ]

    names = [name for name in ENTITIES if name != "child thread"]
    return st.builds(
        build,
        st.sampled_from(names),
        st.sampled_from(list(ENDS)),
        st.sampled_from(["turn", "inner", "later"]),
        st.sampled_from([None, "thread-child"]),
        st.booleans(),
    )


OWN_STREAM: list[tuple[str, dict[str, Any]]] = [
    ("turn.submitted", {**TURN, "prompt": "Go."}),
    ("turn.started", {**TURN, "runId": "run"}),
    ("run.status", {**TURN, "runId": "run", "status": "running"}),
    ("model.delta", {**TURN, "messageId": "m", "delta": "I "}),
    ("tool.started", {**TURN, "toolCallId": "call"}),
    ("tool.result", {**TURN, "toolCallId": "call", "output": "1"}),
    ("model.completed", {**TURN, "messageId": "m", "text": "I did."}),
    ("turn.failed", {**TURN, **FAILURE}),
    ("turn.submitted", {"turnId": "later", "prompt": "Again."}),
    ("turn.started", {"turnId": "later"}),
    ("model.completed", {"turnId": "later", "messageId": "n", "text": "Done."}),
    ("turn.completed", {"turnId": "later"}),
]


def make_stream(*steps: tuple[str, dict[str, Any]]) -> list[Fact]:
    makers = {"thread": FactMaker(), "thread-child": FactMaker(thread="thread-child")}
    facts: list[Fact] = []
    for place, (name, fields) in enumerate(steps):
        fact = makers[fields.get("threadId", "thread")](name, **fields)
        own = fields.get("at", place)
        facts.append(msgspec.structs.replace(fact, created_at=f"2026-06-10T00:00:00.{own:03}Z"))
    return facts


@pytest.mark.requirement("projection.turn-owner")
@given(child=child_turns(), start=st.integers(1, len(OWN_STREAM)), spread=st.integers(0, 3))
def test_a_whole_turn_of_somebody_else_anywhere_changes_nothing_of_the_threads_own(
    child: list[tuple[str, dict[str, Any]]], start: int, spread: int
):
    own = [(name, {**fields, "at": place}) for place, (name, fields) in enumerate(OWN_STREAM)]
    beside = [(start + spread * place, step) for place, step in enumerate(child)]
    steps: list[tuple[str, dict[str, Any]]] = []
    for place in range(len(own) + 1):
        last = place == len(own)
        for wanted, (name, fields) in beside:
            if wanted == place or (last and wanted > place):
                steps.append((name, {**fields, "at": BESIDE}))
        steps += own[place : place + 1]
    for cut in range(len(own), 0, -3):
        expected = watch_facts(make_stream(*own[:cut])).state
        assert own_run(watch_facts(make_stream(*_cut(steps, cut))).state) == own_run(expected)


BESIDE = 500
"""The time of what happens beside the thread."""


def _cut(steps: list[tuple[str, dict[str, Any]]], own: int) -> list[tuple[str, dict[str, Any]]]:
    """The steps up to the last of this many of the thread's own."""
    return [
        step
        for place, step in enumerate(steps)
        if sum(other[1]["at"] != BESIDE for other in steps[: place + 1]) <= own
    ]


@pytest.mark.requirement("lifecycle.turn-owner")
@given(child=child_turns(), start=st.integers(2, 7))
def test_the_verifier_lets_somebody_elses_turn_end_beside_the_threads_own(
    child: list[tuple[str, dict[str, Any]]], start: int
):
    closed = [step for step in child if step[0] not in ("tool.started", "model.delta")]
    steps = [*OWN_STREAM[:start], *closed, *OWN_STREAM[start:]]
    facts = [
        msgspec.structs.replace(fact, id=f"{fact.thread_id}-{place}")
        for place, fact in enumerate(make_stream(*steps))
    ]
    late = {fact.id for fact in facts if fact.turn_id == "later" and start < 8}
    assert [found for found in verify(facts) if found.fact_id not in late] == []


LINEAGE = {
    "thread": {"parentThreadId": "thread-a"},
    "thread in the payload": {"payload": {"parentThreadId": "thread-a"}},
    "thread in snake case": {"payload": {"parent_thread_id": "thread-a"}},
    "session": {"parentSessionId": "session-a"},
    "session in the payload": {"payload": {"parentSessionId": "session-a"}},
    "session in snake case": {"payload": {"parent_session_id": "session-a"}},
    "task": {"parentTaskId": "task-a"},
    "task in the payload": {"payload": {"parentTaskId": "task-a"}},
    "task in snake case": {"payload": {"parent_task_id": "task-a"}},
    "subagent": {"payload": {"parentSubagentId": "a"}},
    "subagent in snake case": {"payload": {"parent_subagent_id": "a"}},
}


@pytest.mark.requirement("projection.lineage-forms")
@pytest.mark.parametrize("form", LINEAGE)
def test_every_form_of_lineage_gives_the_same_parents(form: str):
    make, child = FactMaker(), FactMaker(thread="thread-a")
    above = {"subagentId": "a", "taskId": "task-a", "sessionId": "session-a"}
    state = project_facts(
        make("turn.started", **TURN),
        child("subagent.started", **above, parentThreadId="thread"),
        make("subagent.started", **TURN, subagentId="b", taskId="task-b", **LINEAGE[form]),
    )
    assert state.graph.nodes["subagent:b"].parent_id == "subagent:a"
    assert "subagent:a>subagent:b:spawned" in state.graph.edges
    assert state.team_workbench.roster_nodes["b"].parent_id == "a"


@pytest.mark.requirement("projection.lineage-forms")
@pytest.mark.parametrize("form", ["task", "task in the payload", "task in snake case"])
def test_a_subagents_task_hangs_on_the_task_above_it(form: str):
    make = FactMaker()
    state = project_facts(
        make("task.started", **TURN, taskId="task-a"),
        make("subagent.started", **TURN, subagentId="b", taskId="task-b", **LINEAGE[form]),
    )
    edges = {edge_id: edge.kind for edge_id, edge in state.graph.edges.items()}
    assert edges == {
        "turn:turn>task:task-a:contains": "contains",
        "task:task-b>subagent:b:spawned": "spawned",
        "task:task-a>task:task-b:contains": "contains",
    }
    assert state.tasks["task-b"].parent_task_id == "task-a"


@pytest.mark.requirement("projection.turn-owner")
def test_a_child_thread_by_itself_shows_its_subagents_turn_as_its_own():
    make = FactMaker()
    own = {"turnId": "inner", "subagentId": "sub", "runtimeEntity": "subagent_turn"}
    own |= {"parentThreadId": "main", "taskId": "task"}
    state = project_facts(make("turn.started", **own), make("turn.completed", **own))
    assert (state.runtime.status, state.runtime.latest_turn_id) == ("completed", "inner")


@pytest.mark.requirement("projection.turn-failures")
def test_every_failed_turn_keeps_why_it_failed():
    make = FactMaker()
    failures = {
        "one": {"failureCategory": "timeout", "message": "Too slow.", "recoveryHint": "Retry."},
        "two": {"failureCategory": "quota", "message": "None left.", "recoveryHint": "Wait."},
        "three": {"failureCategory": "tool_error"},
    }
    facts: list[Fact] = []
    for turn, failure in failures.items():
        facts += [make("turn.started", turnId=turn), make("turn.failed", turnId=turn, **failure)]
    facts += [make("turn.started", turnId="four"), make("turn.completed", turnId="four")]
    state = project_facts(*facts)
    read = thread_read_model(state)
    fields = ("failureCategory", "message", "recoveryHint")
    turns = {key: as_json(turn) for key, turn in state.turns.items()}
    entries = {entry.turn_id: as_json(entry) for entry in state.timeline}
    incidents = {incident.turn_id: as_json(incident) for incident in read.incidents}
    for turn, failure in failures.items():
        expected = [failure.get(name) for name in fields]
        assert [turns[turn].get(name) for name in fields] == expected
        entry = entries[turn]
        assert [entry.get(name) for name in ("failureCategory", "detail", "recoveryHint")] == (
            expected
        )
        assert [incidents[turn].get(name) for name in fields] == [
            expected[0],
            expected[1] or expected[0],
            expected[2],
        ]
    assert set(incidents) == set(failures)
    assert (turns["four"]["status"], turns["four"].get("failureCategory")) == ("completed", None)
    restored = Projection.from_read_model(read).state
    for turn in failures:
        kept = as_json(restored.turns[turn])
        assert [kept.get(name) for name in fields] == [turns[turn].get(name) for name in fields]
    again = Projection("thread")
    again.apply_all(facts)
    before = again.snapshot()
    again.repair(read)
    assert msgspec.json.decode(again.snapshot())["turns"] == msgspec.json.decode(before)["turns"]


@pytest.mark.requirement("projection.turn-failures")
def test_a_turn_that_runs_again_has_not_failed():
    make = FactMaker()
    state = project_facts(
        make("turn.started", **TURN),
        make("turn.failed", **TURN, **FAILURE),
        make("turn.started", **TURN),
    )
    assert as_json(state.turns["turn"]) == {
        "turnId": "turn",
        "status": "running",
        "startedAt": "2026-06-10T00:00:03Z",
    }
    assert thread_read_model(state).incidents == []


@pytest.mark.requirement("projection.task-refs")
@pytest.mark.parametrize("name", ["task.progress", "task.completed", "task.updated"])
def test_a_task_keeps_its_outputs_progress_and_evidence(name: str):
    make = FactMaker()
    state = project_facts(
        make("task.started", **TURN, taskId="task", outputRefs=["output:1"]),
        make(
            name,
            **TURN,
            taskId="task",
            payload={
                "outputRefs": ["output:2", {"ref": "output:3"}],
                "outputRef": "output:4",
                "evidenceRefs": ["evidence:1"],
                "artifactRefs": ["artifact:1"],
                "progress": {"completedSteps": 2, "totalSteps": 5},
            },
            evidenceRefs=["evidence:0"],
        ),
    )
    read = as_json(task_snapshot(state, "task"))
    assert {
        key: read[key] for key in ("outputRefs", "evidenceRefs", "artifactRefs", "progress")
    } == {
        "outputRefs": ["output:1", "output:2", "output:3", "output:4"],
        "evidenceRefs": ["evidence:0", "evidence:1"],
        "artifactRefs": ["artifact:1"],
        "progress": {"completedSteps": 2, "totalSteps": 5},
    }


@pytest.mark.requirement("projection.task-refs")
def test_progress_without_steps_is_kept_as_a_share():
    make = FactMaker()
    state = project_facts(make("task.progress", **TURN, taskId="task", progress=0.4))
    assert task_snapshot(state, "task").progress_share == 0.4
