"""Codex itself, against a fake model: `codex app-server` and `codex exec`."""

import json
from typing import Any

import pytest

from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.sources.codex import exec_live
from factwire.sources.codex import live as codex
from tests.agents.conftest import Aimock, Drive
from tests.agents.fake_models import FakeModel
from tests.agents.homes import AgentHome
from tests.agents.replies import Reply, calls, cut_reply, refuses, says, slowly
from tests.agents.responses_server import call, responses_server, text

pytestmark = pytest.mark.asyncio

PATCH = """apply_patch <<'EOF'
*** Begin Patch
*** Update File: notes.md
@@
-one
+two
*** End Patch
EOF"""


def make_agent(**options: Any) -> codex.CodexAgent:
    return codex.agent(AgentSettings(kind="codex", options={"model": "gpt-5.5", **options}))


def runs(command: str, **match: Any) -> Reply:
    """A command that Codex has to ask about, because it is to leave the sandbox."""
    wanted = {
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "It must",
    }
    return calls("exec_command", wanted, has_tool_result=False, **match)


def heard(model: FakeModel) -> str:
    """All that the model was told last."""
    return json.dumps(model.bodies("responses")[-1]["messages"])


@pytest.mark.requirement("sources.codex-app-server.live.turn")
async def test_codex_answers_and_goes_on_with_its_thread(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        says("It is 42.", reasoning="It is known.", user_message="what"),
        says("Still 42.", user_message="still"),
    )
    agent_home.codex(model)
    async with driven(make_agent()) as drive:
        first = await drive.turn("what is it")
        second = await drive.turn("still so?")

    assert (first.status, second.status) == ("completed", "completed")
    assert second.answers == ["It is 42.", "Still 42."]
    assert [each["summary"] for each in first.payloads_of("reasoning.summary")] == ["It is known."]
    assert "".join(each["delta"] for each in first.payloads_of("model.delta")) == "It is 42."
    sessions = first.payloads_of("session.updated")
    assert [("model" in each, "agentSessionId" in each) for each in sessions] == [
        (True, False),
        (False, True),
    ]
    assert "It is 42." in heard(model)


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_a_command_runs_when_a_person_allows_it_and_does_not_when_one_denies(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        runs("echo made > made.txt; cat made.txt", call_id="call_yes", user_message="make"),
        runs("rm made.txt", call_id="call_no", user_message="remove"),
        says("Done."),
    )
    agent_home.codex(model)
    question: list[Any] = []

    def decide(action: Any) -> Any:
        question.append((action.tool_name, action.command, action.cwd))
        is_removal = "rm made.txt" in action.command
        return {"decision": "deny", "reason": "keep it"} if is_removal else "approve"

    async with driven(make_agent()) as drive:
        allowed = await drive.turn("make it", decide=decide)
        denied = await drive.turn("remove it", decide=decide)

    place = str(agent_home.workspace)
    commands = ["/bin/bash -lc 'echo made > made.txt; cat made.txt'", "/bin/bash -lc 'rm made.txt'"]
    assert question == [("commandExecution", command, place) for command in commands]
    assert (allowed.status, denied.status) == ("completed", "completed")
    assert [each["output"] for each in allowed.payloads_of("tool.result")] == ["made\n"]
    assert [each["failureCategory"] for each in denied.payloads_of("tool.failed")] == [
        "permission_denied"
    ]
    assert [each["applied"] for each in denied.payloads_of("action.updated")] == [False, True]
    assert (agent_home.workspace / "made.txt").exists()
    assert "keep it" in heard(model)


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_a_patch_is_shown_whole_and_a_question_gets_its_answer(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    colours = [{"label": "Red", "description": "loud"}, {"label": "Blue", "description": "calm"}]
    colour = {"id": "colour", "header": "Colour", "question": "Which?", "options": colours}
    model = aimock(
        calls("exec_command", {"cmd": PATCH}, user_message="patch", has_tool_result=False),
        calls(
            "request_user_input", {"questions": [colour]}, user_message="ask", has_tool_result=False
        ),
        says("Done."),
    )
    agent_home.codex(model)
    notes = agent_home.workspace / "notes.md"
    notes.write_text("one\n", "utf-8")
    shown: list[str] = []

    def decide(action: Any) -> Any:
        shown.append(action.shown)
        if action.action_type == "structured_input":
            return {"decision": "answer", "response": {"colour": "Red"}}
        return "approve"

    config = {"features.default_mode_request_user_input": True}
    agent = make_agent(approvals="untrusted", sandbox="danger-full-access", config=config)
    async with driven(agent) as drive:
        patched = await drive.turn("patch it", decide=decide)
        question = await drive.turn("ask me", decide=decide)

    assert notes.read_text("utf-8") == "two\n"
    assert str(notes) in shown[0]
    assert "| -one\n| +two" in shown[0]
    [changed] = patched.payloads_of("file.changed")
    assert changed["change"] == "modified"
    assert changed["diff"].endswith("notes.md\n@@ -1 +1 @@\n-one\n+two\n")
    [version] = patched.state.artifacts[f"file:{changed['path']}"].versions
    assert version.diff == changed["diff"]
    assert question.status == "completed"
    assert '\\"answers\\":[\\"Red\\"]' in heard(model)


@pytest.mark.requirement("sources.codex-app-server.live.policy")
async def test_a_rule_answers_before_a_person_is_asked(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        runs("touch made.txt", call_id="call_yes", user_message="make"),
        runs("rm made.txt", call_id="call_no", user_message="remove"),
        says("Done."),
    )
    agent_home.codex(model)
    policy = Policy.of(allow=["Bash(touch *)"], deny=["Bash(rm *)"])
    async with driven(make_agent(), policy=policy) as drive:
        allowed = await drive.turn("make it")
        denied = await drive.turn("remove it")

    assert (agent_home.workspace / "made.txt").exists()
    assert not {"action.required"} & {fact.event_class for fact in denied.facts}
    assert [each["rule"] for each in allowed.payloads_of("permission.evaluated")] == [
        "Bash(touch *)"
    ]
    assert denied.payloads_of("permission.denied")[0]["rule"] == "Bash(rm *)"
    assert [each["failureCategory"] for each in denied.payloads_of("tool.failed")] == [
        "permission_denied"
    ]


@pytest.mark.requirement("sources.codex-app-server.live.control")
async def test_a_turn_is_steered_and_another_one_is_stopped(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        says("As you wish.", user_message="shorter"),
        slowly(says("A very long story, told at leisure.", user_message="story")),
        slowly(says("One two three four five six seven.", user_message="count"), milliseconds=500),
    )
    agent_home.codex(model)
    async with driven(make_agent()) as drive:
        steered = await drive.submit("tell a story")
        await drive.wait_for_fact("model.delta")
        await drive.runtime.steer("thread", "make it shorter")
        outcome = await drive.wait_for_end(steered)
        last, before = outcome.answers[-1], len(outcome.facts_of_class("model.delta"))
        stopped = await drive.submit("count to seven")
        await drive.wait_for_fact("model.delta", before + 1)
        canceled = await drive.cancel(stopped)

    assert outcome.status == "completed"
    assert last == "As you wish."
    steers = [each for each in outcome.payloads_of("queue.changed") if each.get("steerId")]
    assert [each["status"] for each in steers] == ["pending", "delivered"]
    assert canceled.status == "canceled"
    assert canceled.facts_of_class("model.completed")


@pytest.mark.requirement("sources.codex-app-server.live.failures")
async def test_what_a_model_does_wrong_fails_the_turn_with_a_category(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="often"),
        refuses(500, "broken", user_message="break"),
        cut_reply(says("A sentence that is never whole.", user_message="cut")),
        says("Back again."),
    )
    agent_home.codex(model)
    async with driven(make_agent()) as drive:
        limited = await drive.turn("too often")
        broken = await drive.turn("break it")
        cut_off = await drive.turn("cut it")
        well = await drive.turn("and now?")

    assert limited.failure["failureCategory"] == "rate_limited"
    assert broken.failure["failureCategory"] == "provider_unavailable"
    # Codex gives this one no name of its own.
    assert cut_off.failure["failureCategory"] == "provider_error"
    assert "disconnected" in cut_off.failure["message"]
    assert (well.status, well.answers[-1]) == ("completed", "Back again.")


