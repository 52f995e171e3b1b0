"""Any program, live, by a mapping: how it is asked, answered and stopped, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import is_valid, manifest_issues
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.runtime.sandbox import describe_unenforced_rules
from factwire.sources.kit.program import NotInstalled
from factwire.sources.mapped import live as mapped
from tests.sources.live.scripted import driven, program

pytestmark = pytest.mark.asyncio

RULES = """
mapping = 1
name = "tiny"
title = "Tiny"
type = "event"

[[on]]
type = "hello"
becomes = "ids"
ids = { sessionId = "session" }

[[on]]
type = "say"
becomes = "model.delta"
fields = { delta = "text" }

[[on]]
type = "said"
becomes = "model.completed"
fields = { text = "text" }

[[on]]
type = "run"
becomes = "tool.started"
ids = { toolCallId = "call" }
fields = { toolName = "tool" }

[[on]]
type = "may-i"
becomes = "action.required"
ids = { actionId = "question", toolCallId = "call" }
fields = { actionType = { const = "tool_approval" }, prompt = "text" }

[[on]]
type = "ran"
becomes = "tool.result"
ids = { toolCallId = "call" }
"""
ENDS = """
[[on]]
type = "bye"
when = { why = "done" }
becomes = "turn.completed"

[[on]]
type = "bye"
when = { why = { not = "done" } }
becomes = "turn.failed"
fields = { failureCategory = "why", message = "text" }
"""
STDIN = """
[stdin]
prompt = { fields = { do = { const = "ask" }, text = "prompt" } }
stop = { fields = { do = { const = "stop" }, of = "session" } }

