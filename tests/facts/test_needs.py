"""What each class needs, row by row of the table, typed a second time."""

from typing import Any

import pytest

from factwire.facts import Shape, inspect_fact, missing_fields, read_fact, required_fields_of
from tests.facts import spec
from tests.facts.samples import complete, fact, runtime_event, wire

Fields = dict[str, Any]


def family(*names: str, but: tuple[str, ...] = ()) -> list[str]:
    return [
        name for name in spec.RUNTIME_CLASSES if name.split(".")[0] in names and name not in but
    ]


def find_missing(name: str, shape: Shape = "facts", /, **fields: Any) -> list[str]:
    """Where inspecting a fact of the class, with these fields alone, misses something."""
    value = runtime_event(name, **fields) if shape == "runtime-event" else wire(name, **fields)
    found = inspect_fact(value, shape)
    assert {issue.code for issue in found} <= {"missing_scope_id"}
    return [issue.path for issue in found]


@pytest.mark.requirement("needs.tool")
@pytest.mark.parametrize("name", family("tool", but=("tool.catalog.resolved",)))
def test_a_tool_fact_needs_its_call(name: str):
    assert find_missing(name) == ["$.toolCallId"]
    assert find_missing(name, toolCallId="") == ["$.toolCallId"]
    assert find_missing(name, toolCallId="c1") == []
    assert find_missing(name, payload={"tool_call_id": "c1"}) == []


@pytest.mark.requirement("needs.tool")
def test_the_tool_catalog_needs_no_call():
    assert find_missing("tool.catalog.resolved") == []


@pytest.mark.requirement("needs.action")
@pytest.mark.parametrize("name", family("action"))
def test_an_action_fact_needs_its_action(name: str):
    assert find_missing(name) == ["$.actionId"]
    for fields in ({"actionId": "a1"}, {"payload": {"requestId": "a1"}}):
        assert find_missing(name, **fields) == []


@pytest.mark.requirement("needs.artifact")
@pytest.mark.parametrize("name", family("artifact"))
def test_an_artifact_fact_needs_an_artifact(name: str):
    assert find_missing(name) == find_missing(name, artifactRefs=[]) == ["$.artifactId"]
    for fields in (
        {"artifactId": "a1"},
        {"artifactRefs": ["a1"]},
        {"payload": {"artifactId": "a1"}},
        {"payload": {"artifactRefs": ["a1"]}},
    ):
        assert find_missing(name, **fields) == []


@pytest.mark.requirement("needs.evidence")
@pytest.mark.parametrize("name", family("evidence"))
def test_an_evidence_fact_needs_evidence(name: str):
    assert find_missing(name) == find_missing(name, evidenceRefs=[]) == ["$.evidenceId"]
    for fields in (
        {"evidenceId": "e1"},
        {"evidenceRefs": ["e1"]},
        {"payload": {"evidence_id": "e"}},
    ):
        assert find_missing(name, **fields) == []


@pytest.mark.requirement("needs.review")
@pytest.mark.parametrize("name", family("review"))
def test_a_review_fact_needs_evidence_and_the_review(name: str):
    assert find_missing(name) == ["$.evidenceId", "$.reviewId"]
    assert find_missing(name, evidenceId="e1") == ["$.reviewId"]
    assert find_missing(name, reviewId="r1") == ["$.evidenceId"]
    assert find_missing(name, reviewId="r1", evidenceRefs=["e1"]) == []
    assert find_missing(name, payload={"reviewId": "r1"}, evidenceRefs=["e1"]) == []


@pytest.mark.requirement("needs.file-read")
def test_a_file_that_was_read_needs_its_path():
    assert (
        find_missing("file.read")
        == find_missing("file.read", payload={"path": ""})
        == ["$.payload.path"]
    )
    assert find_missing("file.read", payload={"path": "a.py"}) == []


@pytest.mark.requirement("needs.file-changed")
def test_a_file_that_was_changed_needs_its_path_and_an_artifact():
    assert find_missing("file.changed") == ["$.artifactId", "$.payload.path"]
    assert find_missing("file.changed", payload={"path": "a.py"}) == ["$.artifactId"]
    assert find_missing("file.changed", artifactRefs=["a1"]) == ["$.payload.path"]
    assert find_missing("file.changed", artifactId="a1", payload={"path": "a.py"}) == []


