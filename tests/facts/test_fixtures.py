"""Fixtures: their own fields, and their events as a stream in place."""

from typing import Any

import pytest

from factwire.facts import (
    FIXTURE_VERSION,
    Fixture,
    InvalidFacts,
    Issue,
    inspect_fixture,
    is_fixture,
    validate_fixture,
)
from tests.facts.samples import complete, runtime_event, wire, without


def fixture(*events: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "text-basic",
        "schemaVersion": "agent-ui-fixture/v0.1",
        "title": "A text turn",
        "events": list(events),
        "expected": {"status": "completed"},
        **fields,
    }


def find_issues(value: Any) -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in inspect_fixture(value)]


@pytest.mark.requirement("fixtures.fields")
def test_a_whole_fixture_is_valid_and_typed():
    value = fixture(
        complete("turn.started", 1),
        complete("turn.completed", 2),
        initialReadModel={"threadId": "t"},
        finalReadModel=None,
        expected={
            "status": "completed",
            "messagePartCount": 1,
            "timelineEntryCount": 2,
            "graphNodeCount": 1,
            "pendingActionCount": 0,
            "artifactCount": 0,
            "evidenceCount": 0,
            "coding": {},
            "subagents": {},
            "diagnostics": [],
        },
    )
    typed = validate_fixture(value)
    assert isinstance(typed, Fixture)
    assert typed.schema_version == FIXTURE_VERSION
    assert typed.expected.timeline_entry_count == 2
    assert typed.events == value["events"]


@pytest.mark.requirement("fixtures.fields")
@pytest.mark.parametrize("name", ["id", "schemaVersion", "title", "events", "expected"])
def test_a_fixture_needs_its_fields(name: str):
    assert find_issues(without(fixture(), name)) == [("schema_mismatch", f"$.{name}")]


@pytest.mark.requirement("fixtures.fields")
@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("title", 1, "$.title"),
        ("events", {}, "$.events"),
        ("expected", [], "$.expected"),
        ("expected", {}, "$.expected"),
        ("expected", {"status": "x", "artifactCount": "1"}, "$.expected.artifactCount"),
        ("expected", {"status": "x", "diagnostics": [1]}, "$.expected.diagnostics[0]"),
        ("initialReadModel", [], "$.initialReadModel"),
    ],
)
def test_a_fixture_field_of_a_wrong_type_is_a_mismatch_in_place(
    name: str, value: object, path: str
):
    assert find_issues(fixture(**{name: value})) == [("schema_mismatch", path)]


@pytest.mark.requirement("fixtures.events")
@pytest.mark.requirement("validation.paths")
def test_a_missing_tool_call_is_found_at_its_event():
    value = fixture(
        complete("turn.started", 1), complete("model.requested", 2), wire("tool.started", 3)
    )
    assert inspect_fixture(value) == [
        Issue("missing_scope_id", "$.events[2].toolCallId", "tool.started needs toolCallId")
    ]
    with pytest.raises(InvalidFacts) as caught:
        validate_fixture(value)
    assert caught.value.issues == inspect_fixture(value)


@pytest.mark.requirement("fixtures.events")
def test_every_kind_of_issue_of_a_fixture_stands_in_its_place():
    value = fixture(
        complete("turn.started", 1),
        without(wire("run.status", 2), "kind"),
        complete("tool.result", 3),
        complete("run.status", 5, payload={"password": "abc"}),
        without(fixture(), "title"),
    )
    assert find_issues(without(value, "title")) == [
        ("schema_mismatch", "$.title"),
        ("schema_mismatch", "$.events[1].kind"),
        ("sequence_violation", "$.events[2]"),
        ("secret_leak_risk", "$.events[3].payload.password"),
        *(
            ("schema_mismatch", f"$.events[4].{name}")
            for name in ("kind", "status", "title", "createdAt", "runtimeId", "sequence")
        ),
        ("sequence_gap", "$.events[3].sequence"),
    ]


@pytest.mark.requirement("fixtures.events")
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("{}", "string"),
        ("not JSON", "string"),
        ("\ud800", "string"),
        (None, "null"),
        ([], "array"),
        (7, "number"),
    ],
)
def test_an_event_that_is_no_object_is_a_mismatch(event: object, kind: str):
    assert inspect_fixture(fixture(complete("turn.started", 1), event)) == [
        Issue("schema_mismatch", "$.events[1]", f"expected an object, got {kind}")
    ]


