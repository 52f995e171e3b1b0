"""An `Agent` of Pydantic AI, run in this process.

A call that waits for a person is answered while the run goes on: the SDK asks a handler of ours for
results, and that waits for the decision. So the agent need not be made for deferred calls, and its
run does not end at them.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.provider import Provider
from factwire.runtime.structured_output import (
    OUTPUT_SCHEMA,
    InvalidOutput,
    is_output_failure,
    make_pydantic_output,
)
from factwire.sources.kit.live_agent import LiveAgent, LiveTurn
from factwire.sources.kit.recorded_runs import parse_arguments
from factwire.sources.kit.sdk_turn import SdkDriver, Verdict, is_instance_of, read_sdk_options
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.kit.turn_inputs import (
    INPUTS,
    ImagePrompt,
    PastMessage,
    ThreadMemory,
    past_messages,
    read_sdk_prompt,
)
from factwire.sources.pydantic_ai.convert import SOURCE, closing_line, event_line

if TYPE_CHECKING:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
    from pydantic_ai.messages import ModelMessage, UserContent


_RESULT: Final = "agent_run_result"
_NO_ANSWER: Final = "the call was not executed"


class PydanticAiOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`max_requests` bounds the calls of the model, where the SDK's own limit is not wanted; `raw`
    keeps items that are not known.
    """

    max_requests: int | None = None
    raw: bool = False


class PydanticAiAgent(LiveAgent):
    """Runs one agent of the SDK."""

    def __init__(self, agent: Any, options: PydanticAiOptions | None = None) -> None:
        self.agent = agent
        self.options = options or PydanticAiOptions()
        self.memory: ThreadMemory[list[ModelMessage]] = ThreadMemory()
        super().__init__(SOURCE, _make_manifest(agent), keep_raw=self.options.raw)

    def make_driver(self, live: LiveTurn) -> "PydanticAiDriver":
        return PydanticAiDriver(live, self)


class PydanticAiDriver(SdkDriver):
    """One run."""

    def __init__(self, live: LiveTurn, owner: PydanticAiAgent) -> None:
        super().__init__(live)
        self._owner = owner

    async def follow(self) -> None:
        owner, turn = self._owner, self.live.turn
        known = owner.memory.recall(turn)
        owner.memory.forget(turn)
        past = _to_messages(past_messages(turn)) if known is None else known
        prompt = await self._read_prompt()
        self.begin_run()
        with self._watch_output():
            await self._follow_events(prompt, past)

    async def _follow_events(
        self, prompt: "str | list[UserContent]", past: "list[ModelMessage]"
    ) -> None:
        owner, turn = self._owner, self.live.turn
        async with owner.agent.run_stream_events(
            prompt, message_history=past, **self._run_settings()
        ) as events:
            async for event in events:
                if event.event_kind == _RESULT:
                    owner.memory.keep(turn, event.result.all_messages())
                    self.live.take(closing_line(event.result))
                else:
                    await self.live.hear(self._to_line(event))

    @contextmanager
    def _watch_output(self) -> Generator[None]:
        """Raise `InvalidOutput` where the model gave no output that fits the turn's schema."""
        from pydantic_ai import ModelResponse, capture_run_messages  # noqa: PLC0415 - as above

        with capture_run_messages() as messages:
            try:
                yield
            except Exception as error:
                answers = [each for each in messages if isinstance(each, ModelResponse)]
                last = answers[-1] if answers else None
                if OUTPUT_SCHEMA in self.live.turn.options and is_output_failure(error, last):
                    raise InvalidOutput(str(error)) from error
                raise

    async def _read_prompt(self) -> "str | list[UserContent]":
        from pydantic_ai import BinaryContent  # noqa: PLC0415 - only a turn needs the SDK

        content = await read_sdk_prompt(self.live.turn)
        if isinstance(content, str):
            return content
        return [
            BinaryContent(data=part.data, media_type=part.media_type)
            if isinstance(part, ImagePrompt)
            else part
            for part in content
        ]

    def _run_settings(self) -> dict[str, Any]:
        from pydantic_ai import UsageLimits  # noqa: PLC0415 - only a turn needs the SDK
        from pydantic_ai.capabilities import HandleDeferredToolCalls  # noqa: PLC0415 - as above

        most = self._owner.options.max_requests
        limits = {} if most is None else {"usage_limits": UsageLimits(request_limit=most)}
        schema = object_at(self.live.turn.options.get(OUTPUT_SCHEMA))
        output = {} if schema is None else {"output_type": make_pydantic_output(schema)}
        asks = HandleDeferredToolCalls(self._resolve_requests)
        return {"capabilities": [asks], **limits, **output}

    def _to_line(self, event: Any) -> dict[str, Any]:
        """An event as it is told: what the policy decides about, nobody is asked."""
        line = event_line(event)
        if line.get("event_kind") != "deferred_tool_requests":
            return line
        waiting = [
            call
            for call in event.requests.approvals
            if not self.check_policy(call.tool_call_id, call.tool_name, parse_arguments(call.args))
        ]
        request = {"approvals": to_json(waiting), "calls": line["requests"]["calls"]}
        return {**line, "requests": request}

    async def _resolve_requests(
        self, context: "RunContext[Any]", requests: "DeferredToolRequests"
    ) -> "DeferredToolResults":
        """What is decided about calls; the SDK waits for it."""
        from pydantic_ai import DeferredToolResults  # noqa: PLC0415 - only a turn needs the SDK

        del context
        approvals = [call.tool_call_id for call in requests.approvals]
        others = [call.tool_call_id for call in requests.calls]
        verdicts = await self.wait_for_verdicts([*approvals, *others])
        return DeferredToolResults(
            approvals={each: _to_approval(verdicts[each]) for each in approvals},
            calls={each: _to_result(verdicts[each]) for each in others},
        )


