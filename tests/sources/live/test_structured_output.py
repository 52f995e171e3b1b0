"""Turns with `outputSchema`: an agent that can follow one ends with JSON that fits, or fails."""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from agents import Agent as OpenAiAgent
from agents import function_tool
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.graph.message import add_messages  # pyright: ignore[reportMissingTypeStubs]
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from factwire.facts.schemas.json_schema import route_decision_schema
from factwire.runtime import Provider
from factwire.runtime.agents import DemoAgent, ShellAgent
from factwire.runtime.agents.openai_agent import Endpoint, OpenAIAgent, OpenAIOptions
from factwire.runtime.configuration import AgentSettings as Settings
from factwire.runtime.structured_output import OutputMisfit, OutputSchema, to_strict_schema
from factwire.sources.langgraph import live as langgraph
from factwire.sources.openai_agents import live as openai_agents
from factwire.sources.pydantic_ai import live as pydantic_ai
from tests.agents.driving import DrivenAgent, TurnOutcome
from tests.runtime.fake_model import FakeModel, Reply, calls, text
from tests.sources.live.test_sdks import asked_graph, driven

SCHEMA = route_decision_schema()
DECISION = {"action": "delegate", "next_worker": "ann", "instructions": "Find the bug."}
SETTINGS = Settings(kind="my_module:agent")

Make = Callable[[FakeModel], AbstractAsyncContextManager[Provider | None]]


@function_tool
def look() -> str:
    """Look."""
    return "seen"


@asynccontextmanager
async def make_openai_agents(model: FakeModel) -> AsyncGenerator[Provider | None]:
    async with AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0) as client:
        speaking = OpenAIChatCompletionsModel(model="tiny", openai_client=client)
        agent = OpenAiAgent(name="Lead", model=speaking, tools=[look])
        yield openai_agents.wrap(agent, SETTINGS)


@asynccontextmanager
async def make_pydantic_ai(model: FakeModel) -> AsyncGenerator[Provider | None]:
    async with AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0) as client:
        speaking = OpenAIChatModel("tiny", provider=OpenAIProvider(openai_client=client))
        yield pydantic_ai.wrap(Agent(speaking), SETTINGS)


@asynccontextmanager
async def make_openai(model: FakeModel) -> AsyncGenerator[Provider | None]:
    endpoint = Endpoint(base_url=model.url, model="tiny")
    yield OpenAIAgent(endpoint, OpenAIOptions(retries=0, silence_seconds=20.0))


class Led(TypedDict):
    messages: Annotated[list[Any], add_messages]
    structured_response: dict[str, Any]


