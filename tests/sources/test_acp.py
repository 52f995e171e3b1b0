"""The Agent Client Protocol: what recordings do not show."""

from typing import Any

import pytest

from factwire.facts import Fact
from factwire.projection import project
from tests.sources import streams
from tests.sources.odd_fields import spoil_fields
from tests.sources.recordings import FOLDER, facts_of, screen_of

Message = dict[str, Any]


def facts_from(*messages: Message) -> list[Fact]:
    return streams.facts_from("acp", *messages)


def request(number: int | str, method: str, **params: Any) -> Message:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        "params": {"sessionId": "s", **params},
    }


def result(number: int | str, **held: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": held}


def error_answer(number: int | str, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def update(named: str, session: str = "s", **held: Any) -> Message:
    params = {"sessionId": session, "update": {"sessionUpdate": named, **held}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str, kind: str = "agent_message_chunk", **held: Any) -> Message:
    return update(kind, content={"type": "text", "text": text}, **held)


def only(facts: list[Fact], event_class: str) -> list[Fact]:
    return [fact for fact in facts if fact.event_class == event_class]


PROMPT = request(0, "session/prompt", prompt=[{"type": "text", "text": "do it"}])
END = result(0, stopReason="end_turn")
CALL = update("tool_call", toolCallId="c", title="Edit a.py", kind="edit", status="pending")
DIFF = {"type": "diff", "path": "a.py", "oldText": None, "newText": "x"}
OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_always"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]
ASK = request(
    0, "session/request_permission", toolCall={"toolCallId": "c", "title": "a.py"}, options=OPTIONS
)


@pytest.mark.requirement("sources.acp.ids")
def test_each_side_numbers_its_own_requests():
    outcome = {"outcome": "selected", "optionId": "y"}
    facts = facts_from(PROMPT, CALL, ASK, result(0, outcome=outcome), chunk("done"), END)
    (answered,) = only(facts, "action.resolved")
    assert (answered.payload["decision"], screen_of(facts)["status"]) == ("approved", "completed")


@pytest.mark.requirement("sources.acp.ids")
def test_a_recording_of_the_agents_lines_alone_has_its_turns():
    facts = facts_from(chunk("done"), END)
    assert screen_of(facts)["conversation"] == [["assistant", "done"]]
    assert screen_of(facts)["status"] == "completed"


@pytest.mark.requirement("sources.acp.ids")
def test_of_a_second_session_only_one_remark_is_made():
    other = [update("agent_message_chunk", "z", content={"type": "text", "text": "no"})] * 2
    screen = screen_of(facts_from(PROMPT, *other, chunk("done"), END))
    words = [text for _, text in screen["conversation"] if text]
    assert (words, screen["warnings"]) == (["do it", "done"], ["other_session"])


@pytest.mark.requirement("sources.acp.text")
def test_text_ends_where_something_else_begins():
    thought = chunk("hm", "agent_thought_chunk")
    facts = facts_from(PROMPT, chunk("one "), chunk("two"), thought, chunk("three"), CALL, END)
    assert [fact.payload["text"] for fact in only(facts, "model.completed")] == ["one two", "three"]
    assert len(only(facts, "reasoning.completed")) == 1


@pytest.mark.requirement("sources.acp.text")
def test_a_message_that_goes_on_behind_a_call_is_still_one_message():
    done = update("tool_call_update", toolCallId="c", status="completed")
    facts = facts_from(
        PROMPT, chunk("one ", messageId="m"), CALL, done, chunk("two", messageId="m"), END
    )
    assert screen_of(facts)["conversation"] == [["user", "do it"], ["assistant", "one two"]]


@pytest.mark.requirement("sources.acp.text")
def test_a_session_that_is_loaded_tells_its_history_and_no_turn():
    facts = facts_from(
        request(1, "session/load"),
        chunk("hel", "user_message_chunk"),
        chunk("lo", "user_message_chunk"),
        chunk("hi"),
        CALL,
        result(1),
    )
    (loaded,) = only(facts, "history.window.loaded")
    assert [row["text"] for row in loaded.payload["messages"]] == ["hello", "hi"]
    assert only(facts, "turn.started") == []
    assert screen_of(facts)["conversation"] == [["user", "hello"], ["assistant", "hi"]]


@pytest.mark.requirement("sources.acp.text")
def test_what_is_not_text_is_attached_or_made_and_never_said():
    link = {"type": "resource_link", "name": "a.py", "uri": "file:///a.py"}
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    prompt = request(0, "session/prompt", prompt=[{"type": "text", "text": "do it"}, link])
    facts = facts_from(prompt, update("agent_message_chunk", content=image), END)
    assert only(facts, "context.attached")[0].payload["title"] == "a.py"
    assert only(facts, "artifact.changed")[0].payload["mediaType"] == "image/png"
    assert only(facts, "model.delta") == []


@pytest.mark.requirement("sources.acp.tools")
def test_a_diff_changes_a_file_when_its_call_is_completed():
    proposed = update("tool_call_update", toolCallId="c", status="in_progress", content=[DIFF])
    done = update("tool_call_update", toolCallId="c", status="completed", content=[DIFF])
    assert only(facts_from(PROMPT, CALL, proposed, END), "file.changed") == []
    (changed,) = only(facts_from(PROMPT, CALL, proposed, done, done, END), "file.changed")
    assert (changed.payload["path"], changed.payload["change"]) == ("a.py", "created")


def ends(**held: Any) -> Message:
    return update("tool_call_update", toolCallId="c", **held)


PREVIEW = [{"type": "content", "content": {"type": "text", "text": "because I must"}}]


@pytest.mark.requirement("sources.acp.calls")
def test_what_an_update_leaves_out_is_unchanged():
    shown = ends(content=[DIFF], title="Write a.py")
    facts = facts_from(PROMPT, CALL, shown, ends(status="completed", rawOutput="ok"), END)
    (changed,) = only(facts, "file.changed")
    assert (changed.payload["path"], changed.payload["addedLines"]) == ("a.py", 1)


@pytest.mark.requirement("sources.acp.calls")
@pytest.mark.parametrize("end", [{}, {"content": []}, {"content": None}])
def test_what_a_call_shows_before_it_runs_is_the_question_and_no_output(end: Message):
    question_line = request(
        0,
        "session/request_permission",
        toolCall={"toolCallId": "c", "content": PREVIEW},
        options=OPTIONS,
    )
    yes = result(0, outcome={"outcome": "selected", "optionId": "y"})
    shown = ends(content=PREVIEW)
    facts = facts_from(
        PROMPT, CALL, shown, question_line, yes, ends(status="completed", **end), END
    )
    assert only(facts, "tool.output.delta") == []
    (done,), (question,) = only(facts, "tool.result"), only(facts, "action.required")
    assert "output" not in done.payload
    assert question.payload["detail"] == "because I must"
    assert [each.detail for each in project(facts).actions.values()] == ["because I must"]


@pytest.mark.requirement("sources.acp.calls")
def test_a_call_that_was_denied_reads_denied_though_nothing_more_is_said_of_it():
    no = result(0, outcome={"outcome": "selected", "optionId": "n"})
    (failed,) = only(facts_from(PROMPT, CALL, ASK, no, END), "tool.failed")
    assert failed.payload["failureCategory"] == "permission_denied"


@pytest.mark.requirement("sources.acp.calls")
def test_a_command_in_the_agents_own_terminal_has_its_name_output_and_exit_code():
    facts = facts_of(FOLDER / "acp" / "codex-acp.jsonl")
    (failed,) = only(facts, "tool.failed")
    (progress,) = only(facts, "tool.progress")
    stated = [failed.payload[name] for name in ("failureCategory", "exitCode", "output")]
    assert stated == ["nonzero_exit", 3, "out\n"]
    assert progress.payload == {"agentToolName": "exec_command"}


@pytest.mark.requirement("sources.acp.calls")
def test_the_model_and_what_it_used_are_told():
    facts = facts_of(FOLDER / "acp" / "codex-acp.jsonl")
    (chosen,), (cost,) = only(facts, "routing.decided"), only(facts, "cost.recorded")
    assert chosen.payload == {"model": "gpt-5"}
    assert (cost.payload["model"], cost.payload["inputTokens"]) == ("gpt-5", 100)


@pytest.mark.requirement("sources.acp.calls")
def test_the_data_of_an_error_is_kept():
    failed = error_answer(0, -32603, "Internal error")
    failed["error"]["data"] = {"details": "no such model"}
    (end,) = only(facts_from(PROMPT, failed), "turn.failed")
    assert end.payload["errorData"] == {"details": "no such model"}


@pytest.mark.requirement("sources.acp.calls")
def test_sums_that_do_not_grow_are_a_prompts_own():
    usage = {"inputTokens": 5, "outputTokens": 1}
    ended = result(0, stopReason="end_turn", usage=usage)
    facts = facts_from(PROMPT, ended, PROMPT, ended)
    assert [each.payload["inputTokens"] for each in only(facts, "cost.recorded")] == [5, 5]


@pytest.mark.requirement("sources.acp.tools")
def test_content_that_is_sent_whole_each_time_is_told_once():
    def grown(text: str) -> Message:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        return update("tool_call_update", toolCallId="c", status="in_progress", content=content)

    facts = facts_from(PROMPT, CALL, grown("a"), grown("ab"), grown("ab"), END)
    assert [fact.payload["delta"] for fact in only(facts, "tool.output.delta")] == ["a", "b"]


@pytest.mark.requirement("sources.acp.tools")
@pytest.mark.parametrize("order", [("output", "exit"), ("exit", "output"), ("exit",)])
def test_a_terminal_is_a_command_with_an_output_and_an_exit_code(order: tuple[str, ...]):
    question = {
        "output": [
            request("b", "terminal/output", terminalId="t1"),
            result("b", output="ok", truncated=False),
        ],
        "exit": [
            request("c", "terminal/wait_for_exit", terminalId="t1"),
            result("c", exitCode=2),
        ],
    }
    facts = facts_from(
        PROMPT,
        request("a", "terminal/create", command="make", args=["test"], cwd="/srv"),
        result("a", terminalId="t1"),
        *[message for name in order for message in question[name]],
        request("d", "terminal/release", terminalId="t1"),
        result("d"),
        END,
    )
    assert only(facts, "command.started")[0].payload["command"] == "make test"
    assert len(only(facts, "command.output")) == order.count("output")
    (exited,) = only(facts, "command.exited")
    assert exited.payload["exitCode"] == 2


@pytest.mark.requirement("sources.acp.tools")
def test_a_command_that_still_runs_is_closed_with_its_turn_or_its_stream():
    begun = [PROMPT, request("a", "terminal/create", command="x"), result("a", terminalId="t1")]
    for facts in (facts_from(*begun, END), facts_from(*begun)):
        assert only(facts, "command.exited")[0].payload["status"] == "interrupted"


@pytest.mark.requirement("sources.acp.approvals")
@pytest.mark.parametrize(
    ("answer", "event_class", "decision"),
    [
        ({"outcome": "selected", "optionId": "y"}, "action.resolved", "approved"),
        ({"outcome": "selected", "optionId": "n"}, "action.resolved", "denied"),
        ({"outcome": "cancelled"}, "action.cancelled", None),
        ({"outcome": "selected", "optionId": "?"}, "action.cancelled", None),
    ],
)
def test_an_option_means_what_its_kind_says(
    answer: Message, event_class: str, decision: str | None
):
    broke = update("tool_call_update", toolCallId="c", status="failed")
    facts = facts_from(PROMPT, ASK, result(0, outcome=answer), broke, END)
    (closed,) = only(facts, event_class)
    assert closed.payload.get("decision") == decision
    category = "permission_denied" if decision == "denied" else "tool_error"
    assert only(facts, "tool.failed")[0].payload["failureCategory"] == category


@pytest.mark.requirement("sources.acp.approvals")
@pytest.mark.parametrize(
    ("action", "event_class"),
    [
        ("accept", "action.resolved"),
        ("decline", "action.resolved"),
        ("cancel", "action.cancelled"),
    ],
)
def test_an_elicitation_is_asked_and_answered(action: str, event_class: str):
    question = request(
        "q", "elicitation/create", message="Which?", requestedSchema={"type": "object"}
    )
    facts = facts_from(
        PROMPT, question, result("q", action=action, content={"colour": "blue"}), END
    )
    assert only(facts, "action.required")[0].payload["prompt"] == "Which?"
    assert len(only(facts, event_class)) == 1


@pytest.mark.requirement("sources.acp.ends")
@pytest.mark.parametrize(
    ("end", "event_class", "category"),
    [
        (result(0, stopReason="max_tokens"), "turn.failed", "output_too_long"),
        (result(0, stopReason="max_turn_requests"), "turn.failed", "turn_limit_reached"),
        (result(0, stopReason="refusal"), "turn.failed", "refused"),
        (result(0, stopReason="cancelled"), "turn.canceled", None),
        (result(0, stopReason="of another day"), "turn.completed", None),
        (error_answer(0, -32603, "broke"), "turn.failed", "provider_error"),
        (error_answer(0, -32000, "who?"), "turn.failed", "unauthorized"),
        (error_answer(0, -32800, "stopped"), "turn.canceled", None),
    ],
)
def test_a_turn_ends_as_the_response_to_its_prompt_says(
    end: Message, event_class: str, category: str | None
):
    facts = facts_from(PROMPT, chunk("so far"), end)
    (ended,) = only(facts, event_class)
    assert ended.payload.get("failureCategory") == category


@pytest.mark.requirement("sources.acp.ends")
def test_an_error_to_another_request_ends_no_turn():
    facts = facts_from(
        PROMPT, request(5, "session/set_mode"), error_answer(5, -32602, "no"), chunk("x"), END
    )
    assert screen_of(facts)["status"] == "completed"
    assert screen_of(facts)["warnings"] == ["request_failed"]


@pytest.mark.requirement("sources.acp.costs")
def test_a_turn_is_told_its_share_of_what_the_session_has_used():
    def turn(number: int, tokens: int, cost: float) -> list[Message]:
        usage = {"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1}
        return [
            request(number, "session/prompt", prompt=[]),
            update("usage_update", used=1, size=9, cost={"amount": cost, "currency": "USD"}),
            result(number, stopReason="end_turn", usage=usage),
        ]

    facts = facts_from(*turn(0, 10, 0.25), *turn(1, 30, 1.0))
    ends = [fact.payload for fact in only(facts, "turn.completed")]
    assert [(end["inputTokens"], end["totalCostUsd"]) for end in ends] == [(10, 0.25), (20, 0.75)]


@pytest.mark.requirement("sources.acp.costs")
def test_what_a_loaded_session_had_used_before_is_nobodys_share():
    usage = {"inputTokens": 500, "outputTokens": 1}
    cost = update("usage_update", used=1, size=9, cost={"amount": 7, "currency": "USD"})
    end = result(0, stopReason="end_turn", usage=usage)
    facts = facts_from(request(1, "session/load"), result(1), PROMPT, cost, end)
    (ended,) = only(facts, "turn.completed")
    assert ended.payload == {"stopReason": "end_turn"}


@pytest.mark.requirement("sources.acp.signals")
def test_plans_modes_and_commands_are_told_and_unheard_updates_are_warnings():
    entries = [{"content": "read", "status": "completed", "priority": "high"}]
    facts = facts_from(
        update("current_mode_update", currentModeId="ask"),
        PROMPT,
        update("plan", entries=[*entries, {"content": "write", "status": "pending"}]),
        update("plan", entries=entries),
        update("brand_new"),
        END,
    )
    assert only(facts, "plan.delta")[0].payload["text"] == "[x] read\n[ ] write"
    assert only(facts, "plan.final")[0].payload["text"] == "[x] read"
    assert only(facts, "session.updated")[0].payload["mode"] == "ask"
    assert screen_of(facts)["warnings"] == ["unknown_source_item"]


@pytest.mark.requirement("sources.acp.signals")
def test_a_cancel_is_a_wish_until_the_response_says_that_it_was_done():
    facts = facts_of(FOLDER / "acp" / "cancel.jsonl")
    wished = [fact for fact in only(facts, "run.status") if fact.payload["status"] == "cancelling"]
    (ended,) = only(facts, "turn.canceled")
    assert [fact.turn_id for fact in wished] == [ended.turn_id]


ODD_STREAM = [
    request(1, "session/load"),
    chunk("old", "user_message_chunk"),
    result(1),
    PROMPT,
    chunk("so", messageId="m"),
    CALL,
    ASK,
    result(0, outcome={"outcome": "selected", "optionId": "n"}),
    request("a", "terminal/create", command="make", args=["x"]),
    result("a", terminalId="t1"),
    request("b", "terminal/output", terminalId="t1"),
    result("b", output="ok", exitStatus={"exitCode": 0}),
    request("q", "elicitation/create", message="Which?", requestedSchema={}),
    result("q", action="accept", content={"a": 1}),
    update("tool_call_update", toolCallId="c", status="completed", content=[DIFF]),
    update("plan_update", plan={"type": "items", "planId": "p", "entries": [{"content": "x"}]}),
    update("config_option_update", configOptions=[{"id": "model", "currentValue": "m"}]),
    update("usage_update", used=1, size=2, cost={"amount": 1, "currency": "USD"}),
    result(0, stopReason="end_turn", usage={"inputTokens": 1, "outputTokens": 1}),
]


@pytest.mark.fuzz
@pytest.mark.requirement("sources.recordings.hostile")
def test_no_field_of_a_message_can_break_the_facts():
    for messages in spoil_fields(ODD_STREAM):
        facts_from(*messages)
