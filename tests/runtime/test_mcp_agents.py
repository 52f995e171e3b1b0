"""The openai agent with tools of MCP servers: what the model is told, hears, and cannot do."""

import asyncio
from pathlib import Path

import pytest

from factwire.journal import open_journal
from factwire.runtime import Runtime
from factwire.runtime.agents.openai_conversation import TOOL_TEXTS
from factwire.runtime.configuration import McpServer
from factwire.runtime.policy import Policy
from tests.runtime.agents import WAIT, decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.fake_model import FakeModel, calls, text
from tests.runtime.fake_model_runs import run_model_agent, talk
from tests.runtime.mcp_library_server import make_server
from tests.runtime.mcp_turns import FREELY, make_kept, raw, serve_http
from tests.runtime.programs import children
from tests.runtime.toolboxes import assert_sound, wait_for_fact

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("runtime.mcp.agent")
async def test_a_model_is_told_of_the_tools_of_servers_and_calls_them(tmp_path: Path):
    async with serve_http(make_server()) as url:
        means = make_kept(tmp_path, lib=McpServer(url=url, allow_tools=("add", "grow", "late")))
        wanted = (
            calls(("mcp__lib__add", {"a": 2, "b": 3}), ("mcp__lib__grow", {})),
            calls(("mcp__lib__add", "{broken"), ids=["call_bad"]),
            text("Five."),
        )
        done, model = await talk(tmp_path, *wanted, kept=means)

    assert (done.status, done.answers) == ("completed", ["Five."])
    functions = {
        each["function"]["name"]: each["function"] for each in model.requests[0].body["tools"]
    }
    assert set(functions) == {*TOOL_TEXTS, "mcp__lib__add", "mcp__lib__grow"}
    assert functions["mcp__lib__add"]["description"].startswith("Add two numbers.")
    assert functions["mcp__lib__add"]["parameters"]["required"] == ["a", "b"]
    assert model.requests[1].contents_of("tool") == ["5", "grown"]
    assert [payload["failureCategory"] for payload in done.payloads_of("tool.failed")] == [
        "invalid_arguments"
    ]


@pytest.mark.requirement("runtime.mcp.agent")
async def test_an_agent_goes_on_without_a_server_that_cannot_be_had(tmp_path: Path):
    means = make_kept(tmp_path, raw=raw("broken"))
    done, model = await talk(
        tmp_path, calls(("mcp__raw__echo", {})), text("Never mind."), kept=means
    )

    assert (done.status, done.answers) == ("completed", ["Never mind."])
    assert len(model.requests[0].body["tools"]) == len(TOOL_TEXTS)
    assert "server_unavailable" in [
        payload["code"] for payload in done.payloads_of("runtime.warning")
    ]
    assert [payload["failureCategory"] for payload in done.payloads_of("tool.failed")] == [
        "unknown_tool"
    ]


@pytest.mark.requirement("runtime.mcp.cancel")
@pytest.mark.parametrize("how", ["silent", "form"])
async def test_cancelling_ends_the_call_here_and_at_the_server(tmp_path: Path, how: str):
    async def meanwhile(runtime: Runtime, _: FakeModel) -> None:
        waited = "runtime.warning" if how == "silent" else "action.required"
        await wait_for_fact(runtime, waited)
        async with asyncio.timeout(WAIT):
            await runtime.cancel("thread", "turn-1")

    before = children()
    means = make_kept(tmp_path, raw=raw(how))
    done, _ = await talk(tmp_path, calls(("mcp__raw__echo", {})), kept=means, meanwhile=meanwhile)

    assert done.status == "canceled"
    [tool] = done.state.tools.values()
    assert (tool.state, tool.failure_category) == ("cancelled", "cancelled")
    if how == "silent":
        assert (means.workspace / "cancelled").exists()
    assert [action.status for action in done.state.actions.values()] == ["cancelled"] * (
        how == "form"
    )
    assert children() == before


@pytest.mark.requirement("runtime.mcp.cancel")
async def test_cancelling_while_a_server_starts_leaves_no_program(tmp_path: Path):
    async def meanwhile(runtime: Runtime, _: FakeModel) -> None:
        await wait_for_fact(runtime, "process.started")
        async with asyncio.timeout(WAIT):
            await runtime.cancel("thread", "turn-1")

    before = children()
    means = make_kept(tmp_path, raw=raw("slow"))
    done, model = await talk(tmp_path, kept=means, meanwhile=meanwhile)

    assert done.status == "canceled"
    assert len(done.facts_of_class("process.terminated")) == 1
    assert children() == before
    assert model.requests == []


@pytest.mark.requirement("runtime.mcp.resume")
@pytest.mark.parametrize("asks", ["the policy", "the server"])
async def test_after_a_restart_what_was_not_begun_is_done_and_nothing_twice(
    tmp_path: Path, asks: str
):
    by_policy = asks == "the policy"
    policy = Policy() if by_policy else FREELY
    means = make_kept(tmp_path, policy, raw=raw("plain" if by_policy else "form"))
    replies = calls(("mcp__raw__echo", {"text": "hi"})), text("Done.")
    url = f"sqlite:{tmp_path / 'journal.db'}"
    async with FakeModel(*replies) as model, open_journal(url) as journal:
        async with run_model_agent(means, model, journal) as runtime:
            await runtime.submit("thread", "openai", "go", turn_id="turn")
            await open_action(runtime)
        async with run_model_agent(means, model, journal) as runtime:
            if by_policy:
                action = await open_action(runtime)
                await decide_shown(runtime, "thread", action, "approve", by="lena")
            await wait_for_end(runtime, "turn")
            facts = await facts_of(runtime)
    assert_sound(facts)
    [heard] = model.requests[-1].contents_of("tool")
    assert heard.startswith("echo: hi" if by_policy else "Failed (interrupted): ")
    ends = [fact.event_class for fact in facts if fact.tool_call_id][-1:]
    assert ends == ["tool.result" if by_policy else "tool.failed"]
    [action] = [fact.action_id for fact in facts if fact.event_class == "action.required"]
    assert facts[-1].event_class == "snapshot.updated"
    closed = [fact.event_class for fact in facts if fact.action_id == action]
    assert closed[1:] == (
        ["action.resolved", "action.updated"] if by_policy else ["action.cancelled"]
    )
