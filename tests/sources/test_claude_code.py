"""Claude Code's lines: what recordings do not show."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.projection import project
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import FOLDER, facts_of, screen_of

SOURCE = find_source("claude-code")
PROMPT: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "go"}}
INIT: dict[str, Any] = {"type": "system", "subtype": "init", "model": "m", "session_id": "s"}
DONE: dict[str, Any] = {"type": "result", "subtype": "success", "is_error": False}
AT = "2026-11-15T06:01:51.139Z"


def facts_from(*lines: dict[str, Any]) -> list[Fact]:
    encoded = [msgspec.json.encode(line) + b"\n" for line in lines]
    facts = list(convert_recording(SOURCE, encoded, thread_id="t"))
    assert verify(facts) == []
    return facts


def read_recording(name: str) -> list[Fact]:
    return facts_of(FOLDER / "claude-code" / f"{name}.jsonl")


def payloads_of(message_id: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"id": message_id, "role": "assistant", "model": "m", "content": list(blocks)}
    return {"type": "assistant", "message": message, "timestamp": AT, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": args}


def gave(call_id: str, content: Any = "ok", **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    block |= {name: fields.pop(name) for name in ("is_error",) if name in fields}
    return {"type": "user", "message": {"content": [block]}, "timestamp": AT, **fields}


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def asks(request_id: str, call_id: str, **fields: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": call_id, **fields}
    return {"type": "control_request", "request_id": request_id, "request": request}


def answers(request_id: str, **answer: Any) -> dict[str, Any]:
    response = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}


def classes(facts: list[Fact], *families: str) -> list[str]:
    return [f.event_class or "" for f in facts if (f.event_class or "").startswith(families)]


def one(facts: list[Fact], event_class: str) -> Fact:
    (found,) = [fact for fact in facts if fact.event_class == event_class]
    return found


@pytest.mark.requirement("sources.claude-code.parts")
def test_lines_of_one_message_are_parts_of_it_and_none_replaces_another():
    lines = (
        payloads_of("a", text("one ")),
        payloads_of("a", call("c")),
        payloads_of("a", text("two")),
    )
    facts = facts_from(PROMPT, INIT, *lines, gave("c"), DONE)
    assert screen_of(facts)["conversation"] == [["user", "go"], ["assistant", "one two"]]
    assert len(classes(facts, "model.requested")) == 1


@pytest.mark.requirement("sources.claude-code.parts")
@pytest.mark.parametrize(
    "name", ["text", "approval", "edit", "two-turns", "question", "plan", "qwen-code"]
)
def test_a_stream_shows_the_same_with_its_pieces_and_without(name: str):
    path = FOLDER / "claude-code" / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if b'"type":"stream_event"' not in line]
    assert len(whole) < len(lines)
    assert screen_of(facts_of(path, whole)) == screen_of(facts_of(path))


@pytest.mark.requirement("sources.claude-code.turns")
def test_a_second_init_before_a_result_says_that_the_first_turn_was_cut():
    facts = facts_from(
        INIT, payloads_of("a", text("one")), INIT, payloads_of("b", text("two")), DONE
    )
    assert classes(facts, "turn.started", "turn.failed", "turn.completed") == [
        "turn.started",
        "turn.failed",
        "turn.started",
        "turn.completed",
    ]
    assert one(facts, "turn.failed").payload["failureCategory"] == "stream_interrupted"


@pytest.mark.requirement("sources.claude-code.turns")
def test_a_process_tells_each_turn_its_own_cost():
    first, second = {**DONE, "total_cost_usd": 0.5}, {**DONE, "total_cost_usd": 0.75}
    facts = facts_from(PROMPT, INIT, first, PROMPT, INIT, second)
    costs = [f.payload["totalCostUsd"] for f in facts if f.event_class == "cost.recorded"]
    assert costs == [0.5, 0.25]


def result_with(total: float, *, turn: int, **models: dict[str, Any]) -> dict[str, Any]:
    """A result whose sums are of the session and whose own tokens are the turn's."""
    usage = {"input_tokens": turn, "output_tokens": turn}
    return {**DONE, "total_cost_usd": total, "usage": usage, "modelUsage": models}