def wrap(loaded: object, settings: AgentSettings) -> Provider | None:
    """A provider around an agent of the SDK; None for anything else."""
    if not is_instance_of(loaded, "pydantic_ai", "AbstractAgent"):
        return None
    return PydanticAiAgent(loaded, read_sdk_options(settings, PydanticAiOptions, SOURCE.title))


def _to_approval(verdict: Verdict) -> Any:
    from pydantic_ai import ToolApproved, ToolDenied  # noqa: PLC0415 - only a turn needs the SDK

    if verdict.allowed:
        return ToolApproved()
    return ToolDenied(f"The call was denied: {verdict.reason}") if verdict.reason else ToolDenied()


def _to_result(verdict: Verdict) -> Any:
    """What came of a call that somebody else carries out; nothing, if they refused to."""
    from pydantic_ai import ToolFailed, ToolReturn  # noqa: PLC0415 - only a turn needs the SDK

    if verdict.allowed:
        return ToolReturn(return_value=verdict.response)
    return ToolFailed(verdict.reason or _NO_ANSWER)


def _to_messages(past: list[PastMessage]) -> "list[ModelMessage]":
    from pydantic_ai import ModelRequest, ModelResponse, TextPart  # noqa: PLC0415 - as above

    return [
        ModelRequest.user_text_prompt(each.text)
        if each.role == "user"
        else ModelResponse(parts=[TextPart(each.text)])
        for each in past
    ]


def _make_manifest(agent: Any) -> CapabilityManifest:
    return CapabilityManifest(
        agent_id=SOURCE.name,
        title=f"{SOURCE.title}: {agent.name}" if agent.name else SOURCE.title,
        inputs=INPUTS,
        streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
        approvals="inline",
        action_types=("tool_approval", "structured_input"),
        controls=("send", "queue", "stop", "approve", "reject", "retry"),
        topologies=("solo_run",),
        cancel="yes",
        steer="no",
        queue="yes",
        resume="no",
        subagents="no",
        artifacts="yes",
        evidence="no",
        sandbox="no",
        cost="no",
        structured_output="yes",
    )
