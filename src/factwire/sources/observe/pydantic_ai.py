"""Pydantic AI, observed: a capability that every run gets beside its own.

It hears the events of whatever the program streams. A model that the program does not stream is not
made to stream for our sake: its answers and the results of its tools are told when they are there,
in the words of the events.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from factwire.projection.reading import table
from factwire.sources.live.sdk_pydantic_ai import closing_line, event_line
from factwire.sources.live.sdk_values import plain
from factwire.sources.observe.patches import Patches
from factwire.sources.observe.runs import ObservedRun, harmless

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability

    from factwire.sources.observe.observing import Observing

SOURCE: Final = "pydantic-ai"
_RESULTS: Final = ("tool-return", "retry-prompt")


def install(observing: "Observing", patches: Patches) -> None:
    def change(module: ModuleType) -> None:
        patches.method(module.Agent, "iter", partial(_iter, observing))

    patches.when_imported("pydantic_ai.agent", change)


def _iter(observing: "Observing", original: Callable[..., Any]) -> Callable[..., Any]:
    def iter(agent: Any, user_prompt: Any = None, **given: Any) -> Any:  # noqa: A001
        deferred = given.get("deferred_tool_results")
        ear = _capability(observing, user_prompt, deferred)
        capabilities = [*(given.get("capabilities") or ()), ear]
        return original(agent, user_prompt, **{**given, "capabilities": capabilities})

    return iter


@harmless
def _begun(observing: "Observing", prompt: Any, deferred: Any) -> ObservedRun | None:
    """The run that begins, or the one that goes on with what was decided."""
    ruled: dict[str, Any] = {} if deferred is None else {**deferred.approvals, **deferred.calls}
    seen = observing.resumed(ruled)
    if seen is not None:
        decisions = [_decision(call_id, said) for call_id, said in ruled.items()]
        seen.tell({"type": "run.started", "decisions": decisions})
        return seen
    seen = observing.run(SOURCE)
    if seen is not None:
        seen.tell({"type": "run.started", "input": plain(prompt)})
    return seen


def _decision(call_id: str, said: Any) -> dict[str, Any]:
    kind = getattr(said, "kind", None)
    if isinstance(said, bool) or kind in ("tool-approved", "tool-denied"):
        denied = said is False or kind == "tool-denied"
        reason = plain(getattr(said, "message", None)) if denied else None
        return {"id": call_id, "approved": not denied, "reason": reason}
    return {"id": call_id, "answer": plain(said)}


def _capability(observing: "Observing", prompt: Any, deferred: Any) -> "AbstractCapability[Any]":
    from pydantic_ai.capabilities import AbstractCapability  # noqa: PLC0415 - it is imported

    class Ear(AbstractCapability[Any]):
        """Of one run. What it does not override, it has no part in."""

        @property
        def has_wrap_run_event_stream(self) -> bool:
            """To hear a stream is no reason to make one."""
            return False

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            del ctx
            seen = _begun(observing, prompt, deferred)
            if seen is None:
                return await handler()
            ears.seen = seen
            with seen.watched():
                result = await handler()
            ears.close(observing, result)
            return result

        async def wrap_run_event_stream(
            self, ctx: Any, *, stream: AsyncIterable[Any]
        ) -> AsyncIterator[Any]:
            del ctx
            async for event in stream:
                ears.event(event)
                yield event

        async def after_model_request(
            self, ctx: Any, *, request_context: Any, response: Any
        ) -> Any:
            del ctx, request_context
            ears.response(response)
            return response

        async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
            del ctx, node
            ears.results(getattr(getattr(result, "request", None), "parts", ()))
            return result

    ears = _Ears()
    return Ear()


class _Ears:
    """Tells what a capability hears, each thing once."""

    def __init__(self) -> None:
        self.seen: ObservedRun | None = None
        self._streamed = False

    @harmless
    def event(self, event: Any) -> None:
        line = event_line(event)
        self._streamed = self._streamed or line.get("event_kind") == "part_start"
        if self.seen is not None:
            part = table(line.get("part")) or {}
            if part.get("part_kind") in _RESULTS:
                self.seen.told.add(str(part.get("tool_call_id")))
            self.seen.tell(line)

    @harmless
    def response(self, response: Any) -> None:
        """An answer of the model, whole, where its pieces were not heard."""
        streamed, self._streamed = self._streamed, False
        if self.seen is None or streamed:
            return
        for place, part in enumerate(response.parts):
            told = {"index": place, "part": plain(part)}
            self.seen.told.discard(str(getattr(part, "tool_call_id", None)))
            for kind in ("part_start", "part_end"):
                self.seen.tell({**told, "event_kind": kind})

    @harmless
    def results(self, parts: Any) -> None:
        """What came of calls, where nobody told it."""
        seen = self.seen
        if seen is None:
            return
        for part in parts:
            if part.part_kind in _RESULTS and part.tool_name and part.tool_call_id not in seen.told:
                seen.told.add(part.tool_call_id)
                seen.tell({"event_kind": "function_tool_result", "part": plain(part)})

    @harmless
    def close(self, observing: "Observing", result: Any) -> None:
        if self.seen is None:
            return
        for message in result.new_messages():
            if message.kind == "request":
                self.results(message.parts)
        line = closing_line(result)
        if line["type"] == "run.completed":
            self.seen.end(line)
        else:
            self.seen.tell(line)
            observing.wait(self.seen, [call["tool_call_id"] for call in line["interruptions"]])
