"""OpenCode itself, against a fake model: `opencode serve`."""

import json
from typing import Any

import pytest

from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.sources.opencode import live as opencode
from tests.agents.conftest import Aimock, Drive
from tests.agents.fake_models import FakeModel
from tests.agents.homes import AgentHome
from tests.agents.replies import Reply, calls, cut_reply, refuses, says, slowly

pytestmark = pytest.mark.asyncio


def make_agent(**options: Any) -> opencode.OpenCodeAgent:
    return opencode.agent(AgentSettings(kind="opencode", options=options))


def runs(command: str, **match: Any) -> Reply:
    wanted = {"command": command, "description": "It must"}
    return calls("bash", wanted, **match)


def heard(model: FakeModel) -> str:
    """All that the model was told last."""
    return json.dumps(model.bodies("completions")[-1]["messages"])


@pytest.mark.requirement("sources.opencode.live.turn")
async def test_opencode_answers_and_goes_on_with_its_session(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        says("It is 42.", reasoning="It is known.", user_message="what"),
        says("Still 42.", user_message="still"),
    )
    agent_home.opencode(model)
    async with driven(make_agent(model="fake/fake")) as drive:
        first = await drive.turn("what is it")
        second = await drive.turn("still so?")

    assert (first.status, second.status) == ("completed", "completed")
    assert second.answers == ["It is 42.", "Still 42."]
    assert [each["delta"] for each in first.payloads_of("reasoning.delta")] == ["It is known."]
    assert "".join(each["delta"] for each in first.payloads_of("model.delta")) == "It is 42."
    assert len(first.payloads_of("session.updated")) == 1
    assert second.payloads_of("session.updated") == []
    assert "It is 42." in heard(model)


