"""The twelve acceptance scenarios of the projection contract."""

from typing import Any

import msgspec
import pytest

from tests.projection.fact_maker import (
    FactMaker,
    as_json,
    codes,
    part_type,
    project_facts,
    texts,
    watch_facts,
)

TURN = {"turnId": "turn"}
CALL = {"turnId": "turn", "toolCallId": "call"}
WORKER = {"turnId": "turn", "subagentId": "worker", "taskId": "task"}


@pytest.mark.requirement("projection.scenario.status-before-text")
def test_runtime_status_before_the_first_text_is_outside_the_conversation():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("run.status", **TURN, runId="run", payload={"status": "routing", "message": "Wait"}),
    )
    assert state.messages == []
    assert (state.runtime.message, state.runtime.runtime_status) == ("Wait", "routing")
    assert state.runtime.active_run_id == "run"


@pytest.mark.requirement("projection.scenario.tool-artifact")
def test_a_tool_fact_with_an_artifact_id_makes_a_card_that_is_linked_to_the_call():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL), tell("tool.result", **CALL, artifactId="report/1")
    )
    kinds = [part_type(part) for part in state.messages[0].parts]
    assert kinds == ["tool-preview", "artifact-card"]
    assert state.artifacts["report/1"].tool_call_id == "call"
    assert state.tools["call"].artifact_ids == ["report/1"]


@pytest.mark.requirement("projection.scenario.final-reconciles")
def test_a_final_fact_reconciles_streamed_text_without_doubling_it():
    tell = FactMaker()
    pieces = [tell("model.delta", **TURN, messageId="m", delta=text) for text in ("Hel", "lo")]
    final = tell("model.completed", **TURN, messageId="m", text="Hello!")
    assert texts(project_facts(*pieces, final)) == [("assistant", ["Hello!"])]


@pytest.mark.requirement("projection.scenario.action-severity")
def test_a_request_with_a_severity_is_in_task_and_approval_views():
    tell = FactMaker()
    state = project_facts(
        tell("task.started", **TURN, taskId="task"),
        tell("action.required", **TURN, taskId="task", actionId="a", severity="critical"),
    )
    assert (state.actions["a"].severity, state.actions["a"].task_id) == ("critical", "task")
    assert state.runtime.status == "waiting"
    assert state.graph.nodes["action:a"].parent_id == "task:task"


@pytest.mark.requirement("projection.scenario.unknown-artifact")
def test_missing_artifact_metadata_reads_unknown_and_is_not_guessed_from_prose():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **TURN, text="I made a spreadsheet called budget.xlsx."),
        tell("artifact.changed", **TURN, artifactId="a"),
    )
    artifact = state.artifacts["a"]
    found = (artifact.kind, artifact.title, artifact.path, artifact.media_type)
    assert found == ("unknown", None, None, None)


@pytest.mark.requirement("projection.scenario.export")
def test_an_export_changes_its_state_and_copies_no_content():
    tell = FactMaker()
    ids = {**TURN, "artifactId": "a"}
    seen = watch_facts(
        [
            tell("artifact.created", **ids),
            tell("artifact.export.started", **ids),
            tell(
                "artifact.export.completed",
                **ids,
                exportRef="blob:1",
                content="BINARY",
                data="BINARY",
                bytes="BINARY",
            ),
        ]
    )
    assert seen.state.artifacts["a"].export_status == "completed"
    assert b"BINARY" not in seen.projection.snapshot()


@pytest.mark.requirement("projection.scenario.queued-turn")
def test_a_queued_turn_is_shown_as_waiting_and_makes_no_prose():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("queue.changed", queuedTurnId="next", prompt="And then?", reason="turn_active"),
    )
    assert state.messages == []
    assert state.runtime.queued_turn_count == 1
    assert (state.runtime.queue_reason, state.queue.turns[0].prompt) == ("turn_active", "And then?")


@pytest.mark.requirement("projection.scenario.subagent")
def test_a_subagent_changes_task_agent_and_team_and_not_the_answer():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("model.delta", **TURN, messageId="m", delta="Working."),
        tell("subagent.spawned", **WORKER, toolCallId="call"),
        tell("subagent.completed", **WORKER, summary="Found it."),
        tell("model.completed", **TURN, messageId="m", text="Working."),
    )
    assert texts(state) == [("assistant", ["Working."])]
    assert state.subagents.threads["worker"].summary == "Found it."
    assert state.tasks["task"].subagent_ids == ["worker"]
    assert state.team_workbench.roster_nodes["worker"].status == "completed"


@pytest.mark.requirement("projection.scenario.notification")
def test_a_worker_notification_is_told_apart_from_what_a_user_said():
    tell = FactMaker()
    state = project_facts(
        tell("turn.submitted", **TURN, prompt="Go on."),
        tell(
            "worker.notification",
            **WORKER,
            role="user",
            message="Done.",
            resultRef="blob:result",
            transcriptRef="blob:transcript",
        ),
    )
    assert texts(state) == [("user", ["Go on."])]
    note: dict[str, Any] = as_json(state.team_workbench.notifications[0])
    assert (note["workerId"], note["resultRef"], note["transcriptRef"]) == (
        "worker",
        "blob:result",
        "blob:transcript",
    )


@pytest.mark.requirement("projection.scenario.delegated-approval")
def test_a_delegated_approval_names_the_teammate_that_asks():
    state = project_facts(
        FactMaker()("action.required", **WORKER, actionId="a", actionType="delegated_permission")
    )
    action = state.actions["a"]
    assert (action.requested_by, action.subagent_id) == ("worker", "worker")
    assert state.graph.nodes["action:a"].parent_id == "subagent:worker"


@pytest.mark.requirement("projection.scenario.compaction")
def test_a_compaction_is_a_boundary_and_repeats_no_old_reasoning():
    tell = FactMaker()
    seen = watch_facts(
        [
            tell("reasoning.delta", **TURN, messageId="m", delta="OLDTHOUGHT"),
            tell("context.compaction.started", **TURN),
            tell("context.compaction.completed", **TURN, summary="We agreed.", text="OLDTHOUGHT"),
        ]
    )
    assert [row.summary for row in seen.state.context.compactions] == ["We agreed."]
    assert texts(seen.state) == [("assistant", [])]
    assert b"OLDTHOUGHT" not in seen.projection.snapshot()


@pytest.mark.requirement("projection.scenario.diagnostics")
def test_diagnostics_stay_inspectable_outside_the_conversation():
    tell = FactMaker()
    seen = watch_facts(
        [
            tell("model.completed", **TURN, messageId="m", text="Fine."),
            tell("runtime.warning", **TURN, code="slow", message="It was slow."),
        ]
    )
    assert codes(seen.state) == ["slow"]
    assert texts(seen.state) == [("assistant", ["Fine."])]
    assert b"It was slow." not in msgspec.json.encode(as_json(seen.state.messages))
