"""Claude Code, live: whatever its process does, its turn ends, and says how."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import CapabilityInput, Fact, inspect_stream, verify
from factwire.journal.blobs import MemoryBlobs
from factwire.journal.protocol import open_journal
from factwire.projection import ProjectionState
from factwire.projection.messages import TextPart
from factwire.runtime import Runtime, TurnSettings
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes
from factwire.runtime.turn_resources import TurnResources
from factwire.sources.claude_code.live import agent, read_setup
from factwire.sources.claude_code.permission_requests import check_before_call, make_request
from factwire.sources.kit.program import NotInstalled
from tests.runtime.agents import decide_shown, facts_of, open_action, wait_for_end

SCRIPT = Path(__file__).with_name("claude_program.py")


class Told:
    """What became of a turn."""

    def __init__(self, status: str, facts: list[Fact], state: ProjectionState) -> None:
        self.status = status
        self.facts = facts
        self.state = state

    def payloads_of(self, event_class: str) -> list[dict[str, Any]]:
        return [fact.payload for fact in self.facts if fact.event_class == event_class]

    @property
    def answers(self) -> list[str]:
        texts = [
            "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))
            for message in self.state.messages
            if message.role == "assistant"
        ]
        return [text for text in texts if text]

    @property
    def failure(self) -> tuple[str, str]:
        [failed] = self.payloads_of("turn.failed")
        return failed["failureCategory"], failed["message"]


@pytest.fixture
def program(tmp_path: Path) -> str:
    """Claude Code, as far as anybody can tell from its path."""
    path = tmp_path / "claude"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {SCRIPT} "$@"\n')
    path.chmod(0o755)
    return str(path)


@asynccontextmanager
async def run_claude(
    folder: Path, settings: AgentSettings, policy: Policy | None = None
) -> AsyncGenerator[Runtime]:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    blobs = MemoryBlobs()
    processes = Processes(folder / "data", workspaces=[workspace])
    means = TurnResources(blobs=blobs, processes=processes, policy=policy or Policy())
    async with (
        open_journal("memory:") as journal,
        Runtime(
            journal,
            blobs,
            {"agent": agent(settings)},
            workspace=workspace,
            resources=means,
            settings=TurnSettings(interrupt_seconds=0.3),
        ) as runtime,
    ):
        yield runtime
        assert await processes.reap() == []


async def facts_from(runtime: Runtime) -> Told:
    status = await wait_for_end(runtime, "turn")
    facts = await facts_of(runtime)
    assert inspect_stream(facts) == []
    assert verify(facts) == []
    return Told(status, facts, await runtime.state("thread"))


def settings(program: str, **options: Any) -> AgentSettings:
    return AgentSettings(kind="claude-code", options={"command": program, **options})


async def turn(
    folder: Path, what: str, settings: AgentSettings, policy: Policy | None = None
) -> Told:
    async with run_claude(folder, settings, policy) as runtime:
        await runtime.submit("thread", "agent", f"Please do {what}", turn_id="turn")
        return await facts_from(runtime)


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.failures")
@pytest.mark.parametrize(
    ("what", "options", "failure"),
    [
        ("dies", {}, ("stream_interrupted", "exit code 1: out of memory")),
        ("dies_answering_again", {}, ("stream_interrupted", "exit code 1: out of luck")),
        ("dies", {"args": ["--bad-option"]}, ("stream_interrupted", "unknown option")),
        ("dies", {"args": ["--refuse"]}, ("provider_error", "hooks are not known")),
        ("dies", {"args": ["--mute"], "start_seconds": 0.2}, ("agent_silent", "in 0.2 s")),
    ],
)
async def test_a_process_that_fails_fails_its_turn_with_its_words(
    tmp_path: Path, program: str, what: str, options: dict[str, Any], failure: tuple[str, str]
):
    category, message = failure
    found = await turn(tmp_path, what, settings(program, **options))
    assert found.status == "failed"
    assert found.failure[0] == category
    assert message in found.failure[1]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.failures")
async def test_what_is_no_message_is_a_warning_and_the_turn_goes_on(tmp_path: Path, program: str):
    found = await turn(tmp_path, "babbles", settings(program))
    assert found.status == "completed"
    assert found.answers == ["Done."]
    codes = [row["code"] for row in found.payloads_of("runtime.warning")]
    assert codes == ["unreadable_source_item", "unknown_source_item"]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.stop")
async def test_one_that_does_not_hear_the_interrupt_is_ended(tmp_path: Path, program: str):
    async with run_claude(tmp_path, settings(program)) as runtime:
        await runtime.submit("thread", "agent", "Please do hangs", turn_id="turn")
        await ready(runtime, "model.completed")
        await runtime.cancel("thread", "turn")
        found = await facts_from(runtime)
    assert found.status == "canceled"
    assert "cancelling" in [row["status"] for row in found.payloads_of("run.status")]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.end")
@pytest.mark.parametrize(
    ("what", "answers", "ends"),
    [
        ("tells_no_states", ["Done."], []),
        ("waits_for_a_command", ["It runs.", "It has ended."], ["task.completed"]),
        ("leaves_a_command_running", ["It runs."], ["task.cancelled"]),
    ],
)
async def test_a_turn_ends_when_no_answer_is_to_come_and_nothing_more_is_waited_for(
    tmp_path: Path, program: str, what: str, answers: list[str], ends: list[str]
):
    found = await turn(tmp_path, what, settings(program, background_seconds=0.3))
    assert (found.status, found.answers) == ("completed", answers)
    assert len(found.payloads_of("turn.completed")) == 1
    told_ends = [each.event_class for each in found.facts if each.task_id == "shell-1"][1:]
    assert told_ends == ends


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.asks")
@pytest.mark.parametrize(
    ("what", "decision", "heard"),
    [
        (
            "asks_leave",
            {"decision": "approve"},
            {"behavior": "allow", "updatedInput": {"command": "make deploy"}},
        ),
        (
            "asks_leave",
            {
                "decision": "approve",
                "response": {
                    "updatedPermissions": [
                        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
                        {
                            "type": "addRules",
                            "rules": [{"toolName": "Bash"}],
                            "destination": "session",
                        },
                    ]
                },
            },
            {
                "behavior": "allow",
                "updatedInput": {"command": "make deploy"},
                "updatedPermissions": [
                    {"type": "addRules", "rules": [{"toolName": "Bash"}], "destination": "session"}
                ],
            },
        ),
        (
            "asks_leave",
            {"decision": "deny", "reason": "Not today."},
            {"behavior": "deny", "message": "Not today."},
        ),
        (
            "asks_a_question",
            {"decision": "answer", "response": "A"},
            {"behavior": "allow", "answers": {"Which?": "A"}},
        ),
        (
            "asks_a_question",
            {"decision": "approve"},
            {"behavior": "deny", "message": "No answer was given."},
        ),
        (
            "elicits",
            {"decision": "answer", "response": {"name": "Ada"}},
            {"action": "accept", "content": {"name": "Ada"}},
        ),
        ("elicits", {"decision": "deny"}, {"action": "decline"}),
    ],
)
async def test_a_decision_is_said_in_its_own_words_and_grants_no_more_than_was_offered(
    tmp_path: Path, program: str, what: str, decision: dict[str, Any], heard: dict[str, Any]
):
    async with run_claude(tmp_path, settings(program)) as runtime:
        await runtime.submit("thread", "agent", f"Please do {what}", turn_id="turn")
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, by="lena", **decision)
        found = await facts_from(runtime)

    [answer] = map(json.loads, found.answers)
    answer |= {"answers": answer["updatedInput"]["answers"]} if "answers" in heard else {}
    assert {name: answer.get(name) for name in heard} == heard
    assert "updatedPermissions" not in answer or "updatedPermissions" in heard
    assert found.state.actions[action].applied is True
    assert len(found.payloads_of("action.resolved")) == 1


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.always")
async def test_what_a_person_allowed_always_is_asked_of_nobody_again(tmp_path: Path, program: str):
    async with run_claude(tmp_path, settings(program)) as runtime:
        await runtime.submit("thread", "agent", "Please do asks_leave_twice", turn_id="turn")
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, "approve", by="lena", always="thread")
        found = await facts_from(runtime)

    assert found.answers == ["allow allow"]
    decided = [(row["decidedBy"], row["decision"]) for row in found.payloads_of("action.resolved")]
    assert decided == [("lena", "approved"), ("policy", "approved")]
    assert all(each.applied for each in found.state.actions.values())


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.steer")
async def test_what_is_said_into_a_turn_is_answered_before_it_ends(tmp_path: Path, program: str):
    async with run_claude(tmp_path, settings(program)) as runtime:
        await runtime.submit("thread", "agent", "Please do listens", turn_id="turn")
        await ready(runtime, "model.completed")
        key = CapabilityInput(ref="capability:key")
        await runtime.steer("thread", "With this key.", steer_id="s-1", input=(key,))
        await runtime.steer("thread", "Hello there.", steer_id="s-2")
        found = await facts_from(runtime)

    assert (found.status, found.answers) == ("completed", ["Go on.", "You said: Hello there."])
    assert [row["code"] for row in found.payloads_of("runtime.warning")] == ["unsupported_input"]
    assert [steer.status for steer in found.state.queue.steers] == ["delivered", "delivered"]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.rules")
@pytest.mark.parametrize(
    ("what", "policy", "behavior"),
    [
        ("asks_leave", Policy.of(allow=["Bash(make *)"]), "allow"),
        ("asks_leave", Policy.of(deny=["Bash(make *)"]), "deny"),
        ("asks_leave", Policy.of("dontAsk"), "deny"),
        ("asks_a_question", Policy.of("dontAsk", allow=["*"]), "deny"),
    ],
)
async def test_what_the_policy_decides_is_asked_of_nobody(
    tmp_path: Path, program: str, what: str, policy: Policy, behavior: str
):
    found = await turn(tmp_path, what, settings(program), policy)
    assert found.status == "completed"
    [answer] = map(json.loads, found.answers)
    assert answer["behavior"] == behavior
    assert found.state.actions == {}
    denials = 1 if (what, behavior) == ("asks_leave", "deny") else 0
    assert len(found.payloads_of("permission.denied")) == denials


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.failures")
async def test_what_it_asks_and_nobody_offers_is_refused_at_once(tmp_path: Path, program: str):
    found = await turn(tmp_path, "asks_what_nobody_offers", settings(program))
    [answer] = map(json.loads, found.answers)
    assert (answer["subtype"], answer["error"]) == ("error", "open_a_door is not supported")
    assert [row["code"] for row in found.payloads_of("runtime.warning")] == ["unknown_source_item"]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.environment")
async def test_keys_pass_by_name_and_what_is_not_its_own_does_not(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOUSE_KEY", "opens the house")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/there")
    monkeypatch.setenv("OTHER_SECRET", "of others")
    arguments = AgentSettings(
        kind="claude-code",
        model="small",
        base_url="http://127.0.0.1:9",
        api_key_env="HOUSE_KEY",
        options={"command": program, "permission_mode": "acceptEdits", "args": ["--bare"]},
    )
    found = await turn(tmp_path, "shows_itself", arguments)
    [shown] = map(json.loads, found.answers)
    argv = shown.pop("argv")
    assert argv[argv.index("--model") + 1] == "small"
    assert argv[argv.index("--permission-mode") + 1] == "acceptEdits"
    assert argv[-1] == "--bare"
    assert "opens the house" not in argv
    assert shown["CLAUDE_CONFIG_DIR"] == "/there"
    assert shown["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert shown["ANTHROPIC_API_KEY"] is not None
    assert shown["OTHER_SECRET"] is None


@pytest.mark.requirement("sources.claude-code.live.setup")
def test_what_cannot_be_set_is_refused_and_what_is_missing_is_named(
    program: str, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(InvalidAgent, match="modle"):
        agent(settings(program, modle="small"))
    with pytest.raises(InvalidAgent, match="permission_mode"):
        agent(settings(program, permission_mode="yolo"))
    with pytest.raises(NotInstalled, match="claude-code"):
        agent(settings("/nowhere/claude"))
    monkeypatch.setenv("PATH", "")
    assert Path(read_setup(AgentSettings(kind="claude-code")).program).name == "claude"
    argv = read_setup(settings(program, permission_mode="default")).to_argv(
        model="big", session="s-1"
    )
    assert "--permission-mode" not in argv
    assert argv[-3:] == ("--model", "big", "--resume=s-1")


@pytest.mark.asyncio
@pytest.mark.requirement("sources.claude-code.live.rules")
@pytest.mark.parametrize(
    ("policy", "status"),
    [(Policy(), "completed"), (Policy.of(deny=["Read(.env)"]), "failed")],
)
async def test_one_that_rules_could_not_hold_is_not_worked_with_under_rules(
    tmp_path: Path, program: str, policy: Policy, status: str
):
    found = await turn(tmp_path, "tells_no_states", settings(program, args=["--old"]), policy)
    assert found.status == status
    failures = [row["failureCategory"] for row in found.payloads_of("turn.failed")]
    assert failures == (["policy_not_enforced"] if status == "failed" else [])


@pytest.mark.requirement("sources.claude-code.live.rules")
@pytest.mark.parametrize(
    ("policy", "name", "args", "decision"),
    [
        (Policy(), "Bash", {"command": "rm -r x"}, None),
        (Policy.of(deny=["Bash(rm *)"]), "Bash", {"command": "true && rm x"}, "deny"),
        (Policy.of(deny=["Bash(rm *)"]), "Monitor", {"command": "rm x"}, "deny"),
        (Policy.of(ask=["Bash(ls *)"]), "Bash", {"command": "ls -1"}, "ask"),
        (Policy.of("dontAsk", ask=["Bash(ls *)"]), "Bash", {"command": "ls -1"}, "deny"),
        (Policy.of("dontAsk"), "Bash", {"command": "ls -1"}, None),
        (Policy.of("plan"), "Write", {"file_path": "a.txt", "content": "b"}, "deny"),
        (Policy.of("plan"), "ExitPlanMode", {}, None),
        (Policy.of(deny=["AskUserQuestion"]), "AskUserQuestion", {}, "deny"),
        (Policy.of(deny=["Read(secret/**)"]), "Read", {"file_path": "secret/a"}, "deny"),
        (Policy.of(deny=["WebFetch(domain:a.org)"]), "WebFetch", {"url": "http://a.org"}, "deny"),
        (Policy.of(deny=["*"]), "Odd", None, "deny"),
        (Policy(), "Bash", {"command": "echo x | sh"}, None),
        (Policy.of(deny=["Read(.env)"]), "Bash", {"command": "echo x | sh"}, "ask"),
        (Policy.of("dontAsk", deny=["Read(.env)"]), "Bash", {"command": "echo x | sh"}, "deny"),
        (Policy.of(deny=["Read(.env)"]), "Bash", {"command": "cat .e*"}, "ask"),
        (Policy.of(deny=["Read(.env)"]), "Bash", {"command": "make"}, None),
    ],
)
def test_before_a_call_only_rules_speak(
    tmp_path: Path, policy: Policy, name: str, args: Any, decision: str | None
):
    place = str(tmp_path.resolve())
    assert (
        check_before_call(policy, make_request(name, args, workspace=place, cwd=place)) == decision
    )


async def ready(runtime: Runtime, event_class: str) -> None:
    """Wait until a fact of a class is on the thread."""
    async for batch in runtime.journal.follow():
        if any(fact.event_class == event_class for _, fact in batch.facts()):
            return
