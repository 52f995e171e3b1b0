"""An `Agent` of the OpenAI Agents SDK, run in this process.

A call that needs approval ends the stream; the run goes on from its state with what was decided.
The SDK sends traces to OpenAI unless it is told not to, so it is told, except by an option.
"""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.provider import Provider
from factwire.runtime.structured_output import OUTPUT_SCHEMA, OutputSchema, to_strict_schema
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.recorded_runs import parse_arguments
from factwire.sources.kit.sdk_turn import SdkDriver, Verdict, is_instance_of, read_sdk_options
from factwire.sources.kit.turn_inputs import (
    INPUTS,
    ThreadMemory,
    past_messages,
    read_sdk_prompt,
    to_data_url,
)
from factwire.sources.openai_agents.convert import (
    SOURCE,
    completion_line,
    event_line,
    interruption_line,
    read_call,
)

if TYPE_CHECKING:
    from agents import RunResultStreaming


_STEPS: Final = 50
"""Calls of the model in a run, if the owner does not say otherwise; the SDK's own limit is 10."""


class OpenAiAgentsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`max_turns` bounds the calls of the model; `tracing` lets the SDK send its traces; `raw`
    keeps items that are not known.
    """

    max_turns: int = _STEPS
    tracing: bool = False
    raw: bool = False


class _ThreadState(msgspec.Struct, frozen=True):
    """A conversation as the SDK has it: its items, and who spoke last."""

    items: list[Any]
    agent: Any


class OpenAiAgent(LiveAgent):
    """Runs one agent of the SDK."""

    def __init__(self, agent: Any, options: OpenAiAgentsOptions | None = None) -> None:
        self.agent = agent
        self.options = options or OpenAiAgentsOptions()
        self.memory: ThreadMemory[_ThreadState] = ThreadMemory()
        super().__init__(SOURCE, _make_manifest(agent), keep_raw=self.options.raw)

    def make_driver(self, live: LiveTurn) -> "OpenAiAgentDriver":
        return OpenAiAgentDriver(live, self)


class OpenAiAgentDriver(SdkDriver):
    """A run and, after each approval, the run that goes on from its state."""

    def __init__(self, live: LiveTurn, owner: OpenAiAgent) -> None:
        super().__init__(live)
        self._owner = owner

    async def follow(self) -> None:
        known = self._owner.memory.recall(self.live.turn)
        self._owner.memory.forget(self.live.turn)
        speaker = known.agent if known else self._owner.agent
        agent = self._with_output_type(speaker)
        result = await self._stream_run(agent, await self._make_input(known), None)
        while result.interruptions:
            decisions = await self._wait_for_decisions(result)
            result = await self._stream_run(agent, _apply_decisions(result, decisions), decisions)
        last = speaker if result.last_agent is agent else result.last_agent
        self._owner.memory.keep(self.live.turn, _ThreadState(result.to_input_list(), last))
        self.live.take(completion_line(result.final_output))

    def _with_output_type(self, agent: Any) -> Any:
        """The agent, with the output that the turn asks for."""
        schema = object_at(self.live.turn.options.get(OUTPUT_SCHEMA))
        return agent if schema is None else agent.clone(output_type=_make_output_type(schema))

    async def _make_input(self, known: _ThreadState | None) -> list[Any]:
        """The conversation so far, and what is asked now."""
        earlier = (
            known.items
            if known
            else [
                {"role": each.role, "content": each.text} for each in past_messages(self.live.turn)
            ]
        )
        content = await read_sdk_prompt(self.live.turn)
        if not isinstance(content, str):
            content = [
                {"type": "input_text", "text": part}
                if isinstance(part, str)
                else {"type": "input_image", "image_url": to_data_url(part), "detail": "auto"}
                for part in content
            ]
        return [*earlier, {"role": "user", "content": content}]

    async def _stream_run(
        self, agent: Any, start: Any, decisions: dict[str, Verdict] | None
    ) -> "RunResultStreaming":
        from agents import RunConfig, Runner  # noqa: PLC0415 - only a turn needs the SDK

        self.begin_run(decisions)
        options = self._owner.options
        config = RunConfig(tracing_disabled=not options.tracing)
        result = Runner.run_streamed(agent, start, max_turns=options.max_turns, run_config=config)
        try:
            async for event in result.stream_events():
                await self.live.hear(event_line(event))
        finally:
            if not result.is_complete:
                result.cancel()
        return result

    async def _wait_for_decisions(self, result: "RunResultStreaming") -> dict[str, Verdict]:
        """Ask about every call that waits, except where the policy decides."""
        calls = [(item, *read_call(item)) for item in result.interruptions]
        interruptions = [
            item
            for item, call_id, tool, args in calls
            if not self.check_policy(call_id, tool, parse_arguments(args))
        ]
        self.live.take(interruption_line(interruptions))
        return await self.wait_for_verdicts(call_id for _, call_id, _, _ in calls)


def wrap(loaded: object, settings: AgentSettings) -> Provider | None:
    """A provider around an agent of the SDK; None for anything else."""
    if not is_instance_of(loaded, "agents", "Agent"):
        return None
    return OpenAiAgent(
        loaded, read_sdk_options(settings, OpenAiAgentsOptions, "the OpenAI Agents SDK")
    )


def _make_output_type(schema: dict[str, Any]) -> Any:
    """A schema as the SDK takes it, which has the model answer with JSON and hands that over."""
    from agents import AgentOutputSchemaBase, ModelBehaviorError  # noqa: PLC0415 - as above

    wanted = OutputSchema(schema)

    class InvalidOutput(ModelBehaviorError):
        """An answer that does not fit; its category goes by this name."""

    class TurnOutput(AgentOutputSchemaBase):
        def is_plain_text(self) -> bool:
            return False

        def name(self) -> str:
            return "turn_output"

        def json_schema(self) -> dict[str, Any]:
            return to_strict_schema(schema)

        def is_strict_json_schema(self) -> bool:
            return True

        def validate_json(self, json_str: str) -> Any:
            try:
                return wanted.read(msgspec.json.decode(json_str))
            except ValueError as error:
                raise InvalidOutput(str(error)) from error

    return TurnOutput()


def _apply_decisions(result: "RunResultStreaming", decisions: dict[str, Verdict]) -> Any:
    """The state that the run goes on from."""
    state = result.to_state()
    for item in result.interruptions:
        verdict = decisions[read_call(item)[0]]
        if verdict.allowed:
            state.approve(item)
        else:
            state.reject(item, rejection_message=_rejection_message(verdict))
    return state


def _rejection_message(verdict: Verdict) -> str | None:
    """What the model hears of a denial; without a reason, what the SDK says of one."""
    return f"The call was denied: {verdict.reason}" if verdict.reason else None


def _make_manifest(agent: Any) -> CapabilityManifest:
    return CapabilityManifest(
        agent_id=SOURCE.name,
        title=f"{SOURCE.title}: {agent.name}",
        inputs=INPUTS,
        streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
        approvals="interrupt",
        action_types=("tool_approval",),
        controls=("send", "queue", "stop", "approve", "reject", "retry"),
        topologies=("solo_run", "specialist_handoff"),
        cancel="yes",
        steer="no",
        queue="yes",
        resume="no",
        subagents="no",
        artifacts="no",
        evidence="yes",
        sandbox="no",
        cost="no",
        structured_output="yes",
    )
