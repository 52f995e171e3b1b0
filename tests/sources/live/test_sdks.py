"""Agents of SDKs in a runtime: what needs no model of anybody's."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest
from agents import Agent as OpenAiAgent
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import interrupt
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    Tool,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from factwire.facts import AssetInput
from factwire.projection.actions import Action
from factwire.runtime import Provider
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings as Settings
from factwire.sources.kit.sdk_values import failed_line, failure_category, to_json
from factwire.sources.langgraph import live as langgraph
from factwire.sources.openai_agents import live as openai_agents
from factwire.sources.pydantic_ai import live as pydantic_ai
from tests.agents.driving import Answer, DrivenAgent, driven_agent
from tests.agents.homes import AgentHome

PIXEL = b"\x89PNG\r\n\x1a\n made up"


class Odd:
    def __repr__(self) -> str:
        raise ZeroDivisionError


class Model(BaseModel):
    when: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    odd: Any = None


@dataclasses.dataclass
class Data:
    value: Any


def round_and_round() -> list[Any]:
    value: list[Any] = [1]
    value += [value, value]
    return value


@pytest.mark.requirement("sources.sdk.live.values")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": (1, None, True, 1.5)}, {"a": [1, None, True, 1.5]}),
        (float("nan"), "nan"),
        (2**70, str(2**70)),
        ("half \udcff a pair", "half ? a pair"),
        ({1: {"x"}}, {"1": ["x"]}),
        (Model(), {"when": "2026-01-01T00:00:00Z", "odd": None}),
        (Data(Data(Odd())), {"value": {"value": "<Odd>"}}),
        (Model(odd=Odd()), {"when": "2026-01-01T00:00:00Z", "odd": "<Odd>"}),
    ],
)
def test_any_value_of_a_program_becomes_json(value: object, expected: object):
    assert to_json(value) == expected
    assert msgspec.json.decode(msgspec.json.encode(to_json(value))) == expected


@pytest.mark.requirement("sources.sdk.live.values")
def test_a_value_that_holds_itself_comes_to_an_end():
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert len(msgspec.json.encode(to_json([round_and_round(), deep]))) < 10_000


class APIConnectionError(Exception):
    """Called as a library calls it."""


class Answered(Exception):
    def __init__(self, status_code: object) -> None:
        self.status_code = status_code
        super().__init__(f"status {status_code}")


def set_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.requirement("sources.sdk.live.failures")
@pytest.mark.parametrize(
    ("error", "category"),
    [
        (Answered(429), "rate_limited"),
        (Answered(403), "unauthorized"),
        (Answered(502), "provider_unavailable"),
        (Answered(400), None),
        (Answered("429"), None),
        (APIConnectionError(), "connection_lost"),
        (set_cause(ValueError("x"), Answered(429)), "rate_limited"),
        (ExceptionGroup("x", [ValueError(), Answered(401)]), "unauthorized"),
        (ZeroDivisionError("x"), None),
    ],
)
def test_an_error_is_known_by_its_status_its_name_or_its_cause(
    error: Exception, category: str | None
):
    assert failure_category(error) == category
    assert failed_line(error)["message"]


@pytest.mark.requirement("sources.sdk.live.failures")
def test_errors_that_are_each_others_cause_come_to_an_end():
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert failure_category(first) is None


class Asked(TypedDict):
    question: str
    answer: str


def shout(state: Asked) -> dict[str, Any]:
    return {"answer": state["question"].upper()}


def asked_graph() -> Any:
    graph: Any = StateGraph(Asked)
    graph.add_node("answer", shout)
    graph.add_edge(START, "answer")
    return graph


@pytest.mark.requirement("sources.sdk.live.wrap")
def test_an_object_of_an_sdk_is_an_agent_and_nothing_else_is():
    wraps = (openai_agents.wrap, langgraph.wrap, pydantic_ai.wrap)
    objects = (OpenAiAgent(name="A"), asked_graph().compile(), Agent(TestModel()), Agent, object())
    settings = Settings(kind="x:y", options={"raw": True})
    answering = Settings(kind="x:y", options={"input_key": "question"})
    made = [
        [wrap(each, answering if wrap is langgraph.wrap else settings) for wrap in wraps]
        for each in objects
    ]
    kinds = [[agent and agent.manifest.agent_id for agent in row] for row in made]
    assert kinds == [
        ["openai-agents", None, None],
        [None, "langgraph", None],
        [None, None, "pydantic-ai"],
        [None, None, None],
        [None, None, None],
    ]


@pytest.mark.requirement("sources.sdk.live.wrap")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(kind="x:y", options={"colour": 1}), "colour"),
        (Settings(kind="x:y", model="gpt-5"), "model"),
        (Settings(kind="x:y"), "input_key"),
    ],
)
def test_settings_that_an_agent_has_no_use_for_are_refused(settings: Settings, message: str):
    with pytest.raises(InvalidAgent, match=message):
        langgraph.wrap(asked_graph(), settings)


def driven(agent: Provider | None, folder: Path) -> AbstractAsyncContextManager[DrivenAgent]:
    assert agent is not None
    home = folder / "home"
    home.mkdir(exist_ok=True)
    fresh = [each for each in (home / "workspace",) if not each.exists()]
    return driven_agent(agent, AgentHome(home, unset) if fresh else _Again(home))


def unset(name: str, value: str) -> None:
    """These agents read nothing of the environment."""
    del name, value


class _Again(AgentHome):
    """A home that was lived in before."""

    def __init__(self, folder: Path) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.folder = folder
        self.workspace = folder / "workspace"


@pytest.mark.asyncio
@pytest.mark.requirement("sources.sdk.live.wrap")
async def test_a_graph_without_messages_takes_the_prompt_where_it_is_told_to(tmp_path: Path):
    settings = Settings(kind="x:y", options={"input_key": "question"})
    async with driven(langgraph.wrap(asked_graph(), settings), tmp_path) as here:
        outcome = await here.turn("why?")
    [done] = outcome.payloads_of("turn.completed")
    assert done["structuredOutput"] == {"question": "why?", "answer": "WHY?"}


def read(path: str) -> str:
    return f"read {path}"


@pytest.mark.asyncio
@pytest.mark.requirement("sources.sdk.live.policy")
async def test_a_tool_that_sounds_harmless_is_asked_about_all_the_same(tmp_path: Path):
    agent = Agent(TestModel(), tools=[Tool(read, requires_approval=True)])
    provider = pydantic_ai.wrap(agent, Settings(kind="x:y"))
    async with driven(provider, tmp_path) as here:
        outcome = await here.turn("go", decide=lambda _: "approved")
    assert len(outcome.facts_of_class("action.required")) == 1


def make_echo_agent() -> tuple[Agent[None, str], list[list[ModelMessage]]]:
    """An agent that keeps what it was told."""
    heard: list[list[ModelMessage]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        del info
        heard.append(messages)
        yield f"answer {len(messages)}"

    return Agent(FunctionModel(stream_function=answer)), heard


@pytest.mark.asyncio
@pytest.mark.requirement("sources.sdk.live.again")
async def test_an_agent_that_forgot_is_told_the_words_of_the_thread_again(tmp_path: Path):
    agent, heard = make_echo_agent()
    for prompt in ("first", "second"):
        provider = pydantic_ai.wrap(agent, Settings(kind="x:y"))
        async with driven(provider, tmp_path) as here:
            outcome = await here.turn(prompt)
    assert outcome.answers == ["answer 1", "answer 3"]
    payloads = heard[-1][1]
    assert isinstance(payloads, ModelResponse)
    assert payloads.parts == [TextPart("answer 1")]


@pytest.mark.asyncio
@pytest.mark.requirement("sources.sdk.live.inputs")
async def test_a_picture_reaches_the_model_and_a_sound_is_refused(tmp_path: Path):
    agent, heard = make_echo_agent()
    async with driven(pydantic_ai.wrap(agent, Settings(kind="x:y")), tmp_path) as here:
        ref = (await here.runtime.resources.blobs.put(PIXEL, kind="artifact")).ref
        picture = AssetInput(kind="image", ref=ref, media_type="image/png")
        sound = AssetInput(kind="audio", ref=ref, media_type="audio/wav")
        seen = await here.turn("look", input=(picture,))
        unheard = await here.turn("listen", input=(sound,))
    assert seen.status == "completed"
    [prompt] = heard[0][0].parts
    assert isinstance(prompt, UserPromptPart)
    assert prompt.content == ["look", BinaryContent(data=PIXEL, media_type="image/png")]
    assert unheard.failure["failureCategory"] == "unsupported_input"


class Reviewed(TypedDict):
    messages: list[Any]


def review(state: Reviewed) -> dict[str, Any]:
    del state
    request = {"name": "deploy", "args": {"target": "production"}, "description": "Deploy"}
    answer = interrupt({"action_requests": [request], "review_configs": []})
    return {"messages": [{"role": "assistant", "content": str(answer)}]}


@pytest.mark.asyncio
@pytest.mark.requirement("sources.langgraph.live.review")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("approved", {"type": "approve"}),
        ({"decision": "denied", "reason": "no"}, {"type": "reject", "message": "no"}),
    ],
)
async def test_a_review_of_calls_is_an_approval(tmp_path: Path, answer: Answer, expected: object):
    question: list[Action] = []

    def decide(action: Action) -> Answer:
        question.append(action)
        return answer

    graph: Any = StateGraph(Reviewed)
    graph.add_node("review", review)
    graph.add_edge(START, "review")
    provider = langgraph.LangGraphAgent(graph)
    async with driven(provider, tmp_path) as here:
        outcome = await here.turn("go", decide=decide)
        state = await provider.graph.aget_state({"configurable": {"thread_id": "thread"}})
    assert outcome.status == "completed"
    assert [action.action_type for action in question] == ["tool_approval"]
    assert '"target": "production"' in (question[0].shown or "")
    assert state.values["messages"][-1]["content"] == str({"decisions": [expected]})
