"""What begins anew no longer shows how it ended before, and why a thing was held up goes with it.

An id may be opened again. A screen that kept the old exit code, reason or verdict beside the new
state would tell something that no fact says.
"""

from typing import Any

import msgspec
import pytest

from examples.streams.stories.recorder import Recorder
from factwire.projection import ProjectionState, project

Step = tuple[str, dict[str, Any]]


def state_after(*steps: Step, **fields: Any) -> ProjectionState:
    facts = Recorder("anew")
    facts.ask("trn_anew", "Do it again.")
    for event_class, payload in steps:
        facts.tell(event_class, "Again", payload, **fields)
    return project(facts.facts)


def plain(view: object) -> dict[str, Any]:
    """A view without its times, ids and what is always there."""
    kept: dict[str, Any] = msgspec.to_builtins(view, enc_hook=str)
    return {key: value for key, value in kept.items() if not key.endswith(("At", "Id"))}


def test_a_patch_that_is_tried_again_has_not_failed():
    failed = {"patchId": "pat", "failureCategory": "conflict", "message": "Line 4."}
    state = state_after(
        ("patch.started", {"patchId": "pat"}),
        ("patch.failed", failed),
        ("patch.started", {"patchId": "pat"}),
    )
    assert plain(state.coding.patches["pat"]) == {"status": "running"}


def test_tests_that_run_again_have_no_result_yet():
    ended = {"testRunId": "run", "result": "failed", "passed": 3, "failed": 1, "skipped": 2}
    state = state_after(
        ("test.started", {"testRunId": "run"}),
        ("test.completed", ended),
        ("test.started", {"testRunId": "run"}),
    )
    assert plain(state.coding.tests["run"]) == {"status": "running"}


def test_a_process_that_is_started_again_has_no_exit_code():
    state = state_after(
        ("process.started", {}),
        ("process.failed", {"exitCode": 2, "failureCategory": "exit_code", "signal": "SIGTERM"}),
        ("process.started", {}),
        process_id="prc",
    )
    running = {"kind": "process", "status": "running", "output": "", "outputBytes": 0}
    assert plain(state.processes["prc"]) == running


def test_a_hook_that_runs_again_has_no_outcome():
    payload = {"hookId": "hook", "outcome": "block", "exitCode": 1, "message": "Too big."}
    state = state_after(
        ("hook.started", {"hookId": "hook"}),
        ("hook.failed", payload),
        ("hook.started", {"hookId": "hook"}),
    )
    assert plain(state.hooks["hook"]) == {"status": "running"}


def test_a_review_that_is_asked_for_again_has_no_verdict():
    state = state_after(
        ("review.requested", {}),
        ("review.completed", {"verdict": "rejected"}),
        ("review.requested", {}),
        review_id="rev",
        evidence_id="evd",
    )
    review = state.evidence.reviews["rev"]
    assert (review.status, review.verdict, review.completed_at) == ("requested", None, None)


@pytest.mark.parametrize(
    ("event_class", "status"),
    [("artifact.changed", "changed"), ("artifact.versioned", "updated")],
)
@pytest.mark.parametrize("end", ["artifact.failed", "artifact.deleted"])
def test_an_artifact_that_changes_again_is_there(end: str, event_class: str, status: str):
    broken = {"failureCategory": "renderer_failed", "message": "No type."}
    state = state_after(
        ("artifact.created", {"kind": "table"}),
        (end, broken if end == "artifact.failed" else {}),
        (event_class, {}),
        artifact_id="art",
    )
    assert plain(state.artifacts["art"]) == {"kind": "table", "status": status, "versions": []}


def test_a_preview_does_not_bring_a_deleted_artifact_back():
    state = state_after(
        ("artifact.created", {}),
        ("artifact.deleted", {}),
        ("artifact.preview.ready", {"previewRef": "artifact:preview"}),
        artifact_id="art",
    )
    assert state.artifacts["art"].status == "deleted"


def test_a_task_that_goes_on_has_no_reason_to_wait():
    state = state_after(
        ("task.failed", {"failureCategory": "timeout", "message": "Too slow."}),
        ("task.waiting", {"reason": "permission"}),
        ("task.resumed", {}),
        task_id="tsk",
    )
    assert plain(state.tasks["tsk"]) == {"status": "running", "attempts": [], "retries": 0}


def test_an_archived_task_ended_when_it_ended_and_as_it_did():
    state = state_after(
        ("task.failed", {"failureCategory": "timeout"}), ("task.archived", {}), task_id="tsk"
    )
    task, failed = state.tasks["tsk"], state.timeline[-1].created_at
    assert (task.status, task.failure_category) == ("archived", "timeout")
    assert task.completed_at == failed


