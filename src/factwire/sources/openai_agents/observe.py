"""The OpenAI Agents SDK, observed: the events of a streamed run, and the hooks of any other.

A run that nobody streams is not made to stream for our sake. Its hooks report each answer of
the model and each result of a tool when it is there, in the words of the events; the program's
own hooks are called as if these were not there. What hooks do not report is in the items of the
result, and recorded at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from factwire.sources.kit.observed_run import ObservedRun, Patches, log_errors
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.openai_agents.convert import (
    completion_line,
    dump_model,
    event_line,
    interruption_line,
    item_line,
    read_call,
)

if TYPE_CHECKING:
    from agents import RunHooks

    from factwire.sources.observe.observer import Observer


@log_errors
def make_hooks(seen: ObservedRun | None, own: Any) -> "RunHooks[Any] | None":
    """Hooks that tell a run and then call the program's own; None if they cannot be had."""
    from agents import RunHooks  # noqa: PLC0415 - the program has imported it
    from agents.lifecycle import RunHooksBase  # noqa: PLC0415 - the same

    if seen is None or not (own is None or isinstance(own, RunHooksBase)):
        return None
    inner = cast("Any", own or RunHooks[Any]())
    recorder = _HookRecorder(seen)

    class Hooks(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            recorder.record_agent(agent)
            await inner.on_agent_start(context, agent)

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            await inner.on_agent_end(context, agent, output)

        async def on_llm_start(
            self, context: Any, agent: Any, system_prompt: Any, input_items: Any
        ) -> None:
            recorder.record_request()
            await inner.on_llm_start(context, agent, system_prompt, input_items)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            recorder.record_response(response)
            await inner.on_llm_end(context, agent, response)

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            await inner.on_tool_start(context, agent, tool)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            recorder.record_result(context, result)
            await inner.on_tool_end(context, agent, tool, result)

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            recorder.record_handoff(from_agent, to_agent)
            await inner.on_handoff(context, from_agent, to_agent)

    return Hooks()


class _HookRecorder:
    """Writes down what hooks hear, as events; `open` has the calls of the last answer."""

    def __init__(self, seen: ObservedRun) -> None:
        self._seen = seen
        self._open: dict[str, dict[str, Any]] = {}

    @log_errors
    def record_agent(self, agent: Any) -> None:
        name = {"name": to_json(agent.name)}
        self._seen.record({"type": "agent_updated_stream_event", "new_agent": name})

    @log_errors
    def record_request(self) -> None:
        self._record_raw({"type": "response.created", "response": {}})

    @log_errors
    def record_response(self, response: Any) -> None:
        self._open.clear()
        for place, output in enumerate(response.output):
            item = dump_model(output)
            if "call_id" in item:
                self._open[str(item["call_id"])] = item
            self._record_raw(
                {"type": "response.output_item.done", "output_index": place, "item": item}
            )
        used = response.usage
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        self._record_raw({"type": "response.completed", "response": {"usage": usage}})

    @log_errors
    def record_result(self, context: Any, result: object) -> None:
        call_id = getattr(context, "tool_call_id", None)
        if isinstance(call_id, str):
            self._open.pop(call_id, None)
            self._seen.recorded_ids.add(call_id)
            self._record_item(
                "tool_output", {"output": to_json(result), "raw_item": {"call_id": call_id}}
            )

    @log_errors
    def record_handoff(self, source: Any, target: Any) -> None:
        """Tools end before a handoff, so that the call which is left is its own."""
        raw: dict[str, Any] = next(iter(self._open.values()), dict[str, Any]())
        names = {"source_agent": source, "target_agent": target, "agent": source}
        agents = {key: {"name": to_json(agent.name)} for key, agent in names.items()}
        self._seen.recorded_ids.add(str(raw.get("call_id")))
        for name in ("handoff_requested", "handoff_occured"):
            self._record_item(name, {**agents, "raw_item": raw})

    def _record_raw(self, data: dict[str, Any]) -> None:
        self._seen.record({"type": "raw_response_event", "data": data})

    def _record_item(self, name: str, item: dict[str, Any]) -> None:
        self._seen.record({"type": "run_item_stream_event", "name": name, "item": item})


SOURCE: Final = "openai-agents"
_OURS: Final = "_factwire_run"


def install(observing: "Observer", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        runner = module.AgentRunner
        patches.replace_method(runner, "run", partial(_observe_run, observing))
        patches.replace_method(runner, "run_streamed", partial(_observe_run_streamed, observing))
        result = module.RunResultStreaming
        patches.replace_method(result, "stream_events", partial(_observe_events, observing))

    patches.when_imported("agents.run", change)


def _observe_run(observing: "Observer", original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(runner: Any, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002
        seen = _begin_run(observing, input)
        hooks = make_hooks(seen, kwargs.get("hooks"))
        if seen is None or hooks is None:
            return await original(runner, starting_agent, input, **kwargs)
        with seen.watch():
            result = await original(runner, starting_agent, input, **{**kwargs, "hooks": hooks})
        _end_run(observing, seen, result)
        return result

    return run


def _observe_run_streamed(
    observing: "Observer", original: Callable[..., Any]
) -> Callable[..., Any]:
    def run_streamed(runner: Any, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002
        seen = _begin_run(observing, input)
        if seen is None:
            return original(runner, starting_agent, input, **kwargs)
        with seen.watch():
            result = original(runner, starting_agent, input, **kwargs)
        setattr(result, _OURS, seen)
        return result

    return run_streamed


def _observe_events(observing: "Observer", original: Callable[..., Any]) -> Callable[..., Any]:
    async def stream_events(result: Any) -> AsyncIterator[Any]:
        seen: ObservedRun | None = getattr(result, _OURS, None)
        if seen is None:
            async for event in original(result):
                yield event
            return
        try:
            async for event in original(result):
                _record_event(seen, event)
                yield event
        except (GeneratorExit, asyncio.CancelledError) as error:
            if not result.is_complete:
                seen.end_failed(error)
            raise
        except Exception as error:
            seen.end_failed(error)
            raise
        _end_run(observing, seen, result)

    return stream_events


@log_errors
def _begin_run(observing: "Observer", start: Any) -> ObservedRun | None:
    """The run that begins, or the one that goes on with what was decided."""
    if type(start).__name__ != "RunState":
        seen = observing.begin_run(SOURCE)
        if seen is not None:
            seen.record({"type": "run.started", "input": to_json(start)})
        return seen
    items = [*start.get_interruptions()]
    calls = [read_call(item)[0] for item in items]
    seen = observing.resume_run(calls) or observing.begin_run(SOURCE)
    if seen is not None:
        seen.record(
            {"type": "run.started", "decisions": [_to_decision(start, item) for item in items]}
        )
    return seen


def _to_decision(state: Any, item: Any) -> dict[str, Any]:
    """What the state says about a call, as far as it says it."""
    call_id, tool, _ = read_call(item)
    context = getattr(state, "_context", None)
    approved = None if context is None else context.is_tool_approved(tool, call_id)
    return {"id": call_id, **({} if approved is None else {"approved": approved})}


@log_errors
def _record_event(seen: ObservedRun, event: Any) -> None:
    line = event_line(event)
    if line.get("name") == "tool_output":
        seen.recorded_ids.add(str(line["item"]["raw_item"].get("call_id")))
    seen.record(line)


@log_errors
def _end_run(observing: "Observer", seen: ObservedRun, result: Any) -> None:
    """How a run ended; results that nobody told are told first."""
    for item in result.new_items:
        call_id = str(dump_model(item.raw_item).get("call_id"))
        if item.type == "tool_call_output_item" and call_id not in seen.recorded_ids:
            seen.recorded_ids.add(call_id)
            line = {"type": "run_item_stream_event", "name": "tool_output"}
            seen.record({**line, "item": item_line(item)})
    if result.interruptions:
        seen.record(interruption_line(result.interruptions))
        observing.await_decision(seen, [read_call(item)[0] for item in result.interruptions])
    elif getattr(result, "_cancel_mode", "none") != "none":
        seen.end({"type": "run.cancelled", "reason": "requested"})
    else:
        seen.end(completion_line(result.final_output))
