"""Tasks and jobs: state, attempts, retries, dependencies."""

from typing import Any

import pytest

from tests.facts.spec import TASK_STATES
from tests.projection.fact_maker import FactMaker, project_facts

IDS = {"turnId": "turn", "taskId": "k"}

STATES = {
    "task.created": "draft",
    "task.accepted": "accepted",
    "task.queued": "queued",
    "task.started": "running",
    "task.progress": "running",
    "task.waiting": "waiting_input",
    "task.blocked": "blocked",
    "task.paused": "paused",
    "task.resumed": "running",
    "task.retrying": "retrying",
    "task.cancel_requested": "cancelling",
    "task.cancelled": "cancelled",
    "task.timed_out": "timed_out",
    "task.failed": "failed",
    "task.lost": "lost",
    "task.completed": "completed",
    "task.archived": "archived",
}


@pytest.mark.requirement("projection.task.states")
@pytest.mark.parametrize("name", STATES)
def test_a_class_puts_a_task_into_its_state(name: str):
    state = project_facts(FactMaker()(name, **IDS))
    assert state.tasks["k"].status == STATES[name]
    assert state.tasks["k"].status in TASK_STATES
    assert state.team_workbench.work_items["k"].status == STATES[name]
    assert state.graph.nodes["task:k"].status == STATES[name]


@pytest.mark.requirement("projection.task.states")
@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("permission", "waiting_permission"),
        ("approval", "waiting_permission"),
        ("resource", "waiting_resource"),
        ("input", "waiting_input"),
        ("the moon", "waiting_input"),
    ],
)
def test_a_task_waits_for_what_it_says(reason: str, status: str):
    assert (
        project_facts(FactMaker()("task.waiting", **IDS, reason=reason)).tasks["k"].status == status
    )


@pytest.mark.requirement("projection.task.states")
@pytest.mark.parametrize(
    "name",
    [
        "task.delegated",
        "task.dependency.updated",
        "task.attempt.failed",
        "task.attempt.completed",
        "task.profile.resolved",
    ],
)
def test_some_classes_leave_the_state_as_it_was(name: str):
    tell = FactMaker()
    state = project_facts(
        tell("task.paused", **IDS), tell(name, **IDS, runId="r", payload={"status": "completed"})
    )
    assert state.tasks["k"].status == "paused"


@pytest.mark.requirement("projection.task.attempts")
def test_every_attempt_is_kept_with_how_it_ended():
    tell = FactMaker()

    def attempt(end: str, key: str, **fields: Any):
        return tell(f"task.attempt.{end}", **IDS, attemptId=key, **fields)

    state = project_facts(
        tell("task.created", **IDS),
        attempt("started", "one"),
        attempt("failed", "one", failureCategory="flaky"),
        tell("task.retrying", **IDS),
        attempt("started", "two"),
        attempt("completed", "two"),
        tell("task.completed", **IDS),
    )
    task = state.tasks["k"]
    found = [
        (row.attempt_id, row.status, row.number, row.failure_category) for row in task.attempts
    ]
    assert found == [("one", "failed", 1, "flaky"), ("two", "completed", 2, None)]
    assert (task.retries, task.status) == (1, "completed")
    assert [node for node in state.graph.nodes if node.startswith("attempt:")] == [
        "attempt:one",
        "attempt:two",
    ]


@pytest.mark.requirement("projection.task.attempts")
def test_an_attempt_may_be_known_by_its_run_alone():
    tell = FactMaker()
    state = project_facts(
        tell("task.attempt.started", **IDS, runId="run"),
        tell("task.attempt.failed", **IDS, runId="run"),
    )
    assert [(row.attempt_id, row.status) for row in state.tasks["k"].attempts] == [
        ("run", "failed")
    ]


@pytest.mark.requirement("projection.task.dependencies")
def test_a_task_is_blocked_by_what_is_not_done():
    tell = FactMaker()
    facts = [
        tell("task.created", **IDS, dependsOn=["one"]),
        tell("task.dependency.updated", **IDS, dependsOnTaskId="one", dependencyStatus="running"),
        tell("task.dependency.updated", **IDS, dependsOnTaskId="two", dependencyStatus="running"),
        tell("task.dependency.updated", **IDS, dependsOnTaskId="one", dependencyStatus="completed"),
        tell("task.dependency.updated", **IDS, dependsOnTaskId="two", dependencyStatus="completed"),
    ]
    found = [
        project_facts(*facts[:count]).team_workbench.work_items["k"].blocked_by
        for count in (3, 4, 5)
    ]
    assert found == [["one", "two"], ["two"], None]
    state = project_facts(*facts)
    assert state.tasks["k"].depends_on == ["one", "two"]
    kinds = [(edge.target, edge.kind) for edge in state.graph.edges.values()]
    assert ("task:one", "depends_on") in kinds


@pytest.mark.requirement("projection.task.refs")
def test_refs_and_people_of_a_task_add_up():
    tell = FactMaker()
    state = project_facts(
        tell("task.created", **IDS, artifactRefs=["a"]),
        tell("task.progress", **IDS, artifactRefs=["b", "a"], subagentId="s"),
        tell("task.completed", **IDS, evidenceRefs=["e"], subagentId="s"),
    )
    task = state.tasks["k"]
    assert (task.artifact_refs, task.evidence_refs, task.subagent_ids) == (["a", "b"], ["e"], ["s"])


@pytest.mark.requirement("projection.job")
def test_the_items_of_a_job_are_counted():
    tell = FactMaker()
    ids = {"turnId": "turn", "jobId": "j"}
    state = project_facts(
        tell("job.created", **ids, totalItems=3),
        tell("job.item.started", **ids, jobItemId="1"),
        tell("job.item.started", **ids, jobItemId="2"),
        tell("job.item.completed", **ids, jobItemId="1"),
        tell("job.item.failed", **ids, jobItemId="2"),
        tell("job.completed", **ids),
    )
    job = state.jobs["j"]
    counts = (job.items_running, job.items_completed, job.items_failed, job.total_items)
    assert (counts, job.status) == ((0, 1, 1, 3), "completed")
