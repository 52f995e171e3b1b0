"""AG-UI events: what a client is told of facts, and the rules that it holds them to."""

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.facts import Fact
from tests.outlets.ag_ui_rules import broken_rule
from tests.outlets.gists import encode_facts
from tests.outlets.stories import ON_FILE, build_turn, facts_on_file
from tests.outlets.test_round_trips import ACTS, ENDS, Act

ASK = {"actionType": "tool_approval", "prompt": "Deploy?", "expiresAt": "2026-06-10T09:00:00Z"}


def events(facts: list[Fact], *leave_out: str) -> list[dict[str, Any]]:
    encoded = encode_facts(facts, "ag-ui")
    assert broken_rule(encoded) is None
    plain = (
        {key: value for key, value in event.items() if key != "timestamp"} for event in encoded
    )
    return [event for event in plain if event["type"] not in leave_out]


def kinds(facts: list[Fact]) -> list[str]:
    return [event["type"] for event in events(facts)]


@pytest.mark.requirement("outlets.ag-ui.rules")
@pytest.mark.parametrize("name", ON_FILE)
def test_no_stream_on_file_breaks_a_rule_wherever_it_is_joined(name: str):
    facts = list(facts_on_file(name))
    for start in (0, len(facts) // 3, 2 * len(facts) // 3):
        assert broken_rule(encode_facts(facts[start:], "ag-ui")) is None


@pytest.mark.fuzz
@pytest.mark.requirement("outlets.ag-ui.rules")
@settings(max_examples=100, deadline=None)
@given(acts=st.lists(ACTS, max_size=30), start=st.integers(0, 30), end=st.sampled_from([*ENDS, ""]))
def test_no_turn_breaks_a_rule_wherever_it_is_joined_or_cut(acts: list[Act], start: int, end: str):
    facts = build_turn(*acts, *([ENDS[end]] if end else []))
    assert broken_rule(encode_facts(facts[start:], "ag-ui")) is None


@pytest.mark.requirement("outlets.ag-ui.rules")
def test_the_rules_are_broken_by_streams_that_break_them():
    run = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    text = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
    finish = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    worker = {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "s"}
    done = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}
    for bad in (
        [text],
        [run, run],
        [run, text, text],
        [run, text, finish],
        [run, finish, text],
        [run, {**text, "type": "TEXT_MESSAGE_END"}],
        [run, text, {**text, "type": "TEXT_MESSAGE_END", "subagentRunId": "s"}],
        [run, worker, done, worker],
        [run, worker, finish],
        [run, {**text, "role": None}],
    ):
        assert broken_rule(bad) is not None, bad


@pytest.mark.requirement("outlets.ag-ui.turns")
def test_a_turn_is_a_run_with_its_prompt_its_words_and_its_calls():
    facts = build_turn(
        lambda tell: tell.add_text("m", "Hel"),
        lambda tell: tell.add_text("m", "lo"),
        lambda tell: tell.end_text("m", "Hello!"),
        lambda tell: tell.start_tool("c", "look", {"at": "it"}),
        lambda tell: tell.complete_tool("c", {"seen": True}),
        lambda tell: tell.usage.update({"inputTokens": 3, "totalCostUsd": 0.5}),
        lambda tell: tell.complete_turn(structuredOutput={"ok": 1}),
    )
    messages = [{"id": "turn:prompt", "role": "user", "content": "Do it."}]
    ids = {"threadId": "thread", "runId": "turn"}
    begin = {"protocolVersion": "1.0", "input": {**ids, "messages": messages}}
    assert events(facts) == [
        {"type": "RUN_STARTED", **ids, **begin},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lo"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "!"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"at":"it"}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "c:result",
            "toolCallId": "c",
            "content": '{"seen":true}',
            "role": "tool",
            "metadata": {"factwire": {"encoding": "json"}},
        },
        {
            "type": "RUN_FINISHED",
            **ids,
            "outcome": {"type": "success"},
            "result": {"ok": 1},
            "usage": [{"inputTokens": 3}],
        },
    ]  # fmt: skip
    assert encode_facts(facts, "ag-ui")[0]["timestamp"] == 1781078400000


@pytest.mark.requirement("outlets.ag-ui.interrupts")
def test_a_question_ends_its_run_and_the_answer_starts_the_next():
    facts = build_turn(
        lambda tell: tell.add_text("m", "Shall I"),
        lambda tell: tell.start_tool("c", "deploy", {"to": "prod"}),
        lambda tell: tell.require_action("a", ASK, tool_call_id="c"),
        lambda tell: tell.resolve_action("a", "approved", reason="fine"),
        lambda tell: tell.end_text("m", "Shall I? Yes."),
        lambda tell: tell.complete_tool("c", "done"),
        lambda tell: tell.complete_turn(),
    )
    stream = events(facts)
    first = next(event for event in stream if event["type"] == "RUN_FINISHED")
    assert first["outcome"]["interrupts"] == [
        {
            "id": "a",
            "reason": "tool_approval",
            "message": "Deploy?",
            "toolCallId": "c",
            "expiresAt": "2026-06-10T09:00:00Z",
            "metadata": {"factwire": {"actionType": "tool_approval"}},
        }
    ]
    again = [event for event in stream if event["type"] == "RUN_STARTED"][1]
    payload = {"decision": "approved", "approved": True, "reason": "fine"}
    resumed = [{"interruptId": "a", "status": "resolved", "payload": payload}]
    assert again["parentRunId"] == "turn"
    assert again["input"]["resume"] == resumed
    assert [event["delta"] for event in stream if event["type"] == "TEXT_MESSAGE_CONTENT"] == [
        "Shall I",
        "? Yes.",
    ]


