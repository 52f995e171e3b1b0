"""The Codex app server's lines: what recordings do not show."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.projection import project
from factwire.sources import convert_recording, find_source
from tests.sources.recordings import FOLDER, facts_of, screen_of

SOURCE = find_source("codex-app-server")
MAIN: dict[str, Any] = {"threadId": "main", "turnId": "u1"}
BEGIN: dict[str, Any] = {
    "method": "turn/started",
    "params": {"threadId": "main", "turn": {"id": "u1", "status": "inProgress"}},
}


def facts_from(*lines: dict[str, Any]) -> list[Fact]:
    encoded = [msgspec.json.encode(line) + b"\n" for line in lines]
    facts = list(convert_recording(SOURCE, encoded, thread_id="t"))
    assert verify(facts) == []
    return facts


def read_recording(name: str, *, without: bytes | None = None) -> list[Fact]:
    path = FOLDER / "codex-app-server" / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    return facts_of(path, [line for line in lines if without is None or without not in line])


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {**MAIN, **params}}


def item(kind: str, item_id: str = "i", /, **fields: Any) -> list[dict[str, Any]]:
    whole = {"type": kind, "id": item_id, **fields}
    return [notice("item/started", item=whole), notice("item/completed", item=whole)]


def end(status: str = "completed", **turn: Any) -> dict[str, Any]:
    return notice("turn/completed", turn={"id": "u1", "status": status, **turn})


def asks(method: str, request_id: int = 0, **params: Any) -> dict[str, Any]:
    return {"id": request_id, "method": method, "params": {**MAIN, **params}}


def classes(facts: list[Fact], *families: str) -> list[str]:
    return [f.event_class or "" for f in facts if (f.event_class or "").startswith(families)]


def one(facts: list[Fact], event_class: str) -> Fact:
    (found,) = [fact for fact in facts if fact.event_class == event_class]
    return found


@pytest.mark.requirement("sources.codex-app-server.answers")
def test_an_answer_goes_to_the_side_that_asked_though_both_used_one_id():
    client = {"id": 0, "method": "thread/compact/start", "params": {"threadId": "main"}}
    question = asks("item/commandExecution/requestApproval", itemId="c", command="ls")
    facts = facts_from(
        BEGIN,
        *item("commandExecution", "c", status="inProgress")[:1],
        client,
        question,
        {"id": 0, "result": {}},
        {"id": 0, "result": {"decision": "accept"}},
        end(),
    )
    assert one(facts, "action.resolved").payload["decision"] == "approve"


@pytest.mark.requirement("sources.codex-app-server.answers")
@pytest.mark.parametrize(
    ("result", "decision", "reason"),
    [
        ({"decision": "accept"}, "approve", "accept"),
        ({"decision": "acceptForSession"}, "approve", "acceptForSession"),
        (
            {"decision": {"acceptWithExecpolicyAmendment": {}}},
            "approve",
            "acceptWithExecpolicyAmendment",
        ),
        ({"decision": "decline"}, "deny", "decline"),
        ({"decision": "cancel"}, "deny", "cancel"),
        ({}, "deny", None),
    ],
)
def test_each_decision_is_an_approval_or_a_denial(
    result: dict[str, Any], decision: str, reason: str | None
):
    question = asks("item/fileChange/requestApproval", itemId="c")
    facts = facts_from(BEGIN, question, {"id": 0, "result": result}, end())
    resolved = one(facts, "action.resolved").payload
    assert (resolved["decision"], resolved.get("reason")) == (decision, reason)
    assert one(facts, "permission.resolved").payload["decision"] == decision


@pytest.mark.requirement("sources.codex-app-server.answers")
def test_permissions_that_are_granted_are_an_approval_and_none_are_a_denial():
    for granted, decision in (({"network": {"enabled": True}}, "approve"), ({}, "deny")):
        question = asks("item/permissions/requestApproval", itemId="c", permissions={})
        answer = {"id": 0, "result": {"permissions": granted, "scope": "turn"}}
        facts = facts_from(BEGIN, question, answer, end())
        assert one(facts, "action.required").payload["actionType"] == "permission_grant"
        assert one(facts, "action.resolved").payload["decision"] == decision


@pytest.mark.requirement("sources.codex-app-server.answers")
def test_a_request_that_the_server_refuses_is_an_error_and_its_prompt_is_not_kept():
    start = {"id": 5, "method": "turn/start", "params": {"input": [{"type": "text", "text": "x"}]}}
    refused = {"id": 5, "error": {"code": -32600, "message": "busy"}}
    facts = facts_from(start, refused, BEGIN, end())
    assert one(facts, "runtime.error").payload["message"] == "busy"
    assert "prompt" not in one(facts, "turn.submitted").payload


@pytest.mark.requirement("sources.codex-app-server.unknown-decision")
def test_without_the_client_s_lines_a_settled_approval_has_an_unknown_decision():
    facts = read_recording("approval", without=b'{"id":0,"result":{"decision"')
    assert one(facts, "action.resolved").payload["decision"] == "unknown"
    assert screen_of(facts)["tools"][0]["state"] == "output-available"


@pytest.mark.requirement("sources.codex-app-server.prompts")
def test_without_the_client_s_lines_the_prompt_comes_from_the_user_s_item():
    facts = read_recording("text", without=b'"method":"turn/start"')
    assert one(facts, "turn.submitted").payload["prompt"] == "PLAINTEXT please"


@pytest.mark.requirement("sources.codex-app-server.prompts")
def test_what_a_person_says_into_a_running_turn_is_theirs_and_no_second_turn():
    facts = read_recording("steered")
    assert len(classes(facts, "turn.started")) == 1
    assert ["user", "Be brief: PLAINTEXT"] in screen_of(facts)["conversation"]


@pytest.mark.requirement("sources.codex-app-server.agents")
def test_another_thread_is_a_subagent_and_does_not_speak_for_the_main_one():
    facts = read_recording("subagent")
    (thread,) = project(facts).subagents.threads.values()
    assert (thread.status, thread.name) == ("completed", "count_files")
    of_agent = {f.turn_id for f in facts if f.subagent_id == thread.subagent_id}
    assert of_agent == {f"{thread.subagent_id}:turn-1"}
    assert ["assistant", "One file: a.txt."] not in screen_of(facts)["conversation"]


@pytest.mark.requirement("sources.codex-app-server.agents")
@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("completed", "subagent.completed"),
        ("shutdown", "subagent.completed"),
        ("errored", "subagent.failed"),
        ("interrupted", "subagent.failed"),
        ("running", "subagent.failed"),
    ],
)
def test_a_call_that_tells_the_state_of_agents_ends_those_that_are_done(state: str, ending: str):
    spawn = item("collabAgentToolCall", "s", tool="spawnAgent", receiverThreadIds=["a"])
    states = {"a": {"status": state, "message": "so"}}
    wait = item("collabAgentToolCall", "w", tool="wait", agentsStates=states)
    facts = facts_from(BEGIN, *spawn, *wait, end())
    assert classes(facts, "subagent.") == ["subagent.started", ending]
    last = classes(facts, "subagent.", "turn.completed")[-1]
    assert (last == "turn.completed") == (state != "running")


@pytest.mark.requirement("sources.codex-app-server.retry")
def test_what_a_cut_response_had_said_is_taken_back_when_it_is_tried_again():
    facts = read_recording("cut-and-retried")
    assert classes(facts, "messages.snapshot") == ["messages.snapshot"]
    assert screen_of(facts)["conversation"][1:] == [["assistant", "This answer is whole."]]


@pytest.mark.requirement("sources.codex-app-server.errors")
@pytest.mark.parametrize(
    ("info", "category"),
    [
        ("contextWindowExceeded", "context_limit"),
        ("usageLimitExceeded", "rate_limited"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "rate_limited"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 503}}, "provider_unavailable"),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "unauthorized"),
        ({"httpConnectionFailed": {"httpStatusCode": ["?"]}}, "provider_unavailable"),
        ("unauthorized", "unauthorized"),
        ("sandboxError", "sandbox_error"),
        ("neverHeardOf", "provider_error"),
        (None, "provider_error"),
    ],
)
def test_an_error_has_a_category_of_ours(info: Any, category: str):
    facts = facts_from(BEGIN, end("failed", error={"message": "no", "codexErrorInfo": info}))
    assert one(facts, "turn.failed").payload["failureCategory"] == category


@pytest.mark.requirement("sources.codex-app-server.items")
def test_items_that_are_tools_begin_and_end():
    facts = facts_from(
        BEGIN,
        *item("webSearch", "w", query="q", results=[{"url": "u"}]),
        *item("imageView", "v", path="a.png"),
        *item("sleep", "z", durationMs=5),
        *item("functionCallOutput", "f", name="lookup", output="x"),
        *item("imageGeneration", "g", status="completed", savedPath="b.png", revisedPrompt="cat"),
        *item("mcpToolCall", "m", server="s", tool="t", result={"isError": True, "content": []}),
        *item("dynamicToolCall", "d", tool="t", success=False),
        end(),
    )
    shown = {tool["name"]: tool["state"] for tool in screen_of(facts)["tools"]}
    assert shown == {
        "webSearch": "output-available",
        "imageView": "output-available",
        "sleep": "output-available",
        "lookup": "output-available",
        "imageGeneration": "output-available",
        "s.t": "output-error",
        "t": "output-error",
    }
    assert one(facts, "artifact.created").artifact_id == "image:g"


@pytest.mark.requirement("sources.codex-app-server.items")
def test_plans_reviews_hooks_reviewers_and_routes_are_facts_of_their_own():
    hook: dict[str, Any] = {
        "id": "h",
        "eventName": "preToolUse",
        "status": "blocked",
        "entries": [],
    }
    facts = facts_from(
        BEGIN,
        notice("item/plan/delta", itemId="p", delta="1. look"),
        *item("plan", "p", text="1. look"),
        *item("enteredReviewMode", "r", review="the diff"),
        *item("exitedReviewMode", "r", review="fine"),
        *item("hookPrompt", "k", fragments=[{"text": "mind the tests"}]),
        notice("hook/completed", run=hook),
        notice("item/autoApprovalReview/completed", review={"status": "denied"}, targetItemId="c"),
        notice("model/rerouted", fromModel="a", toModel="b", reason="highRiskCyberActivity"),
        notice("thread/brandNew"),
        notice("brand/new"),
        end(),
    )
    expected = [
        "plan.delta",
        "plan.final",
        "review.requested",
        "review.completed",
        "context.attached",
        "hook.failed",
        "permission.denied",
        "routing.fallback.applied",
        "runtime.warning",
    ]
    families = tuple(name.partition(".")[0] for name in expected)
    assert classes(facts, *families) == expected


@pytest.mark.requirement("sources.codex-app-server.items")
def test_a_patch_names_each_file_with_its_diff_and_the_turn_has_the_whole():
    facts = read_recording("patch")
    changes = [f.payload for f in facts if f.event_class == "file.changed"]
    assert [(c["path"].rpartition("/")[2], c["change"]) for c in changes] == [
        ("a.txt", "modified"),
        ("notes.md", "created"),
    ]
    assert "+two" in changes[0]["diff"]
    assert classes(facts, "artifact.diff.ready") == ["artifact.diff.ready"]


@pytest.mark.requirement("sources.codex-app-server.usage")
def test_a_turn_is_told_what_it_used_and_not_what_the_thread_has():
    def usage_notice(count: int) -> dict[str, Any]:
        return notice("thread/tokenUsage/updated", tokenUsage={"total": {"inputTokens": count}})

    again = {**BEGIN, "params": {"threadId": "main", "turn": {"id": "u2"}}}
    facts = facts_from(
        BEGIN, usage_notice(10), usage_notice(30), end(), again, usage_notice(45), end()
    )
    costs = [f.payload["inputTokens"] for f in facts if f.event_class == "cost.recorded"]
    assert costs == [30, 15]


@pytest.mark.requirement("sources.codex-app-server.usage")
@pytest.mark.parametrize("before", [[], [(100, 40)]])
def test_a_thread_that_goes_on_counts_from_where_it_was(before: list[tuple[int, int]]):
    def usage_notice(total: int, last: int) -> dict[str, Any]:
        usage = {"total": {"inputTokens": total}, "last": {"inputTokens": last}}
        return notice("thread/tokenUsage/updated", tokenUsage=usage)

    resume = {"id": 1, "method": "thread/resume", "params": {"threadId": "main"}}
    resumed = {"id": 1, "result": {"thread": {"id": "main"}}}
    known = [usage_notice(*each) for each in before]
    facts = facts_from(
        resume, resumed, *known, BEGIN, usage_notice(110, 10), usage_notice(130, 20), end()
    )
    assert one(facts, "cost.recorded").payload["inputTokens"] == 30


@pytest.mark.requirement("sources.codex-app-server.items")
def test_a_patch_is_asked_about_with_all_that_it_changes():
    change = {"path": "a.txt", "kind": {"type": "add"}, "diff": "+one"}
    [began, _] = item("fileChange", "p", status="inProgress", changes=[change])
    questions = asks("item/fileChange/requestApproval", itemId="p", reason="It must")
    question = one(facts_from(BEGIN, began, questions, end()), "action.required")
    assert question.payload["args"] == {"changes": [change]}
    assert question.payload["toolName"] == "fileChange"


@pytest.mark.requirement("sources.codex-app-server.prompts")
def test_facts_carry_the_time_that_their_notification_was_sent_at():
    began = {**BEGIN, "emittedAtMs": 1794754413000}
    assert one(facts_from(began, end()), "turn.started").created_at == "2026-11-15T14:53:33.000Z"


@pytest.mark.requirement("sources.codex-app-server.items")
def test_pieces_of_calls_stand_in_their_calls():
    change = {"path": "a.txt", "kind": {"type": "delete"}, "diff": "-one"}
    facts = facts_from(
        BEGIN,
        notice("item/fileChange/patchUpdated", itemId="p", changes=[change]),
        notice("item/commandExecution/outputDelta", itemId="c", delta="half"),
        notice("item/commandExecution/terminalInteraction", itemId="c", stdin="y"),
        *item("mcpToolCall", "m", server="s", tool="t", status="inProgress")[:1],
        notice("item/mcpToolCall/progress", itemId="m", message="half"),
        *item("fileChange", "p", status="completed", changes=[change])[1:],
        *item("fileChange", "q", status="failed", changes=[change]),
        end(),
    )
    assert one(facts, "file.changed").payload["change"] == "deleted"
    assert one(facts, "tool.output.delta").payload["delta"] == "half"
    assert classes(facts, "tool.progress") == ["tool.progress", "tool.progress"]
    states = [tool["state"] for tool in screen_of(facts)["tools"]]
    assert states == ["output-available", "output-error", "output-error", "output-error"]


@pytest.mark.requirement("sources.codex-app-server.errors")
def test_limits_and_broken_tries_are_told_as_they_stand():
    window = {"usedPercent": 90, "windowDurationMins": 300}
    reached = {"primary": window, "rateLimitReachedType": "rate_limit_reached"}
    error = {"message": "slow", "codexErrorInfo": "rateLimitExceeded"}
    facts = facts_from(
        BEGIN,
        notice("account/rateLimits/updated", rateLimits={"limitId": "x", "primary": window}),
        notice("account/rateLimits/updated", rateLimits=reached),
        notice("error", error=error, willRetry=True),
        notice("configWarning", summary="odd"),
        end(),
    )
    assert one(facts, "limit.changed").payload["utilization"] == 0.9
    assert len(classes(facts, "rate_limit.hit")) == 2
    assert one(facts, "runtime.warning").payload["message"] == "odd"
    statuses = [f.payload["status"] for f in facts if f.event_class == "run.status"]
    assert statuses == ["running", "retrying"]


@pytest.mark.requirement("sources.codex-app-server.items")
def test_thoughts_summaries_and_compaction_are_told_once():
    facts = facts_from(
        BEGIN,
        notice("item/reasoning/textDelta", itemId="r", delta="hm"),
        *item("reasoning", "r", summary=[], content=["hm"]),
        *item("reasoning", "o", summary=[], content=["well"]),
        *item("reasoning", "s", summary=["in short"], content=[]),
        notice("thread/compacted"),
        *item("contextCompaction", "k"),
        notice("thread/compacted"),
        notice("thread/name/updated", threadName="Files"),
        end(),
    )
    assert classes(facts, "reasoning.") == [
        "reasoning.delta",
        "reasoning.delta",
        "reasoning.summary",
    ]
    assert len(classes(facts, "history.compacted")) == 2
    assert one(facts, "thread.updated").payload["title"] == "Files"


@pytest.mark.requirement("sources.codex-app-server.agents")
def test_a_thread_with_a_parent_is_an_agent_and_works_in_another_turn_each_time():
    def of(thread: str, method: str, /, **params: Any) -> dict[str, Any]:
        return {"method": method, "params": {"threadId": thread, **params}}

    child: dict[str, Any] = {"id": "a", "parentThreadId": "main", "agentNickname": "Ada"}
    done = of("a", "turn/completed", turn={"id": "x", "status": "completed"})
    activity = item("subAgentActivity", "y", kind="interacted", agentThreadId="a")
    facts = facts_from(
        BEGIN,
        of("main", "thread/started", thread=child),
        of("a", "turn/started", turn={"id": "x"}),
        done,
        *activity,
        of("a", "item/started", item={"type": "userMessage", "content": [{"text": "more"}]}),
        done,
        end(),
    )
    turns = [f.turn_id for f in facts if f.event_class == "subagent.started"]
    assert turns == ["a:turn-1", "a:turn-2"]
    assert one(facts, "subagent.input").payload["message"] == "more"
    assert one(facts, "subagent.progress").turn_id == "a:turn-2"


@pytest.mark.requirement("sources.codex-app-server.agents")
def test_an_agent_that_was_done_before_its_creation_was_reported_starts_once():
    def of(thread: str, method: str, /, **params: Any) -> dict[str, Any]:
        return {"method": method, "params": {"threadId": thread, **params}}

    opened, reported = item("subAgentActivity", "y", kind="started", agentThreadId="a")
    spawned = item("collabAgentToolCall", "z", tool="spawnAgent", receiverThreadIds=["a"])
    child: dict[str, Any] = {"id": "a", "parentThreadId": "main", "agentNickname": "Ada"}
    facts = facts_from(
        BEGIN,
        opened,
        of("a", "turn/started", turn={"id": "x"}),
        of("a", "turn/completed", turn={"id": "x", "status": "completed"}),
        reported,
        *spawned,
        of("main", "thread/started", thread=child),
        end(),
    )
    assert one(facts, "subagent.started").subagent_id == "a"
    assert one(facts, "subagent.completed").subagent_id == "a"