def used(tokens: int, cost: float, **fields: Any) -> dict[str, Any]:
    counts = {"inputTokens": tokens, "outputTokens": tokens, "cacheReadInputTokens": 2 * tokens}
    return {**counts, "cacheCreationInputTokens": 0, "costUSD": cost, **fields}


def costs_of(facts: list[Fact]) -> list[list[Any]]:
    names = ("model", "inputTokens", "cacheReadTokens", "totalCostUsd")
    found = [fact.payload for fact in facts if fact.event_class == "cost.recorded"]
    return [[payload.get(name) for name in names] for payload in found]


@pytest.mark.requirement("sources.claude-code.usage")
def test_each_model_has_its_share_of_a_turn_with_the_tokens_of_caches():
    first = result_with(0.5, turn=10, m=used(10, 0.5))
    second = result_with(0.85, turn=10, m=used(20, 0.75), small=used(1, 0.1))
    third = result_with(0.95, turn=10, m=used(30, 0.85), small=used(1, 0.1))
    facts = facts_from(PROMPT, INIT, first, PROMPT, INIT, second, PROMPT, INIT, third)
    assert costs_of(facts) == [
        ["m", 10, 20, 0.5],
        ["m", 10, 20, 0.25],
        ["small", 1, 2, 0.1],
        ["m", 10, 20, 0.1],
    ]
    ends = [fact.payload for fact in facts if fact.event_class == "turn.completed"]
    assert [end["inputTokens"] for end in ends] == [10, 11, 10]
    assert project(facts).metrics.usage.total_cost_usd == pytest.approx(0.95)


@pytest.mark.requirement("sources.claude-code.usage")
def test_sums_that_begin_anew_are_the_turns_own():
    first, second = (result_with(0.5, turn=10, m=used(10, 0.5)) for _ in range(2))
    facts = facts_from(PROMPT, INIT, first, PROMPT, INIT, second)
    assert costs_of(facts) == [["m", 10, 20, 0.5]] * 2


@pytest.mark.requirement("sources.claude-code.usage")
def test_the_window_of_a_model_that_is_listed_under_a_longer_name_is_found():
    spoken = payloads_of("a", text("hi"))
    spoken["message"]["usage"] = {"input_tokens": 90, "cache_read_input_tokens": 10}
    listed = {"m[1m]": used(10, 0.5, canonicalModel="m", contextWindow=1000)}
    facts = facts_from(PROMPT, INIT, spoken, result_with(0.5, turn=10, **listed))
    assert one(facts, "context.resolved").payload["usagePercent"] == 10.0


@pytest.mark.requirement("sources.claude-code.turns")
def test_an_empty_process_that_only_fails_is_a_turn_that_failed():
    facts = facts_from(
        {"type": "result", "subtype": "error_during_execution", "errors": ["no model"]}
    )
    assert one(facts, "turn.failed").payload["message"] == "no model"


@pytest.mark.requirement("sources.claude-code.ends")
@pytest.mark.parametrize(
    ("result", "end", "category"),
    [
        ({"subtype": "success", "is_error": False}, "turn.completed", None),
        ({"subtype": "success", "is_error": True}, "turn.failed", "provider_error"),
        ({"is_error": True, "api_error_status": 429}, "turn.failed", "rate_limited"),
        ({"is_error": True, "api_error_status": 401}, "turn.failed", "unauthorized"),
        ({"is_error": True, "api_error_status": 529}, "turn.failed", "provider_unavailable"),
        ({"subtype": "error_max_turns", "is_error": True}, "turn.failed", "turn_limit"),
        ({"subtype": "error_max_budget_usd"}, "turn.failed", "budget_limit"),
        ({"is_error": True, "terminal_reason": "aborted_tools"}, "turn.canceled", None),
    ],
)
def test_a_result_ends_its_turn_as_it_says(result: dict[str, Any], end: str, category: str | None):
    facts = facts_from(PROMPT, INIT, {"type": "result", **result})
    assert one(facts, end).payload.get("failureCategory") == category


@pytest.mark.requirement("sources.claude-code.ends")
def test_an_api_error_is_told_as_an_error_and_not_as_an_answer():
    facts = read_recording("api-error")
    assert one(facts, "runtime.error").payload["code"] == "invalid_request_error"
    assert classes(facts, "model.completed") == []