[stdin.answer.fields]
do = { const = "decide" }
id = "actionId"
yes = "allowed"
why = "reason"
tag = "item.tag"
"""


def make_agent(folder: Path, how: str = "text", rules: str = RULES + ENDS, **options: Any) -> Any:
    file = folder / "tiny.toml"
    file.write_text(rules + (STDIN if how == "lines" else ""), "utf-8")
    command = [program("mapped_program.py", folder), how]
    if how == "argument":
        command.append("{prompt}")
    settings = {"command": command, "mapping": str(file), **options}
    return mapped.agent(AgentSettings(kind="mapped", options=settings))


@pytest.mark.requirement("sources.mapped.live.turn")
@pytest.mark.parametrize("how", ["text", "argument", "lines"])
async def test_a_prompt_arrives_in_the_way_that_the_program_knows(tmp_path: Path, how: str):
    async with driven(make_agent(tmp_path, how), tmp_path) as drive:
        outcome = await drive.turn("he answers")

    assert (outcome.status, outcome.answers) == ("completed", ["You said: he answers"])
    assert outcome.payloads_of("session.updated") == [{"agentSessionId": "s-1"}]


@pytest.mark.requirement("sources.mapped.live.turn")
async def test_the_next_turn_goes_on_with_the_session_and_gets_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEST_NAMED", "1")
    monkeypatch.setenv("TEST_OTHER", "1")
    name = program("mapped_program.py", tmp_path)
    resume = [name, "argument", "--session", "{session}", "{prompt}"]
    async with driven(
        make_agent(tmp_path, "argument", resume=resume, env=["TEST_NAMED"]), tmp_path
    ) as drive:
        first = json.loads((await drive.turn("--force he repeats")).answers[-1])
        outcome = await drive.turn("he repeats")

    # What a person says is no option.
    assert first["argv"] == ["argument", " --force he repeats"]
    assert first["names"] == ["TEST_NAMED"]
    second = json.loads(outcome.answers[-1])
    assert second["argv"] == ["argument", "--session", "s-1", "he repeats"]
    assert outcome.payloads_of("session.updated") == []


@pytest.mark.requirement("sources.mapped.live.ends")
@pytest.mark.parametrize(
    ("prompt", "options", "category", "message"),
    [
        ("he dies", {}, "nonzero_exit", "exit code 1: out of memory after he dies"),
        ("he gives_up", {}, "no_idea", "It is too hard"),
        ("he ends", {}, "stream_interrupted", "Tiny ended before the turn did: exit code 0"),
        ("deaf", {"how": "deaf"}, "nonzero_exit", "exit code 1: error: no licence"),
    ],
)
async def test_a_program_that_fails_ends_the_turn_and_says_why(
    tmp_path: Path, prompt: str, options: dict[str, Any], category: str, message: str
):
    async with driven(make_agent(tmp_path, **options), tmp_path) as drive:
        outcome = await drive.turn(prompt)

    assert outcome.failure["failureCategory"] == category
    assert message in outcome.failure["message"]


@pytest.mark.requirement("sources.mapped.live.ends")
async def test_where_a_mapping_knows_no_end_the_exit_code_is_one(tmp_path: Path):
    async with driven(make_agent(tmp_path, rules=RULES), tmp_path) as drive:
        well = await drive.turn("he ends")
        ill = await drive.turn("he dies")

    assert (well.status, ill.status) == ("completed", "failed")
    assert [each["text"] for each in well.payloads_of("model.completed")] == ["he ends"]


@pytest.mark.requirement("sources.mapped.live.ends")
async def test_what_cannot_be_read_is_a_warning_and_the_turn_goes_on(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("he babbles")

    codes = [each["code"] for each in outcome.payloads_of("runtime.warning")]
    assert codes == ["unreadable_source_item", "unknown_source_item"]
    assert outcome.answers == ["You said: he babbles"]


@pytest.mark.requirement("sources.mapped.live.control")
async def test_a_program_is_stopped_by_its_own_line_or_as_any_program(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        turn = await drive.submit("he hangs")
        await drive.wait_for_fact("model.delta")
        killed = await drive.cancel(turn)
    async with driven(make_agent(tmp_path, "lines"), tmp_path) as drive:
        turn = await drive.submit("he stops")
        await drive.wait_for_fact("model.delta")
        stopped = await drive.cancel(turn)

    assert (killed.status, stopped.status) == ("canceled", "canceled")
    assert [json.loads(text) for text in stopped.answers] == [{"do": "stop", "of": "s-1"}]
    assert list(tmp_path.glob("data/processes/*")) == []  # noqa: ASYNC240 - a small folder


@pytest.mark.requirement("sources.mapped.live.approvals")
@pytest.mark.parametrize(("decision", "yes"), [("approve", True), ("deny", False)])
async def test_a_decision_is_written_as_the_mapping_says(
    tmp_path: Path, decision: str, *, yes: bool
):
    payloads = {"decision": decision, "reason": "so it is"}
    async with driven(make_agent(tmp_path, "lines"), tmp_path) as drive:
        outcome = await drive.turn("he asks", decide=lambda _action: payloads)

    expected = {"do": "decide", "id": "7", "yes": yes, "why": "so it is", "tag": "blue"}
    assert json.loads(outcome.answers[-1]) == expected
    assert [each["applied"] for each in outcome.payloads_of("action.updated")] == [False, True]
    assert outcome.status == "completed"


@pytest.mark.requirement("sources.mapped.live.approvals")
async def test_what_cannot_be_answered_is_told_and_closed(tmp_path: Path):
    agent = make_agent(tmp_path)
    async with driven(agent, tmp_path) as drive:
        outcome = await drive.turn("he asks")

    assert agent.manifest.approvals == "none"
    assert [len(outcome.facts_of_class(f"action.{end}")) for end in ("required", "cancelled")] == [
        1,
        1,
    ]
    assert (outcome.status, outcome.answers) == ("completed", ["null"])


@pytest.mark.requirement("sources.mapped.live.settings")
async def test_a_manifest_says_what_the_mapping_has_rules_for(tmp_path: Path):
    manifest = make_agent(tmp_path, "lines").manifest

    assert (manifest.agent_id, manifest.title, manifest.approvals) == ("tiny", "Tiny", "inline")
    assert (manifest.streaming.text, manifest.streaming.reasoning) == ("yes", "no")
    assert "approve" in manifest.controls
    assert is_valid(manifest_issues(manifest))


@pytest.mark.requirement("sources.mapped.live.settings")
@pytest.mark.parametrize(
    ("how", "options", "message"),
    [
        ("text", {"command": []}, "needs the option command"),
        ("text", {"mapping": ""}, "needs the option mapping"),
        ("text", {"mapping": "none.toml"}, "cannot be read"),
        ("text", {"command": ["cat", "{session}"]}, "belongs in the option resume"),
        ("text", {"resume": ["cat", "{prompt}"]}, "belongs in the option resume"),
        ("text", {"command": ["cat", "--say={prompt}"]}, "must be separate arguments"),
        ("lines", {"command": ["cat", "{prompt}"]}, "the prompt is passed twice"),
        ("text", {"rules": RULES.replace('"event"', "1")}, "a bare int"),
        ("text", {"rules": RULES + "[stdin]\nanswer = 'x'\n"}, "stdin.answer expected an object"),
        ("text", {"rules": RULES + "[stdin]\nsteer = 'x'\n"}, "stdin.steer expected one of"),
        (
            "text",
            {"rules": RULES + "[stdin]\nanswer = { fields = { a = 'actionId' } }\n"},
            "the prompt needs",
        ),
        (
            "text",
            {"rules": "framing = 'events'\n" + RULES},
            "the output of a program is read line by line",
        ),
        ("text", {"colour": "red"}, "colour"),
    ],
)
async def test_what_cannot_work_is_refused_before_anything_runs(
    tmp_path: Path, how: str, options: dict[str, Any], message: str
):
    with pytest.raises(InvalidAgent, match=message):
        make_agent(tmp_path, how, **options)


@pytest.mark.requirement("sources.mapped.live.settings")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(NotInstalled, match="no-such-program"):
        make_agent(tmp_path, command=["no-such-program"])
    with pytest.raises(InvalidAgent, match="does not accept a model"):
        mapped.agent(AgentSettings(kind="mapped", model="gpt"))


@pytest.mark.requirement("runtime.policy.unenforced")
async def test_a_program_of_its_own_comes_with_the_rules_that_no_sandbox_enforces(tmp_path: Path):
    policy = Policy.of(deny=["Read(**/.env)", "Bash(rm *)"])
    async with driven(make_agent(tmp_path), tmp_path, policy=policy) as drive:
        outcome = await drive.turn("he answers")

    message = describe_unenforced_rules(policy.denied_paths)
    assert outcome.payloads_of("runtime.warning") == [
        {"code": "path_rules_not_enforced", "message": message}
    ]
    assert outcome.answers == ["You said: he answers"]
