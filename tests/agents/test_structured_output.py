"""Claude Code and Codex themselves in turns with `outputSchema`, against a fake model."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from factwire.facts.schemas.json_schema import route_decision_schema
from factwire.runtime import Provider
from factwire.runtime.configuration import AgentSettings
from factwire.sources.claude_code import live as claude_code
from factwire.sources.codex import exec_live
from factwire.sources.codex import live as codex
from tests.agents.conftest import Aimock, Drive
from tests.agents.homes import AgentHome
from tests.agents.replies import Reply, calls, says

pytestmark = pytest.mark.asyncio

SCHEMA = route_decision_schema()
DECISION = {"action": "delegate", "next_worker": "ann", "instructions": "Find the bug."}
CALL = "toolu_route"


def call_output_tool(decision: dict[str, Any]) -> tuple[Reply, ...]:
    """Claude Code has the model call a tool, and go on once that has taken the output."""
    return says("Done.", tool_call_id=CALL), calls("StructuredOutput", decision, call_id=CALL)


def say_output(decision: dict[str, Any]) -> tuple[Reply, ...]:
    """Codex has the model answer with JSON, strictly: what is left open is null."""
    return (says(json.dumps({**dict.fromkeys(SCHEMA["properties"]), **decision})),)


AGENTS: dict[str, tuple[Callable[[AgentSettings], Provider], Callable[..., tuple[Reply, ...]]]] = {
    "claude-code": (claude_code.agent, call_output_tool),
    "codex": (codex.agent, say_output),
    "codex-exec": (exec_live.agent, say_output),
}


def make_agent(kind: str, home: AgentHome, aimock: Aimock, *replies: Reply) -> Provider:
    setup = home.anthropic if kind == "claude-code" else home.codex
    setup(aimock(*replies))
    return AGENTS[kind][0](AgentSettings(kind=kind))


@pytest.mark.requirement("runtime.output.schema")
@pytest.mark.requirement("runtime.output.strict")
@pytest.mark.parametrize("kind", AGENTS)
async def test_a_real_agent_decides_by_structured_output(
    aimock: Aimock, agent_home: AgentHome, driven: Drive, kind: str
):
    replies = AGENTS[kind][1](DECISION)
    async with driven(make_agent(kind, agent_home, aimock, *replies)) as drive:
        outcome = await drive.turn("Who goes on?", options={"outputSchema": SCHEMA})
    [done] = outcome.payloads_of("turn.completed")
    assert done["structuredOutput"] == DECISION
    assert outcome.payloads_of("routing.decided") == [DECISION]


@pytest.mark.requirement("runtime.output.invalid")
@pytest.mark.parametrize("kind", AGENTS)
async def test_a_real_agent_that_answers_prose_fails_its_turn(
    aimock: Aimock, agent_home: AgentHome, driven: Drive, kind: str
):
    agent = make_agent(kind, agent_home, aimock, says("I delegate to ann."))
    async with driven(agent) as drive:
        outcome = await drive.turn("Who goes on?", options={"outputSchema": SCHEMA})
    assert outcome.failure["failureCategory"] == "invalid_output"
    assert outcome.payloads_of("routing.decided") == []
