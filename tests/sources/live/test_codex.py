"""Codex, live: what its process does wrong, what it asks, and what it is told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import AssetInput
from factwire.runtime.agents import AgentError, InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.runtime.provider import Decision
from factwire.sources.codex import exec_live
from factwire.sources.codex import live as codex
from factwire.sources.codex.permission_requests import read_question
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.program import NotInstalled
from tests.sources.live.codex_program import ASKED
from tests.sources.live.scripted import driven, program
from tests.sources.odd_fields import ODD, spoil_fields

pytestmark = pytest.mark.asyncio


def make_agent(folder: Path, *args: str, **options: Any) -> codex.CodexAgent:
    settings = {"command": program("codex_program.py", folder), "args": args, **options}
    return codex.agent(AgentSettings(kind="codex", options=settings))


@pytest.mark.requirement("sources.codex-app-server.live.failures")
@pytest.mark.parametrize(
    ("prompt", "args", "category", "message"),
    [
        ("he dies", (), "stream_interrupted", "exit code 1: out of memory after 1 words"),
        ("refuse", (), "provider_error", "turn/start: no such model"),
        ("he answers", ("broken",), "stream_interrupted", "exit code 1: error: cannot read"),
        ("he answers", ("silent",), "agent_silent", "was not ready for the turn within 0.5 s"),
    ],
)
async def test_a_process_that_fails_ends_the_turn_and_says_why(
    tmp_path: Path, prompt: str, args: tuple[str, ...], category: str, message: str
):
    seconds = 0.5 if "silent" in args else 60
    async with driven(make_agent(tmp_path, *args, start_seconds=seconds), tmp_path) as drive:
        outcome = await drive.turn(prompt)

    assert outcome.failure["failureCategory"] == category
    assert message in outcome.failure["message"]
    assert outcome.failure["recoveryHint"]


@pytest.mark.requirement("sources.codex-app-server.live.failures")
async def test_what_cannot_be_read_is_a_warning_and_the_turn_goes_on(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("he babbles")

    codes = [each["code"] for each in outcome.payloads_of("runtime.warning")]
    assert codes == ["unreadable_source_item", "unreadable_source_item", "unknown_source_item"]
    assert (outcome.status, outcome.answers) == ("completed", ["Done."])


@pytest.mark.requirement("sources.codex-app-server.live.control")
async def test_a_server_that_does_not_heed_the_interrupt_is_killed(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        turn = await drive.submit("he hangs")
        await drive.wait_for_fact("model.delta")
        outcome = await drive.cancel(turn)
        left = list((tmp_path / "data" / "processes").iterdir())

    assert outcome.status == "canceled"
    assert [row["status"] for row in outcome.payloads_of("run.status")][-2:] == [
        "cancelling",
        "idle",
    ]
    assert left == []


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_each_question_gets_the_answer_of_its_own_form(tmp_path: Path):
    payloads = {
        "Change": {"decision": "approve", "response": "acceptForSession"},
        "Why?": {"decision": "answer", "response": "because"},
        "How many?": {"decision": "answer", "response": {"count": 3}},
    }
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn(
            "he asks",
            decide=lambda action: next(
                (payloads[key] for key in payloads if (action.prompt or "").startswith(key)),
                "approve",
            ),
        )

    assert json.loads(outcome.answers[-1]) == [
        {"decision": "accept"},
        {"decision": "acceptForSession"},
        {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
        {"answers": {"why": {"answers": ["because"]}}},
        {"action": "accept", "content": {"count": 3}},
        -32601,
    ]


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_each_question_can_be_denied(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        # A yes that is chosen beside a no is no yes.
        no = {"decision": "deny", "reason": "not now", "response": "accept"}
        outcome = await drive.turn("he asks", decide=lambda _action: no)

    assert json.loads(outcome.answers[-1]) == [
        {"decision": "decline"},
        {"decision": "decline"},
        {"permissions": {}, "scope": "turn"},
        {"answers": {}},
        {"action": "decline", "content": None},
        -32601,
    ]
    assert [each["decision"] for each in outcome.payloads_of("action.resolved")] == ["denied"] * 5


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_a_question_that_codex_settles_is_withdrawn(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("he withdraws")

    assert (
        len(outcome.facts_of_class("action.required"))
        == len(outcome.facts_of_class("action.cancelled"))
        == 1
    )
    assert outcome.status == "completed"


@pytest.mark.requirement("sources.codex-app-server.live.control")
async def test_words_that_come_too_late_begin_the_next_turn_of_the_same_server(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        turn = await drive.submit("he hurries")
        await drive.wait_for_fact("model.delta")
        await drive.runtime.steer("thread", "and now this")
        outcome = await drive.wait_for_end(turn)

    assert (outcome.status, outcome.answers) == ("completed", ["Already done.", "and now this"])


@pytest.mark.requirement("sources.codex-app-server.live.agents")
async def test_a_turn_lasts_until_whoever_works_beside_it_is_done(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("he teams_up")

    names = [fact.event_class for fact in outcome.facts]
    assert names.index("subagent.completed") < names.index("turn.completed")
    payloads = [f.payload["text"] for f in outcome.facts if f.event_class == "model.completed"]
    assert payloads == ["Done.", "Three files."]


@pytest.mark.requirement("sources.codex-app-server.live.turn")
async def test_a_thread_that_codex_has_lost_is_begun_anew_and_that_is_told(tmp_path: Path):
    async with driven(make_agent(tmp_path, "forgetful"), tmp_path) as drive:
        await drive.turn("he answers")
        outcome = await drive.turn("he answers again, he answers")

    [warning] = outcome.payloads_of("runtime.warning")
    assert warning["code"] == "session_not_continued"
    assert "no rollout found" in warning["message"]
    assert outcome.status == "completed"


@pytest.mark.requirement("sources.codex-app-server.live.inputs")
async def test_codex_is_given_images_and_texts_and_nothing_else(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        blobs = drive.runtime.blobs
        image, notes = await asyncio.gather(
            blobs.put(b"picture", kind="artifact"), blobs.put(b"one", kind="artifact")
        )
        picture = AssetInput(kind="image", ref=image.ref, media_type="image/png")
        text = AssetInput(kind="document", ref=notes.ref, media_type="text/plain", name="n.txt")
        sound = AssetInput(kind="audio", ref=notes.ref, media_type="audio/wav", name="n.wav")
        settings = await drive.turn("he repeats", input=(picture, text))
        refused = await drive.turn("he repeats", input=(sound,))

    assert json.loads(settings.answers[-1]) == [
        {"type": "text", "text": "he repeats"},
        {"type": "image", "url": "data:image/png;base64,cGljdHVyZQ=="},
        {"type": "text", "text": "(attached: n.txt)\none"},
    ]
    assert refused.failure["failureCategory"] == "unsupported_input"
    assert "n.wav" in refused.failure["message"]


@pytest.mark.requirement("sources.codex-exec.live.failures")
async def test_codex_exec_that_fails_says_why_and_takes_no_images(tmp_path: Path):
    command = program("codex_program.py", tmp_path)
    settings = AgentSettings(kind="codex-exec", options={"command": command, "args": ["broken"]})
    async with driven(exec_live.agent(settings), tmp_path) as drive:
        image = await drive.runtime.blobs.put(b"picture", kind="artifact")
        picture = AssetInput(kind="image", ref=image.ref, media_type="image/png")
        refused = await drive.turn("look", input=(picture,))
        broken = await drive.turn("work")

    assert refused.failure["failureCategory"] == "unsupported_input"
    assert broken.failure["failureCategory"] == "stream_interrupted"
    assert "cannot read config.toml" in broken.failure["message"]


@pytest.mark.requirement("sources.codex-app-server.live.settings")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"command": "no-such-codex"}, NotInstalled, "install it with"),
        ({"sandbox": "none"}, InvalidAgent, "one of read-only, workspace-write, danger-full"),
        ({"colour": "red"}, InvalidAgent, "`colour`; available options: command, args, config"),
    ],
)
async def test_settings_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[AgentError], message: str
):
    for make in (codex.agent, exec_live.agent):
        with pytest.raises(error, match=message):
            make(AgentSettings(kind="codex", options=options))
    with pytest.raises(InvalidAgent, match="base_url"):
        codex.agent(AgentSettings(kind="codex", base_url="http://127.0.0.1"))


@pytest.mark.requirement("sources.codex-app-server.live.policy")
async def test_what_a_person_allows_always_is_not_asked_again(tmp_path: Path):
    always = {"decision": "approve", "always": "thread"}
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        await drive.turn("he deploys", decide=lambda _action: always)
        await drive.turn("he deploys")
        outcome = await drive.turn("he deploys")

    assert outcome.answers == ["accept", "accept", "accept"]
    assert [each["decidedBy"] for each in outcome.payloads_of("action.resolved")] == ["policy"]


@pytest.mark.requirement("sources.codex-app-server.live.policy")
@pytest.mark.parametrize(
    ("rules", "action"),
    [({"allow": ["mcp__calc__add"]}, "accept"), ({"deny": ["mcp__calc__*"]}, "decline")],
)
async def test_a_rule_for_a_tool_of_a_server_holds_for_codex(
    tmp_path: Path, rules: dict[str, Any], action: str
):
    async with driven(make_agent(tmp_path), tmp_path, policy=Policy.of(**rules)) as drive:
        outcome = await drive.turn("he adds")

    assert outcome.answers == [action]
    assert outcome.facts_of_class("action.required") == []


@pytest.mark.requirement("sources.codex-app-server.live.approvals")
async def test_a_question_of_any_shape_can_be_judged_and_denied(tmp_path: Path):
    telling = FactBuilder("codex-app-server", thread_id="thread")
    change = {"path": "a\0b", "kind": {"type": "update", "move_path": "b"}, "diff": "+one"}
    telling.start_tool("call-1", "fileChange", {"changes": [change, None]})
    questions = [
        {"id": number, "method": method, "params": {"itemId": "call-1", **params}}
        for number, (method, params) in enumerate(ASKED.items())
    ]
    no = Decision(action_id="", allowed=False, decision="denied")
    yes: list[Any] = []
    for items in spoil_fields(questions):
        for item in items:
            question = read_question(item, telling, str(tmp_path))
            question.to_request()
            if question.is_known:
                result = question.to_result(no)
                yes += [result] if {"accept"} & set(map(str, result.values())) else []
    for odd in ODD:
        allowed = Decision(action_id="", allowed=True, decision="approved", response=odd)
        for item in questions[:-1]:
            read_question(item, telling, str(tmp_path)).to_result(allowed)
    assert yes == []
