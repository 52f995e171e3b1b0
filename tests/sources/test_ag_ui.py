"""AG-UI events: what recordings do not show."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.projection import project
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import screen_of

RUN: dict[str, Any] = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}


def facts_from(*events: dict[str, Any]) -> list[Fact]:
    lines = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    facts = list(
        convert_recording(
            find_source("ag-ui"), b"".join(lines).splitlines(keepends=True), thread_id="t"
        )
    )
    assert verify(facts) == []
    return facts


def finish_event(**outcome: Any) -> dict[str, Any]:
    return {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome}


@pytest.mark.requirement("sources.ag-ui.interrupts")
def test_an_interrupt_asks_a_person_and_ends_the_run():
    interrupt = {"id": "i", "reason": "approval", "message": "Deploy?", "toolCallId": "c"}
    facts = facts_from(
        RUN,
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "deploy"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        finish_event(type="interrupt", interrupts=[interrupt]),
    )
    question = [fact for fact in facts if fact.event_class == "action.required"]
    assert [(fact.action_id, fact.payload["prompt"]) for fact in question] == [("i", "Deploy?")]
    assert screen_of(facts)["status"] == "completed"


@pytest.mark.requirement("sources.ag-ui.subagents")
def test_a_subagent_speaks_for_itself():
    facts = facts_from(
        RUN,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "reader"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "mine", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "s"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "ours"},
        finish_event(type="success"),
    )
    screen = screen_of(facts)
    assert screen["conversation"] == [["assistant", "ours"]]
    assert screen["subagents"] == ["s"]


@pytest.mark.requirement("sources.ag-ui.state")
def test_shared_state_is_patched_as_the_events_say():
    facts = facts_from(
        RUN,
        {"type": "STATE_SNAPSHOT", "snapshot": {"count": 1}},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/count", "value": 2}]},
        finish_event(type="success"),
    )
    assert project(facts).shared == {"count": 2}


@pytest.mark.requirement("sources.ag-ui.ends")
@pytest.mark.parametrize(
    ("event", "status"),
    [
        (finish_event(type="success"), "completed"),
        (finish_event(type="cancelled"), "canceled"),
        ({"type": "RUN_ERROR", "message": "boom", "code": "X"}, "failed"),
        ({"type": "CUSTOM", "name": "x", "value": 1}, "failed"),
    ],
)
def test_a_run_ends_as_it_says_or_was_cut_off(event: dict[str, Any], status: str):
    facts = facts_from(RUN, {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "hi"}, event)
    assert screen_of(facts)["status"] == status


@pytest.mark.requirement("sources.ag-ui.interrupts")
@pytest.mark.parametrize(
    ("payload", "decision", "end"),
    [
        ({"approved": True}, "approved", "tool.result"),
        ({"approved": False, "reason": "no"}, "denied", "tool.failed"),
        ("the left one", "answered", "tool.result"),
    ],
)
def test_a_run_that_resumes_goes_on_in_the_same_turn(payload: Any, decision: str, end: str):
    interrupt = {"id": "i", "reason": "approval", "toolCallId": "c"}
    answers = [{"interruptId": "i", "status": "resolved", "payload": payload}]
    settings = {"threadId": "t", "runId": "r2", "messages": [], "resume": answers}
    facts = facts_from(
        RUN,
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "deploy"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        finish_event(type="interrupt", interrupts=[interrupt]),
        {**RUN, "runId": "r2", "input": settings},
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "so"},
        finish_event(type="success"),
    )
    classes = [fact.event_class for fact in facts]
    assert (classes.count("turn.started"), classes.count("turn.completed")) == (1, 1)
    resolved = [fact for fact in facts if fact.event_class == "action.resolved"]
    assert [fact.payload["decision"] for fact in resolved] == [decision]
    assert end in classes


@pytest.mark.requirement("sources.ag-ui.interrupts")
def test_a_run_that_does_not_resume_is_another_turn():
    interrupt = {"id": "i", "reason": "approval"}
    facts = facts_from(
        RUN,
        finish_event(type="interrupt", interrupts=[interrupt]),
        {**RUN, "runId": "r2"},
        finish_event(type="success"),
    )
    classes = [fact.event_class for fact in facts]
    assert (classes.count("turn.completed"), classes.count("action.cancelled")) == (2, 1)


@pytest.mark.requirement("sources.recordings.hostile")
def test_no_turn_begins_twice_even_under_an_id_that_we_would_give():
    facts = facts_from(*({**RUN, "runId": run_id} for run_id in ("r:again-3", "r", "r")))
    begun = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    assert begun == ["r:again-3", "r", "r:again-3:again-3"]
