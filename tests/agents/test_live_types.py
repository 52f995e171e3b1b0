"""Event types that only agents of others emit: Claude Code and Codex at work on a running Edge."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.runtime.configuration import AgentSettings
from tests.agents.conftest import Aimock
from tests.agents.homes import AgentHome
from tests.agents.replies import Reply, calls, says
from tests.agents.test_claude_code import bash
from tests.agents.test_codex import PATCH
from tests.edge.edges import RunningEdge, configuration_in, running_edge
from tests.edge.live_types import Shown, assert_shows, read_shown, types_of

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("edge.events.live")]

ROUTE = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["delegate", "review", "approve", "finish"]},
        "next_worker": {"type": "string"},
        "instructions": {"type": "string"},
        "reasoning": {"type": "string"},
    },
    "required": ["action", "next_worker", "instructions", "reasoning"],
    "additionalProperties": False,
}
DECISION = {
    "action": "delegate",
    "next_worker": "writer",
    "instructions": "Write it up.",
    "reasoning": "It is read.",
}


@asynccontextmanager
async def edge_of(home: AgentHome, kind: str, **options: Any) -> AsyncGenerator[RunningEdge]:
    """An Edge whose agent works in a home."""
    folder = home.folder / "edge"
    folder.mkdir()
    conf = configuration_in(folder, agents={kind: AgentSettings(kind=kind, options=options)})
    conf = msgspec.structs.replace(conf, agent=kind, workspaces=(str(home.workspace),))
    async with running_edge(folder, configuration=conf) as edge:
        yield edge


async def play(edge: RunningEdge, agent: str, *prompts: str, **options: Any) -> Shown:
    """What an agent shows of these prompts, allowed whatever it asks for."""
    thread = None
    for prompt in prompts:
        more = {} if thread is None else {"threadId": thread}
        run = await edge.start(prompt, agent, options=options, **more)
        thread = run["threadId"]
        await edge.allow_all(run["runId"])
    return await read_shown(edge)


def payloads(shown: Shown, name: str) -> list[dict[str, Any]]:
    """Payloads of a type in one view."""
    return [envelope["payload"] for envelope in shown[name]][: len(shown[name]) // 2]


def with_usage(reply: Reply, read: int, written: int) -> Reply:
    names = ("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")
    usage = dict.fromkeys(names[0], read) | dict.fromkeys(names[1], written)
    usage["total_tokens"] = read + written
    return {**reply, "response": {**reply["response"], "usage": usage}}


def hook_after_commands(home: AgentHome, command: str) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    settings = Path(home.environment["CLAUDE_CONFIG_DIR"], "settings.json")
    settings.write_text(json.dumps({"hooks": {"PostToolUse": [hook]}}), "utf-8")


async def test_claude_shows_its_session_its_hooks_and_what_its_calls_came_to(
    aimock: Aimock, agent_home: AgentHome, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1")
    hook_after_commands(agent_home, "echo hooked; echo careful >&2; sleep 2")
    agent_home.anthropic(
        aimock(
            with_usage(says("All made.", tool_call_id="toolu_made"), 1_000, 20),
            bash("touch made.txt", "toolu_made", user_message="Make it"),
            says("Made a thing."),
        )
    )
    async with edge_of(agent_home, "claude-code") as edge:
        shown = await play(edge, "claude-code", "Make it.")
    assert_shows(shown, [*types_of("claude tools"), "run.agent.session_init"])
    [ended] = payloads(shown, "run.agent.hook_response")
    assert (ended["stdout"], ended["stderr"], ended["exitCode"]) == ("hooked\n", "careful\n", 0)
    [summary] = payloads(shown, "run.agent.tool_use_summary")
    assert summary["toolUseIds"] == ["toolu_made"]
    [usage] = payloads(shown, "run.agent.context_usage")
    assert (usage["inputTokens"], usage["outputTokens"]) == (1_000, 20)
    [result] = payloads(shown, "run.agent.result")
    assert (result["turns"], result["stopReason"]) == (2, "end_turn")


async def test_claudes_subagents_are_tasks_with_their_call_their_tool_and_their_usage(
    aimock: Aimock, agent_home: AgentHome
):
    task = {
        "description": "Count the files",
        "prompt": "SUBWORK: count the files here",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    agent_home.anthropic(
        aimock(
            says("There is one file.", user_message="SUBWORK", has_tool_result=True),
            bash("ls -1", "toolu_ls", user_message="SUBWORK"),
            says("Counted.", user_message="Delegate", has_tool_result=True),
            calls("Agent", task, call_id="toolu_agent", user_message="Delegate"),
        )
    )
    async with edge_of(agent_home, "claude-code") as edge:
        shown = await play(edge, "claude-code", "Delegate the counting.")
    assert_shows(shown, [*types_of("claude team"), "run.agent.sub_agents_complete"])
    [started] = payloads(shown, "run.agent.task_started")
    assert (started["callId"], started["description"]) == ("toolu_agent", "Count the files")
    [progress] = payloads(shown, "run.agent.task_progress")
    assert (progress["lastToolName"], progress["usage"]["toolUses"]) == ("Bash", 1)
    [ended] = payloads(shown, "run.agent.task_notification")
    assert (ended["status"], ended["summary"]) == ("completed", "There is one file.")
    assert ended["taskId"] == started["taskId"]
    [team] = payloads(shown, "run.agent.sub_agents_complete")
    assert (team["childCount"], team["allComplete"]) == (1, True)


async def test_claude_tells_what_it_folds_and_that_it_is_asked_to_stop(
    aimock: Aimock, agent_home: AgentHome
):
    agent_home.anthropic(
        aimock(
            says("<summary>We spoke of green.</summary>", user_message="detailed summary"),
            says("Green it is.", user_message="favourite"),
            bash("touch never.txt", "toolu_never", user_message="run it"),
        )
    )
    async with edge_of(agent_home, "claude-code") as edge:
        await play(edge, "claude-code", "My favourite colour is green.", "/compact")
        run = await edge.start("Now run it.", "claude-code")
        await edge.wait_for_approval(run["runId"])
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        await edge.run_until(run["runId"])
        shown = await read_shown(edge)
    assert_shows(shown, [*types_of("claude compaction"), *types_of("claude mode")])


@pytest.mark.parametrize("kind", ["claude-code", "codex"])
async def test_a_structured_answer_of_a_coordinator_is_a_route_decision(
    aimock: Aimock, agent_home: AgentHome, kind: str
):
    answer = calls("StructuredOutput", DECISION, call_id="toolu_route")
    if kind == "claude-code":
        agent_home.anthropic(aimock(says("Done.", tool_call_id="toolu_route"), answer))
    else:
        agent_home.codex(aimock(says(json.dumps(DECISION))))
    async with edge_of(agent_home, kind) as edge:
        shown = await play(edge, kind, "Who goes on?", outputSchema=ROUTE)
    assert_shows(shown, types_of("claude route"))
    [route] = payloads(shown, "run.agent.route_decision")
    assert route == DECISION
    [result] = payloads(shown, "run.agent.result")
    assert (result["success"], result["structuredOutput"]) == (True, DECISION)


async def test_codex_reports_what_a_turn_changed_and_that_it_folds_its_context(
    aimock: Aimock, agent_home: AgentHome
):
    agent_home.codex(
        aimock(
            calls("exec_command", {"cmd": PATCH}, user_message="patch", has_tool_result=False),
            with_usage(says("Done."), 1_500, 100),
        )
    )
    (agent_home.workspace / "notes.md").write_text("one\n", "utf-8")
    config = {"model_auto_compact_token_limit": 1_000, "model_context_window": 2_000}
    async with edge_of(agent_home, "codex", config=config, sandbox="danger-full-access") as edge:
        shown = await play(edge, "codex", "patch it", "and now?")
    assert_shows(shown, [*types_of("codex files"), *types_of("codex compaction")])
    [session, _] = payloads(shown, "run.agent.session_init")
    assert {"model", "permissionMode", "version", "sessionId", "cwd"} <= set(session)
