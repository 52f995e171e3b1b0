"""Hooks of a run of the OpenAI Agents SDK, which say what its events would have said.

The program's own hooks are called as if these were not there; hooks that the SDK would refuse are
left for it to refuse.
"""

from typing import TYPE_CHECKING, Any, cast

from factwire.sources.live.sdk_openai_agents import dumped
from factwire.sources.live.sdk_values import plain
from factwire.sources.observe.runs import ObservedRun, harmless

if TYPE_CHECKING:
    from agents import RunHooks


@harmless
def hooks_for(seen: ObservedRun | None, own: Any) -> "RunHooks[Any] | None":
    """Hooks that tell a run and then call the program's own; None if they cannot be had."""
    from agents import RunHooks  # noqa: PLC0415 - the program has imported it
    from agents.lifecycle import RunHooksBase  # noqa: PLC0415 - the same

    if seen is None or not (own is None or isinstance(own, RunHooksBase)):
        return None
    inner = cast("Any", own or RunHooks[Any]())
    ears = _Ears(seen)

    class Hooks(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            ears.agent(agent)
            await inner.on_agent_start(context, agent)

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            await inner.on_agent_end(context, agent, output)

        async def on_llm_start(
            self, context: Any, agent: Any, system_prompt: Any, input_items: Any
        ) -> None:
            ears.asked()
            await inner.on_llm_start(context, agent, system_prompt, input_items)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            ears.answered(response)
            await inner.on_llm_end(context, agent, response)

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            await inner.on_tool_start(context, agent, tool)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            ears.result(context, result)
            await inner.on_tool_end(context, agent, tool, result)

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            ears.handoff(from_agent, to_agent)
            await inner.on_handoff(context, from_agent, to_agent)

    return Hooks()


class _Ears:
    """Writes down what hooks hear, as events; `open` has the calls of the last answer."""

    def __init__(self, seen: ObservedRun) -> None:
        self._seen = seen
        self._open: dict[str, dict[str, Any]] = {}

    @harmless
    def agent(self, agent: Any) -> None:
        name = {"name": plain(agent.name)}
        self._seen.tell({"type": "agent_updated_stream_event", "new_agent": name})

    @harmless
    def asked(self) -> None:
        self._raw({"type": "response.created", "response": {}})

    @harmless
    def answered(self, response: Any) -> None:
        self._open.clear()
        for place, output in enumerate(response.output):
            item = dumped(output)
            if "call_id" in item:
                self._open[str(item["call_id"])] = item
            self._raw({"type": "response.output_item.done", "output_index": place, "item": item})
        used = response.usage
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        self._raw({"type": "response.completed", "response": {"usage": usage}})

    @harmless
    def result(self, context: Any, result: object) -> None:
        call_id = getattr(context, "tool_call_id", None)
        if isinstance(call_id, str):
            self._open.pop(call_id, None)
            self._seen.told.add(call_id)
            self._item("tool_output", {"output": plain(result), "raw_item": {"call_id": call_id}})

    @harmless
    def handoff(self, source: Any, target: Any) -> None:
        """Tools end before a handoff, so that the call which is left is its own."""
        raw: dict[str, Any] = next(iter(self._open.values()), dict[str, Any]())
        names = {"source_agent": source, "target_agent": target, "agent": source}
        agents = {key: {"name": plain(agent.name)} for key, agent in names.items()}
        self._seen.told.add(str(raw.get("call_id")))
        for name in ("handoff_requested", "handoff_occured"):
            self._item(name, {**agents, "raw_item": raw})

    def _raw(self, data: dict[str, Any]) -> None:
        self._seen.tell({"type": "raw_response_event", "data": data})

    def _item(self, name: str, item: dict[str, Any]) -> None:
        self._seen.tell({"type": "run_item_stream_event", "name": name, "item": item})
