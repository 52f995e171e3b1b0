"""Diagnostics: bounded, inspectable, and never part of the conversation."""

import pytest

from factwire.projection.limits import DIAGNOSTICS_KEPT
from tests.projection.fact_maker import (
    FactMaker,
    as_json,
    part_type,
    project_facts,
    texts,
    watch_facts,
)

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.diagnostics.stated")
def test_a_diagnostic_is_kept_as_it_was_stated():
    fact = FactMaker()(
        "runtime.error",
        **TURN,
        code="E1",
        message="It broke.",
        failureCategory="disk",
        recoveryHint="free some",
        rawRef="blob:raw",
    )
    assert as_json(project_facts(fact).diagnostics) == {
        "items": {
            "thread-1": {
                "diagnosticId": "thread-1",
                "code": "E1",
                "severity": "error",
                "message": "It broke.",
                "eventId": "thread-1",
                "sequence": 1,
                "turnId": "turn",
                "failureCategory": "disk",
                "recoveryHint": "free some",
                "rawRef": "blob:raw",
                "createdAt": "2026-06-10T00:00:01Z",
            }
        },
        "total": 1,
        "errors": 1,
        "warnings": 0,
    }


@pytest.mark.requirement("projection.diagnostics.apart")
@pytest.mark.parametrize("name", ["runtime.warning", "runtime.error"])
def test_a_message_holds_only_a_way_to_a_diagnostic(name: str):
    state = project_facts(FactMaker()(name, **TURN, message="SPOKEN"))
    assert [part_type(part) for part in state.messages[0].parts] == ["diagnostic-ref"]
    assert "SPOKEN" not in str(as_json(state.messages))
    assert texts(state) == [("assistant", [])]


@pytest.mark.requirement("projection.diagnostics.apart")
def test_a_diagnostic_of_no_turn_stands_in_no_message():
    assert project_facts(FactMaker()("runtime.warning", message="x")).messages == []


@pytest.mark.requirement("projection.bounded")
def test_the_oldest_diagnostics_make_room_and_are_still_counted():
    tell = FactMaker()
    seen = watch_facts([tell("turn.started", **TURN)])
    for _ in range(DIAGNOSTICS_KEPT + 20):
        seen.projection.apply(tell("runtime.warning", message="x"))
    kept = seen.state.diagnostics
    assert (len(kept.items), kept.total) == (DIAGNOSTICS_KEPT, DIAGNOSTICS_KEPT + 20)
    assert "thread-2" not in kept.items


@pytest.mark.requirement("projection.diagnostics.stated")
@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("runtime.error", "error"),
        ("runtime.warning", "warning"),
        ("model.failed", "error"),
        ("rate_limit.hit", "warning"),
        ("quota.blocked", "error"),
        ("output.redacted", "info"),
        ("diagnostic.changed", "info"),
    ],
)
def test_a_class_has_its_severity_unless_the_fact_says_another(name: str, severity: str):
    tell = FactMaker()
    state = project_facts(tell(name, **TURN), tell(name, **TURN, payload={"severity": "odd"}))
    assert [item.severity for item in state.diagnostics.items.values()] == [severity, "odd"]