@pytest.mark.requirement("sources.claude-code.ends")
def test_a_turn_of_somebody_who_is_not_signed_in_says_so():
    refused = payloads_of(
        "a", text("Not logged in"), error="authentication_failed", is_api_error_message=True
    )
    facts = facts_from(
        PROMPT, INIT, refused, {"type": "result", "subtype": "success", "is_error": True}
    )
    assert one(facts, "turn.failed").payload["failureCategory"] == "unauthorized"


@pytest.mark.requirement("sources.claude-code.background")
def test_a_background_subagent_works_on_between_the_turns_of_its_parent():
    facts = read_recording("background-subagent")
    of_agent = [fact for fact in facts if fact.subagent_id == "ac0f4663caa469edb"]
    assert {fact.turn_id for fact in of_agent} == {"ac0f4663caa469edb:turn"}
    places = [facts.index(fact) for fact in of_agent]
    first_end = next(i for i, fact in enumerate(facts) if fact.event_class == "turn.completed")
    assert places[0] < first_end < places[-1]
    (thread,) = project(facts).subagents.threads.values()
    assert (thread.status, thread.summary) == ("completed", "There is one file.")
    assert thread.tool_call_id == "toolu_task_bg"


@pytest.mark.requirement("sources.claude-code.background")
def test_a_background_subagent_that_is_never_done_is_closed_when_the_stream_ends():
    start = system("task_started", task_id="a", tool_use_id="c", is_backgrounded=True)
    work = payloads_of("m", call("inner"), parent_tool_use_id="c", agent_id="a")
    facts = facts_from(
        PROMPT, INIT, payloads_of("n", call("c", "Agent")), start, gave("c"), work, DONE
    )
    assert classes(facts, "turn.completed", "subagent.failed") == [
        "turn.completed",
        "subagent.failed",
    ]
    failed = [f.tool_call_id for f in facts if f.event_class == "tool.failed"]
    assert failed == ["inner"]


@pytest.mark.requirement("sources.claude-code.background")
@pytest.mark.parametrize(
    ("status", "end"),
    [("completed", "task.completed"), ("failed", "task.failed"), ("stopped", "task.cancelled")],
)
def test_a_background_shell_is_a_task_that_ends_as_it_is_notified(status: str, end: str):
    start = system("task_started", task_id="b", tool_use_id="c", task_type="local_bash")
    note = system("task_notification", task_id="b", status=status, output_file="/x/b.output")
    facts = facts_from(PROMPT, INIT, start, DONE, note)
    ended = one(facts, end)
    assert ended.payload["outputFile"] == "/x/b.output"
    assert ended.payload["resultRef"].startswith("claude-code:output:")


@pytest.mark.requirement("sources.claude-code.background")
def test_a_subagent_without_task_lines_ends_with_the_call_that_started_it():
    inner = payloads_of("m", text("inside"), parent_tool_use_id="c")
    facts = facts_from(PROMPT, INIT, payloads_of("n", call("c", "Task")), inner, gave("c"), DONE)
    assert classes(facts, "subagent.") == ["subagent.started", "subagent.completed"]
    assert screen_of(facts)["conversation"] == [["user", "go"], ["assistant", ""]]


@pytest.mark.requirement("sources.claude-code.approvals")
def test_a_question_that_is_withdrawn_is_cancelled_and_not_decided():
    cancel = {"type": "control_cancel_request", "request_id": "q"}
    facts = facts_from(
        PROMPT, INIT, payloads_of("a", call("c")), asks("q", "c"), cancel, gave("c"), DONE
    )
    assert classes(facts, "action.") == ["action.required", "action.cancelled"]


@pytest.mark.requirement("sources.claude-code.approvals")
def test_a_question_that_nobody_answered_is_open_until_the_turn_ends():
    facts = facts_from(PROMPT, INIT, payloads_of("a", call("c", command="ls")), asks("q", "c"))
    assert classes(facts, "action.", "turn.failed") == [
        "action.required",
        "action.cancelled",
        "turn.failed",
    ]


@pytest.mark.requirement("sources.claude-code.approvals")
def test_an_answer_that_changes_the_input_changes_what_is_shown():
    answer = answers("q", behavior="allow", updatedInput={"command": "ls -l"})
    question = asks("q", "c", input={"command": "ls"})
    facts = facts_from(
        PROMPT, INIT, payloads_of("a", call("c", command="ls")), question, answer, gave("c"), DONE
    )
    assert screen_of(facts)["tools"][0]["args"] == {"command": "ls -l"}
    assert one(facts, "permission.resolved").payload["decision"] == "approve"


