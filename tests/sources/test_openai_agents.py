"""The OpenAI Agents SDK, and runs as recorders frame them: what recordings do not show."""

import json
from typing import Any

import pytest

from factwire.projection import project
from factwire.sources import START as START_TIME
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import FOLDER, facts_of, screen_of
from tests.sources.streams import classes, facts_from

SOURCE = "openai-agents"
START: dict[str, Any] = {"type": "run.started", "input": "go"}
DONE: dict[str, Any] = {"type": "run.completed", "final_output": "done"}
CALL: dict[str, Any] = {
    "type": "function_call",
    "call_id": "c",
    "name": "deploy",
    "arguments": '{"to": "prod"}',
}


def raw(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": "raw_response_event", "data": {"type": f"response.{kind}", **data}}


def item(name: str, raw_item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "run_item_stream_event", "name": name, "item": {"raw_item": raw_item, **more}}


def message(text: str, message_id: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": message_id, "content": content}


WAITS: dict[str, Any] = {"type": "run.interrupted", "interruptions": [{"raw_item": CALL}]}
OUTPUT = item("tool_output", {"call_id": "c"}, output="ok")


@pytest.mark.requirement("sources.recorded-runs.ends")
@pytest.mark.parametrize(
    ("line", "status"),
    [
        (DONE, "completed"),
        ({"type": "run.failed", "error": "MaxTurnsExceeded", "message": "too many"}, "failed"),
        ({"type": "run.cancelled"}, "canceled"),
        (raw("completed", response={}), "failed"),
    ],
)
def test_a_run_ends_as_its_recorder_says_or_was_cut_off(line: dict[str, Any], status: str):
    assert screen_of(facts_from(SOURCE, START, raw("created"), line))["status"] == status


@pytest.mark.requirement("sources.recorded-runs.ends")
def test_a_run_that_fails_before_anything_else_is_a_failed_turn():
    assert screen_of(facts_from(SOURCE, {"type": "run.failed"}))["status"] == "failed"


@pytest.mark.requirement("sources.recorded-runs.decisions")
@pytest.mark.parametrize(
    ("decisions", "decision", "state"),
    [
        ([{"id": "c", "approved": True}], "approved", "output-available"),
        ([{"id": "c", "approved": False, "reason": "no"}], "denied", "output-error"),
        ([{"id": "c", "answer": 7}], "answered", "output-available"),
        ([], "unknown", "output-available"),
    ],
)
def test_a_run_that_waits_goes_on_in_the_same_turn(
    decisions: list[dict[str, Any]], decision: str, state: str
):
    resumed = {"type": "run.started", "decisions": decisions}
    facts = facts_from(SOURCE, START, WAITS, resumed, OUTPUT, DONE)
    screen = screen_of(facts)
    assert [action["decision"] for action in screen["actions"]] == [decision]
    assert [tool["state"] for tool in screen["tools"]] == [state]
    assert classes(facts, "turn.started") == ["turn.started"]


@pytest.mark.requirement("sources.recorded-runs.undecided")
def test_a_run_that_nobody_decides_on_ended_where_it_asked():
    facts = facts_from(SOURCE, START, WAITS, START, DONE)
    ended = [fact for fact in facts if fact.event_class == "turn.completed"]
    assert [fact.payload.get("stopReason") for fact in ended] == ["interrupt", None]
    assert classes(facts, "action.") == ["action.required", "action.cancelled"]


@pytest.mark.requirement("sources.openai-agents.usage")
def test_usage_adds_up_over_the_responses_of_a_run():
    used = raw("completed", response={"usage": {"input_tokens": 3, "output_tokens": 2}})
    facts = facts_from(SOURCE, START, raw("created"), used, raw("created"), used, DONE)
    [ended] = [fact for fact in facts if fact.event_class == "turn.completed"]
    assert (ended.payload["inputTokens"], ended.payload["outputTokens"]) == (6, 4)


@pytest.mark.requirement("sources.openai-agents.same-id")
def test_messages_that_share_an_id_are_two_messages():
    payloads = [
        raw("output_item.done", item=message(text, "__fake_id__")) for text in ("one", "two")
    ]
    facts = facts_from(
        SOURCE, START, raw("created"), payloads[0], raw("created"), payloads[1], DONE
    )
    spoken = screen_of(facts)["conversation"]
    assert [text for role, text in spoken if role == "assistant"] == ["one", "two"]


@pytest.mark.requirement("sources.openai-agents.items-only")
def test_run_items_tell_the_same_as_raw_events_do():
    path = FOLDER / SOURCE / "tool.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    items = [line for line in lines if b'"raw_response_event"' not in line]
    whole, less = screen_of(facts_of(path)), screen_of(facts_of(path, items))
    assert less == whole


@pytest.mark.requirement("sources.openai-agents.handoff")
def test_a_handoff_names_both_agents_and_changes_who_speaks():
    facts = facts_of(FOLDER / SOURCE / "handoff.jsonl")
    [handoff] = project(facts).team_workbench.handoff_events.values()
    assert (handoff.from_agent, handoff.to_agent) == ("Triage", "Billing")
    assert handoff.status == "completed"
    speakers = [fact.agent_id for fact in facts if fact.event_class == "model.completed"]
    assert speakers == ["Billing"]


@pytest.mark.requirement("sources.openai-agents.hosted")
@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"status": "completed", "output": "found"}, "output-available"),
        ({"status": "failed"}, "output-error"),
        ({"error": {"message": "gone"}}, "output-error"),
    ],
)
def test_a_call_at_the_provider_ends_with_its_item(more: dict[str, Any], state: str):
    call = {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}"}
    facts = facts_from(
        SOURCE,
        START,
        raw("created"),
        raw("output_item.added", output_index=0, item=call),
        raw("mcp_call.in_progress", output_index=0, item_id="m"),
        raw("output_item.done", output_index=0, item={**call, **more}),
        item("tool_called", {**call, **more}),
        DONE,
    )
    assert [tool["state"] for tool in screen_of(facts)["tools"]] == [state]
    assert "tool.progress" in classes(facts, "tool.")


