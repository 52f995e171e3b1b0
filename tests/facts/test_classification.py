"""Classification fills what the source left open, and nothing else."""

import msgspec
import pytest

from factwire.facts import KNOWN_CLASSES, RUNTIME_CLASSES, classify
from tests.facts.samples import fact

COLUMNS = ("owner", "scope", "phase", "surface", "persistence")


@pytest.mark.requirement("classification.fill")
@pytest.mark.parametrize("name", KNOWN_CLASSES)
def test_an_unclassified_fact_gets_its_row(name: str):
    found = classify(fact(name))
    row = KNOWN_CLASSES[name]
    assert [getattr(found, column) for column in COLUMNS] == [
        getattr(row, column) for column in COLUMNS
    ]


@pytest.mark.requirement("classification.fill")
@pytest.mark.parametrize("column", COLUMNS)
def test_what_the_source_says_stays(column: str):
    found = classify(fact("tool.started", **{column: "their word"}))
    row = RUNTIME_CLASSES["tool.started"]
    expected = {name: getattr(row, name) for name in COLUMNS} | {column: "their word"}
    assert {name: getattr(found, name) for name in COLUMNS} == expected


@pytest.mark.requirement("classification.fill")
def test_nothing_else_changes_and_classifying_twice_is_classifying_once():
    plain = fact("tool.started", toolCallId="c1", payload={"a": 1}, custom=True)
    once = classify(plain)
    assert classify(once) is once
    assert msgspec.structs.replace(once, **dict.fromkeys(COLUMNS)) == plain


@pytest.mark.requirement("classification.unknown")
@pytest.mark.parametrize("name", ["never.heard", "done", None])
def test_a_class_without_a_row_is_unknown_throughout(name: str | None):
    found = classify(msgspec.structs.replace(fact(), event_class=name))
    assert {getattr(found, column) for column in COLUMNS} == {"unknown"}


@pytest.mark.requirement("classification.unknown")
def test_a_status_update_does_not_know_its_phase():
    assert classify(fact("run.status")).phase == "unknown"


ANCHORS = [
    ("model.delta", "model", "conversation"),
    ("model.completed", "model", "conversation"),
    ("reasoning.delta", "model", "inline_process"),
    ("tool.started", "tool", "tool_ui"),
    ("action.required", "action", "hitl"),
    ("artifact.changed", "artifact", "artifact_workspace"),
    ("evidence.changed", "evidence", "timeline_evidence"),
    ("runtime.error", "diagnostics", "diagnostics"),
    ("worker.notification", "agent", "worker_notifications"),
    ("handoff.requested", "team", "handoff_lane"),
    ("review.requested", "evidence", "review_lane"),
]


@pytest.mark.requirement("classification.rows")
@pytest.mark.parametrize(("name", "owner", "surface"), ANCHORS)
def test_owner_and_surface_of_the_classes_that_the_contract_names(
    name: str, owner: str, surface: str
):
    row = RUNTIME_CLASSES[name]
    assert (row.owner, row.surface) == (owner, surface)


@pytest.mark.requirement("classification.rows")
def test_only_answer_text_and_history_show_in_the_conversation():
    shown = {name for name, row in RUNTIME_CLASSES.items() if row.surface == "conversation"}
    assert {name.split(".")[0] for name in shown} == {"model", "messages", "history"}
