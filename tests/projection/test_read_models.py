"""Read models say what the state says, and a first screen comes from one alone."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact
from factwire.facts.classes.payloads import to_person
from factwire.projection import (
    InvalidReadModel,
    Projection,
    project,
    read_thread_model,
    session_snapshot,
    task_snapshot,
    thread_read_model,
)
from tests.projection.fact_maker import THREAD, FactMaker, project_facts

TURN = {"turnId": "turn"}
CALL = {**TURN, "toolCallId": "call"}


def story() -> list[Fact]:
    tell = FactMaker()
    queued = {"queuedTurns": [{"queuedTurnId": "next", "prompt": "Then?"}]}
    steps = {"objective": "All", "progress": {"completedSteps": 1, "totalSteps": 3}}
    return [
        tell("turn.submitted", **TURN, payload={"prompt": "Hi"}),
        tell("turn.started", **TURN),
        tell("task.created", **TURN, taskId="task", payload=steps),
        tell("task.dependency.updated", **TURN, taskId="task", payload={"dependencyId": "first"}),
        tell("task.attempt.failed", **TURN, taskId="task", attemptId="try"),
        tell("artifact.created", **TURN, artifactId="art", payload={"kind": "code"}),
        tell("evidence.changed", **TURN, evidenceId="evd", traceId="trace"),
        tell("runtime.error", **TURN, payload={"code": "odd", "message": "Odd."}),
        tell("queue.changed", payload=queued),
        tell("tool.started", **CALL, payload={"toolName": "deploy"}),
        tell("action.required", **CALL, actionId="act", payload={"severity": "high"}),
    ]


@pytest.mark.requirement("projection.read-model.thread")
def test_a_thread_read_model_says_what_waits_runs_and_went_wrong():
    model = thread_read_model(project_facts(*story()))
    assert (model.thread_id, model.session_id, model.runtime_id) == (THREAD, "session", "runtime")
    assert (model.status, model.active_turn_id, model.event_cursor) == ("waiting", "turn", 11)
    assert [action.action_id for action in model.pending_actions] == ["act"]
    assert [(call.tool_call_id, call.state) for call in model.tool_calls] == [("call", "running")]
    assert [turn.queued_turn_id for turn in model.queued_turns] == ["next"]
    assert [incident.code for incident in model.incidents] == ["odd"]
    assert model.last_outcome is None


@pytest.mark.requirement("projection.read-model.thread")
@pytest.mark.parametrize("end", ["completed", "failed", "canceled"])
def test_a_read_model_says_how_the_last_turn_ended(end: str):
    tell = FactMaker()
    model = thread_read_model(
        project_facts(tell("turn.started", **TURN), tell(f"turn.{end}", **TURN))
    )
    assert model.last_outcome is not None
    assert (model.last_outcome.status, model.last_outcome.turn_id) == (end, "turn")


@pytest.mark.requirement("projection.read-model.task")
def test_a_task_snapshot_has_attempts_dependencies_and_steps():
    snapshot = task_snapshot(project_facts(*story()), "task")
    assert (snapshot.objective, snapshot.dependencies) == ("All", {"first": "unknown"})
    assert [attempt.status for attempt in snapshot.attempts] == ["failed"]
    assert snapshot.progress is not None
    assert (snapshot.progress.completed_steps, snapshot.progress.total_steps) == (1, 3)
    with pytest.raises(KeyError):
        task_snapshot(project_facts(*story()), "another")


@pytest.mark.requirement("projection.read-model.session")
def test_a_session_snapshot_joins_its_threads():
    tell = FactMaker(thread="second")
    other = project([tell("turn.started", **TURN), tell("turn.failed", **TURN)])
    session = session_snapshot("session", [project_facts(*story()), other])
    assert (session.status, session.pending_action_count) == ("failed", 1)
    assert [(thread.thread_id, thread.status) for thread in session.threads] == [
        (THREAD, "waiting"),
        ("second", "failed"),
    ]
    assert [task.task_id for task in session.tasks] == ["task"]
    assert [(made.artifact_id, made.kind) for made in session.artifacts] == [("art", "code")]
    assert session.evidence[0].runtime_correlation == {"turnId": "turn", "traceId": "trace"}
    assert session_snapshot("empty", []).status == "idle"


@pytest.mark.requirement("projection.read-model.restore")
def test_a_first_screen_comes_from_a_read_model_alone_and_the_stream_goes_on():
    facts = story()
    state = project_facts(*facts)
    sent = msgspec.json.encode(thread_read_model(state), enc_hook=str)
    screen = Projection.from_read_model(read_thread_model(sent))

    assert screen.state.hydration.status == "hydrating"
    assert screen.state.runtime.status == state.runtime.status
    assert screen.state.actions.keys() == state.actions.keys()
    assert [turn.prompt for turn in screen.state.queue.turns] == ["Then?"]
    assert {key: tool.state for key, tool in screen.state.tools.items()} == {"call": "running"}

    tell = FactMaker(first=len(facts) + 1)
    screen.apply(tell("action.resolved", **CALL, actionId="act"))
    assert screen.state.hydration.status == "live"
    assert screen.state.runtime.status == "running"
    for number, fact in enumerate(facts, 1):
        counted = {"/hydration/late": number, "/hydration/received": number + 1}
        sent = screen.apply(fact).operations()
        assert {operation.path: operation.value for operation in sent} == counted
    assert screen.state.hydration.status == "live"


@pytest.mark.requirement("projection.read-model.invalid")
@pytest.mark.parametrize("value", [b"", b"[]", b"{}", {"threadId": 5}, {}])
def test_what_is_no_read_model_is_refused_with_its_reason(value: Any):
    with pytest.raises(InvalidReadModel, match="expected a ThreadReadModel"):
        read_thread_model(value)


PEOPLE: dict[str, Any] = {
    "a name": "Ada",
    "a person": {"name": "Ada", "via": "workbench", "userId": "user-1", "deviceId": "device-1"},
    "nobody": None,
    "no person": 7,
}


@pytest.mark.requirement("projection.read-model.cancelled-by")
@pytest.mark.parametrize("end", ["completed", "failed", "canceled"])
@pytest.mark.parametrize("by", PEOPLE.values(), ids=PEOPLE)
def test_a_read_model_says_who_cancelled_the_last_turn_and_restores_it(by: Any, end: str):
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN), tell(f"turn.{end}", **TURN, payload={"by": by})
    )
    person = to_person(by) if end == "canceled" else None
    model = thread_read_model(state)
    assert model.last_outcome is not None
    assert model.last_outcome.cancelled_by == person == state.turns["turn"].cancelled_by
    read = read_thread_model(msgspec.json.decode(msgspec.json.encode(model)))
    assert Projection.from_read_model(read).state.turns["turn"].cancelled_by == person
