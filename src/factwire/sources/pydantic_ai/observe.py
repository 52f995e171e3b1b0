"""Pydantic AI, observed: a capability that every run gets beside its own.

It hears the events of whatever the program streams. A model that the program does not stream is not
made to stream for our sake: its answers and the results of its tools are told when they are there,
in the words of the events.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from factwire.facts.json_values import object_at
from factwire.sources.kit.observed_run import ObservedRun, Patches, log_errors
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.pydantic_ai.convert import closing_line, event_line

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability

    from factwire.sources.observe.observer import Observer


SOURCE: Final = "pydantic-ai"
_RESULTS: Final = ("tool-return", "retry-prompt")


def install(observing: "Observer", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        patches.replace_method(module.Agent, "iter", partial(_observe_iter, observing))

    patches.when_imported("pydantic_ai.agent", change)


def _observe_iter(observing: "Observer", original: Callable[..., Any]) -> Callable[..., Any]:
    def iter(agent: Any, user_prompt: Any = None, **kwargs: Any) -> Any:  # noqa: A001
        deferred = kwargs.get("deferred_tool_results")
        capability = _make_capability(observing, user_prompt, deferred)
        capabilities = [*(kwargs.get("capabilities") or ()), capability]
        return original(agent, user_prompt, **{**kwargs, "capabilities": capabilities})

    return iter


@log_errors
def _begin_run(observing: "Observer", prompt: Any, deferred: Any) -> ObservedRun | None:
    """The run that begins, or the one that goes on with what was decided."""
    ruled: dict[str, Any] = {} if deferred is None else {**deferred.approvals, **deferred.calls}
    seen = observing.resume_run(ruled)
    if seen is not None:
        decisions = [_to_decision(call_id, answer) for call_id, answer in ruled.items()]
        seen.record({"type": "run.started", "decisions": decisions})
        return seen
    seen = observing.begin_run(SOURCE)
    if seen is not None:
        seen.record({"type": "run.started", "input": to_json(prompt)})
    return seen


def _to_decision(call_id: str, answer: Any) -> dict[str, Any]:
    kind = getattr(answer, "kind", None)
    if isinstance(answer, bool) or kind in ("tool-approved", "tool-denied"):
        denied = answer is False or kind == "tool-denied"
        reason = to_json(getattr(answer, "message", None)) if denied else None
        return {"id": call_id, "approved": not denied, "reason": reason}
    return {"id": call_id, "answer": to_json(answer)}


def _make_capability(
    observing: "Observer", prompt: Any, deferred: Any
) -> "AbstractCapability[Any]":
    from pydantic_ai.capabilities import AbstractCapability  # noqa: PLC0415 - it is imported

    class ObservingCapability(AbstractCapability[Any]):
        """Of one run. What it does not override, it has no part in."""

        @property
        def has_wrap_run_event_stream(self) -> bool:
            """To hear a stream is no reason to make one."""
            return False

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            del ctx
            seen = _begin_run(observing, prompt, deferred)
            if seen is None:
                return await handler()
            recorder.run = seen
            with seen.watch():
                result = await handler()
            recorder.end_run(observing, result)
            return result

        async def wrap_run_event_stream(
            self, ctx: Any, *, stream: AsyncIterable[Any]
        ) -> AsyncIterator[Any]:
            del ctx
            async for event in stream:
                recorder.record_event(event)
                yield event

        async def after_model_request(
            self, ctx: Any, *, request_context: Any, response: Any
        ) -> Any:
            del ctx, request_context
            recorder.record_response(response)
            return response

        async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
            del ctx, node
            recorder.record_results(getattr(getattr(result, "request", None), "parts", ()))
            return result

    recorder = _EventRecorder()
    return ObservingCapability()


class _EventRecorder:
    """Tells what a capability hears, each thing once."""

    def __init__(self) -> None:
        self.run: ObservedRun | None = None
        self._streamed = False

    @log_errors
    def record_event(self, event: Any) -> None:
        line = event_line(event)
        self._streamed = self._streamed or line.get("event_kind") == "part_start"
        if self.run is not None:
            part = object_at(line.get("part")) or {}
            if part.get("part_kind") in _RESULTS:
                self.run.recorded_ids.add(str(part.get("tool_call_id")))
            self.run.record(line)

    @log_errors
    def record_response(self, response: Any) -> None:
        """An answer of the model, whole, where its pieces were not heard."""
        streamed, self._streamed = self._streamed, False
        if self.run is None or streamed:
            return
        for place, part in enumerate(response.parts):
            line = {"index": place, "part": to_json(part)}
            self.run.recorded_ids.discard(str(getattr(part, "tool_call_id", None)))
            for kind in ("part_start", "part_end"):
                self.run.record({**line, "event_kind": kind})

    @log_errors
    def record_results(self, parts: Any) -> None:
        """What came of calls, where nobody told it."""
        seen = self.run
        if seen is None:
            return
        for part in parts:
            if (
                part.part_kind in _RESULTS
                and part.tool_name
                and part.tool_call_id not in seen.recorded_ids
            ):
                seen.recorded_ids.add(part.tool_call_id)
                seen.record({"event_kind": "function_tool_result", "part": to_json(part)})

    @log_errors
    def end_run(self, observing: "Observer", result: Any) -> None:
        if self.run is None:
            return
        for message in result.new_messages():
            if message.kind == "request":
                self.record_results(message.parts)
        line = closing_line(result)
        if line["type"] == "run.completed":
            self.run.end(line)
        else:
            self.run.record(line)
            observing.await_decision(
                self.run, [call["tool_call_id"] for call in line["interruptions"]]
            )
