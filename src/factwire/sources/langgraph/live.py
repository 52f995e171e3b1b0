"""A graph of LangGraph, run in this process.

A graph needs a checkpointer to wait for anybody; one that has none gets one in memory. Our thread
is the graph's thread, so a graph that keeps its state elsewhere goes on with it after a restart,
and any other is told the words of the thread again. What a node waits for goes on with what a
person answers; a denial is False, as in the SDK's own examples.
"""

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import list_at, object_at, text_at
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.provider import Provider
from factwire.runtime.structured_output import OUTPUT_SCHEMA
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.sdk_turn import SdkDriver, Verdict, is_instance_of, read_sdk_options
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.kit.turn_inputs import INPUTS, past_messages, read_sdk_prompt, to_data_url
from factwire.sources.langgraph.convert import (
    SOURCE,
    STREAM_MODES,
    LangGraph,
    chunk_line,
    completion_line,
    interruption_line,
)

if TYPE_CHECKING:
    from langgraph.types import Command, Interrupt, StateSnapshot


_STEPS: Final = 100
"""Steps of a graph in one run, if the owner does not say otherwise."""

_MESSAGES: Final = "messages"
_STRUCTURE: Final = "structured_response"
"""Where agents of LangChain leave what their `response_format` asks for."""


class LangGraphOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`input_key` is where the prompt goes in the state of a graph that has no `messages`;
    `output_key` is where it leaves structured output; `recursion_limit` bounds its steps; `raw`
    keeps items that are not known.
    """

    input_key: str | None = None
    output_key: str = _STRUCTURE
    recursion_limit: int = _STEPS
    raw: bool = False


class LangGraphAgent(LiveAgent):
    """Runs one graph, compiled or not."""

    def __init__(self, graph: Any, options: LangGraphOptions | None = None) -> None:
        self.options = options or LangGraphOptions()
        self.input_key = self.options.input_key or _find_input_key(graph)
        self._graph = graph
        self._ready: Any = None
        super().__init__(SOURCE, _make_manifest(graph, self.options), keep_raw=self.options.raw)

    @property
    def graph(self) -> Any:
        """The graph with a checkpointer, made when a turn first needs it."""
        if self._ready is None:
            self._ready = _with_checkpointer(self._graph)
        return self._ready

    def make_driver(self, live: LiveTurn) -> "LangGraphDriver":
        return LangGraphDriver(live, self)


class LangGraphDriver(SdkDriver):
    """A run and, after each answer, the run that goes on from its checkpoint."""

    def __init__(self, live: LiveTurn, owner: LangGraphAgent) -> None:
        super().__init__(live)
        self._owner = owner
        self._schema = object_at(live.turn.options.get(OUTPUT_SCHEMA))
        self._output: Any = None
        output = {} if self._schema is None else {"output_schema": self._schema}
        self._config: Any = {
            "configurable": {"thread_id": live.turn.thread_id, **output},
            "recursion_limit": owner.options.recursion_limit,
        }

    async def follow(self) -> None:
        state = await self._stream_run(await self._make_input(), None)
        while state.interrupts:
            interrupts = state.interrupts
            self.live.take(interruption_line(interrupts))
            decisions = await self.wait_for_verdicts(each.id for each in interrupts)
            state = await self._stream_run(_resume_command(interrupts, decisions), decisions)
        if self._schema is None and self._owner.input_key != _MESSAGES:
            self._output = state.values
        self.live.take(completion_line(self._output))

    async def _stream_run(
        self, start: object, decisions: dict[str, Verdict] | None
    ) -> "StateSnapshot":
        self.begin_run(decisions)
        graph = self._owner.graph
        chunks = graph.astream(start, self._config, stream_mode=list(STREAM_MODES), subgraphs=True)
        async with aclosing(chunks):
            async for namespace, mode, data in chunks:
                if self._schema is not None and mode == "updates" and not namespace:
                    self._note_output(data)
                await self.live.hear(chunk_line(namespace, mode, data))
        return await graph.aget_state(self._config)

    def _note_output(self, updates: object) -> None:
        """What a node leaves as the output; what the state has of an earlier turn is none."""
        for update in map(object_at, (object_at(updates) or {}).values()):
            if update is not None and self._owner.options.output_key in update:
                self._output = update[self._owner.options.output_key]

    async def _make_input(self) -> dict[str, Any]:
        """What is asked now, with what was said before where the graph does not know it."""
        content = await read_sdk_prompt(self.live.turn)
        if self._owner.input_key != _MESSAGES:
            return {
                self._owner.input_key: content if isinstance(content, str) else to_json(content)
            }
        if not isinstance(content, str):
            content = [
                {"type": "text", "text": part}
                if isinstance(part, str)
                else {"type": "image_url", "image_url": {"url": to_data_url(part)}}
                for part in content
            ]
        return {_MESSAGES: [*await self._past_messages(), {"role": "user", "content": content}]}

    async def _past_messages(self) -> list[dict[str, Any]]:
        state = await self._owner.graph.aget_state(self._config)
        known = [to_json(each) for each in (object_at(state.values) or {}).get(_MESSAGES) or ()]
        again = [
            {"role": each.role, "content": each.text, "id": f"{self.live.turn.turn_id}:{place}"}
            for place, each in enumerate([] if known else past_messages(self.live.turn))
        ]
        # A node that hands on all messages of its state says nothing new with them.
        graph = cast("LangGraph", self.live.converter)
        graph.messages.whole_ids.update(str(each.get("id")) for each in [*known, *again])
        return again or _unanswered_calls(known)


def wrap(loaded: object, settings: AgentSettings) -> Provider | None:
    """A provider around a graph; None for anything else."""
    if not is_instance_of(loaded, "langgraph", "Pregel", "StateGraph"):
        return None
    return LangGraphAgent(loaded, read_sdk_options(settings, LangGraphOptions, SOURCE.title))


def _resume_command(
    interrupts: "tuple[Interrupt, ...]", decisions: dict[str, Verdict]
) -> "Command[Any]":
    from langgraph.types import Command  # noqa: PLC0415 - only a turn needs the SDK

    return Command(
        resume={each.id: _to_answer(each.value, decisions[each.id]) for each in interrupts}
    )


def _to_answer(value: object, verdict: Verdict) -> Any:
    """What a node that waits is given."""
    if verdict.response is not None:
        return verdict.response
    requests = list_at((object_at(value) or {}).get("action_requests"))
    if requests is None:
        return verdict.allowed
    return {"decisions": [_to_review(verdict) for _ in requests]}


def _to_review(verdict: Verdict) -> dict[str, Any]:
    """A decision as the middleware of LangChain for people in the loop wants it."""
    if verdict.allowed:
        return {"type": "approve"}
    return {"type": "reject", **({"message": verdict.reason} if verdict.reason else {})}


def _unanswered_calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results for calls that an earlier turn was stopped in; models refuse a call without one."""
    answered = {text_at(message, "tool_call_id") for message in messages}
    calls = [call for message in messages for call in list_at(message.get("tool_calls")) or ()]
    return [
        {"role": "tool", "tool_call_id": call_id, "content": "Interrupted: it was not done."}
        for call_id in (text_at(object_at(call) or {}, "id") for call in calls)
        if call_id is not None and call_id not in answered
    ]


