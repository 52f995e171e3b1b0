"""Programs of the SDKs, observed while they speak to a fake model over the network."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.models.openai_responses import OpenAIResponsesModel
from langchain_openai import ChatOpenAI
from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]
    START,
    MessagesState,
    StateGraph,
)
from openai import AsyncOpenAI
from pydantic import SecretStr

import factwire
from factwire.facts import Fact
from tests.agents.conftest import Aimock
from tests.agents.fake_models import FakeModel
from tests.agents.homes import KEY
from tests.agents.replies import calls, cut_reply, refuses, says, slowly
from tests.sources.observed import ObservedJournal, by_thread, end, payloads_of, texts

pytestmark = pytest.mark.asyncio


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def observe_programs(folder: Path, *programs: Any) -> list[list[Fact]]:
    """The threads of programs, one after the other."""
    place = ObservedJournal(folder)
    with factwire.observe(journal=place.url) as observing:
        for program in programs:
            await asyncio.gather(program, return_exceptions=True)
        assert await asyncio.to_thread(observing.flush)
    facts = await asyncio.to_thread(place.facts)
    assert KEY not in str(facts)
    return by_thread(facts)


async def run_streamed(agent: Agent[None], prompt: str) -> None:
    result = Runner.run_streamed(agent, prompt, run_config=RunConfig(tracing_disabled=True))
    async for _ in result.stream_events():
        pass


@pytest.mark.requirement("sources.observe.openai-agents")
async def test_streamed_runs_are_told_in_pieces_and_end_as_they_do(aimock: Aimock, tmp_path: Path):
    model = aimock(
        calls("weather", {"city": "Rome"}, user_message="weather", has_tool_result=False),
        says("It is sunny.", reasoning="Think.", user_message="weather"),
        refuses(429, "slow down", "rate_limit_error", user_message="limit"),
        cut_reply(slowly(says("There was a very long story"), milliseconds=20), after=8),
    )
    async with AsyncOpenAI(base_url=model.openai_url, api_key=KEY, max_retries=0) as client:
        speaking = OpenAIResponsesModel(model="gpt-5", openai_client=client)
        agent = Agent(name="Assistant", model=speaking, tools=[weather])
        prompts = ("the weather", "limit", "a story")
        threads = await observe_programs(
            tmp_path, *(run_streamed(agent, prompt) for prompt in prompts)
        )
    assert texts(threads[0]) == ["It is sunny."]
    assert payloads_of(threads[0], "model.delta")
    assert [end(facts) for facts in threads] == ["turn.completed", "turn.failed", "turn.failed"]
    failures = [payloads_of(facts, "turn.failed")[0]["failureCategory"] for facts in threads[1:]]
    assert failures == ["rate_limited", "stream_interrupted"]


def graph_of(model: FakeModel) -> Any:
    speaking = ChatOpenAI(
        model="gpt-5", base_url=model.openai_url, api_key=SecretStr(KEY), max_retries=0
    )

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await speaking.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_edge(START, "model")
    return graph.compile()


@pytest.mark.requirement("sources.observe.langgraph")
@pytest.mark.requirement("sources.observe.no-streaming")
async def test_a_graph_is_told_and_its_model_asked_as_before(aimock: Aimock, tmp_path: Path):
    model = aimock(says("Hello."))
    [facts] = await observe_programs(
        tmp_path, graph_of(model).ainvoke({"messages": [("user", "hi")]})
    )
    assert (texts(facts), end(facts)) == (["Hello."], "turn.completed")
    assert [body.get("stream") for body in model.bodies()] in ([None], [False])
