"""Graphs of LangGraph in a runtime, against a fake model."""

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.graph.message import add_messages  # pyright: ignore[reportMissingTypeStubs]
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from pydantic import SecretStr

from factwire.projection.actions import Action
from factwire.runtime import Provider
from factwire.runtime.configuration import AgentSettings as Settings
from factwire.sources.langgraph.live import wrap
from tests.agents.conftest import Aimock, Drive
from tests.agents.driving import Answer
from tests.agents.fake_models import FakeModel
from tests.agents.homes import KEY
from tests.agents.replies import calls, cut_reply, refuses, says, slowly

pytestmark = pytest.mark.asyncio

DONE: list[str] = []


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@tool
def deploy(target: str) -> str:
    """Deploy to a target."""
    if interrupt({"question": "Deploy?", "target": target}) is not True:
        return "not deployed"
    DONE.append(target)
    return f"deployed to {target}"


def chat(model: FakeModel) -> Any:
    speaking: Any = ChatOpenAI(
        model="gpt-5", base_url=model.openai_url, api_key=SecretStr(KEY), max_retries=0
    )
    return speaking.bind_tools([weather, deploy])


def build_tool_graph(model: FakeModel) -> Any:
    """A graph of a model and its tools, not compiled."""
    speaking = chat(model)

    async def answer(state: State) -> dict[str, Any]:
        return {"messages": [await speaking.ainvoke(state["messages"])]}

    graph: Any = StateGraph(State)
    graph.add_node("model", answer)
    graph.add_node("tools", ToolNode([weather, deploy]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph


def wrap_graph(graph: Any, **options: Any) -> Provider:
    provider = wrap(graph, Settings(kind="my_module:graph", options=options))
    assert provider is not None
    return provider


@pytest.mark.requirement("sources.langgraph.live.stream")
@pytest.mark.requirement("sources.langgraph.live.continues")
async def test_nodes_text_and_tools_are_told_and_the_next_turn_knows_them(
    aimock: Aimock, driven: Drive
):
    model = aimock(
        calls("weather", {"city": "Rome"}, user_message="weather", has_tool_result=False),
        says("It is sunny.", user_message="weather"),
        says("You are welcome.", user_message="thanks"),
    )
    async with driven(wrap_graph(build_tool_graph(model))) as here:
        first = await here.turn("how is the weather?")
        second = await here.turn("thanks")
    assert (first.status, second.answers) == ("completed", ["It is sunny.", "You are welcome."])
    done = second.state.tools["call_1"]
    assert (done.tool_name, done.args, str(done.output_text)) == (
        "weather",
        {"city": "Rome"},
        "sunny in Rome",
    )
    assert [fact.payload["title"] for fact in first.facts_of_class("task.started")] == [
        "model",
        "tools",
        "model",
    ]
    assert "sunny in Rome" in str(model.bodies()[-1])


@pytest.mark.requirement("sources.langgraph.live.interrupt")
@pytest.mark.parametrize(
    ("answer", "done"), [("approved", ["production"]), ({"decision": "denied"}, [])]
)
async def test_an_interrupt_goes_on_with_what_was_decided(
    aimock: Aimock, driven: Drive, answer: Answer, done: list[str]
):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, has_tool_result=False), says("That is settled.")
    )
    question: list[Action] = []

    def decide(action: Action) -> Answer:
        question.append(action)
        return answer

    async with driven(wrap_graph(build_tool_graph(model).compile())) as here:
        outcome = await here.turn("deploy it", decide=decide)
    assert (outcome.status, outcome.answers) == ("completed", ["That is settled."])
    assert done == DONE
    assert ['"target": "production"' in (action.shown or "") for action in question] == [True]


def asking_twice(state: State) -> dict[str, Any]:
    """Two questions of one task, which have the same id."""
    del state
    name, age = interrupt("Who?"), interrupt("How old?")
    return {"messages": [("ai", f"{name} is {age}")]}


def make_asking_node(word: str) -> Callable[[State], dict[str, Any]]:
    def ask(state: State) -> dict[str, Any]:
        del state
        return {"messages": [("ai", f"{word}: {interrupt(word)}")]}

    return ask


@pytest.mark.requirement("sources.langgraph.live.interrupt")
async def test_questions_at_once_and_one_after_the_other_each_get_their_own_answer(driven: Drive):
    inner: Any = StateGraph(State)
    inner.add_node("twice", asking_twice)
    inner.add_edge(START, "twice")
    graph: Any = StateGraph(State)
    for name in ("left", "right"):
        graph.add_node(name, make_asking_node(name))
        graph.add_edge(START, name)
    graph.add_node("team", inner.compile())
    graph.add_edge("left", "team")
    answers = {"left": 1, "right": 2, "Who?": "Ann", "How old?": 30}

    def decide(action: Action) -> Answer:
        return {"decision": "approved", "response": answers[action.prompt or ""]}

    async with driven(wrap_graph(graph)) as here:
        outcome = await here.turn("go", decide=decide)
    assert outcome.status == "completed"
    assert sorted(outcome.answers) == ["Ann is 30", "left: 1", "right: 2"]
    assert len(outcome.state.actions) == 4
    [agent] = outcome.state.subagents.threads.values()
    assert agent.status == "completed"


@pytest.mark.requirement("sources.sdk.live.failures")
async def test_what_goes_wrong_in_a_graph_is_told_by_category(aimock: Aimock, driven: Drive):
    model = aimock(
        refuses(429, "slow down", "rate_limit_error", user_message="limit"),
        refuses(503, "overloaded", user_message="busy"),
        calls("weather", {"city": "Rome"}, user_message="forever"),
        cut_reply(slowly(says("There was a very long story"), milliseconds=20), after=5),
    )
    prompts = ("limit", "busy", "a story", "forever")
    async with driven(wrap_graph(build_tool_graph(model), recursion_limit=7)) as here:
        outcome = [await here.turn(prompt) for prompt in prompts]
    assert [each.failure["failureCategory"] for each in outcome] == [
        "rate_limited",
        "provider_unavailable",
        "stream_interrupted",
        "step_limit_reached",
    ]


@pytest.mark.requirement("sources.sdk.live.stop")
async def test_after_a_stop_the_next_turn_of_a_graph_goes_on(aimock: Aimock, driven: Drive):
    DONE.clear()
    model = aimock(
        calls("deploy", {"target": "production"}, user_message="deploy"),
        says("Fine.", user_message="more"),
        slowly(says("word " * 200), milliseconds=50),
    )
    async with driven(wrap_graph(build_tool_graph(model))) as here:
        speaking = await here.submit("tell me")
        await here.wait_for_fact("model.delta")
        stopped = await here.cancel(speaking)
        waiting = await here.submit("deploy it")
        await here.next_action()
        given_up = await here.cancel(waiting)
        after = await here.turn("tell me more")
    assert (stopped.status, given_up.status) == ("canceled", "canceled")
    assert (after.status, after.answers[-1], DONE) == ("completed", "Fine.", [])
    assert "Interrupted" in str(model.bodies()[-1])


@pytest.mark.requirement("sources.sdk.live.again")
async def test_a_graph_that_forgot_is_told_the_words_of_the_thread_again(
    aimock: Aimock, driven: Drive
):
    model = aimock(says("The answer is 42.", user_message="question"), says("As I said."))
    async with driven(wrap_graph(build_tool_graph(model))) as here:
        await here.turn("my question")
    async with driven(wrap_graph(build_tool_graph(model))) as here:
        outcome = await here.turn("and again?")
    assert outcome.answers == ["The answer is 42.", "As I said."]
    assert "The answer is 42." in str(model.bodies()[-1])
