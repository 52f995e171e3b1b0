"""Programs that use the OpenAI Agents SDK, observed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, RunHooks, Runner, Usage, function_tool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)

import factwire
from tests.sources.observed import ObservedJournal, by_thread, end, payloads_of, texts

QUIET = RunConfig(tracing_disabled=True)


def text(words: str) -> Any:
    part = ResponseOutputText(text=words, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"msg {words}", content=[part], role="assistant", status="completed", type="message"
    )


def call(name: str, arguments: str = "{}", call_id: str = "call_1") -> Any:
    return ResponseFunctionToolCall(
        name=name, arguments=arguments, call_id=call_id, type="function_call", id=f"fc {call_id}"
    )


class Scripted(Model):
    """A model that gives these answers, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter(answers)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        del args, kwargs
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        usage = Usage(requests=1, input_tokens=5, output_tokens=2, total_tokens=7)
        return ModelResponse(output=[answer], usage=usage, response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        [item] = (await self.get_response(*args, **kwargs)).output
        details: Any = {"cached_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0}
        usage = ResponseUsage(
            input_tokens=5,
            output_tokens=2,
            total_tokens=7,
            input_tokens_details=details,
            output_tokens_details=details,
        )
        response = Response.model_construct(id="r", created_at=1.0, output=[item], usage=usage)
        yield ResponseOutputItemDoneEvent(
            item=item, output_index=0, sequence_number=0, type="response.output_item.done"
        )
        yield ResponseCompletedEvent.model_construct(
            response=response, sequence_number=1, type="response.completed"
        )


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@function_tool(needs_approval=True)
def deploy(target: str) -> str:
    """Deploy to a target."""
    return f"deployed to {target}"


def make_agent(*answers: Any) -> Agent[None]:
    model = Scripted(*answers)
    return Agent(
        name="Assistant",
        model=model,
        tools=[weather, deploy],
        handoffs=[Agent(name="Poet", model=model)],
    )


async def run_streamed(agent: Agent[None], prompt: Any) -> Any:
    result = Runner.run_streamed(agent, prompt, run_config=QUIET)
    assert [event async for event in result.stream_events()]
    return result


async def whole(agent: Agent[None], prompt: Any) -> Any:
    return await Runner.run(agent, prompt, run_config=QUIET)


@pytest.mark.requirement("sources.observe.openai-agents")
@pytest.mark.parametrize("run", [whole, run_streamed])
def test_tools_handoffs_and_answers_are_told_whether_or_not_a_run_is_streamed(
    tmp_path: Path, run: Any
):
    handed = call("transfer_to_poet", call_id="call_2")
    agent = make_agent(call("weather", '{"city":"Rome"}'), handed, text("Roses."))
    facts = ObservedJournal(tmp_path).observe_program(lambda: asyncio.run(run(agent, "a poem")))
    assert payloads_of(facts, "turn.submitted") == [{"prompt": "a poem"}]
    assert [each.get("output") for each in payloads_of(facts, "tool.result")] == [
        "sunny in Rome",
        {"agent": "Poet"},
    ]
    assert payloads_of(facts, "handoff.completed") == [
        {"fromAgent": "Assistant", "toAgent": "Poet"}
    ]
    assert texts(facts) == ["Roses."]
    [done] = payloads_of(facts, "turn.completed")
    assert (done["inputTokens"], done["outputTokens"]) == (15, 6)


@pytest.mark.requirement("sources.observe.approvals")
@pytest.mark.parametrize("run", [whole, run_streamed])
@pytest.mark.parametrize("approves", [True, False])
def test_an_approval_is_told_and_the_run_that_goes_on_is_the_same_turn(
    tmp_path: Path, run: Any, approves: bool
):
    async def program() -> None:
        agent = make_agent(call("deploy", '{"target":"production"}'), text("Settled."))
        state = (await run(agent, "deploy")).to_state()
        for item in state.get_interruptions():
            (state.approve if approves else state.reject)(item)
        await run(agent, state)

    [facts] = by_thread(ObservedJournal(tmp_path).observe_program(lambda: asyncio.run(program())))
    [question], [answered] = (
        payloads_of(facts, "action.required"),
        payloads_of(facts, "action.resolved"),
    )
    assert (question["toolName"], question["args"]) == ("deploy", {"target": "production"})
    assert answered["decision"] == ("approved" if approves else "denied")
    assert [each["output"] for each in payloads_of(facts, "tool.result")] == (
        ["deployed to production"] if approves else []
    )
    assert texts(facts) == ["Settled."]
    assert end(facts) == "turn.completed"


@pytest.mark.requirement("sources.observe.failures")
@pytest.mark.parametrize("run", [whole, run_streamed])
def test_what_a_model_raises_is_told_and_raised(tmp_path: Path, run: Any):
    def program() -> None:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(run(make_agent(ZeroDivisionError("by nothing")), "go"))

    [failed] = payloads_of(ObservedJournal(tmp_path).observe_program(program), "turn.failed")
    assert (failed["code"], failed["message"]) == ("ZeroDivisionError", "by nothing")


class Counting(RunHooks[Any]):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        del context, agent, response
        self.heard.append("answer")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        del context, agent
        self.heard.append(f"{tool.name}: {result}")


@pytest.mark.requirement("sources.observe.transparent")
@pytest.mark.asyncio
async def test_hooks_of_the_program_hear_what_they_would_have_heard(tmp_path: Path):
    hooks = Counting()
    agent = make_agent(call("weather", '{"city":"Rome"}'), text("Sunny."))
    with factwire.observe(journal=ObservedJournal(tmp_path).url):
        await Runner.run(agent, "go", hooks=hooks, run_config=QUIET)
        with pytest.raises(TypeError):
            await Runner.run(agent, "go", hooks=object(), run_config=QUIET)  # pyright: ignore[reportArgumentType]
    assert hooks.heard == ["answer", "weather: sunny in Rome", "answer"]


@pytest.mark.requirement("sources.observe.threads")
def test_an_agent_that_is_a_tool_works_on_a_thread_of_its_own(tmp_path: Path):
    inner = Agent(name="Inner", model=Scripted(text("inside")))
    tool = inner.as_tool("ask_inner", "Ask it.")
    outer = Agent(
        name="Outer",
        model=Scripted(call("ask_inner", '{"input":"x"}'), text("outside")),
        tools=[tool],
    )
    facts = ObservedJournal(tmp_path).observe_program(
        lambda: asyncio.run(whole(outer, "go")), thread="chat-1"
    )
    threads = by_thread(facts)
    assert [texts(each) for each in threads] == [["outside"], ["inside"]]
    assert threads[1][0].parent_thread_id == "chat-1"
