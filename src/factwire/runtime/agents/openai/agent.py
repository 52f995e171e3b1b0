"""`openai`: any endpoint that speaks OpenAI's chat API, with the toolbox in its hands.

The library that talks to models is big, so it is imported when the first turn runs, and beside the
loop. Until then only its presence is looked at.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.projection import ThreadReadModel
from factwire.runtime.agents.errors import InvalidAgent, MissingExtra
from factwire.runtime.agents.openai.endpoints import Endpoint, endpoint_of
from factwire.runtime.agents.openai.options import OpenAIOptions, model_of_turn
from factwire.runtime.agents.openai.progress import Progress
from factwire.runtime.configuration import Agent
from factwire.runtime.provider import CancelTurn, ReadThread, RespondAction, StartTurn
from factwire.runtime.toolbox import Toolbox

if TYPE_CHECKING:
    from factwire.runtime.agents.openai.conversation import Conversation

EXTRA: Final = "openai"
_CONVERSATION: Final = "factwire.runtime.agents.openai.conversation"
_LIBRARIES: Final = ("pydantic_ai", "openai")


def _manifest(endpoint: Endpoint) -> CapabilityManifest:
    return CapabilityManifest(
        agent_id="openai",
        title=f"OpenAI-compatible: {endpoint.model}",
        version="1",
        inputs=("text", "image", "document", "workspace"),
        streaming=Streaming(text="yes", reasoning="no", tool_args="yes", tool_output="yes"),
        approvals="inline",
        action_types=("tool_approval", "structured_input"),
        controls=("send", "queue", "stop", "approve", "reject", "retry"),
        topologies=("solo_run",),
        cancel="yes",
        steer="no",
        queue="yes",
        resume="yes",
        subagents="no",
        artifacts="yes",
        evidence="no",
        sandbox="yes",
        cost="yes",
    )


class OpenAIAgent:
    """Talks to one endpoint. The key is read from `environment` for each turn anew."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: OpenAIOptions | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.manifest = _manifest(endpoint)
        self._endpoint = endpoint
        self._options = options or OpenAIOptions()
        self._environment = environment
        self._running: dict[str, Progress] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        progress = self._running[turn.turn_id] = Progress(Toolbox(turn.host))
        try:
            ended = await progress.follow(asyncio.create_task(self._held(turn, progress)))
        finally:
            del self._running[turn.turn_id]
            await progress.toolbox.close()
        if ended:
            yield turn.host.mint.fact(turn.host.scope, "turn.completed")

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        progress = self._running.get(cancel.turn_id)
        if progress is not None:
            await progress.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:  # noqa: ARG002
        return None

    async def _held(self, turn: StartTurn, progress: Progress) -> None:
        options = self._options.of_turn(turn.options)
        model = model_of_turn(turn.options, self._endpoint.model)
        endpoint = msgspec.structs.replace(self._endpoint, model=model)
        key = endpoint.key(self._environment)
        module = await asyncio.to_thread(import_module, _CONVERSATION)
        begin = cast("type[Conversation]", module.Conversation)
        await begin(turn, endpoint, options, progress, key).hold()


def openai_agent(settings: Agent) -> OpenAIAgent:
    """The agent that a configuration asks for; raises `AgentError`."""
    for library in _LIBRARIES:
        if find_spec(library) is None:
            raise MissingExtra(settings.kind, library, EXTRA)
    endpoint = endpoint_of(settings)
    try:
        options = msgspec.convert(settings.options, OpenAIOptions)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of an openai agent: {error}") from error
    return OpenAIAgent(endpoint, options)
