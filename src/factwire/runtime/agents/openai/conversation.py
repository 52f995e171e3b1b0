"""One turn with a model: it is asked, its calls are made, and it is asked again, until it has done.

The library runs the loop; here what happens in it becomes facts, a limit holds it, and whatever
goes wrong ends it with a category.
"""

from collections.abc import Sequence
from typing import Any, Final

from pydantic_ai import Agent, CallToolsNode, ModelRequestNode
from pydantic_ai.messages import (
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    UserContent,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.run import AgentRun
from pydantic_ai.usage import UsageLimits

from factwire.journal import JournalError
from factwire.runtime.agents.openai.attachments import content_of
from factwire.runtime.agents.openai.endpoints import Endpoint
from factwire.runtime.agents.openai.failures import FAILINGS
from factwire.runtime.agents.openai.instructions import instructions
from factwire.runtime.agents.openai.judging import JUDGED, judged
from factwire.runtime.agents.openai.limits import BAD_CALLS, MESSAGE_CHARACTERS
from factwire.runtime.agents.openai.messages import asked, past_messages, round_messages
from factwire.runtime.agents.openai.options import OpenAIOptions
from factwire.runtime.agents.openai.past import Past, Window
from factwire.runtime.agents.openai.progress import Progress
from factwire.runtime.agents.openai.resuming import ended_calls
from factwire.runtime.agents.openai.telling import Answer, Calls
from factwire.runtime.agents.openai.toolset import ToolboxTools
from factwire.runtime.agents.openai.wire import Refused, opened_model
from factwire.runtime.errors import RuntimeRefused, TurnFailed
from factwire.runtime.provider import StartTurn

_RATE_LIMITED: Final = 429

Prompt = str | list[UserContent]


class Conversation:
    """One turn; raises `TurnFailed` where it does not come to its end."""

    def __init__(
        self,
        turn: StartTurn,
        endpoint: Endpoint,
        options: OpenAIOptions,
        progress: Progress,
        key: str | None,
    ) -> None:
        self._turn = turn
        self._host = turn.host
        self._endpoint = endpoint
        self._options = options
        self._progress = progress
        self._key = key
        self._calls = Calls()
        self._tools = ToolboxTools(progress.toolbox, self._calls)
        self._steps = 0

    async def hold(self) -> None:
        """Hold the conversation to its end, or until it is told to stop."""
        content = await content_of(self._turn)
        messages, prompt = await self._opening(content)
        if self._progress.is_stopping:
            return
        if not self._turn.resumed:
            self._tell_route()
        try:
            async with opened_model(self._endpoint, self._options, self._key, self) as model:
                await self._exchange(model, messages, prompt)
        except JUDGED as error:
            raise judged(error, begun=False, key=self._key) from error

    def refused(self, refused: Refused) -> None:
        if refused.status == _RATE_LIMITED:
            attempts = f"attempt {refused.attempt} of {self._options.retries + 1}"
            said = {"name": "requests", "message": f"too many requests, {attempts}"}
            self._put("rate_limit.hit", {**said, "retryAfterMs": refused.wait_ms})

    def asked_again(self, attempt: int) -> None:
        message = f"asking the model again, attempt {attempt} of {self._options.retries + 1}"
        self._put("run.status", {"status": "running", "message": message, "attempt": attempt})

    async def _opening(self, content: Prompt) -> tuple[list[ModelMessage], Prompt | None]:
        """The messages before the first request, and the prompt where it is not among them."""
        turn = self._turn
        if turn.history is None:
            return [], content
        past = Past(turn.history, self._host.means.blobs)
        kept = await past.before(turn.turn_id, self._options.history_characters)
        messages = past_messages(kept.turns)
        if not turn.resumed:
            self._tell_window(kept)
            return messages, content
        with self._progress.acting():
            results = await ended_calls(turn, self._progress.toolbox)
        rounds = await past.rounds(turn.turn_id, results)
        self._steps = len(rounds)
        own = [message for each in rounds for message in round_messages(each)]
        return [*messages, asked(content), *own], None

    async def _exchange(
        self, model: OpenAIChatModel, messages: Sequence[ModelMessage], prompt: Prompt | None
    ) -> None:
        agent, limits = self._agent(model), UsageLimits(request_limit=None)
        async with agent.iter(prompt, message_history=messages, usage_limits=limits) as run:
            async for node in run:
                if self._progress.is_stopping:
                    return
                if Agent.is_model_request_node(node):
                    await self._ask(node, run)
                elif Agent.is_call_tools_node(node):
                    await self._act(node, run)

    def _agent(self, model: OpenAIChatModel) -> Agent[None, str]:
        added = self._options.instructions
        settings = {
            "temperature": self._options.temperature,
            "max_tokens": self._options.max_tokens,
            "openai_reasoning_effort": self._options.reasoning_effort,
        }
        chosen: Any = {name: value for name, value in settings.items() if value is not None}
        return Agent(
            model,
            deps_type=type(None),
            instructions=instructions(self._host.workspace, self._host.means, added),
            model_settings=OpenAIChatModelSettings(**chosen),
            toolsets=[self._tools],
            retries={"tools": BAD_CALLS, "output": 1},
            name="factwire",
        )

    async def _ask(self, node: ModelRequestNode[None, str], run: AgentRun[None, str]) -> None:
        self._step()
        answer = Answer(self._host, self._endpoint, self._calls)
        try:
            async with node.stream(run.ctx) as stream:
                async for event in stream:
                    answer.hear(event)
                response = stream.response
        except (RuntimeRefused, JournalError):
            raise
        except Exception as error:
            # The library stumbles in many ways over an answer of no shape that it knows.
            failure = judged(error, begun=answer.begun, key=self._key)
            answer.fail(failure)
            raise failure from error
        answer.complete(response)
        self._tell_metrics(response)

    async def _act(self, node: CallToolsNode[None, str], run: AgentRun[None, str]) -> None:
        with self._progress.acting():
            async with node.stream(run.ctx) as events:
                async for event in events:
                    if isinstance(event, FunctionToolResultEvent):
                        self._close(event)

    def _close(self, event: FunctionToolResultEvent) -> None:
        """Fail a call that never reached the toolbox."""
        call_id = self._calls.take(event.tool_call_id)
        if call_id is not None:
            message = event.part.model_response_str(wrap_if_error=False)[:MESSAGE_CHARACTERS]
            failure = {"failureCategory": self._why_not(event), "message": message}
            self._put("tool.failed", failure, tool_call_id=call_id)

    def _why_not(self, event: FunctionToolResultEvent) -> str:
        if self._progress.is_stopping:
            return "cancelled"
        return "invalid_arguments" if event.part.tool_name in self._tools.names else "unknown_tool"

    def _step(self) -> None:
        limit = self._options.steps
        if self._steps >= limit:
            failing = FAILINGS["step_limit_reached"]
            reached = {"name": "steps", "limit": limit, "used": self._steps, "remaining": 0}
            self._put("limit.changed", {**reached, "message": failing.meaning})
            message = f"{failing.meaning}: {limit}"
            raise TurnFailed("step_limit_reached", message, failing.hint)
        self._steps += 1

    def _tell_route(self) -> None:
        route = {"model": self._endpoint.model, "provider": self._endpoint.provider}
        said = {**route, "endpoint": self._endpoint.place, "reasonCode": "configured"}
        self._put("routing.single_candidate", said)

    def _tell_window(self, kept: Window) -> None:
        if not kept.turns and not kept.turns_left_out:
            return
        left_out = kept.turns_left_out
        message = f"{len(kept.turns)} earlier turns are told again"
        if left_out or kept.rounds_left_out:
            message += f", {left_out} older ones and {kept.rounds_left_out} rounds are left out"
        said = {
            "kind": "history",
            "message": message,
            "turns": len(kept.turns),
            "turnsLeftOut": left_out,
            "roundsLeftOut": kept.rounds_left_out,
            "characters": kept.characters,
        }
        self._put("context.resolved", said)

    def _tell_metrics(self, response: ModelResponse) -> None:
        known = {"steps": self._steps, "contextTokens": response.usage.input_tokens or None}
        self._put("metrics.changed", known)

    def _put(self, event_class: str, payload: dict[str, Any], **ids: Any) -> None:
        known = {name: value for name, value in payload.items() if value is not None}
        self._host.emit(self._host.mint.fact(self._host.scope, event_class, known, **ids))
