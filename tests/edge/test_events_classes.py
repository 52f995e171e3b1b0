"""The Edge's own classes: known, with ids and typed payloads, and shown without remarks."""

from typing import Any

import pytest

from factwire.facts import (
    EDGE_CLASSES,
    RUNTIME_CLASSES,
    UI_CLASSES,
    Fact,
    class_issues,
    to_ui_events,
)
from factwire.facts.shapes import read_fact
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import ProjectionState, project
from tests.edge.event_samples import fact
from tests.facts.samples import complete, full_fact, without

pytestmark = pytest.mark.requirement("edge.events.classes")

NEEDS = {
    "project.created": "projectId",
    "project.updated": "projectId",
    "project.deleted": "projectId",
    "conversation.created": "conversationId",
    "conversation.member.added": "conversationId",
    "thread.created": "threadId",
    "thread.deleted": "threadId",
    "thread.forked": "threadId",
    "message.created": "itemId",
    "item.created": "itemId",
    "item.updated": "itemId",
    "run.persistence_error": "runId",
}


def project_facts(*facts: Fact) -> ProjectionState:
    return project(facts, thread_id="thread_1")


@pytest.mark.parametrize("name", EDGE_CLASSES)
def test_a_complete_fact_of_the_edge_breaks_no_rule(name: str):
    assert class_issues(full_fact(name)) == []


@pytest.mark.parametrize("name", NEEDS)
def test_a_fact_without_what_it_is_about_is_reported(name: str):
    bare = read_fact(without(complete(name), NEEDS[name]), "facts")
    assert [(issue.code, issue.path) for issue in class_issues(bare)] == [
        ("missing_scope_id", f"$.{NEEDS[name]}")
    ]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("conversation.member.added", "memberId"),
        ("runner.online", "runnerId"),
        ("runner.offline", "runnerId"),
        ("preview.ready", "previewId"),
        ("preview.stopped", "previewId"),
    ],
)
def test_a_fact_without_the_one_it_is_about_is_reported(name: str, field: str):
    bare = full_fact(name, payload={field: None})
    assert [issue.path for issue in class_issues(bare)] == [f"$.payload.{field}"]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("project.created", {"name": 7}),
        ("thread.updated", {"title": ["x"]}),
        ("message.created", {"content": "text"}),
        ("preview.ready", {"url": 1, "previewId": "p"}),
    ],
)
def test_a_payload_of_a_wrong_type_is_reported(name: str, payload: dict[str, Any]):
    issues = class_issues(full_fact(name, payload=payload))
    assert [issue.code for issue in issues] == ["schema_mismatch"]


@pytest.mark.parametrize("name", EDGE_CLASSES)
def test_a_projection_shows_a_fact_of_the_edge_and_remarks_nothing(name: str):
    state = project_facts(full_fact(name))
    assert [(entry.event_class, entry.degraded) for entry in state.timeline] == [(name, None)]
    remarks = [remark.code for remark in state.diagnostics.items.values()]
    assert remarks == (["run.persistence_error"] if name == "run.persistence_error" else [])


def test_a_thread_is_called_what_its_last_fact_calls_it():
    first = fact("thread.created", {"title": "First"}, threadId="thread_1")
    named = fact("thread.updated", {"title": "Better"}, threadId="thread_1", id="b", sequence=2)
    archived = fact(
        "thread.updated", {"status": "archived"}, threadId="thread_1", id="c", sequence=3
    )
    assert project_facts(first).title == "First"
    assert project_facts(first, named).title == "Better"
    assert project_facts(first, named, archived).title == "Better"


@pytest.mark.parametrize("name", EDGE_CLASSES)
def test_a_class_of_the_edge_becomes_an_event_of_the_ui(name: str):
    row = EDGE_CLASSES[name]
    assert row.ui
    assert set(row.ui) <= set(UI_CLASSES)
    assert [event.event_class for event in to_ui_events(full_fact(name))] == list(row.ui)
    assert UNKNOWN not in (row.owner, row.surface)


def test_the_edges_classes_are_nobody_elses():
    assert not set(EDGE_CLASSES) & (set(RUNTIME_CLASSES) | set(UI_CLASSES))