@asynccontextmanager
async def make_langgraph(model: FakeModel) -> AsyncGenerator[Provider | None]:
    speaking: Any = ChatOpenAI(
        model="tiny", base_url=model.url, api_key=lambda: "none", max_retries=0, streaming=True
    )

    async def lead(state: Led, config: RunnableConfig) -> dict[str, Any]:
        schema = config["configurable"]["output_schema"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        structured = speaking.with_structured_output(schema, method="function_calling")
        return {"structured_response": await structured.ainvoke(state["messages"])}

    graph: Any = StateGraph(Led)
    graph.add_node("lead", lead)
    graph.add_edge(START, "lead")
    yield langgraph.wrap(graph.compile(), SETTINGS)


def say_json(decision: dict[str, Any]) -> Reply:
    return text(json.dumps(decision))


def call_tool(name: str) -> Callable[[dict[str, Any]], Reply]:
    return lambda decision: calls((name, decision))


MAKERS: dict[str, tuple[Make, Callable[[dict[str, Any]], Reply]]] = {
    "langgraph": (make_langgraph, call_tool("RouteDecision")),
    "openai": (make_openai, call_tool("final_result")),
    "openai-agents": (make_openai_agents, say_json),
    "pydantic-ai": (make_pydantic_ai, call_tool("final_result")),
}


async def hold_turn(
    folder: Path, name: str, *answers: dict[str, Any] | str
) -> tuple[TurnOutcome, FakeModel]:
    make, reply = MAKERS[name]
    replies = [text(each) if isinstance(each, str) else reply(each) for each in answers]
    async with (
        FakeModel(*replies) as model,
        make(model) as provider,
        driven(provider, folder) as here,
    ):
        outcome = await here.turn("Who goes on?", options={"outputSchema": SCHEMA})
    return outcome, model


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.schema")
@pytest.mark.parametrize("name", MAKERS)
async def test_an_answer_that_fits_is_the_structured_output_and_a_route(tmp_path: Path, name: str):
    outcome, _ = await hold_turn(tmp_path, name, {**DECISION, "feedback": None})
    [done] = outcome.payloads_of("turn.completed")
    assert done["structuredOutput"] == DECISION
    assert outcome.payloads_of("routing.decided") == [DECISION]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.invalid")
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("answer", [{"action": "dance"}, "I delegate to ann."])
async def test_an_answer_that_does_not_fit_and_one_in_prose_fail_the_turn(
    tmp_path: Path, name: str, answer: dict[str, Any] | str
):
    outcome, _ = await hold_turn(tmp_path, name, answer, answer)
    assert outcome.failure["failureCategory"] == "invalid_output"
    assert outcome.failure["recoveryHint"]
    assert outcome.payloads_of("routing.decided") == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.invalid")
@pytest.mark.parametrize("name", ["openai", "pydantic-ai"])
async def test_a_library_that_asks_again_may_get_what_fits(tmp_path: Path, name: str):
    outcome, model = await hold_turn(tmp_path, name, {"action": "dance"}, DECISION)
    [done] = outcome.payloads_of("turn.completed")
    assert done["structuredOutput"] == DECISION
    [_, again] = model.requests
    assert "'dance' is not one of" in again.messages[-1]["content"]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.schema")
async def test_a_later_turn_without_a_schema_speaks_again(tmp_path: Path):
    replies = [say_json(DECISION), text("Ann does.")]
    async with (
        FakeModel(*replies) as model,
        make_openai_agents(model) as provider,
        driven(provider, tmp_path) as here,
    ):
        await here.turn("Who goes on?", options={"outputSchema": SCHEMA})
        outcome = await here.turn("And in words?")
    assert outcome.answers[-1] == "Ann does."
    [first, second] = model.requests
    assert first.body["response_format"]["json_schema"]["schema"] == to_strict_schema(SCHEMA)
    assert "response_format" not in second.body


class Forgetful(TypedDict):
    messages: Annotated[list[Any], add_messages]
    structured_response: dict[str, Any]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.invalid")
async def test_the_output_of_an_earlier_turn_is_not_taken_for_that_of_this_one(tmp_path: Path):
    outputs = [DECISION]

    def lead(state: Forgetful) -> dict[str, Any]:
        del state
        return {"structured_response": outputs.pop()} if outputs else {"messages": []}

    graph: Any = StateGraph(Forgetful)
    graph.add_node("lead", lead)
    graph.add_edge(START, "lead")
    async with driven(langgraph.wrap(graph, SETTINGS), tmp_path) as here:
        ends = [await here.turn("Go on.", options={"outputSchema": SCHEMA}) for _ in range(2)]
    assert [end.status for end in ends] == ["completed", "failed"]
    assert ends[1].failure["message"] == "the turn ended without structured output"


async def fail_turn(here: DrivenAgent, schema: object) -> str:
    outcome = await here.turn("Go on.", options={"outputSchema": schema})
    return outcome.failure["failureCategory"]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.refused")
async def test_an_agent_that_cannot_follow_a_schema_refuses_it_before_it_does_anything(
    tmp_path: Path,
):
    settings = Settings(kind="x:y", options={"input_key": "question"})
    for number, agent in enumerate([ShellAgent(), langgraph.wrap(asked_graph(), settings)]):
        assert agent is not None
        assert agent.manifest.structured_output == "no"
        folder = tmp_path / str(number)
        folder.mkdir()
        async with driven(agent, folder) as here:
            assert await fail_turn(here, SCHEMA) == "structured_output_unsupported"
            assert (await here.state()).tools == {}


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.output.refused")
@pytest.mark.parametrize("schema", ["delegate", {"type": "wish"}, {"pattern": "("}])
async def test_what_is_no_schema_is_refused(tmp_path: Path, schema: object):
    async with driven(DemoAgent(), tmp_path) as here:
        assert await fail_turn(here, schema) == "invalid_output_schema"


@pytest.mark.requirement("runtime.output.invalid")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_cannot_be_applied_fits_nothing_and_fetches_nothing(schema: dict[str, Any]):
    with pytest.raises(OutputMisfit, match="cannot be applied"):
        OutputSchema(schema).read({"a": "b"})


def test_output_that_is_nested_too_deep_is_a_misfit():
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(OutputMisfit, match="cannot be applied"):
        OutputSchema({"type": "array"}).read(deep)


@pytest.mark.requirement("runtime.output.strict")
def test_a_strict_schema_requires_everything_and_takes_null_for_what_was_optional():
    inner = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/inner"},
            "two": {"type": "array", "items": inner, "default": []},
            "three": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "anything": {},
            "open": {"type": "object"},
        },
        "required": ["one"],
        "$defs": {"inner": inner},
    }
    closed = {**inner, "properties": {"a": {"enum": ["x"], "type": "string"}}}
    closed |= {"required": ["a"], "additionalProperties": False}
    assert to_strict_schema(schema) == {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/inner"},
            "two": {"type": ["array", "null"], "items": closed},
            "three": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        },
        "required": ["one", "two", "three"],
        "additionalProperties": False,
        "$defs": {"inner": closed},
    }
    answer = {"one": {"a": "x"}, "two": None, "three": None}
    assert OutputSchema(schema).read(answer) == {"one": {"a": "x"}}
    required = to_strict_schema(schema)
    assert OutputSchema(required).read({"one": {"a": "x"}}) == answer
