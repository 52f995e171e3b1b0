"""The OpenAI Agents SDK, observed: the events of a streamed run, and the hooks of any other.

A run that nobody streams is not made to stream for our sake. Its hooks tell each answer of the
model and each result of a tool when it is there, in the words of the events. What hooks do not
tell is in the items of the result, and told at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from factwire.sources.live.sdk_openai_agents import (
    call_of,
    completed_line,
    dumped,
    event_line,
    interrupted_line,
    item_line,
)
from factwire.sources.live.sdk_values import plain
from factwire.sources.observe.openai_agents_hooks import hooks_for
from factwire.sources.observe.patches import Patches
from factwire.sources.observe.runs import ObservedRun, harmless

if TYPE_CHECKING:
    from factwire.sources.observe.observing import Observing

SOURCE: Final = "openai-agents"
_OURS: Final = "_factwire_run"


def install(observing: "Observing", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        runner = module.AgentRunner
        patches.method(runner, "run", partial(_run, observing))
        patches.method(runner, "run_streamed", partial(_run_streamed, observing))
        result = module.RunResultStreaming
        patches.method(result, "stream_events", partial(_events, observing))

    patches.when_imported("agents.run", change)


def _run(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(runner: Any, starting_agent: Any, input: Any, **given: Any) -> Any:  # noqa: A002
        seen = _begun(observing, input)
        hooks = hooks_for(seen, given.get("hooks"))
        if seen is None or hooks is None:
            return await original(runner, starting_agent, input, **given)
        with seen.watched():
            result = await original(runner, starting_agent, input, **{**given, "hooks": hooks})
        _close(observing, seen, result)
        return result

    return run


def _run_streamed(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    def run_streamed(runner: Any, starting_agent: Any, input: Any, **given: Any) -> Any:  # noqa: A002
        seen = _begun(observing, input)
        if seen is None:
            return original(runner, starting_agent, input, **given)
        with seen.watched():
            result = original(runner, starting_agent, input, **given)
        setattr(result, _OURS, seen)
        return result

    return run_streamed


def _events(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    async def stream_events(result: Any) -> AsyncIterator[Any]:
        seen: ObservedRun | None = getattr(result, _OURS, None)
        if seen is None:
            async for event in original(result):
                yield event
            return
        try:
            async for event in original(result):
                _tell(seen, event)
                yield event
        except (GeneratorExit, asyncio.CancelledError) as error:
            if not result.is_complete:
                seen.failed(error)
            raise
        except Exception as error:
            seen.failed(error)
            raise
        _close(observing, seen, result)

    return stream_events


@harmless
def _begun(observing: "Observing", given: Any) -> ObservedRun | None:
    """The run that begins, or the one that goes on with what was decided."""
    if type(given).__name__ != "RunState":
        seen = observing.run(SOURCE)
        if seen is not None:
            seen.tell({"type": "run.started", "input": plain(given)})
        return seen
    items = [*given.get_interruptions()]
    calls = [call_of(item)[0] for item in items]
    seen = observing.resumed(calls) or observing.run(SOURCE)
    if seen is not None:
        seen.tell({"type": "run.started", "decisions": [_decision(given, item) for item in items]})
    return seen


def _decision(state: Any, item: Any) -> dict[str, Any]:
    """What the state says about a call, as far as it says it."""
    call_id, tool, _ = call_of(item)
    context = getattr(state, "_context", None)
    approved = None if context is None else context.is_tool_approved(tool, call_id)
    return {"id": call_id, **({} if approved is None else {"approved": approved})}


@harmless
def _tell(seen: ObservedRun, event: Any) -> None:
    line = event_line(event)
    if line.get("name") == "tool_output":
        seen.told.add(str(line["item"]["raw_item"].get("call_id")))
    seen.tell(line)


@harmless
def _close(observing: "Observing", seen: ObservedRun, result: Any) -> None:
    """How a run ended; results that nobody told are told first."""
    for item in result.new_items:
        call_id = str(dumped(item.raw_item).get("call_id"))
        if item.type == "tool_call_output_item" and call_id not in seen.told:
            seen.told.add(call_id)
            line = {"type": "run_item_stream_event", "name": "tool_output"}
            seen.tell({**line, "item": item_line(item)})
    if result.interruptions:
        seen.tell(interrupted_line(result.interruptions))
        observing.wait(seen, [call_of(item)[0] for item in result.interruptions])
    elif getattr(result, "_cancel_mode", "none") != "none":
        seen.end({"type": "run.cancelled", "reason": "requested"})
    else:
        seen.end(completed_line(result.final_output))
