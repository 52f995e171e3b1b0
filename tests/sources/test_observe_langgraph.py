"""Programs that use LangGraph, observed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, message_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]
    START,
    MessagesState,
    StateGraph,
)
from langgraph.types import Command, interrupt

import factwire
from tests.sources.observed import ObservedJournal, by_thread, end, payloads_of, texts

ASKED: dict[str, Any] = {"messages": [("user", "go")]}
HERE: dict[str, Any] = {"configurable": {"thread_id": "1"}}


def graph_of(**nodes: Any) -> Any:
    """A graph whose nodes follow each other."""
    graph: Any = StateGraph(MessagesState)
    for before, name in zip([START, *nodes], nodes, strict=False):
        graph.add_node(name, nodes[name])
        graph.add_edge(before, name)
    return graph


def build_talking_graph() -> Any:
    """A model in a node, and one in a graph inside."""
    model = GenericFakeChatModel(messages=iter(AIMessage("word one", id=str(i)) for i in range(9)))

    def speak(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return graph_of(speak=speak, team=graph_of(inner=speak).compile()).compile()


def comparable(chunk: Any) -> Any:
    """A chunk without the ids that are new in each run."""
    if isinstance(chunk, dict):
        fields = cast("dict[str, Any]", chunk)
        return {key: comparable(value) for key, value in fields.items() if key != "ns"}
    if isinstance(chunk, list | tuple):
        kinds = [comparable(each) for each in cast("list[Any]", chunk)]
        return [each for each in kinds if not isinstance(each, str) or ":" not in each]
    if hasattr(chunk, "content"):
        return (type(chunk).__name__, message_to_dict(chunk)["data"]["content"])
    return chunk


def metadata_left_out(chunks: list[Any], modes: Any) -> list[Any]:
    with_metadata = "messages" in modes
    return [comparable(chunk) for chunk in chunks] if not with_metadata else [len(chunks)]


@pytest.mark.requirement("sources.observe.transparent")
@pytest.mark.parametrize(
    ("modes", "subgraphs", "version"),
    [
        (None, False, "v1"),
        (None, True, "v1"),
        ("values", False, "v1"),
        ("messages", False, "v1"),
        ("messages", True, "v2"),
        ("updates", True, "v2"),
        (["updates", "values"], False, "v1"),
        (["updates", "values"], True, "v1"),
        (["custom"], False, "v2"),
    ],
)
def test_a_program_gets_the_chunks_that_it_would_have_got(
    tmp_path: Path, modes: Any, subgraphs: bool, version: str
):
    def chunks() -> list[Any]:
        settings = {"stream_mode": modes, "subgraphs": subgraphs, "version": version}
        found = list(build_talking_graph().stream(ASKED, **settings))
        return metadata_left_out(found, modes or ())

    expected = chunks()
    found: list[Any] = []
    facts = ObservedJournal(tmp_path).observe_program(lambda: found.extend(chunks()))
    assert found == expected
    assert texts(facts) == ["word one", "word one"]
    assert bool(payloads_of(facts, "model.delta")) == (modes == "messages")
    assert end(facts) == "turn.completed"


@pytest.mark.requirement("sources.observe.langgraph")
def test_an_interrupt_is_told_and_the_run_that_goes_on_is_the_same_turn(tmp_path: Path):
    def ask(state: MessagesState) -> dict[str, Any]:
        del state
        return {"messages": [("ai", f"{interrupt('Who?')} is {interrupt({'how': 'old'})}")]}

    graph = graph_of(ask=ask).compile(checkpointer=InMemorySaver())

    async def rest() -> None:
        await graph.ainvoke(Command(resume="Ann"), HERE)
        answered = await graph.ainvoke(Command(resume=30), HERE)
        assert answered["messages"][-1].content == "Ann is 30"

    def program() -> None:
        graph.invoke(ASKED, HERE)
        asyncio.run(rest())

    [facts] = by_thread(ObservedJournal(tmp_path).observe_program(program))
    assert [each.get("prompt") for each in payloads_of(facts, "action.required")] == ["Who?", None]
    assert [each["answer"] for each in payloads_of(facts, "action.resolved")] == ["Ann", 30]
    assert texts(facts) == ["Ann is 30"]
    assert end(facts) == "turn.completed"


def fails(state: MessagesState) -> dict[str, Any]:
    del state
    raise ZeroDivisionError("by nothing")


def asks(state: MessagesState) -> dict[str, Any]:
    del state
    return {"messages": [("ai", interrupt("Who?"))]}


def left_early(graph: Any) -> None:
    for _ in graph.stream(ASKED):
        break


def run_failing(graph: Any) -> None:
    del graph
    with pytest.raises(ZeroDivisionError):
        graph_of(fails=fails).compile().invoke(ASKED)


def run_waiting(graph: Any) -> None:
    del graph
    asking = graph_of(ask=asks).compile(checkpointer=InMemorySaver())
    asking.invoke(ASKED, HERE)


@pytest.mark.requirement("sources.observe.failures")
@pytest.mark.parametrize(
    ("program", "ended", "reason"),
    [
        (left_early, "turn.canceled", "GeneratorExit"),
        (run_failing, "turn.failed", "by nothing"),
        (run_waiting, "turn.completed", "interrupt"),
    ],
)
def test_a_run_ends_as_the_program_ended_it(
    tmp_path: Path, program: Callable[[Any], None], ended: str, reason: str
):
    place = ObservedJournal(tmp_path)
    place.observe_program(lambda: program(build_talking_graph()))
    [facts] = by_thread(place.facts())
    assert end(facts) == ended
    assert reason in str(payloads_of(facts, ended))


@pytest.mark.requirement("sources.observe.langgraph")
@pytest.mark.asyncio
async def test_graphs_at_once_are_threads_of_their_own(tmp_path: Path):
    place = ObservedJournal(tmp_path)
    with factwire.observe(journal=place.url) as observing:
        await asyncio.gather(*(build_talking_graph().ainvoke(ASKED) for _ in range(3)))
        assert await asyncio.to_thread(observing.flush)
    threads = by_thread(await asyncio.to_thread(place.facts))
    assert [end(facts) for facts in threads] == ["turn.completed"] * 3