@pytest.mark.requirement("sources.claude-code.approvals")
def test_an_elicitation_is_a_question_with_its_schema():
    request = {"subtype": "elicitation", "message": "Name?", "requested_schema": {"type": "object"}}
    line = {"type": "control_request", "request_id": "e", "request": request}
    facts = facts_from(
        PROMPT, INIT, line, answers("e", action="accept", content={"name": "x"}), DONE
    )
    assert one(facts, "action.required").payload["responseSchema"] == {"type": "object"}
    assert one(facts, "action.resolved").payload["response"] == {"name": "x"}


@pytest.mark.requirement("sources.claude-code.retraction")
@pytest.mark.parametrize(
    "line",
    [
        payloads_of("b", text("new"), supersedes=["u1", "u2", "never-seen"]),
        system("model_refusal_fallback", retracted_message_uuids=["u1", "u2"], fallback_model="f"),
        {
            "type": "user",
            "message": {"content": "again"},
            "isSynthetic": True,
            "retracted_message_uuids": ["u1", "u2"],
        },
    ],
)
def test_lines_that_are_taken_back_leave_no_message_and_no_open_call(line: dict[str, Any]):
    old = payloads_of("a", text("old"), uuid="u1"), payloads_of("a", call("c"), uuid="u2")
    facts = facts_from(PROMPT, INIT, *old, line, DONE)
    spoken = [words for role, words in screen_of(facts)["conversation"] if role == "assistant"]
    assert "old" not in spoken
    assert one(facts, "tool.failed").payload["failureCategory"] == "retracted"
    assert one(facts, "messages.snapshot").payload["retractedMessageIds"] == ["a"]


@pytest.mark.requirement("sources.claude-code.retraction")
def test_a_uuid_that_nobody_knows_is_nothing_to_take_back():
    facts = facts_from(PROMPT, INIT, payloads_of("a", text("new"), supersedes=["x"]), DONE)
    assert classes(facts, "messages.snapshot", "runtime.") == []


@pytest.mark.requirement("sources.claude-code.retry")
def test_a_call_that_a_broken_request_had_begun_is_closed_by_the_retry():
    def event(**fields: Any) -> dict[str, Any]:
        return {"type": "stream_event", "event": fields}

    begun = (
        event(type="message_start", message={"id": "a"}),
        event(type="content_block_start", index=0, content_block={"type": "tool_use", "id": "c"}),
    )
    retry = system("api_retry", attempt=1, max_retries=10, error_status=429, error="rate_limit")
    facts = facts_from(PROMPT, INIT, *begun, retry, payloads_of("b", text("ok")), DONE)
    assert one(facts, "tool.failed").payload["failureCategory"] == "retracted"
    assert classes(facts, "rate_limit.hit") == ["rate_limit.hit"]


@pytest.mark.requirement("sources.claude-code.retry")
def test_what_a_cut_response_had_said_is_not_said_twice():
    facts = read_recording("cut-and-retried")
    assert classes(facts, "messages.snapshot") == ["messages.snapshot"]
    assert screen_of(facts)["conversation"][1:] == [["assistant", "This answer is whole."]]


@pytest.mark.requirement("sources.claude-code.results")
@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("user-rejected", "permission_denied"),
        ("permission-rule", "permission_denied"),
        ("automode-blocked", "permission_denied"),
        ("interrupted", "interrupted"),
        ("cancelled", "cancelled"),
        (None, "tool_error"),
    ],
)
def test_a_failed_result_says_whether_the_tool_ran(kind: str | None, category: str):
    meta = [{"id": "c", "non_execution_kind": kind}]
    result = gave("c", "no", is_error=True, tool_result_meta=meta)
    facts = facts_from(PROMPT, INIT, payloads_of("a", call("c")), result, DONE)
    assert one(facts, "tool.failed").payload["failureCategory"] == category
    denied = classes(facts, "permission.denied")
    assert len(denied) == (category == "permission_denied")