def _with_checkpointer(graph: Any) -> Any:
    """A graph that can wait for a person."""
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415 - as above

    if is_instance_of(graph, "langgraph", "StateGraph"):
        return graph.compile(checkpointer=InMemorySaver())
    if graph.checkpointer is None or isinstance(graph.checkpointer, bool):
        return graph.copy({"checkpointer": InMemorySaver()})
    return graph


def _find_input_key(graph: Any) -> str:
    if _MESSAGES in cast("dict[str, Any]", graph.channels):
        return _MESSAGES
    raise InvalidAgent(
        "expected a graph with `messages` in its state, got one without; set the option input_key "
        "to the key that takes the prompt"
    )


def _make_manifest(graph: Any, options: LangGraphOptions) -> CapabilityManifest:
    name = getattr(graph, "name", None)
    return CapabilityManifest(
        agent_id=SOURCE.name,
        title=f"{SOURCE.title}: {name}" if name else SOURCE.title,
        inputs=INPUTS,
        streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
        approvals="interrupt",
        action_types=("tool_approval", "structured_input"),
        controls=("send", "queue", "stop", "approve", "reject", "retry"),
        topologies=("solo_run", "parallel_workers", "coordinator_team"),
        cancel="yes",
        steer="no",
        queue="yes",
        resume="no",
        subagents="yes",
        artifacts="no",
        evidence="no",
        sandbox="no",
        cost="no",
        structured_output="yes" if options.output_key in graph.channels else "no",
    )