@pytest.mark.requirement("outlets.ag-ui.interrupts")
def test_a_run_is_resumed_with_the_answers_to_all_questions_or_with_none():
    facts = build_turn(
        lambda tell: tell.require_action("a", ASK),
        lambda tell: tell.require_action("b", ASK),
        lambda tell: tell.resolve_action("a", "denied"),
        lambda tell: tell.cancel_action("b", "expired"),
        lambda tell: tell.complete_turn(),
    )
    stream = events(facts)
    interrupts = [
        event["outcome"].get("interrupts") for event in stream if event["type"] == "RUN_FINISHED"
    ]
    ids = [[str(each["id"]) for each in cast("list[Any]", some or [])] for some in interrupts]
    assert ids == [["a"], ["a", "b"], []]
    resumed = [event["input"]["resume"] for event in stream if "resume" in event.get("input", {})]
    assert [[(each["interruptId"], each["status"]) for each in some] for some in resumed] == [
        [("a", "resolved"), ("b", "cancelled")]
    ]


@pytest.mark.requirement("outlets.ag-ui.ends")
@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("completed", {"type": "RUN_FINISHED", "outcome": {"type": "success"}}),
        ("canceled", {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}),
        ("failed", {"type": "RUN_ERROR", "message": "too slow", "code": "timeout"}),
        ("", {"type": "RUN_ERROR", "code": "stream_interrupted"}),
    ],
)
def test_a_run_ends_as_its_turn_did_or_was_cut_off(end: str, last: dict[str, Any]):
    facts = build_turn(lambda tell: tell.add_text("m", "a"), *([ENDS[end]] if end else []))
    stream = events(facts)
    assert stream[-1].items() >= last.items()
    assert [event["type"] for event in stream].count("TEXT_MESSAGE_END") == 1


@pytest.mark.requirement("outlets.hidden-reasoning")
def test_a_client_sees_that_somebody_thinks_and_only_the_summary_of_it():
    facts = build_turn(
        lambda tell: tell.add_reasoning("r", "secret thought"),
        lambda tell: tell.add_reasoning_summary("r", "Looking around."),
        lambda tell: tell.add_text("m", "a"),
        lambda tell: tell.complete_turn(),
    )
    assert "secret" not in str(events(facts))
    assert kinds(facts)[1:6] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ]


@pytest.mark.requirement("outlets.ag-ui.subagents")
def test_a_subagent_is_told_apart_and_is_suspended_while_somebody_is_asked():
    facts = build_turn(
        lambda tell: tell.start_subagent("s", title="Reader", objective="Read it."),
        lambda tell: tell.add_text("m", "mine", subagent_id="s"),
        lambda tell: tell.require_action("a", ASK, subagent_id="s"),
        lambda tell: tell.resolve_action("a", "approved"),
        lambda tell: tell.end_subagent("s", "subagent.completed", summary="read"),
        lambda tell: tell.complete_turn(),
    )
    snapshots = events(facts, "ACTIVITY_SNAPSHOT")
    of_it = [event for event in snapshots if event.get("subagentRunId") == "s"]
    assert [event["type"] for event in of_it] == [
        "SUBAGENT_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "SUBAGENT_FINISHED",
        "SUBAGENT_STARTED",
        "SUBAGENT_FINISHED",
    ]
    assert (of_it[0]["name"], of_it[0]["description"]) == ("Reader", "Read it.")
    assert of_it[4]["outcome"] == {"type": "suspended"}
    assert of_it[6]["result"] == "read"


@pytest.mark.requirement("outlets.ag-ui.state")
def test_shared_state_is_told_as_state_and_nothing_else_of_a_projection():
    patch = [
        {"op": "replace", "path": "/shared/count", "value": 2},
        {"op": "move", "path": "/shared/a", "from": "/shared/b"},
        {"op": "replace", "path": "/runtime/status", "value": "failed"},
    ]
    facts = build_turn(
        lambda tell: tell.add_fact("state.snapshot", {"state": {"count": 1}}),
        lambda tell: tell.add_fact("state.delta", {"patch": patch}),
        lambda tell: tell.complete_turn(),
    )
    assert [event for event in events(facts) if event["type"].startswith("STATE")] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"count": 1}},
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "replace", "path": "/count", "value": 2},
                {"op": "move", "path": "/a", "from": "/b"},
            ],
        },
    ]


@pytest.mark.requirement("outlets.notes")
def test_things_are_activities_and_news_are_custom_events():
    facts = build_turn(
        lambda tell: tell.add_fact("artifact.changed", {"title": "Plan"}, artifact_id="x"),
        lambda tell: tell.add_fact("queue.changed", {"status": "delivered"}),
        lambda tell: tell.add_fact("session.updated", {"metadata": {"of": "no client"}}),
        lambda tell: tell.complete_turn(),
    )
    stream = events(facts)[1:-1]
    assert [(event["type"], event.get("activityType") or event["name"]) for event in stream] == [
        ("ACTIVITY_SNAPSHOT", "factwire.artifact"),
        ("CUSTOM", "factwire.queue"),
    ]


@pytest.mark.requirement("outlets.ag-ui.interrupts")
def test_a_stream_that_ends_while_somebody_is_asked_ends_with_the_question():
    silent = build_turn(lambda tell: tell.require_action("a", ASK))
    assert [event["outcome"]["type"] for event in events(silent)[1:]] == ["interrupt"]
    spoken = build_turn(
        lambda tell: tell.require_action("a", ASK), lambda tell: tell.add_text("m", "Meanwhile")
    )
    last = events(spoken)[-1]
    assert [each["id"] for each in last["outcome"]["interrupts"]] == ["a"]
