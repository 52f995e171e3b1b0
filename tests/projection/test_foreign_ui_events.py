"""UI events of other makers, which carry no fact along: their class, status and phase count."""

from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact, decode_fact, read_fact, to_ui_events, write_fact
from factwire.facts.shapes import ORIGIN
from factwire.projection import ProjectionState, project

STREAMS = sorted((Path(__file__).resolve().parents[2] / "examples" / "streams").glob("*.ndjson"))
ENDED_TEAMMATES = ("completed", "failed", "closed")
ENDED_TASKS = ("completed", "failed", "cancelled", "archived")


def event(event_class: str, **fields: Any) -> Fact:
    about = {"threadId": "thread", "turnId": "turn", "subagentId": "sub", "taskId": "task"}
    return read_fact({"type": event_class, **about, **fields}, "ui")


def strip_origin(fact: Fact) -> list[Fact]:
    """The events of a fact as another program would have made them."""
    wires = [write_fact(each, "ui") for each in to_ui_events(fact)]
    return [
        read_fact({name: item for name, item in wire.items() if name != ORIGIN}, "ui")
        for wire in wires
    ]


@pytest.mark.requirement("ui.foreign")
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"payload": {"decision": "approved"}}, "resolved"),
        ({"payload": {"decision": "denied"}, "phase": "cancelled"}, "resolved"),
        ({}, "resolved"),
        ({"phase": "cancelled"}, "cancelled"),
        ({"phase": "interrupted"}, "cancelled"),
    ],
)
def test_an_action_closes_as_its_event_states(fields: dict[str, Any], status: str):
    request = event("action.required", actionId="a", sequence=1)
    state = project([request, event("action.resolved", actionId="a", sequence=2, **fields)])
    assert state.actions["a"].status == status


@pytest.mark.requirement("ui.foreign")
@pytest.mark.parametrize(
    ("event_class", "fields", "status"),
    [
        ("agent.completed", {}, "completed"),
        ("agent.completed", {"status": "failed"}, "failed"),
        ("agent.completed", {"phase": "failed"}, "failed"),
        ("agent.completed", {"phase": "cancelled"}, "closed"),
        ("agent.changed", {"phase": "acting"}, "running"),
        ("agent.changed", {"phase": "archived"}, "closed"),
        ("agent.changed", {"phase": "acting", "payload": {"status": "waiting"}}, "waiting"),
        ("agent.changed", {}, "spawned"),
    ],
)
def test_a_subagent_is_as_its_event_states(event_class: str, fields: dict[str, Any], status: str):
    state = project([event("agent.spawned", sequence=1), event(event_class, sequence=2, **fields)])
    assert state.subagents.threads["sub"].status == status


@pytest.mark.requirement("ui.foreign")
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"phase": "acting"}, "running"),
        ({"phase": "failed"}, "failed"),
        ({"phase": "failed", "attemptId": "try"}, "unknown"),
        ({"phase": "acting", "payload": {"status": "paused"}}, "paused"),
        ({}, "unknown"),
    ],
)
def test_a_task_is_as_its_event_states(fields: dict[str, Any], status: str):
    assert project([event("task.changed", sequence=1, **fields)]).tasks["task"].status == status


@pytest.mark.requirement("ui.foreign")
def test_a_job_that_changed_is_a_job_and_no_task():
    changed = event("task.changed", taskId=None, jobId="job", phase="completed", sequence=1)
    state = project([changed])
    assert (state.tasks, state.jobs["job"].status) == ({}, "completed")


def outcomes_of(state: ProjectionState) -> dict[tuple[str, str], str]:
    """Everything that has ended and how, as far as the words of UI events reach."""
    found: dict[tuple[str, str], str] = {}
    for key, action in state.actions.items():
        if action.status != "pending":
            ended = "cancelled" if action.status == "expired" else action.status
            found["action", key] = f"{ended} {action.decision}"
    for key, thread in state.subagents.threads.items():
        if thread.status in ENDED_TEAMMATES:
            found["subagent", key] = thread.status
    for key, task in state.tasks.items():
        if task.status in ENDED_TASKS:
            found["task", key] = task.status
    for key, artifact in state.artifacts.items():
        found["artifact", key] = artifact.status
    return found


@pytest.mark.requirement("ui.foreign")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_what_ended_reads_as_ended_without_the_facts(path: Path):
    facts = [decode_fact(line) for line in path.read_bytes().splitlines()]
    expected = outcomes_of(project(facts))
    came = outcomes_of(project([each for fact in facts for each in strip_origin(fact)]))
    assert {key: came.get(key) for key in expected} == expected