@pytest.mark.requirement("sources.claude-code.results")
@pytest.mark.parametrize("behavior", ["allow", "deny"])
def test_a_call_that_a_stop_broke_off_was_denied_only_if_somebody_did(behavior: str):
    """Claude Code says of both that the user rejected them."""
    meta = [{"id": "c", "non_execution_kind": "user-rejected"}]
    facts = facts_from(
        PROMPT,
        INIT,
        payloads_of("a", call("c")),
        asks("r", "c"),
        answers("r", behavior=behavior),
        requests("interrupt"),
        gave("c", "no", is_error=True, tool_result_meta=meta),
        DONE,
    )
    denied = behavior == "deny"
    category = "permission_denied" if denied else "interrupted"
    assert one(facts, "tool.failed").payload["failureCategory"] == category
    assert len(classes(facts, "permission.denied")) == denied


@pytest.mark.requirement("sources.claude-code.results")
def test_a_denial_is_told_once_however_often_it_is_said():
    for name in ("approval-denied", "dont-ask", "approval-stopped"):
        assert classes(read_recording(name), "permission.denied") == ["permission.denied"], name


@pytest.mark.requirement("sources.claude-code.results")
def test_files_that_a_call_read_and_changed_are_told_with_their_lines():
    facts = read_recording("edit")
    changed = [f.payload for f in facts if f.event_class == "file.changed"]
    assert [(c["path"], c["change"], c["addedLines"]) for c in changed] == [
        ("/home/dev/project/a.txt", "modified", 1),
        ("/home/dev/project/notes.md", "created", 3),
    ]
    assert one(facts, "file.read").payload == {"path": "/home/dev/project/a.txt"}


@pytest.mark.requirement("sources.claude-code.results")
def test_an_output_that_the_cli_kept_elsewhere_is_a_ref():
    payload = one(read_recording("big-output"), "tool.result").payload
    assert payload["outputRef"].startswith("claude-code:output:")
    assert payload["outputFile"].endswith(".txt")


@pytest.mark.requirement("sources.claude-code.remarks")
def test_limits_hooks_and_remarks_are_facts_of_their_own():
    limit = {"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.9}
    facts = facts_from(
        PROMPT,
        INIT,
        {"type": "rate_limit_event", "rate_limit_info": {**limit, "resetsAt": 1794754413}},
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}},
        system("hook_started", hook_id="h", hook_event="Stop"),
        system("hook_response", hook_id="h", outcome="error", exit_code=2),
        system("informational", content="careful", level="warning"),
        {"type": "auth_status", "error": "signed out"},
        {"type": "brand_new"},
        DONE,
    )
    changed = one(facts, "limit.changed").payload
    assert (changed["name"], changed["resetsAt"]) == ("five_hour", "2026-11-15T14:53:33.000Z")
    assert classes(facts, "rate_limit", "hook", "runtime") == [
        "rate_limit.hit",
        "hook.started",
        "hook.failed",
        "runtime.warning",
        "runtime.error",
        "runtime.warning",
    ]
    assert classes(facts, "model.") == []


@pytest.mark.requirement("sources.claude-code.remarks")
def test_compaction_is_told_from_its_start_to_its_end():
    assert classes(read_recording("compaction"), "context.compaction", "history") == [
        "context.compaction.started",
        "context.compaction.completed",
        "history.compacted",
    ]


@pytest.mark.requirement("sources.claude-code.queue")
def test_a_prompt_in_a_running_turn_is_the_prompt_of_the_next():
    second = {"type": "user", "message": {"content": "and then"}}
    facts = facts_from(PROMPT, INIT, second, DONE, INIT, payloads_of("a", text("ok")), DONE)
    prompts = [f.payload.get("prompt") for f in facts if f.event_class == "turn.submitted"]
    assert prompts == ["go", "and then"]
    counts = [f.payload["queuedTurnCount"] for f in facts if f.event_class == "queue.changed"]
    assert counts == [1, 0]


def requests(subtype: str, **fields: Any) -> dict[str, Any]:
    request = {"subtype": subtype, **fields}
    return {"type": "control_request", "request_id": subtype, "request": request}


