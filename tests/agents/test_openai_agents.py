"""Agents of the OpenAI Agents SDK in a runtime, against a fake model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Agent, function_tool
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI

from factwire.projection.actions import Action
from factwire.runtime import Provider
from factwire.runtime.configuration import AgentSettings as Settings
from factwire.runtime.policy import Policy
from factwire.sources.openai_agents.live import wrap
from tests.agents.conftest import Aimock, Drive
from tests.agents.driving import Answer
from tests.agents.fake_models import FakeModel
from tests.agents.homes import KEY
from tests.agents.replies import calls, cut_reply, refuses, says, slowly

pytestmark = pytest.mark.asyncio

DONE: list[str] = []


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@function_tool(needs_approval=True)
def deploy(target: str) -> str:
    """Deploy to a target."""
    DONE.append(target)
    return f"deployed to {target}"


@asynccontextmanager
async def open_provider(
    model: FakeModel, *handoffs: str, **options: Any
) -> AsyncGenerator[Provider]:
    """An agent that speaks to the fake model, as a configuration would have it."""
    async with AsyncOpenAI(base_url=model.openai_url, api_key=KEY, max_retries=0) as client:
        speaking = OpenAIResponsesModel(model="gpt-5", openai_client=client)
        others = [Agent(name=name, model=speaking) for name in handoffs]
        agent = Agent(name="Assistant", model=speaking, tools=[weather, deploy], handoffs=[*others])
        provider = wrap(agent, Settings(kind="my_module:agent", options=options))
        assert provider is not None
        yield provider


@pytest.mark.requirement("sources.openai-agents.live.stream")
@pytest.mark.requirement("sources.openai-agents.live.continues")
async def test_text_reasoning_tools_and_handoffs_are_told_and_the_next_turn_knows_them(
    aimock: Aimock, driven: Drive
):
    model = aimock(
        calls("transfer_to_poet", {}, call_id="call_2", user_message="poem", has_tool_result=False),
        says("Roses are red.", user_message="poem"),
        calls("weather", {"city": "Rome"}, user_message="weather", has_tool_result=False),
        says("It is sunny.", reasoning="Think.", user_message="weather"),
    )
    async with open_provider(model, "Poet") as agent, driven(agent) as here:
        first = await here.turn("how is the weather?")
        second = await here.turn("write a poem")
    assert (first.status, second.status) == ("completed", "completed")
    tool = second.state.tools["call_1"]
    assert (tool.tool_name, tool.args, str(tool.output_text)) == (
        "weather",
        {"city": "Rome"},
        "sunny in Rome",
    )
    assert first.facts_of_class("reasoning.delta")
    assert second.answers == ["It is sunny.", "Roses are red."]
    [handed] = second.payloads_of("handoff.completed")
    assert handed == {"fromAgent": "Assistant", "toAgent": "Poet"}
    assert "sunny in Rome" in str(model.bodies("/responses")[-1])


@pytest.mark.requirement("sources.openai-agents.live.approval")
@pytest.mark.parametrize(
    ("answer", "done", "heard"),
    [
        ("approved", ["production"], "deployed to production"),
        ({"decision": "denied", "reason": "not on a Friday"}, [], "not on a Friday"),
    ],
)
async def test_a_decision_reaches_the_agent_as_it_was_made(
    aimock: Aimock, driven: Drive, answer: Answer, done: list[str], heard: str
):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, has_tool_result=False), says("That is settled.")
    )
    question: list[Action] = []

    def decide(action: Action) -> Answer:
        question.append(action)
        return answer

    async with open_provider(model) as agent, driven(agent) as here:
        outcome = await here.turn("deploy it", decide=decide)
    assert outcome.status == "completed"
    assert outcome.answers == ["That is settled."]
    assert done == DONE
    [action] = question
    assert '"target": "production"' in (action.shown or "")
    [tool] = outcome.state.tools.values()
    assert tool.failure_category == (None if done else "permission_denied")
    assert heard in str(model.bodies("/responses")[-1])


@pytest.mark.requirement("sources.sdk.live.policy")
async def test_rules_of_the_owner_decide_before_anybody_is_asked(aimock: Aimock, driven: Drive):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, has_tool_result=False), says("That is settled.")
    )
    async with (
        open_provider(model) as agent,
        driven(agent, policy=Policy.of(deny=["deploy"])) as here,
    ):
        denied = await here.turn("deploy it")
    assert denied.facts_of_class("action.required") == []
    assert [payloads["rule"] for payloads in denied.payloads_of("permission.denied")] == ["deploy"]
    assert [tool.failure_category for tool in denied.state.tools.values()] == ["permission_denied"]
    assert DONE == []


@pytest.mark.requirement("sources.sdk.live.failures")
async def test_what_goes_wrong_at_the_model_is_told_by_category(aimock: Aimock, driven: Drive):
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="limit"),
        refuses(503, "overloaded", user_message="busy"),
        refuses(401, "no such key", "authentication_error", user_message="key"),
        cut_reply(slowly(says("There was a very long story"), milliseconds=20), after=8),
    )
    async with open_provider(model) as agent, driven(agent) as here:
        outcome = [await here.turn(prompt) for prompt in ("limit", "busy", "key", "a story")]
    categories = [each.failure["failureCategory"] for each in outcome]
    assert categories == [
        "rate_limited",
        "provider_unavailable",
        "unauthorized",
        "stream_interrupted",
    ]
    assert all(each.failure["recoveryHint"] for each in outcome)


@pytest.mark.requirement("sources.sdk.live.stop")
async def test_a_turn_is_stopped_while_it_speaks_and_while_it_waits(aimock: Aimock, driven: Drive):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, user_message="deploy", has_tool_result=False),
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
    assert [action.status for action in given_up.state.actions.values()] == ["cancelled"]
    assert DONE == []
    assert (after.status, after.answers[-1]) == ("completed", "Fine.")
