"""Claude Code itself, against a fake model: what it does, and what becomes of it on the thread."""

import json
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import AssetInput
from factwire.projection.actions import Action
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.sources.claude_code.live import agent
from tests.agents.conftest import Aimock, Drive
from tests.agents.driving import AGENT, THREAD, Answer, TurnOutcome
from tests.agents.homes import AgentHome
from tests.agents.replies import calls, costing, cut_reply, refuses, says, slowly

pytestmark = pytest.mark.asyncio

DOT = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def claude(**options: Any):
    return agent(AgentSettings(kind="claude-code", options=options))


def bash(command: str, call_id: str, **match: Any) -> dict[str, Any]:
    about = {"command": command, "description": "do it"}
    return calls("Bash", about, call_id=call_id, **match)


def hook_after_commands(home: AgentHome) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hooked"}]}
    path = Path(home.environment["CLAUDE_CONFIG_DIR"], "settings.json")
    path.write_text(json.dumps({"hooks": {"PostToolUse": [hook]}}), "utf-8")


def states(outcome: TurnOutcome) -> dict[str, str | None]:
    return {name.partition(":")[0]: tool.state for name, tool in outcome.state.tools.items()}


@pytest.mark.requirement("sources.claude-code.usage")
async def test_equal_turns_of_a_session_cost_the_same(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    agent_home.anthropic(aimock(costing(says("One word."), tokens_in=1000, tokens_out=500)))
    async with driven(claude()) as driving:
        outcomes = [await driving.turn("Say one word.") for _ in range(3)]

    costs = [each.payloads_of("cost.recorded") for each in outcomes]
    spent = [[row["totalCostUsd"] for row in rows] for rows in costs]
    assert spent[0][0] > 0
    assert spent == [spent[0]] * 3
    usage = outcomes[-1].state.metrics.usage
    assert (usage.input_tokens, usage.output_tokens) == (3000, 1500)
    assert usage.total_cost_usd == pytest.approx(3 * spent[0][0])
    [context] = outcomes[-1].payloads_of("context.resolved")
    assert (context["totalTokens"], context["contextWindow"]) == (1500, 1_000_000)


@pytest.mark.requirement("sources.claude-code.live.session")
async def test_a_turn_answers_and_the_next_ones_go_on_with_the_session(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    model = aimock(
        says("<summary>We spoke of green.</summary>", user_message="detailed summary"),
        says("Green it is.", reasoning="A colour.", user_message="favourite"),
        says("A dot.", user_message="picture"),
        says("A new start.", user_message="still there"),
    )
    agent_home.anthropic(model)
    async with driven(claude()) as driving:
        first = await driving.turn("My favourite colour is green.")
        known = first.state.agent_sessions
        ref = await driving.runtime.blobs.put(DOT, kind="artifact")
        dot = AssetInput(kind="image", ref=ref.ref, media_type="image/png")
        second = await driving.turn("What is on the picture?", input=(dot,))
        session = second.state.agent_sessions
        compacted = await driving.turn("/compact")
        shutil.rmtree(Path(agent_home.environment["CLAUDE_CONFIG_DIR"], "projects"))
        third = await driving.turn("Are you still there?")

    assert (first.status, second.status, third.status) == ("completed",) * 3
    assert first.facts_of_class("reasoning.delta")
    assert known == session
    assert [compacted.status, len(compacted.payloads_of("history.compacted"))] == ["completed", 1]
    question = next(str(body) for body in model.bodies("messages") if "picture?" in str(body))
    assert "My favourite colour is green." in question
    assert "[Image: source:" in question
    assert [row["code"] for row in third.payloads_of("runtime.warning")] == [
        "session_not_continued"
    ]
    assert third.answers == ["Green it is.", "A dot.", "A new start."]
    assert third.state.agent_sessions != session


@pytest.mark.requirement("sources.claude-code.live.asks")
async def test_what_it_asks_is_decided_by_people_and_what_was_allowed_is_done(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    made = agent_home.workspace / "made.txt"
    hook_after_commands(agent_home)
    agent_home.anthropic(
        aimock(
            says("All tried.", tool_call_id="toolu_write"),
            calls(
                "Write",
                {"file_path": str(agent_home.workspace / "notes.md"), "content": "# Notes\n"},
                call_id="toolu_write",
                tool_call_id="toolu_no",
            ),
            bash("touch forbidden.txt", "toolu_no", tool_call_id="toolu_yes"),
            bash("touch made.txt && echo made", "toolu_yes", text="I make it."),
        )
    )
    question: list[Action] = []

    def decide(action: Action) -> Answer:
        question.append(action)
        if "forbidden" in (action.shown or ""):
            return {"decision": "deny", "reason": "Not that one."}
        return "approve"

    async with driven(claude()) as driving:
        outcome = await driving.turn("Make the files.", decide=decide)

    assert outcome.status == "completed"
    assert states(outcome) == {
        "toolu_yes": "output-available",
        "toolu_no": "output-error",
        "toolu_write": "output-available",
    }
    assert made.exists()
    assert not (agent_home.workspace / "forbidden.txt").exists()
    assert [(each.tool_name, each.command, each.cwd) for each in question] == [
        ("Bash", "touch made.txt && echo made", str(agent_home.workspace)),
        ("Bash", "touch forbidden.txt", str(agent_home.workspace)),
        ("Write", None, str(agent_home.workspace)),
    ]
    assert "# Notes" in (question[2].shown or "")
    assert all(action.applied for action in outcome.state.actions.values())
    [denied] = outcome.payloads_of("tool.failed")
    assert denied["failureCategory"] == "permission_denied"
    assert "Not that one." in denied["message"]
    [changed] = outcome.payloads_of("file.changed")
    assert (Path(changed["path"]).name, changed["change"]) == ("notes.md", "created")
    assert changed["diff"].endswith("notes.md\n@@ -0,0 +1 @@\n+# Notes\n")
    [version] = outcome.state.artifacts[f"file:{changed['path']}"].versions
    assert version.diff == changed["diff"]
    assert outcome.answers == ["I make it.", "All tried."]
    assert [row["hookEvent"] for row in outcome.payloads_of("hook.completed")] == ["PostToolUse"]


@pytest.mark.requirement("sources.claude-code.live.questions")
async def test_questions_are_answered_and_plans_decided(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    question = {
        "question": "Which colour?",
        "header": "Colour",
        "options": [
            {"label": "Blue", "description": "calm"},
            {"label": "Red", "description": "loud"},
        ],
        "multiSelect": False,
    }
    model = aimock(
        says("The plan is taken.", tool_call_id="toolu_plan"),
        calls("ExitPlanMode", {"plan": "1. paint"}, call_id="toolu_plan", tool_call_id="toolu_ask"),
        calls("AskUserQuestion", {"questions": [question]}, call_id="toolu_ask"),
    )
    agent_home.anthropic(model)
    questions: list[Action] = []

    def decide(action: Action) -> Answer:
        questions.append(action)
        if action.action_type == "plan_decision":
            return "approve"
        return {"decision": "answer", "response": {"Which colour?": "Blue"}}

    async with driven(claude(permission_mode="plan")) as driving:
        outcome = await driving.turn("Paint the fence.", decide=decide)

    assert outcome.status == "completed"
    assert [action.action_type for action in questions] == ["structured_input", "plan_decision"]
    schema = questions[0].response_schema or {}
    assert schema["properties"]["Which colour?"]["examples"] == ["Blue", "Red"]
    assert states(outcome) == {"toolu_ask": "output-available", "toolu_plan": "output-available"}
    assert '"Which colour?"="Blue"' in str(outcome.payloads_of("tool.result")[0])
    assert outcome.answers == ["The plan is taken."]


@pytest.mark.requirement("sources.claude-code.live.end")
@pytest.mark.requirement("sources.claude-code.live.steer")
async def test_the_turn_waits_for_whoever_works_in_the_background_and_can_be_steered(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    task = {
        "description": "Count the files",
        "prompt": "SUBWORK: count the files here",
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    model = aimock(
        says("There is one file.", user_message="SUBWORK", has_tool_result=True),
        slowly(bash("ls -1", "toolu_ls", user_message="SUBWORK"), milliseconds=60),
        says("It is back.", user_message="task-notification"),
        says("And hello to you.", user_message="say hello"),
        says("It works in the background.", user_message="Delegate", has_tool_result=True),
        calls("Agent", task, call_id="toolu_agent", user_message="Delegate"),
    )
    agent_home.anthropic(model)
    async with driven(claude()) as driving:
        turn = await driving.submit("Delegate the counting.")
        await driving.wait_for_fact("subagent.started")
        await driving.runtime.steer(THREAD, "Now say hello.", steer_id="steer")
        outcome = await driving.wait_for_end(turn)

    assert outcome.status == "completed"
    assert len(outcome.facts_of_class("turn.completed")) == 1
    [agent_told] = outcome.state.subagents.threads.values()
    assert agent_told.status == "completed"
    assert states(outcome) == {"toolu_agent": "output-available", "toolu_ls": "output-available"}
    assert {"It is back.", "And hello to you."} <= set(outcome.answers)
    assert [steer.status for steer in outcome.state.queue.steers] == ["delivered"]


@pytest.mark.requirement("sources.claude-code.live.stop")
async def test_a_stop_is_claudes_own_and_the_conversation_goes_on_after_it(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    model = aimock(
        slowly(says("This takes its time, and then some more of it.", user_message="slow one")),
        bash("touch never.txt", "toolu_never", user_message="run it"),
    )
    agent_home.anthropic(model)
    async with driven(claude()) as driving:
        turn = await driving.submit("Take the slow one.")
        await driving.wait_for_fact("model.delta", 2)
        stopped = await driving.cancel(turn)
        turn = await driving.submit("Now run it.")
        await driving.next_action()
        question = await driving.cancel(turn)
        processes = driving.runtime.resources.processes
        assert processes is not None
        assert await processes.reap() == []

    assert (stopped.status, question.status) == ("canceled", "canceled")
    assert "cancelling" in [row["status"] for row in stopped.payloads_of("run.status")]
    assert [action.status for action in question.state.actions.values()] == ["cancelled"]
    assert not (agent_home.workspace / "never.txt").exists()
    assert "Take the slow one." in str(model.bodies("messages")[-1])


@pytest.mark.requirement("sources.claude-code.live.failures")
async def test_requests_that_fail_are_told_and_an_answer_that_broke_off_is_taken_back(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    broken = says("This one will break off in the middle.", user_message="Try", sequence_index=1)
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="Try", sequence_index=0),
        slowly(cut_reply(broken, after=6), milliseconds=60),
        says("This one is whole.", user_message="Try"),
        refuses(400, "bad request made", "invalid_request_error", user_message="Fail"),
    )
    agent_home.anthropic(model)
    async with driven(claude()) as driving:
        tried = await driving.turn("Try it.")
        failed = await driving.turn("Fail it.")

    assert (tried.status, failed.status) == ("completed", "failed")
    assert tried.facts_of_class("rate_limit.hit")
    assert tried.payloads_of("messages.snapshot")[0]["retractedMessageIds"]
    assert tried.answers == ["This one is whole."]
    assert failed.failure["failureCategory"] == "request_rejected"
    assert "bad request made" in failed.failure["message"]


@pytest.mark.requirement("sources.claude-code.live.rules")
@pytest.mark.requirement("sources.claude-code.live.always")
async def test_rules_hold_whatever_claudes_own_settings_say(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
):
    secret = agent_home.workspace / "secret.txt"
    secret.write_text("nobody's business")
    model = aimock(
        says("Done with it.", tool_call_id="toolu_again"),
        bash("touch asked.txt", "toolu_again", tool_call_id="toolu_asked"),
        bash("touch asked.txt", "toolu_asked", tool_call_id="toolu_ruled"),
        bash("touch ruled.txt", "toolu_ruled", tool_call_id="toolu_read"),
        calls("Read", {"file_path": str(secret)}, call_id="toolu_read"),
    )
    agent_home.anthropic(model)
    policy = Policy.of(allow=["Bash(touch ruled.txt)"], deny=["Read(secret.txt)"])
    question: list[Action] = []

    def decide(action: Action) -> Answer:
        question.append(action)
        return {"decision": "approve", "always": "thread"}

    async with driven(claude(), policy=policy) as driving:
        outcome = await driving.turn("Look around.", decide=decide)

    assert outcome.status == "completed"
    assert states(outcome) == {
        "toolu_read": "output-error",
        "toolu_ruled": "output-available",
        "toolu_asked": "output-available",
        "toolu_again": "output-available",
    }
    [denied] = outcome.payloads_of("permission.denied")
    assert (denied["rule"], denied["reasonCode"]) == ("Read(secret.txt)", "rule_deny")
    assert "nobody's business" not in str(outcome.facts)
    assert [row["rule"] for row in outcome.payloads_of("permission.evaluated")][
        1
    ] == "Bash(touch ruled.txt)"
    assert [action.command for action in question] == ["touch asked.txt"]
    again = list(outcome.state.actions.values())[1]
    assert (again.decision, again.decided_by) == ("approved", "policy")
    assert AGENT in (outcome.state.agent_sessions or {})