def test_a_job_that_is_started_again_has_not_failed():
    state = state_after(
        ("job.failed", {"failureCategory": "no_space"}), ("job.started", {}), job_id="job"
    )
    job = state.jobs["job"]
    assert (job.status, job.failure_category, job.completed_at) == ("running", None, None)


def test_a_limit_says_what_was_said_of_it_last():
    state = state_after(
        ("rate_limit.hit", {"name": "requests", "message": "Wait.", "retryAfterMs": 500}),
        ("limit.changed", {"name": "requests", "remaining": 60}),
    )
    shown = {"name": "requests", "status": "known", "remaining": 60, "hits": 1}
    assert plain(state.metrics.limits["requests"]) == shown


def test_a_teammate_that_is_back_shows_no_old_trouble():
    state = state_after(
        ("channel.disconnected", {"message": "Connection reset"}),
        ("channel.resumed", {}),
        subagent_id="sub",
        task_id="tsk",
    )
    thread = state.subagents.threads["sub"]
    assert (thread.status, thread.message) == ("connected", None)


def test_a_channel_says_nothing_of_a_teammate_that_is_done():
    state = state_after(
        ("subagent.completed", {"summary": "Done."}),
        ("channel.disconnected", {}),
        subagent_id="sub",
        task_id="tsk",
    )
    thread = state.subagents.threads["sub"]
    assert (thread.status, thread.completed_at) == ("completed", "2026-06-10T09:00:03.000Z")
    assert thread.started_at is None


def test_the_status_of_a_message_is_not_that_of_who_sent_it():
    state = state_after(
        ("subagent.started", {}),
        ("channel.message", {"status": "delivered"}),
        ("subagent.input", {"status": "queued"}),
        subagent_id="sub",
        task_id="tsk",
    )
    assert state.subagents.threads["sub"].status == "running"


def test_a_decision_finds_a_plan_that_has_an_id_of_its_own():
    request = {"actionType": "plan_decision", "actionId": "act"}
    state = state_after(
        ("plan.final", {"planId": "first", "text": "One."}),
        ("action.required", request),
        ("plan.final", {"planId": "second", "text": "Two."}),
        ("action.resolved", {"actionId": "act", "decision": "rejected"}),
    )
    decisions = {key: plan.decision for key, plan in state.plans.items()}
    assert decisions == {"first": "rejected", "second": None}


def test_work_is_not_blocked_by_what_is_done():
    def depends(status: str) -> Step:
        return ("task.dependency.updated", {"dependsOnTaskId": "tsk_a", "dependencyStatus": status})

    blocked = state_after(depends("running"), task_id="tsk_b")
    assert blocked.team_workbench.work_items["tsk_b"].blocked_by == ["tsk_a"]
    free = state_after(depends("running"), depends("completed"), task_id="tsk_b")
    assert free.team_workbench.work_items["tsk_b"].blocked_by is None


@pytest.mark.parametrize(
    ("sign", "status"),
    [("tool.started", "running"), ("model.completed", "running"), ("tool.failed", "blocked")],
)
def test_the_next_sign_of_work_lifts_what_blocked_a_run(sign: str, status: str):
    blocked = ("sandbox.blocked", {"reasonCode": "network_denied"})
    state = state_after(("tool.started", {}), blocked, (sign, {}), tool_call_id="call")
    assert state.runtime.status == status


def test_a_rollback_leaves_older_messages_that_were_fetched_since():
    facts = Recorder("window")
    facts.ask("trn_window", "And now?")
    facts.done()
    older = {"messages": [{"messageId": "old", "role": "user", "text": "Before."}]}
    back = {"toSequence": facts.sequence}
    facts.tell("history.window.loaded", "Older messages", older)
    facts.tell("history.rollback.completed", "Rolled back", back)
    messages = project(facts.facts).messages
    assert [(message.message_id, message.status) for message in messages] == [
        ("old", "final"),
        ("trn_window:user", "final"),
    ]


@pytest.mark.parametrize(
    ("end", "status", "tool", "node"),
    [
        ("turn.canceled", "canceled", "canceled", "cancelled"),
        ("turn.failed", "failed", "unknown", "unknown"),
        ("turn.completed", "completed", "unknown", "unknown"),
    ],
)
def test_what_a_turn_cuts_off_is_not_shown_as_under_way(
    end: str, status: str, tool: str, node: str
):
    facts = Recorder("cut")
    facts.ask("trn_cut", "Go.")
    facts.stream("msg_cut", "Going")
    facts.tell("tool.started", "Go", {"toolName": "go"}, tool_call_id="call")
    facts.tell(end, "The end")
    state = project(facts.facts)
    entries = {entry.entry_id: entry.status for entry in state.timeline}
    text = "text:trn_cut:msg_cut:msg_cut%3Atext"
    assert entries == {"turn:trn_cut": status, text: status, "tool:call": tool}
    assert state.graph.nodes["tool:call"].status == node
