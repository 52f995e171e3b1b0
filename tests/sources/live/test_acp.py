"""Agents of the Agent Client Protocol, live: what goes wrong, what is asked, what is offered."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import AssetInput
from factwire.runtime.agents import AgentError, InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.runtime.provider import Decision
from factwire.sources.acp import live as acp
from factwire.sources.acp.permission_requests import read_question
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.program import NotInstalled
from tests.sources.live.scripted import FOLDER, driven
from tests.sources.odd_fields import ODD, spoil_fields

pytestmark = pytest.mark.asyncio


def make_agent(*args: str, **options: Any) -> acp.AcpAgent:
    command = [sys.executable, str(FOLDER / "acp_program.py"), *args]
    return acp.agent(AgentSettings(kind="acp", options={"command": command, **options}))


@pytest.mark.requirement("sources.acp.live.failures")
@pytest.mark.parametrize(
    ("prompt", "args", "category", "message"),
    [
        ("it dies", (), "stream_interrupted", "exit code 1: out of memory after 1 blocks"),
        ("refuse", (), "provider_error", "out of tokens"),
        ("it answers", ("broken",), "stream_interrupted", "exit code 1: error: no settings"),
        ("it answers", ("silent",), "agent_silent", "was not ready for the turn within 0.5 s"),
        ("it answers", ("new",), "unsupported_version", "version 1 of the protocol"),
        ("it answers", ("locked",), "unauthorized", "sign in first"),
    ],
)
async def test_an_agent_that_fails_ends_the_turn_and_says_why(
    tmp_path: Path, prompt: str, args: tuple[str, ...], category: str, message: str
):
    seconds = 0.5 if "silent" in args else 60
    async with driven(make_agent(*args, start_seconds=seconds), tmp_path) as drive:
        outcome = await drive.turn(prompt)

    assert outcome.failure["failureCategory"] == category
    assert message in outcome.failure["message"]
    assert outcome.failure["recoveryHint"]


@pytest.mark.requirement("sources.acp.live.failures")
async def test_what_cannot_be_read_is_a_warning_and_the_turn_goes_on(tmp_path: Path):
    async with driven(make_agent(), tmp_path) as drive:
        outcome = await drive.turn("it babbles")

    codes = [each["code"] for each in outcome.payloads_of("runtime.warning")]
    assert codes == ["unreadable_source_item", "unknown_source_item"]
    assert (outcome.status, outcome.answers) == ("completed", ["Done."])


@pytest.mark.requirement("sources.acp.live.control")
async def test_a_turn_is_cancelled_with_its_question_or_else_killed(tmp_path: Path):
    async with driven(make_agent(), tmp_path) as drive:
        asking = await drive.submit("it permits")
        await drive.next_action()
        canceled = await drive.cancel(asking)
        deaf = await drive.submit("it hangs")
        await drive.wait_for_fact("model.delta", 2)
        killed = await drive.cancel(deaf)
        left = list((tmp_path / "data" / "processes").iterdir())

    assert (canceled.status, killed.status) == ("canceled", "canceled")
    assert len(canceled.facts_of_class("action.cancelled")) == 1
    assert json.loads(canceled.answers[0]) == {"outcome": "cancelled"}
    assert left == []


@pytest.mark.requirement("sources.acp.live.approvals")
@pytest.mark.parametrize(
    ("answer", "option", "end"),
    [
        ({"decision": "approve"}, "once", "tool.result"),
        ({"decision": "approve", "response": "ever"}, "ever", "tool.result"),
        ({"decision": "approve", "response": "no"}, "once", "tool.result"),
        ({"decision": "deny", "response": "ever"}, "no", "tool.failed"),
    ],
)
async def test_a_decision_is_the_option_that_says_the_same(
    tmp_path: Path, answer: dict[str, Any], option: str, end: str
):
    shown: list[Any] = []
    async with driven(make_agent(), tmp_path) as drive:
        outcome = await drive.turn(
            "it permits", decide=lambda a: (shown.append(a.shown), answer)[1]
        )

    assert "command:\n| make deploy" in shown[0]
    assert json.loads(outcome.answers[0]) == {"outcome": "selected", "optionId": option}
    assert len(outcome.facts_of_class(end)) == 1
    if end == "tool.failed":
        assert outcome.payloads_of(end)[0]["failureCategory"] == "permission_denied"


@pytest.mark.requirement("sources.acp.live.approvals")
async def test_a_yes_that_cannot_be_said_is_no_yes_and_is_told(tmp_path: Path):
    async with driven(make_agent(), tmp_path) as drive:
        outcome = await drive.turn("it corners", decide=lambda _action: "approve")

    assert json.loads(outcome.answers[0]) == {"outcome": "cancelled"}
    codes = [each["code"] for each in outcome.payloads_of("runtime.warning")]
    assert codes == ["decision_not_delivered"]


@pytest.mark.requirement("sources.acp.live.approvals")
async def test_a_form_is_filled_in_or_declined(tmp_path: Path):
    filled = {"decision": "answer", "response": {"why": "because"}}
    async with driven(make_agent(), tmp_path) as drive:
        await drive.turn("it elicits", decide=lambda _action: filled)
        outcome = await drive.turn("it elicits", decide=lambda _action: "deny")

    assert [json.loads(answer) for answer in outcome.answers] == [
        {"action": "accept", "content": {"why": "because"}},
        {"action": "decline"},
    ]


@pytest.mark.requirement("sources.acp.live.policy")
@pytest.mark.parametrize(
    ("rules", "option", "decided"),
    [
        ({"allow": ["Bash(make *)"]}, "once", "allow"),
        ({"deny": ["Bash(make *)"]}, "no", "deny"),
        ({"mode": "dontAsk"}, "no", "deny"),
    ],
)
async def test_a_rule_answers_before_a_person_is_asked(
    tmp_path: Path, rules: dict[str, Any], option: str, decided: str
):
    async with driven(make_agent(), tmp_path, policy=Policy.of(**rules)) as drive:
        outcome = await drive.turn("it permits")

    assert json.loads(outcome.answers[0]) == {"outcome": "selected", "optionId": option}
    assert outcome.facts_of_class("action.required") == []
    assert [each["decision"] for each in outcome.payloads_of("permission.evaluated")] == [decided]
    if decided == "deny":
        assert len(outcome.facts_of_class("permission.denied")) == 1
        assert outcome.payloads_of("tool.failed")[0]["failureCategory"] == "permission_denied"


@pytest.mark.requirement("sources.acp.live.files")
async def test_files_are_those_of_the_workspace_and_terminals_are_not_offered(tmp_path: Path):
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    (tmp_path / "elsewhere").mkdir()
    async with driven(make_agent(), tmp_path) as drive:
        workspace = drive.runtime.workspace
        (workspace / "notes.md").write_text("one\ntwo\nthree\n", "utf-8")
        (workspace / "link").symlink_to(tmp_path / "elsewhere")
        outcome = await drive.turn("it has files", decide=lambda _action: "approve")

    read, wrote, gone, secret, linked, empty, terminal = json.loads(outcome.answers[0])
    assert (read, wrote) == ({"content": "two\n"}, {})
    assert [each[0] for each in (gone, secret, linked, empty, terminal)] == [
        -32002,
        -32603,
        -32603,
        -32603,
        -32601,
    ]
    assert gone[1] == "Resource not found: gone.md"
    assert "is outside the workspace" in secret[1]
    assert (workspace / "notes.md").read_text("utf-8") == "new\n"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [each["path"] for each in outcome.payloads_of("file.changed")] == ["notes.md"]
    assert len(outcome.facts_of_class("action.required")) == 1


@pytest.mark.requirement("sources.acp.live.files")
async def test_an_agent_that_is_offered_no_files_gets_none(tmp_path: Path):
    async with driven(make_agent(offers_files=False), tmp_path) as drive:
        (drive.runtime.workspace / "notes.md").write_text("one\ntwo\n", "utf-8")
        outcome = await drive.turn("it has files", decide=lambda _action: "approve")

    assert [each[0] for each in json.loads(outcome.answers[0])] == [-32601] * 7
    assert outcome.facts_of_class("file.changed") == []


@pytest.mark.requirement("sources.acp.live.files")
async def test_what_was_allowed_is_not_asked_about_again_but_anything_else_is(tmp_path: Path):
    question: list[str] = []

    def decide(action: Any) -> str:
        question.append(action.prompt)
        return "approve" if "asked.md" in action.prompt else "deny"

    async with driven(make_agent(), tmp_path) as drive:
        outcome = await drive.turn("it edits", decide=decide)
        workspace = drive.runtime.workspace

    assert question == ["Allow asked.md?", "Allow it to write b.md?"]
    assert (workspace / "asked.md").exists()
    assert not (workspace / "b.md").exists()
    assert json.loads(outcome.answers[0])[1][0] == -32603


@pytest.mark.requirement("sources.acp.live.files")
async def test_another_text_than_was_shown_is_asked_about(tmp_path: Path):
    question: list[str] = []

    def decide(action: Any) -> str:
        question.append(action.prompt)
        return "deny" if "write" in action.prompt else "approve"

    async with driven(make_agent(), tmp_path) as drive:
        workspace = drive.runtime.workspace
        (workspace / "notes.md").write_text("one\ntwo\n", "utf-8")
        outcome = await drive.turn("it deceives", decide=decide)

    assert question == [
        "Allow both?",
        "Allow it to write asked.md?",
        "Allow it to write notes.md?",
    ]
    assert [each == {} for each in json.loads(outcome.answers[0])] == [True, False, True, False]
    assert (workspace / "asked.md").read_text("utf-8") == "one\n"
    assert (workspace / "notes.md").read_text("utf-8") == "one\n2\n"


def _swap(folder: Path) -> Path:
    """Put another folder with the same files in the place of one; where the first is now."""
    before = folder.rename(folder.with_name("before"))
    shutil.copytree(before, folder)
    return before


@pytest.mark.requirement("runtime.approval.place")
async def test_a_file_is_not_written_to_another_workspace_than_was_shown(tmp_path: Path):
    before: list[Path] = []

    def decide(action: Any) -> str:
        if action.prompt != "Allow it to write notes.md?":
            return "deny"
        before.append(_swap(workspace))
        return "approve"

    async with driven(make_agent(), tmp_path) as drive:
        workspace = drive.runtime.workspace.resolve()
        (workspace / "notes.md").write_text("one\ntwo\n", "utf-8")
        outcome = await drive.turn("it has files", decide=decide)

    code, message = json.loads(outcome.answers[0])[1]
    assert code == -32603
    assert "another one than when it was shown" in message
    for folder in (workspace, *before):
        assert (folder / "notes.md").read_text("utf-8") == "one\ntwo\n"


@pytest.mark.requirement("runtime.approval.place")
async def test_an_edit_that_was_allowed_is_asked_about_again_in_another_workspace(tmp_path: Path):
    before: list[Path] = []
    question: list[str] = []

    def decide(action: Any) -> str:
        question.append(action.prompt)
        if not before:
            before.append(_swap(workspace))
        return "deny" if "write" in action.prompt else "approve"

    async with driven(make_agent(), tmp_path) as drive:
        workspace = drive.runtime.workspace.resolve()
        await drive.turn("it edits", decide=decide)

    assert question[:2] == ["Allow asked.md?", "Allow it to write asked.md?"]
    assert not [folder for folder in (workspace, *before) if (folder / "asked.md").exists()]


@pytest.mark.requirement("sources.acp.live.files")
async def test_a_file_that_a_rule_denies_is_neither_read_nor_asked_about(tmp_path: Path):
    policy = Policy.of(deny=["Read(notes.md)", "Edit(notes.md)"])
    async with driven(make_agent(), tmp_path, policy=policy) as drive:
        notes = drive.runtime.workspace / "notes.md"
        notes.write_text("one\n", "utf-8")
        outcome = await drive.turn("it has files", decide=lambda _action: "deny")

    read, wrote, *_ = json.loads(outcome.answers[0])
    assert (read[0], wrote[0]) == (-32603, -32603)
    assert notes.read_text("utf-8") == "one\n"
    assert len(outcome.facts_of_class("permission.denied")) == 2
    assert [each["prompt"] for each in outcome.payloads_of("action.required")] == [
        "Allow it to write link/made.txt?"
    ]


@pytest.mark.requirement("sources.acp.live.turn")
@pytest.mark.parametrize("how", ["loads", "resumes"])
async def test_the_session_goes_on_and_its_history_is_not_told_again(tmp_path: Path, how: str):
    async with driven(make_agent(how), tmp_path) as drive:
        await drive.turn("it answers")
        outcome = await drive.turn("it answers")

    assert outcome.answers == ["Done.", "Done."]
    assert [each.event_class for each in outcome.facts].count("history.window.loaded") == 0
    assert outcome.payloads_of("session.updated") == []


@pytest.mark.requirement("sources.acp.live.turn")
async def test_an_agent_that_cannot_go_on_begins_anew_and_that_is_told(tmp_path: Path):
    async with driven(make_agent(), tmp_path) as drive:
        await drive.turn("it answers")
        outcome = await drive.turn("it answers")

    assert [each["code"] for each in outcome.payloads_of("runtime.warning")] == [
        "session_not_continued"
    ]
    assert outcome.status == "completed"


@pytest.mark.requirement("sources.acp.live.turn")
async def test_mode_and_model_are_chosen_of_what_the_agent_offers(tmp_path: Path):
    async with driven(make_agent(mode="code", model="large"), tmp_path) as drive:
        outcome = await drive.turn("it answers")

    titles = [each["title"] for each in outcome.payloads_of("session.updated") if "title" in each]
    assert titles == [
        'session/set_mode {"modeId": "code", "sessionId": "session-1"}',
        'session/set_config_option {"configId": "llm", "sessionId": "session-1", "value": "large"}',
    ]


@pytest.mark.requirement("sources.acp.live.inputs")
async def test_an_agent_is_given_what_it_says_it_can_take(tmp_path: Path):
    async with (
        driven(make_agent("sees"), tmp_path) as drive,
        driven(make_agent(), tmp_path / "b") as blind,
    ):
        refs = [await drive.runtime.blobs.put(data, kind="artifact") for data in (b"pic", b"one")]
        picture = AssetInput(kind="image", ref=refs[0].ref, media_type="image/png", name="a.png")
        text = AssetInput(kind="document", ref=refs[1].ref, media_type="text/plain", name="n.txt")
        seen = await drive.turn("it repeats", input=(picture, text))
        refused = await blind.turn("it repeats", input=(picture,))

    resource = {"uri": "attachment:n.txt", "mimeType": "text/plain", "text": "one"}
    assert json.loads(seen.answers[0]) == [
        {"type": "text", "text": "it repeats"},
        {"type": "image", "data": "cGlj", "mimeType": "image/png"},
        {"type": "resource", "resource": resource},
    ]
    assert refused.failure["failureCategory"] == "unsupported_input"


@pytest.mark.requirement("sources.acp.live.settings")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, InvalidAgent),
        ({"command": ["no-such-agent"]}, NotInstalled),
        ({"command": "opencode acp"}, InvalidAgent),
        ({"command": ["opencode"], "colour": "red"}, InvalidAgent),
    ],
)
async def test_settings_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[AgentError]
):
    with pytest.raises(error):
        acp.agent(AgentSettings(kind="acp", options=options))


@pytest.mark.requirement("sources.acp.live.policy")
async def test_what_a_person_allows_always_is_not_asked_again(tmp_path: Path):
    always = {"decision": "approve", "always": "thread"}
    async with driven(make_agent(), tmp_path) as drive:
        await drive.turn("it permits", decide=lambda _action: always)
        await drive.turn("it permits")
        outcome = await drive.turn("it permits")

    once = {"outcome": "selected", "optionId": "once"}
    assert [json.loads(answer) for answer in outcome.answers] == [once, once, once]
    assert [each["decidedBy"] for each in outcome.payloads_of("action.resolved")] == ["policy"]


@pytest.mark.requirement("sources.acp.live.approvals")
async def test_a_question_of_any_shape_can_be_judged_and_denied(tmp_path: Path):
    options = [
        {"optionId": "once", "kind": "allow_once"},
        {"optionId": "no", "kind": "reject_once"},
    ]
    call = {
        "toolCallId": "call-1",
        "kind": "execute",
        "rawInput": {"command": ["make", "it"], "cwd": "a\0b", "url": "http://example.org"},
        "content": [{"type": "diff", "path": "a\0b"}],
        "locations": [{"path": "/"}],
    }
    params = {"toolCall": call, "options": options}
    questions = {"id": 1, "method": "session/request_permission", "params": params}
    telling = FactBuilder("acp", thread_id="thread")
    results: list[Any] = []
    for [item] in spoil_fields([questions]):
        for response in ODD:
            question = read_question(item, telling, str(tmp_path))
            question.to_request()
            no = Decision(action_id="", allowed=False, decision="denied", response=response)
            results.append(question.to_result(no))
    assert not any("once" in json.dumps(result) for result in results)