@pytest.mark.requirement("needs.patch")
@pytest.mark.parametrize("name", family("patch"))
def test_a_patch_fact_needs_a_patch_or_a_call(name: str):
    category: Fields = {"failureCategory": "conflict"} if name == "patch.failed" else {}
    assert find_missing(name, payload=category) == ["$.payload.patchId"]
    assert find_missing(name, payload={**category, "patchId": "p1"}) == []
    assert find_missing(name, payload={**category, "patch_id": "p1"}) == []
    assert find_missing(name, payload=category, toolCallId="c1") == []


@pytest.mark.requirement("needs.patch")
def test_a_failed_patch_needs_its_category():
    assert find_missing("patch.failed", toolCallId="c1") == ["$.payload.failureCategory"]


@pytest.mark.requirement("needs.command")
@pytest.mark.parametrize("name", family("command"))
def test_a_command_fact_needs_a_command_or_a_call(name: str):
    rest: dict[str, Fields] = {
        "command.output": {"refIds": ["r1"]},
        "command.exited": {"payload": {"exitCode": 0}},
    }
    fields = rest.get(name, {})
    payload: Fields = fields.get("payload", {})
    assert find_missing(name, **fields) == ["$.payload.commandId"]
    assert find_missing(name, **{**fields, "payload": {**payload, "commandId": "c1"}}) == []
    assert find_missing(name, **fields, toolCallId="c1") == []


@pytest.mark.requirement("needs.command")
def test_output_needs_a_ref():
    assert find_missing("command.output", toolCallId="c1") == ["$.refIds"]
    for fields in (
        {"refIds": ["r1"]},
        {"payload": {"outputRef": "r1"}},
        {"payload": {"ref": "r1"}},
        {"payload": {"refId": "r1"}},
    ):
        assert find_missing("command.output", toolCallId="c1", **fields) == []


@pytest.mark.requirement("needs.command")
@pytest.mark.parametrize("payload", [{"exitCode": 0}, {"exitCode": -9}, {"status": "killed"}])
def test_an_exit_has_a_code_or_a_status(payload: Fields):
    assert find_missing("command.exited", toolCallId="c1", payload=payload) == []


@pytest.mark.requirement("needs.command")
@pytest.mark.parametrize("payload", [{}, {"exitCode": None}, {"status": ""}])
def test_an_exit_without_either_is_reported(payload: Fields):
    assert find_missing("command.exited", toolCallId="c1", payload=payload) == [
        "$.payload.exitCode"
    ]


@pytest.mark.requirement("needs.command")
@pytest.mark.parametrize("code", ["0", True, 1.5])
def test_an_exit_code_that_is_no_whole_number_is_reported_twice(code: object):
    issues = inspect_fact(wire("command.exited", toolCallId="c1", payload={"exitCode": code}))
    assert [(issue.code, issue.path) for issue in issues] == [
        ("missing_scope_id", "$.payload.exitCode"),
        ("schema_mismatch", "$.payload.exitCode"),
    ]


@pytest.mark.requirement("needs.test")
@pytest.mark.parametrize("name", family("test"))
def test_a_test_fact_needs_a_run_or_a_call(name: str):
    result: Fields = {"result": "passed"} if name == "test.completed" else {}
    assert find_missing(name, payload=result) == ["$.payload.testRunId"]
    assert find_missing(name, payload={**result, "testRunId": "t1"}) == []
    assert find_missing(name, payload={**result, "test_run_id": "t1"}) == []
    assert find_missing(name, payload=result, toolCallId="c1") == []


@pytest.mark.requirement("needs.test")
@pytest.mark.parametrize("result", ["passed", False, 0, 3, ["a"], {"failed": 0}])
def test_a_completed_test_has_a_result_which_may_be_no_or_none_failed(result: object):
    assert find_missing("test.completed", toolCallId="c1", payload={"result": result}) == []
    assert find_missing("test.completed", toolCallId="c1", payload={"status": "passed"}) == []


@pytest.mark.requirement("needs.test")
@pytest.mark.parametrize("result", [None, "", [], {}])
def test_a_completed_test_whose_result_says_nothing_is_reported(result: object):
    assert find_missing("test.completed", toolCallId="c1", payload={"result": result}) == [
        "$.payload.result"
    ]


