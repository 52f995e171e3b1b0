"""Programs that use Pydantic AI, observed."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    TextPart,
    Tool,
    ToolCallPart,
    ToolDenied,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import factwire
from tests.sources.observed import ObservedJournal, by_thread, end, payloads_of, texts


@pytest.fixture(autouse=True)
def loop() -> Generator[None]:
    """What `run_sync` runs in, and leaves open."""
    fresh = asyncio.new_event_loop()
    asyncio.set_event_loop(fresh)
    yield
    fresh.close()
    asyncio.set_event_loop(None)


def weather(city: str) -> str:
    return f"sunny in {city}"


def again() -> str:
    raise ModelRetry("not like this")


def deploy(target: str) -> str:
    return f"deployed to {target}"


def broken() -> str:
    raise ZeroDivisionError("by nothing")


async def delegate() -> str:
    return (await make_agent().run("inner work")).output


def make_agent() -> Agent[None, str]:
    return Agent(TestModel(custom_output_text="Hello there."), tools=[weather])


@pytest.mark.requirement("sources.observe.pydantic-ai")
def test_a_run_is_told_the_same_however_it_is_driven(tmp_path: Path):
    agent = make_agent()

    async def run_streamed() -> None:
        async with agent.run_stream_events("go") as events:
            assert [event async for event in events]
        async with agent.run_stream("go") as result:
            assert await result.get_output() == "Hello there."
        async with agent.iter("go") as run:
            assert [node async for node in run]

    def program() -> None:
        assert agent.run_sync("go").output == "Hello there."
        asyncio.run(run_streamed())

    runs = by_thread(ObservedJournal(tmp_path).observe_program(program))
    assert len(runs) == 4
    for facts in runs:
        assert payloads_of(facts, "turn.submitted") == [{"prompt": "go"}]
        assert [each["output"] for each in payloads_of(facts, "tool.result")] == ["sunny in a"]
        assert texts(facts) == ["Hello there."]
        assert end(facts) == "turn.completed"


@pytest.mark.requirement("sources.observe.no-streaming")
def test_a_model_that_cannot_stream_is_not_made_to(tmp_path: Path):
    calls = iter([ToolCallPart("again", {}, "c"), TextPart("done")])

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages, info
        return ModelResponse([next(calls)])

    agent = Agent(FunctionModel(answer), tools=[again])
    facts = ObservedJournal(tmp_path).observe_program(lambda: agent.run_sync("go"))
    assert [each["failureCategory"] for each in payloads_of(facts, "tool.failed")] == ["retry"]
    assert texts(facts) == ["done"]


@pytest.mark.requirement("sources.observe.approvals")
def test_a_deferred_call_is_told_and_so_is_what_the_program_decides(tmp_path: Path):
    tools = [Tool(deploy, requires_approval=True)]
    agent = Agent(TestModel(), output_type=[str, DeferredToolRequests], tools=tools)

    def program() -> None:
        first = agent.run_sync("go")
        assert isinstance(first.output, DeferredToolRequests)
        [call] = first.output.approvals
        ruling = DeferredToolResults(approvals={call.tool_call_id: ToolDenied("not now")})
        agent.run_sync(message_history=first.all_messages(), deferred_tool_results=ruling)

    [facts] = by_thread(ObservedJournal(tmp_path).observe_program(program))
    [question], [answered] = (
        payloads_of(facts, "action.required"),
        payloads_of(facts, "action.resolved"),
    )
    assert (question["toolName"], question["args"]) == ("deploy", {"target": "a"})
    assert (answered["decision"], answered["reason"]) == ("denied", "not now")
    assert [each["failureCategory"] for each in payloads_of(facts, "tool.failed")] == [
        "permission_denied"
    ]
    assert end(facts) == "turn.completed"


@pytest.mark.requirement("sources.observe.threads")
def test_runs_are_turns_of_the_thread_that_is_named_and_runs_inside_of_runs_have_their_own(
    tmp_path: Path,
):
    outer = Agent(TestModel(custom_output_text="All done."), tools=[delegate])

    def program() -> None:
        with factwire.thread("chat-1"):
            outer.run_sync("first")
            outer.run_sync("second")
        make_agent().run_sync("elsewhere")

    threads = by_thread(ObservedJournal(tmp_path).observe_program(program))
    names = [facts[0].thread_id for facts in threads]
    assert (len(names), names[0]) == (4, "chat-1")
    assert [each["prompt"] for each in payloads_of(threads[0], "turn.submitted")] == [
        "first",
        "second",
    ]
    assert [facts[0].parent_thread_id for facts in threads] == [None, "chat-1", "chat-1", None]


@pytest.mark.requirement("sources.observe.failures")
def test_what_a_run_raises_is_told_and_raised(tmp_path: Path):
    agent = Agent(TestModel(), tools=[broken])

    def program() -> None:
        with pytest.raises(ZeroDivisionError):
            agent.run_sync("go")

    [failed] = payloads_of(ObservedJournal(tmp_path).observe_program(program), "turn.failed")
    assert (failed["code"], failed["message"]) == ("ZeroDivisionError", "by nothing")
