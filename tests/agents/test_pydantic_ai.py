"""Agents of Pydantic AI in a runtime, against a fake model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, CallDeferred, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from factwire.projection.actions import Action
from factwire.runtime import Provider
from factwire.runtime.configuration import AgentSettings as Settings
from factwire.runtime.policy import Policy
from factwire.sources.pydantic_ai.live import wrap
from tests.agents.conftest import Aimock, Drive
from tests.agents.driving import Answer
from tests.agents.fake_models import FakeModel
from tests.agents.homes import KEY
from tests.agents.replies import blocks, calls, cut_reply, refuses, says, slowly

pytestmark = pytest.mark.asyncio

DONE: list[str] = []


def weather(city: str) -> str:
    return f"sunny in {city}"


def deploy(target: str) -> str:
    DONE.append(target)
    return f"deployed to {target}"


def survey(question: str) -> str:
    del question
    raise CallDeferred


@asynccontextmanager
async def open_provider(model: FakeModel, **options: Any) -> AsyncGenerator[Provider]:
    """An agent that speaks to the fake model, as a configuration would have it."""
    async with AsyncOpenAI(base_url=model.openai_url, api_key=KEY, max_retries=0) as client:
        speaking = OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))
        tools = [weather, Tool(deploy, requires_approval=True), survey]
        agent = Agent(speaking, name="assistant", tools=tools)
        provider = wrap(agent, Settings(kind="my_module:agent", options=options))
        assert provider is not None
        yield provider


@pytest.mark.requirement("sources.pydantic-ai.live.stream")
@pytest.mark.requirement("sources.pydantic-ai.live.continues")
async def test_text_reasoning_and_tools_are_told_and_the_next_turn_knows_them(
    aimock: Aimock, driven: Drive
):
    model = aimock(
        calls("weather", {"city": "Rome"}, user_message="weather", has_tool_result=False),
        says("It is sunny.", reasoning="Think.", user_message="weather"),
        says("You are welcome.", user_message="thanks"),
    )
    async with open_provider(model) as agent, driven(agent) as here:
        first = await here.turn("how is the weather?")
        second = await here.turn("thanks")
    assert (first.status, second.answers) == ("completed", ["It is sunny.", "You are welcome."])
    tool = second.state.tools["call_1"]
    assert (tool.tool_name, tool.args, str(tool.output_text)) == (
        "weather",
        {"city": "Rome"},
        "sunny in Rome",
    )
    assert first.facts_of_class("reasoning.delta")
    assert "sunny in Rome" in str(model.bodies()[-1])


@pytest.mark.requirement("sources.pydantic-ai.live.deferred")
async def test_calls_that_wait_at_once_go_on_with_what_was_decided_about_each(
    aimock: Aimock, driven: Drive
):
    DONE.clear()
    targets = ("staging", "production")
    model = aimock(
        blocks(
            *(
                {"type": "toolCall", "id": each, "name": "deploy", "arguments": {"target": each}}
                for each in targets
            ),
            {"type": "toolCall", "id": "ask", "name": "survey", "arguments": {"question": "Ok?"}},
            has_tool_result=False,
        ),
        says("That is settled."),
    )

    def decide(action: Action) -> Answer:
        if action.action_type == "structured_input":
            return {"decision": "approved", "response": "they like it"}
        if "staging" in (action.shown or ""):
            return "approved"
        return {"decision": "denied", "reason": "not on a Friday"}

    async with open_provider(model) as agent, driven(agent) as here:
        outcome = await here.turn("deploy it", decide=decide)
    assert (outcome.status, outcome.answers, DONE) == (
        "completed",
        ["That is settled."],
        ["staging"],
    )
    categories = {key: tool.failure_category for key, tool in outcome.state.tools.items()}
    assert categories == {"staging": None, "production": "permission_denied", "ask": None}
    heard = str(model.bodies()[-1])
    assert "not on a Friday" in heard
    assert "they like it" in heard


@pytest.mark.requirement("sources.sdk.live.policy")
async def test_a_rule_that_allows_spares_the_question(aimock: Aimock, driven: Drive):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, has_tool_result=False), says("That is settled.")
    )
    async with (
        open_provider(model) as agent,
        driven(agent, policy=Policy.of(allow=["deploy"])) as here,
    ):
        outcome = await here.turn("deploy it")
    assert outcome.facts_of_class("action.required") == []
    assert [payloads["decision"] for payloads in outcome.payloads_of("permission.evaluated")] == [
        "allow"
    ]
    assert DONE == ["production"]


@pytest.mark.requirement("sources.sdk.live.failures")
async def test_what_goes_wrong_at_the_model_is_told_by_category(aimock: Aimock, driven: Drive):
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="limit"),
        refuses(503, "overloaded", user_message="busy"),
        calls("weather", {"city": "Rome"}, user_message="forever"),
        cut_reply(slowly(says("There was a very long story"), milliseconds=20), after=5),
    )
    prompts = ("limit", "busy", "a story", "forever")
    async with open_provider(model, max_requests=3) as agent, driven(agent) as here:
        outcome = [await here.turn(prompt) for prompt in prompts]
    assert [each.failure["failureCategory"] for each in outcome] == [
        "rate_limited",
        "provider_unavailable",
        "stream_interrupted",
        "step_limit_reached",
    ]


@pytest.mark.requirement("sources.sdk.live.stop")
async def test_a_turn_is_stopped_while_it_speaks_and_while_it_waits(aimock: Aimock, driven: Drive):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, user_message="deploy"),
        says("Fine.", user_message="more"),
        slowly(says("word " * 200), milliseconds=50),
    )
    async with open_provider(model) as agent, driven(agent) as here:
        speaking = await here.submit("tell me")
        await here.wait_for_fact("model.delta")
        stopped = await here.cancel(speaking)
        waiting = await here.submit("deploy it")
        await here.next_action()
        given_up = await here.cancel(waiting)
        after = await here.turn("tell me more")
    assert (stopped.status, given_up.status) == ("canceled", "canceled")
    assert (after.status, after.answers[-1], DONE) == ("completed", "Fine.", [])
