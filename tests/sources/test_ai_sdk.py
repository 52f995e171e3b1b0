"""The AI SDK's chunks: what recordings do not show."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import screen_of


def facts_from(*chunks: dict[str, Any]) -> list[Fact]:
    lines = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    facts = list(
        convert_recording(
            find_source("ai-sdk"), b"".join(lines).splitlines(keepends=True), thread_id="t"
        )
    )
    assert verify(facts) == []
    return facts


def text(part: str, *deltas: str) -> list[dict[str, Any]]:
    pieces = [{"type": "text-delta", "id": part, "delta": delta} for delta in deltas]
    return [{"type": "text-start", "id": part}, *pieces, {"type": "text-end", "id": part}]


START: dict[str, Any] = {"type": "start", "messageId": "m"}
STEP: dict[str, Any] = {"type": "start-step"}
CALL: dict[str, Any] = {
    "type": "tool-input-available",
    "toolCallId": "c",
    "toolName": "deploy",
    "input": {"to": "prod"},
}
FINISH: dict[str, Any] = {"type": "finish", "finishReason": "stop"}


@pytest.mark.requirement("sources.ai-sdk.resume")
def test_a_stream_that_begins_anew_tells_nothing_twice():
    whole = [START, STEP, *text("a", "one ", "two "), CALL]
    rest = [{"type": "tool-output-available", "toolCallId": "c", "output": "ok"}, FINISH]
    resumed = facts_from(*whole[:4], *whole, *rest)
    assert screen_of(resumed) == screen_of(facts_from(*whole, *rest))


@pytest.mark.requirement("sources.ai-sdk.reset-step")
def test_a_step_that_is_reset_takes_back_what_it_said():
    facts = facts_from(
        START, STEP, *text("a", "kept"), {"type": "finish-step"},
        STEP, *text("b", "dropped"), {"type": "reset-step"}, *text("c", "instead"), FINISH,
    )  # fmt: skip
    assert screen_of(facts)["conversation"] == [["assistant", "kept"], ["assistant", "instead"]]
    assert any("dropped" in str(fact.payload) for fact in facts)


@pytest.mark.requirement("sources.ai-sdk.approvals")
@pytest.mark.parametrize(
    ("approved", "state", "decision"),
    [(True, "output-available", "approved"), (False, "output-error", "denied")],
)
def test_an_approval_is_asked_answered_and_followed(approved: bool, state: str, decision: str):
    end = (
        {"type": "tool-output-available", "toolCallId": "c", "output": "done"}
        if approved
        else {"type": "tool-output-denied", "toolCallId": "c"}
    )
    facts = facts_from(
        START, CALL,
        {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"},
        {"type": "tool-approval-response", "approvalId": "p", "approved": approved},
        end, FINISH,
    )  # fmt: skip
    screen = screen_of(facts)
    assert [tool["state"] for tool in screen["tools"]] == [state]
    assert [action["decision"] for action in screen["actions"]] == [decision]


@pytest.mark.requirement("sources.ai-sdk.ends")
@pytest.mark.parametrize(
    ("chunk", "status"),
    [
        (FINISH, "completed"),
        ({"type": "finish", "finishReason": "error"}, "failed"),
        ({"type": "error", "errorText": "boom"}, "failed"),
        ({"type": "abort", "reason": "stop"}, "canceled"),
        ({"type": "text-start", "id": "z"}, "failed"),
    ],
)
def test_a_stream_ends_as_it_says_or_was_cut_off(chunk: dict[str, Any], status: str):
    facts = facts_from(START, *text("a", "hello"), chunk)
    assert screen_of(facts)["status"] == status


@pytest.mark.requirement("sources.ai-sdk.parts")
def test_files_sources_and_data_are_things_and_not_text():
    facts = facts_from(
        START,
        {"type": "source-url", "sourceId": "s", "url": "https://example.org", "title": "Here"},
        {"type": "file", "url": "data:text/plain;base64,aGk=", "mediaType": "text/plain"},
        {"type": "data-chart", "id": "d", "data": {"points": [1, 2]}},
        {"type": "steering-message", "id": "st", "parts": [{"type": "text", "text": "faster"}]},
        {"type": "odd-chunk"},
        FINISH,
    )
    classes = [fact.event_class for fact in facts]
    assert classes.count("artifact.changed") == 2
    assert "evidence.changed" in classes
    assert not any("aGk=" in str(fact.payload) for fact in facts)
    assert screen_of(facts)["warnings"] == ["unknown_source_item"]


@pytest.mark.requirement("sources.ai-sdk.ends")
@pytest.mark.parametrize("end", [{"type": "error", "errorText": "boom"}, {"type": "abort"}])
def test_what_frames_a_message_after_its_end_begins_no_other(end: dict[str, Any]):
    facts = facts_from(
        START, STEP, end, {"type": "finish-step"}, {**FINISH, "finishReason": "error"}
    )
    assert [fact.event_class for fact in facts].count("turn.started") == 1