@pytest.mark.requirement("sources.claude-code.remarks")
def test_what_a_host_asks_for_shows_as_what_it_changes():
    failed = {"subtype": "error", "request_id": "hook_callback", "error": "no"}
    facts = facts_from(
        PROMPT,
        INIT,
        requests("set_permission_mode", mode="plan"),
        requests("set_model", model="small"),
        requests("hook_callback", callback_id="h", input={"hook_event_name": "Stop"}),
        {"type": "control_response", "response": failed},
        requests("mcp_message"),
        requests("brand_new"),
        DONE,
    )
    assert one(facts, "policy.changed").payload == {"mode": "plan"}
    assert one(facts, "routing.decided").payload["model"] == "small"
    assert classes(facts, "hook.") == ["hook.started", "hook.failed"]
    assert len(classes(facts, "runtime.warning")) == 1


@pytest.mark.requirement("sources.claude-code.approvals")
def test_a_plan_that_leave_is_asked_for_is_the_final_plan():
    question = asks("q", "c", tool_name="ExitPlanMode", input={"plan": "1. look"})
    facts = facts_from(PROMPT, INIT, payloads_of("a", call("c", "ExitPlanMode")), question, DONE)
    assert one(facts, "plan.final").payload["text"] == "1. look"
    assert one(facts, "action.required").payload["actionType"] == "plan_decision"


@pytest.mark.requirement("sources.claude-code.results")
def test_a_tool_of_the_provider_gives_its_result_in_the_answer_and_texts_name_their_sources():
    search = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "w", "content": [{"url": "u"}]}
    cited = {**text("so"), "citations": [{"title": "Page", "url": "https://example.org"}]}
    facts = facts_from(
        PROMPT, INIT, payloads_of("a", search, found, cited, {"type": "new_block"}), DONE
    )
    assert one(facts, "tool.result").payload["output"] == [{"url": "u"}]
    assert one(facts, "evidence.changed").payload["title"] == "Page"
    assert one(facts, "runtime.warning").payload["code"] == "unknown_source_item"


@pytest.mark.requirement("sources.claude-code.remarks")
def test_progress_states_and_kept_files_are_facts_of_their_own():
    facts = facts_from(
        PROMPT,
        INIT,
        payloads_of("a", call("c")),
        {"type": "tool_progress", "tool_use_id": "c", "elapsed_time_seconds": 3},
        gave("c"),
        {"type": "tool_use_summary", "summary": "ran one", "preceding_tool_use_ids": ["c"]},
        system("session_state_changed", state="requires_action"),
        system("files_persisted", files=[{"filename": "a", "file_id": "f"}], failed=[{}]),
        system("hook_progress", hook_id="h", output="half"),
        system("status", status=None, compact_result="failed", compact_error="too long"),
        {"type": "conversation_reset", "trigger": "clear", "new_conversation_id": "n"},
        {"type": "prompt_suggestion", "suggestion": "more"},
        DONE,
    )
    assert one(facts, "tool.progress").payload["message"] == "3 s"
    assert one(facts, "artifact.created").artifact_id == "f"
    assert one(facts, "runtime.warning").payload["code"] == "file_not_persisted"
    assert one(facts, "context.compaction.failed").payload["message"] == "too long"
    assert classes(facts, "hook.") == ["hook.progress"]
    statuses = [f.payload["status"] for f in facts if f.event_class == "run.status"]
    assert statuses == ["running", "running", "waiting"]


@pytest.mark.requirement("sources.claude-code.background")
def test_a_subagent_that_fails_with_its_call_has_failed():
    inner = payloads_of("m", text("inside"), parent_tool_use_id="c")
    failed = gave("c", "broken", is_error=True)
    facts = facts_from(PROMPT, INIT, payloads_of("n", call("c", "Task")), inner, failed, DONE)
    assert one(facts, "subagent.failed").payload["message"] == "broken"


@pytest.mark.requirement("sources.claude-code.background")
def test_a_task_that_goes_on_in_the_background_is_not_ended_by_its_call():
    start = system("task_started", task_id="a", tool_use_id="c")
    moved = system("task_updated", task_id="a", patch={"is_backgrounded": True})
    done = system("task_notification", task_id="a", status="completed", summary="ok")
    facts = facts_from(
        PROMPT, INIT, payloads_of("n", call("c", "Agent")), start, moved, gave("c"), done, DONE
    )
    assert classes(facts, "subagent.", "worker.") == [
        "subagent.started",
        "worker.notification",
        "subagent.completed",
    ]
