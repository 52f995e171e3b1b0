"""OpenCode itself, against a fake model: `opencode serve`."""

import json
from typing import Any

import pytest

from factwire.runtime.configuration import Agent
from factwire.runtime.policy import Policy
from factwire.sources.live import opencode
from tests.agents.conftest import Aimock, Drive
from tests.agents.fake_models import FakeModel
from tests.agents.homes import AgentHome
from tests.agents.replies import Reply, calls, cut, refuses, says, slowly

pytestmark = pytest.mark.asyncio


def made(**options: Any) -> opencode.OpenCodeAgent:
    return opencode.agent(Agent(kind="opencode", options=options))


def runs(command: str, **match: Any) -> Reply:
    wanted = {"command": command, "description": "It must"}
    return calls("bash", wanted, has_tool_result=False, **match)


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
    async with driven(made(model="fake/fake")) as drive:
        first = await drive.turn("what is it")
        second = await drive.turn("still so?")

    assert (first.status, second.status) == ("completed", "completed")
    assert second.answers == ["It is 42.", "Still 42."]
    assert [each["delta"] for each in first.said("reasoning.delta")] == ["It is known."]
    assert "".join(each["delta"] for each in first.said("model.delta")) == "It is 42."
    assert len(first.said("session.updated")) == 1
    assert second.said("session.updated") == []
    assert "It is 42." in heard(model)


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_what_opencode_asks_a_person_decides_and_a_no_has_its_reason(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    notes = agent_home.workspace / "notes.md"
    model = aimock(
        runs("echo $OPENCODE_SERVER_PASSWORD; touch made.txt", user_message="make"),
        runs("rm made.txt", call_id="call_no", user_message="remove"),
        calls(
            "write",
            {"filePath": str(notes), "content": "one\n"},
            call_id="call_write",
            user_message="write",
            has_tool_result=False,
        ),
        says("Done."),
    )
    agent_home.opencode(model)
    asked: list[Any] = []

    def decide(action: Any) -> Any:
        asked.append((action.tool_name, action.command, action.cwd))
        if action.tool_name == "edit":
            assert "+one" in action.shown
        is_removal = "rm made.txt" in (action.command or "")
        return {"decision": "deny", "reason": "keep it"} if is_removal else "approve"

    async with driven(made()) as drive:
        allowed = await drive.turn("make it", decide=decide)
        denied = await drive.turn("remove it", decide=decide)
        answered = heard(model)
        written = await drive.turn("write it", decide=decide)

    place = str(agent_home.workspace)
    assert asked == [
        ("bash", "echo $OPENCODE_SERVER_PASSWORD; touch made.txt", place),
        ("bash", "rm made.txt", place),
        ("edit", None, None),
    ]
    assert [each["output"] for each in allowed.said("tool.result")] == ["[redacted]\n"]
    assert [each["failureCategory"] for each in denied.said("tool.failed")] == ["permission_denied"]
    assert [each["applied"] for each in denied.said("action.updated")] == [True]
    assert (agent_home.workspace / "made.txt").exists()
    assert "keep it" in answered
    assert notes.read_text("utf-8") == "one\n"
    assert {each["path"] for each in written.said("file.changed")} == {str(notes)}
    assert written.answers[-1] == "Done."


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_a_question_gets_its_answer_and_a_subagent_answers_to_its_task(
    aimock: Aimock, agent_home: AgentHome, driven: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    colours = [{"label": "Red", "description": "loud"}, {"label": "Blue", "description": "calm"}]
    colour = {"header": "Colour", "question": "Which?", "options": colours}
    task = {"description": "Count", "prompt": "number the files", "subagent_type": "general"}
    model = aimock(
        calls("question", {"questions": [colour]}, user_message="ask", has_tool_result=False),
        calls("task", task, call_id="call_2", user_message="send", has_tool_result=False),
        says("Three files.", user_message="number the files"),
        says("Done."),
    )
    agent_home.opencode(model)
    monkeypatch.setenv("OPENCODE_ENABLE_QUESTION_TOOL", "1")
    async with driven(made()) as drive:
        asked = await drive.turn(
            "ask me", decide=lambda _action: {"decision": "answer", "response": "Red"}
        )
        told = heard(model)
        sent = await drive.turn("send somebody")

    assert (asked.status, sent.status) == ("completed", "completed")
    assert "Red" in told
    assert len(asked.said("action.resolved")) == 1
    [done] = sent.named("subagent.completed")
    assert done.payload["output"] == "Three files."
    said = [fact for fact in sent.named("model.completed") if fact.subagent_id is not None]
    assert [fact.payload["text"] for fact in said] == ["Three files."]


@pytest.mark.requirement("sources.opencode.live.policy")
async def test_a_rule_answers_before_a_person_is_asked(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        runs("touch made.txt", call_id="call_yes", user_message="make"),
        runs("rm made.txt", call_id="call_no", user_message="remove"),
        says("Done."),
    )
    agent_home.opencode(model)
    policy = Policy.of(allow=["Bash(touch *)"], deny=["Bash(rm *)"])
    async with driven(made(), policy=policy) as drive:
        allowed = await drive.turn("make it")
        denied = await drive.turn("remove it")

    assert (agent_home.workspace / "made.txt").exists()
    assert not {"action.required"} & {fact.event_class for fact in denied.facts}
    assert [each["rule"] for each in allowed.said("permission.evaluated")] == ["Bash(touch *)"]
    assert denied.said("permission.denied")[0]["rule"] == "Bash(rm *)"
    assert [each["failureCategory"] for each in denied.said("tool.failed")] == ["permission_denied"]
    # It went on, and said so.
    assert denied.answers[-1] == "Done."


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
    async with driven(made()) as drive:
        steered = await drive.submit("tell a story")
        await drive.seen("model.delta")
        await drive.runtime.steer("thread", "make it shorter")
        told = await drive.ended(steered)
        last, before = told.answers[-1], len(told.named("model.delta"))
        stopped = await drive.submit("count to seven")
        await drive.seen("model.delta", before + 1)
        canceled = await drive.cancel(stopped)

    assert told.status == "completed"
    assert last == "As you wish."
    steers = [each for each in told.said("queue.changed") if each.get("steerId")]
    assert [each["status"] for each in steers] == ["pending", "delivered"]
    assert canceled.status == "canceled"
    assert canceled.named("model.completed")


@pytest.mark.requirement("sources.opencode.live.failures")
async def test_what_a_model_does_wrong_is_tried_again_or_fails_the_turn(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="often", sequence_index=0),
        refuses(400, "broken", user_message="break"),
        cut(says("A sentence that is never whole.", user_message="cut")),
        says("Back again."),
    )
    agent_home.opencode(model)
    async with driven(made()) as drive:
        limited = await drive.turn("too often")
        broken = await drive.turn("break it")
        cut_off = await drive.turn("cut it")

    assert [each["status"] for each in limited.said("run.status")] == ["running", "retrying", "running"]
    assert (limited.status, limited.answers) == ("completed", ["Back again."])
    assert broken.failure["failureCategory"] == "provider_error"
    assert "broken" in broken.failure["message"]
    for f in cut_off.of_turn: print(f.event_class, str(f.payload)[:300])
    assert cut_off.status == "x"
