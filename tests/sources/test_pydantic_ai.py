"""Pydantic AI's events: what recordings do not show."""

from typing import Any

import pytest

from tests.sources.recordings import screen_of
from tests.sources.streams import classes, facts_from

SOURCE = "pydantic-ai"
START: dict[str, Any] = {"type": "run.started", "input": "go"}
DONE: dict[str, Any] = {"type": "run.completed", "final_output": {"ok": True}}
CALL: dict[str, Any] = {
    "part_kind": "tool-call",
    "tool_name": "deploy",
    "tool_call_id": "c",
    "args": {"to": "prod"},
}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"event_kind": kind, **fields}


def result(**more: Any) -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": "deploy", "tool_call_id": "c", "content": "x"}
    return event("function_tool_result", part={**part, **more})


def text(content: str, index: int = 0) -> list[dict[str, Any]]:
    part = {"part_kind": "text", "content": content}
    return [event(kind, index=index, part=part) for kind in ("part_start", "part_end")]


@pytest.mark.requirement("sources.pydantic-ai.outcomes")
@pytest.mark.parametrize(
    ("outcome", "category"),
    [
        ("success", None),
        ("failed", "tool_error"),
        ("denied", "permission_denied"),
        ("interrupted", "interrupted"),
        ("retried", "retry"),
    ],
)
def test_a_result_is_told_as_its_outcome_says(outcome: str, category: str | None):
    facts = facts_from(
        SOURCE, START, event("function_tool_call", part=CALL), result(outcome=outcome), DONE
    )
    [end] = [fact for fact in facts if fact.event_class in ("tool.result", "tool.failed")]
    assert end.payload.get("failureCategory") == category


@pytest.mark.requirement("sources.pydantic-ai.outcomes")
def test_a_retry_prompt_in_the_place_of_a_result_is_a_failed_call():
    prompt = {"part_kind": "retry-prompt", "tool_call_id": "c", "content": "again"}
    facts = facts_from(SOURCE, START, event("function_tool_result", result=prompt), DONE)
    assert screen_of(facts)["tools"][0]["state"] == "output-error"


@pytest.mark.requirement("sources.pydantic-ai.deferred")
@pytest.mark.parametrize(
    ("verdict", "outcome", "decision", "state"),
    [
        (True, "success", "approved", "output-available"),
        ({"kind": "tool-approved"}, "success", "approved", "output-available"),
        (False, "denied", "denied", "output-error"),
        ({"kind": "tool-denied", "message": "no"}, "denied", "denied", "output-error"),
    ],
)
def test_what_a_handler_rules_is_told_while_the_run_goes_on(
    verdict: object, outcome: str, decision: str, state: str
):
    facts = facts_from(
        SOURCE,
        START,
        event("deferred_tool_requests", requests={"approvals": [CALL], "calls": []}),
        event("deferred_tool_results", results={"approvals": {"c": verdict}, "calls": {}}),
        result(outcome=outcome),
        DONE,
    )
    screen = screen_of(facts)
    assert [action["decision"] for action in screen["actions"]] == [decision]
    assert [tool["state"] for tool in screen["tools"]] == [state]


@pytest.mark.requirement("sources.pydantic-ai.deferred")
def test_a_call_that_somebody_else_carries_out_is_no_approval():
    facts = facts_from(
        SOURCE,
        START,
        event("deferred_tool_requests", requests={"calls": [CALL]}),
        event("deferred_tool_results", results={"calls": {"c": "done"}}),
        result(),
        DONE,
    )
    [action] = screen_of(facts)["actions"]
    assert (action["type"], action["decision"]) == ("structured_input", "answered")


@pytest.mark.requirement("sources.pydantic-ai.places")
def test_parts_of_another_response_are_other_messages():
    facts = facts_from(SOURCE, START, *text("one"), *text("two", 1), *text("three"), DONE)
    payloads = [spoken for role, spoken in screen_of(facts)["conversation"] if role == "assistant"]
    assert [spoken for spoken in payloads if spoken] == ["one", "two", "three"]
    assert classes(facts, "model.requested") == ["model.requested"] * 2


@pytest.mark.requirement("sources.pydantic-ai.places")
def test_files_and_events_of_its_own_are_refs():
    picture = {"part_kind": "file", "content": {"data": "aGVsbG8=", "media_type": "image/png"}}
    facts = facts_from(
        SOURCE,
        START,
        event("part_start", index=0, part=picture),
        event("custom", name="progress", done=1),
        event("part_start", index=1, part={"part_kind": "compaction"}),
        event("enqueued_messages", enqueue_id="e", messages=[]),
        event("realtime_turn_complete"),
        DONE,
    )
    [artifact] = [fact for fact in facts if fact.event_class == "artifact.changed"]
    assert artifact.payload["mediaType"] == "image/png"
    assert not any("aGVsbG8=" in str(fact.payload) for fact in facts)
    assert screen_of(facts)["warnings"] == ["raw_event", "unknown_source_item"]


@pytest.mark.requirement("sources.recorded-runs.times")
@pytest.mark.parametrize(
    ("value", "stated"),
    [
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000Z"),
        ("0001-01-01T00:00:00+23:00", "1970-01-01T00:00:00.000Z"),
        ("soon", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_without_a_zone_is_the_same_on_every_machine(value: str, stated: str):
    facts = facts_from(SOURCE, START, result(timestamp=value), DONE)
    assert facts[-1].created_at == stated