@pytest.mark.requirement("sources.opencode.live.approvals", "sources.opencode.live.server")
async def test_what_opencode_asks_a_person_decides_and_a_no_has_its_reason(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    notes, made_file = agent_home.workspace / "notes.md", agent_home.workspace / "made.txt"
    look = "echo $OPENCODE_SERVER_PASSWORD; touch made.txt"
    write = {"filePath": str(notes), "content": "one\n"}
    model = aimock(
        calls("write", write, call_id="call_write", tool_call_id="call_yes"),
        runs("rm made.txt", call_id="call_no", tool_call_id="call_write"),
        runs(look, call_id="call_yes", has_tool_result=False),
        says("Done."),
    )
    agent_home.opencode(model)
    question: list[Any] = []

    def decide(action: Any) -> Any:
        question.append((action.tool_name, action.command, action.cwd, "+one" in action.shown))
        is_removal = action.command == "rm made.txt"
        return {"decision": "deny", "reason": "keep it"} if is_removal else "approve"

    async with driven(make_agent()) as drive:
        outcome = await drive.turn("make it", decide=decide)

    place = str(agent_home.workspace)
    assert question == [
        ("bash", look, place, False),
        ("edit", None, None, True),
        ("bash", "rm made.txt", place, False),
    ]
    assert (outcome.status, outcome.answers[-1]) == ("completed", "Done.")
    # What a command says of the server's password is in no fact.
    assert outcome.payloads_of("tool.result")[0]["output"] == "[redacted]\n"
    assert [each["failureCategory"] for each in outcome.payloads_of("tool.failed")] == [
        "permission_denied"
    ]
    assert [each["applied"] for each in outcome.payloads_of("action.updated")] == [False, True] * 3
    assert (made_file.exists(), notes.read_text("utf-8")) == (True, "one\n")
    assert {each["path"] for each in outcome.payloads_of("file.changed")} == {str(notes)}
    assert "keep it" in heard(model)


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_a_question_gets_its_answer_and_a_subagent_answers_to_its_task(
    aimock: Aimock, agent_home: AgentHome, driven: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    colours = [{"label": "Red", "description": "loud"}, {"label": "Blue", "description": "calm"}]
    colour = {"header": "Colour", "question": "Which?", "options": colours}
    task = {"description": "Count", "prompt": "number the files", "subagent_type": "general"}
    model = aimock(
        calls("task", task, call_id="call_2", tool_call_id="call_1"),
        says("Three files.", user_message="number the files"),
        calls("question", {"questions": [colour]}, user_message="ask", has_tool_result=False),
        says("Done."),
    )
    agent_home.opencode(model)
    monkeypatch.setenv("OPENCODE_ENABLE_QUESTION_TOOL", "1")
    answer = {"decision": "answer", "response": "Red"}
    async with driven(make_agent()) as drive:
        outcome = await drive.turn("ask me, then send somebody", decide=lambda _action: answer)

    assert (outcome.status, outcome.answers[-1]) == ("completed", "Done.")
    assert '\\"Which?\\"=\\"Red\\"' in heard(model)
    assert len(outcome.payloads_of("action.resolved")) == 1
    [done] = outcome.facts_of_class("subagent.completed")
    assert done.payload["output"] == "Three files."
    payloads = [
        fact for fact in outcome.facts_of_class("model.completed") if fact.subagent_id is not None
    ]
    assert [fact.payload["text"] for fact in payloads] == ["Three files."]


@pytest.mark.requirement("sources.opencode.live.policy")
async def test_a_rule_answers_before_a_person_is_asked(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        runs("rm made.txt", call_id="call_no", tool_call_id="call_yes"),
        runs("touch made.txt", call_id="call_yes", has_tool_result=False),
        says("Done."),
    )
    agent_home.opencode(model)
    policy = Policy.of(allow=["Bash(touch *)"], deny=["Bash(rm *)"])
    # OpenCode's own settings would let both pass.
    lenient = {"permission": {"*": "allow", "bash": "allow"}}
    async with driven(make_agent(config=lenient), policy=policy) as drive:
        outcome = await drive.turn("make and remove it")

    assert (agent_home.workspace / "made.txt").exists()
    assert outcome.facts_of_class("action.required") == []
    rules = [each["rule"] for each in outcome.payloads_of("permission.evaluated")]
    assert rules == ["Bash(touch *)", "Bash(rm *)"]
    assert [each["rule"] for each in outcome.payloads_of("permission.denied")] == ["Bash(rm *)"]
    assert [each["failureCategory"] for each in outcome.payloads_of("tool.failed")] == [
        "permission_denied"
    ]
    # It heard why, and went on.
    assert outcome.answers[-1] == "Done."


@pytest.mark.requirement("sources.opencode.live.control")
async def test_a_turn_is_steered_and_another_one_is_stopped(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        says("As you wish.", user_message="shorter"),
        slowly(says("A very long story, told at leisure.", user_message="story")),
        slowly(says("One two three four five six seven.", user_message="count"), milliseconds=500),
    )
    agent_home.opencode(model)
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


@pytest.mark.requirement("sources.opencode.live.failures")
async def test_what_a_model_does_wrong_is_tried_again_or_fails_the_turn(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        # The title of a session is asked for first, with the same words.
        says("A title", system_message="title generator"),
        refuses(429, "slow down", "rate_limit_error", user_message="often", sequence_index=0),
        refuses(400, "broken", "invalid_request_error", user_message="break"),
        cut_reply(says("A sentence that is never whole.", user_message="cut", sequence_index=0)),
        says("Back again."),
    )
    agent_home.opencode(model)
    async with driven(make_agent()) as drive:
        limited = await drive.turn("too often")
        broken = await drive.turn("break it")
        cut_off = await drive.turn("cut it")

    for outcome in (limited, cut_off):
        assert outcome.status == "completed"
        statuses = [each["status"] for each in outcome.payloads_of("run.status")]
        assert statuses == ["running", "retrying", "running", "idle"]
    assert broken.failure["failureCategory"] == "invalid_request"
    assert "broken" in broken.failure["message"]
    assert cut_off.answers == ["Back again.", "Back again."]
