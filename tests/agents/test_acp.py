"""Agents of the Agent Client Protocol themselves: `opencode acp`, and one of the Python SDK."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from factwire.runtime.configuration import AgentSettings
from factwire.sources.acp import live as acp
from tests.agents.conftest import Aimock, Drive
from tests.agents.homes import AgentHome
from tests.agents.replies import calls, says, slowly

pytestmark = pytest.mark.asyncio

NAMES = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
]
SDK_AGENT = Path(__file__).with_name("acp_sdk_agent.py")


def make_agent(*command: str) -> acp.AcpAgent:
    return acp.agent(AgentSettings(kind="acp", options={"command": command, "env": NAMES}))


@pytest.mark.requirement("sources.acp.live.turn")
@pytest.mark.requirement("sources.acp.live.approvals")
async def test_opencode_answers_asks_and_is_stopped(
    aimock: Aimock, agent_home: AgentHome, driven: Drive
) -> None:
    made_by = {"command": "echo made > made.txt; cat made.txt", "description": "make"}
    written = {"filePath": str(agent_home.workspace / "notes.md"), "content": "one\n"}
    model = aimock(
        calls("bash", made_by, call_id="call_b", user_message="make", has_tool_result=False),
        calls("write", written, call_id="call_w", user_message="write", has_tool_result=False),
        slowly(says("One two three four.", user_message="count"), milliseconds=500),
        says("Done.", reasoning="It is made."),
    )
    agent_home.opencode(model)

    def decide(action: Any) -> str:
        return "approve" if "made.txt" in action.shown else "deny"

    async with driven(make_agent("opencode", "acp")) as drive:
        allowed = await drive.turn("make it", decide=decide)
        answers = allowed.answers
        denied = await drive.turn("write it", decide=decide)
        turn = await drive.submit("count to four")
        pieces = [fact for fact in denied.facts if fact.event_class == "model.delta"]
        await drive.wait_for_fact("model.delta", len(pieces) + 1)
        canceled = await drive.cancel(turn)

    assert (
        "".join(each["delta"] for each in allowed.payloads_of("reasoning.delta")) == "It is made."
    )
    assert answers == ["Done."]
    assert [each["output"]["output"] for each in allowed.payloads_of("tool.result")] == ["made\n"]
    assert "echo made" in json.dumps(model.bodies("completions")[-1]["messages"])
    assert [each["failureCategory"] for each in denied.payloads_of("tool.failed")] == [
        "permission_denied"
    ]
    assert not (agent_home.workspace / "notes.md").exists()
    assert canceled.status == "canceled"


@pytest.mark.requirement("sources.acp.live.files")
@pytest.mark.requirement("sources.acp.live.control")
async def test_an_agent_of_the_sdk_edits_through_us_and_is_stopped(
    agent_home: AgentHome, driven: Drive
) -> None:
    notes = agent_home.workspace / "notes.md"
    notes.write_text("one\n", "utf-8")
    async with driven(make_agent(sys.executable, str(SDK_AGENT))) as drive:
        first = await drive.turn("please think")
        allowed = await drive.turn("please edit", decide=lambda _action: "approve")
        answers = allowed.answers
        turn = await drive.submit("please wait")
        await drive.wait_for_fact("model.delta", 3)
        canceled = await drive.cancel(turn)

    assert [each["text"] for each in first.payloads_of("plan.final")] == ["[x] Say it"]
    assert answers == ["It is 42.", "It is two now."]
    assert notes.read_text("utf-8") == "two\n"
    assert {each["path"] for each in allowed.payloads_of("file.changed")} == {str(notes)}
    diffs = [each["diff"] for each in allowed.payloads_of("file.changed") if "diff" in each]
    assert diffs
    assert all(diff.endswith("@@ -1 +1 @@\n-one\n+two\n") for diff in diffs)
    assert len(allowed.facts_of_class("action.required")) == 1
    assert canceled.status == "canceled"
    assert canceled.facts_of_class("tool.failed") == []