@pytest.mark.requirement("needs.reason-code")
@pytest.mark.parametrize("name", ["sandbox.blocked", "permission.denied"])
def test_a_refusal_needs_its_reason(name: str):
    assert find_missing(name) == ["$.payload.reasonCode"]
    assert find_missing(name, payload={"reasonCode": "network"}) == []
    assert find_missing(name, payload={"reason_code": "network"}) == []


@pytest.mark.requirement("needs.task")
@pytest.mark.parametrize("name", family("task"))
def test_a_task_fact_needs_its_task(name: str):
    attempt = {"attemptId": "a1"} if name.startswith("task.attempt.") else {}
    assert find_missing(name, **attempt) == ["$.taskId"]
    assert find_missing(name, taskId="t1", **attempt) == []


@pytest.mark.requirement("needs.task")
@pytest.mark.parametrize("name", [name for name in family("task") if ".attempt." in name])
def test_an_attempt_needs_its_run_or_its_attempt(name: str):
    assert find_missing(name, taskId="t1") == ["$.attemptId"]
    assert find_missing(name, taskId="t1", runId="r1") == []


@pytest.mark.requirement("needs.subagent")
@pytest.mark.parametrize("name", family("subagent"))
def test_a_subagent_fact_needs_the_subagent_and_the_task(name: str):
    assert find_missing(name) == ["$.subagentId", "$.taskId"]
    assert find_missing(name, subagentId="s1") == ["$.taskId"]
    assert find_missing(name, subagentId="s1", payload={"task_id": "t1"}) == []


@pytest.mark.requirement("needs.handoff")
@pytest.mark.parametrize("name", family("handoff"))
def test_a_handoff_fact_needs_the_handoff(name: str):
    assert find_missing(name) == ["$.handoffId"]
    assert (
        find_missing(name, handoffId="h1") == find_missing(name, payload={"handoffId": "h1"}) == []
    )


@pytest.mark.requirement("needs.runtime-event-scope")
@pytest.mark.parametrize("name", family("turn", "model", "reasoning", "permission", "sandbox"))
def test_in_runtime_events_five_families_need_thread_and_turn(name: str):
    reason = {"reasonCode": "x"} if name in ("sandbox.blocked", "permission.denied") else {}
    assert find_missing(name, "runtime-event", payload=reason) == ["$.threadId", "$.turnId"]
    ids = {"threadId": "t1", "turn_id": "u1"}
    assert find_missing(name, "runtime-event", payload={**reason, **ids}) == []
    in_facts = ["$.threadId", "$.turnId"] if name.startswith("turn.") else []
    assert find_missing(name, payload=reason) == in_facts
    assert find_missing(name, payload={**reason, **ids}) == []


NEEDY = {
    *family("tool", but=("tool.catalog.resolved",)),
    *family("action", "artifact", "evidence", "review", "file", "patch", "command", "test"),
    *family("task", "subagent", "handoff"),
    "sandbox.blocked",
    "permission.denied",
}


@pytest.mark.requirement("validation.missing_scope_id")
@pytest.mark.parametrize("name", spec.RUNTIME_CLASSES)
def test_a_complete_fact_of_any_class_is_valid_and_only_the_listed_classes_need_anything(name: str):
    assert inspect_fact(complete(name)) == []
    assert bool(missing_fields(fact(name))) == (name in NEEDY)


@pytest.mark.requirement("validation.missing_scope_id")
@pytest.mark.parametrize("name", sorted(NEEDY))
def test_the_message_says_what_the_class_needs(name: str):
    for need, issue in zip(required_fields_of(name), inspect_fact(wire(name)), strict=False):
        assert issue.message == f"{name} needs {need.expected}"


@pytest.mark.requirement("validation.missing_scope_id")
def test_a_fact_without_a_class_needs_nothing():
    assert missing_fields(read_fact({**wire(), "eventClass": None})) == []


@pytest.mark.requirement("validation.missing_scope_id")
def test_an_unknown_class_of_a_known_family_needs_what_its_family_needs():
    codes = [issue.code for issue in inspect_fact(wire("tool.their_own"))]
    assert codes == ["unknown_event_type", "missing_scope_id"]


@pytest.mark.requirement("needs.task")
def test_a_task_event_of_the_ui_may_be_about_a_job():
    assert [issue.path for issue in inspect_fact({"type": "task.changed"})] == ["$.taskId"]
    assert inspect_fact({"type": "task.changed", "jobId": "j1"}) == []