@pytest.mark.requirement("fixtures.events")
def test_events_may_be_of_another_shape():
    assert find_issues(fixture(runtime_event("run.status", 1), {"type": "run.status"})) == []


@pytest.mark.requirement("fixtures.declared-gaps")
@pytest.mark.parametrize("code", ["sequence_gap", "stream.gap.detected", "repair_needed"])
def test_a_declared_gap_is_no_issue(code: str):
    events = (complete("turn.started", 1), complete("turn.completed", 9))
    assert find_issues(fixture(*events)) == [("sequence_gap", "$.events[1].sequence")]
    declared = {"status": "completed", "diagnostics": [code]}
    assert find_issues(fixture(*events, expected=declared)) == []


@pytest.mark.requirement("fixtures.declared-gaps")
@pytest.mark.parametrize("diagnostics", [["missing_scope_id"], [], None, "sequence_gap", [7]])
def test_other_diagnostics_declare_no_gap(diagnostics: object):
    events = (complete("turn.started", 1), complete("turn.completed", 9))
    value = fixture(*events, expected={"status": "completed", "diagnostics": diagnostics})
    assert ("sequence_gap", "$.events[1].sequence") in find_issues(value)


@pytest.mark.requirement("fixtures.fields")
def test_a_fixture_is_an_object_with_a_list_of_events():
    assert is_fixture({"events": []})
    others: list[object] = [{}, {"events": {}}, [], None, "events"]
    assert not any(is_fixture(value) for value in others)


@pytest.mark.requirement("validation.collector")
@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_what_is_no_object_is_no_fixture(value: object):
    (issue,) = inspect_fixture(value)  # pyright: ignore[reportArgumentType]
    assert (issue.code, issue.path) == ("schema_mismatch", "$")


def find_resume_issues(*events: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    """The issues of a fixture that goes on from a read model."""
    model = {"threadId": "t1", "eventCursor": 4, "activeTurnId": "u1", **fields}
    value = fixture(events=list(events), initialReadModel=model)
    return [(issue.code, issue.path) for issue in inspect_fixture(value)]


IN_TURN: dict[str, Any] = {"threadId": "t1", "turnId": "u1"}
CALL_OPEN = {"toolCalls": [{"toolCallId": "c", "state": "running"}]}
ACTION_OPEN = {"pendingActions": [{"actionId": "a", "turnId": "u1"}]}
VIOLATION = [("sequence_violation", "$.events[0]")]


@pytest.mark.requirement("fixtures.read-model")
def test_what_an_initial_read_model_lists_as_open_may_be_closed():
    result = wire("tool.result", 5, **IN_TURN, toolCallId="c")
    answer = wire("action.resolved", 5, **IN_TURN, actionId="a")
    assert find_resume_issues(result, **CALL_OPEN) == []
    assert find_resume_issues(answer, **ACTION_OPEN) == []
    assert (
        find_resume_issues(result, **ACTION_OPEN)
        == find_resume_issues(answer, **CALL_OPEN)
        == VIOLATION
    )


@pytest.mark.requirement("fixtures.read-model")
@pytest.mark.parametrize(
    "row", [{"state": "output-error"}, {"completedAt": "2026-06-10T00:00:00Z"}]
)
def test_a_call_that_is_over_by_the_read_model_is_not_open(row: dict[str, str]):
    result = wire("tool.result", 5, **IN_TURN, toolCallId="c")
    assert find_resume_issues(result, toolCalls=[{"toolCallId": "c", **row}]) == VIOLATION


@pytest.mark.requirement("fixtures.read-model")
def test_what_the_read_model_covers_may_come_again():
    request = wire("action.required", 4, **IN_TURN, actionId="a")
    answer = wire("action.resolved", 5, **IN_TURN, actionId="a")
    assert find_resume_issues(request, answer, **ACTION_OPEN) == []
    again = wire("action.required", 5, **IN_TURN, actionId="a")
    assert find_resume_issues(again, **ACTION_OPEN) == VIOLATION


@pytest.mark.requirement("fixtures.read-model")
@pytest.mark.parametrize("rows", [None, 5, "x", {}, [None, 5, {}, {"toolCallId": 7}]])
def test_a_read_model_that_says_nothing_of_use_opens_nothing(rows: object):
    result = wire("tool.result", 5, **IN_TURN, toolCallId="c")
    fields = {"toolCalls": rows, "pendingActions": rows, "eventCursor": "x", "threadId": 5}
    assert find_resume_issues(result, **fields) == VIOLATION