@pytest.mark.requirement("sources.openai-agents.mcp")
@pytest.mark.parametrize(("approve", "decision"), [(True, "approved"), (False, "denied")])
def test_an_mcp_approval_is_asked_and_answered(approve: bool, decision: str):
    facts = facts_from(
        SOURCE,
        START,
        item("mcp_list_tools", {"server_label": "files", "tools": [{"name": "read"}]}),
        item("mcp_approval_requested", {"id": "a", "server_label": "files", "name": "read"}),
        item("mcp_approval_response", {"approval_request_id": "a", "approve": approve}),
        DONE,
    )
    assert [action["decision"] for action in screen_of(facts)["actions"]] == [decision]
    assert "tool.catalog.resolved" in classes(facts, "tool.")


@pytest.mark.requirement("sources.openai-agents.unknown")
def test_what_is_not_known_is_a_warning():
    odd = [raw("odd"), item("odd", {}), {"type": "odd"}, raw("output_item.done", item={})]
    warnings = screen_of(facts_from(SOURCE, START, *odd, DONE))["warnings"]
    assert warnings == ["unknown_source_item"] * 4


@pytest.mark.requirement("sources.openai-agents.same-id")
@pytest.mark.parametrize("place", [pytest.param(10**400, id="huge"), -1, 1e300, True, None, "0"])
def test_a_place_that_is_none_is_the_first(place: object):
    line = '{"type": "raw_response_event", "data": {"type": "response.output_text.delta", '
    line += f'"delta": "hi", "output_index": {json.dumps(place)}}}}}'
    facts = list(convert_recording(find_source(SOURCE), [line.encode()], thread_id="t"))
    [delta] = [fact for fact in facts if fact.event_class == "model.delta"]
    assert delta.message_id == "t:turn-1:response-0:0"


@pytest.mark.requirement("sources.recorded-runs.times")
@pytest.mark.parametrize(
    ("value", "stated"),
    [
        (1_700_000_000.5, "2023-11-14T22:13:20.500Z"),
        pytest.param(10**400, START_TIME, id="huge"),
        (1e300, START_TIME),
        ("x", START_TIME),
    ],
)
def test_a_time_that_cannot_be_read_is_none(value: object, stated: str):
    line = '{"type": "raw_response_event", "data": {"type": "response.created", '
    line += f'"response": {{"created_at": {json.dumps(value)}}}}}}}'
    facts = list(convert_recording(find_source(SOURCE), [line.encode()], thread_id="t"))
    assert facts[-1].created_at == stated