@pytest.mark.requirement("sources.codex-exec.live.turn")
async def test_codex_exec_asks_nobody_and_goes_on_with_its_thread(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        says("It is 42.", reasoning="It is known.", user_message="what"),
        calls("exec_command", {"cmd": "echo made"}, user_message="make", has_tool_result=False),
        slowly(says("One two three four.", user_message="count"), milliseconds=500),
        refuses(429, "slow down", "rate_limit_error", user_message="often"),
        says("Done.", user_message="make"),
    )
    agent_home.codex(model)
    settings = AgentSettings(kind="codex-exec", options={"sandbox": "danger-full-access"})
    async with driven(exec_live.agent(settings)) as drive:
        first = await drive.turn("what is it")
        second = await drive.turn("make it")
        remembered = heard(model)
        limited = await drive.turn("too often")
        stopped = await drive.submit("count to four")
        await drive.wait_for_fact("session.updated", 4)
        canceled = await drive.cancel(stopped)

    assert second.answers == ["It is 42.", "Done."]
    assert "It is 42." in remembered
    assert [each["output"] for each in second.payloads_of("tool.result")] == ["made\n"]
    assert first.payloads_of("turn.completed")[0]["inputTokens"] == 0
    assert "inputTokens" not in second.payloads_of("turn.completed")[0]
    assert limited.failure["failureCategory"] == "provider_error"
    assert canceled.status == "canceled"


@pytest.mark.requirement("sources.codex-app-server.live.agents")
async def test_an_agent_that_codex_sets_to_work_is_told_with_what_it_says(
    agent_home: AgentHome, driven: Drive
) -> None:
    def model(texts: list[dict[str, Any]]) -> dict[str, Any]:
        outcome = json.dumps(texts)
        if "count the files" in outcome and "call_spawn" not in outcome:
            return text("There are three.")
        if "call_spawn" not in outcome:
            task = {"task_name": "count", "message": "count the files", "fork_turns": "none"}
            return call("collaboration", "spawn_agent", "call_spawn", **task)
        if "call_wait" not in outcome:
            return call("collaboration", "wait_agent", "call_wait", timeout_ms=10_000)
        return text("It is done.")

    with responses_server(model) as url:
        agent_home.codex_at(url)
        async with driven(make_agent(config={"features.multi_agent_v2": True})) as drive:
            outcome = await drive.turn("have them counted")

    assert outcome.status == "completed"
    [started] = [fact for fact in outcome.facts if fact.event_class == "subagent.started"]
    ended = [fact for fact in outcome.facts if fact.event_class == "subagent.completed"]
    assert [fact.subagent_id for fact in ended] == [started.subagent_id]
    texts = {
        fact.payload["text"]: fact.subagent_id
        for fact in outcome.facts
        if fact.event_class == "model.completed"
    }
    assert texts == {"There are three.": started.subagent_id, "It is done.": None}
