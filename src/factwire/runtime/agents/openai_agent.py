"""`openai`: any endpoint that speaks OpenAI's chat API, with the toolbox in its hands.

Imported without the library that talks to models: that is loaded with the first turn. A key is
named here, read for each turn, and kept nowhere.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from factwire.facts import CapabilityManifest, Fact, Streaming
from factwire.projection import ThreadReadModel
from factwire.runtime.agents.openai_limits import (
    HISTORY_CHARACTERS,
    MOST_RETRIES,
    MOST_STEPS,
    RETRIES,
    SILENCE_SECONDS,
    STEPS,
)
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import InvalidAgent, MissingAgentExtra, TurnFailed
from factwire.runtime.provider import (
    CancelTurn,
    ReadThread,
    RespondAction,
    StartTurn,
    read_from_facts,
)
from factwire.runtime.structured_output import OUTPUT_SCHEMA
from factwire.runtime.toolbox import Toolbox

if TYPE_CHECKING:
    from factwire.runtime.agents.openai_conversation import ModelConversation


class FailureMeaning(NamedTuple):
    meaning: str
    hint: str


FAILURE_MEANINGS: Final = {
    "unauthorized": FailureMeaning(
        "the endpoint did not accept the key",
        "Check the key, and that api_key_env names the variable that holds it.",
    ),
    "key_missing": FailureMeaning(
        "the variable for the key is empty",
        "Set the variable to the key, or name another one in api_key_env.",
    ),
    "model_not_found": FailureMeaning(
        "the endpoint does not serve this model, or is not at this address",
        "Check the name of the model and the base URL.",
    ),
    "rate_limited": FailureMeaning(
        "the endpoint had too many requests, even after retries",
        "Wait a while, then retry the turn.",
    ),
    "quota_exceeded": FailureMeaning(
        "the account behind the key has no quota left",
        "Check the account's plan and limits; waiting does not help.",
    ),
    "endpoint_unreachable": FailureMeaning(
        "no answer from the endpoint's address",
        "Check the base URL, and that the server is running.",
    ),
    "endpoint_error": FailureMeaning(
        "the endpoint failed, even after retries",
        "Retry the turn later; the problem is at the endpoint.",
    ),
    "endpoint_silent": FailureMeaning(
        "the endpoint sent nothing for too long",
        "Retry the turn, or raise silence_seconds.",
    ),
    "invalid_response": FailureMeaning(
        "the endpoint or its model sent an unusable answer",
        "Check that the base URL belongs to an OpenAI-compatible API, or use another model.",
    ),
    "stream_interrupted": FailureMeaning(
        "the answer was cut off",
        "Retry the turn; what it did so far is kept.",
    ),
    "context_too_long": FailureMeaning(
        "the conversation is longer than the model can read",
        "Start a new thread, lower history_characters, or use a model with a larger context.",
    ),
    "request_rejected": FailureMeaning(
        "the endpoint did not accept the request",
        "Check the message; this model may not support a setting or an attachment.",
    ),
    "content_filtered": FailureMeaning(
        "the endpoint's filter blocked the answer",
        "Rephrase the request.",
    ),
    "step_limit_reached": FailureMeaning(
        "the model did not finish within its step limit",
        "Ask it to continue, or raise steps.",
    ),
    "unsupported_input": FailureMeaning(
        "the model cannot take an attachment",
        "Attach text or an image (PNG, JPEG, GIF, WebP), or put the file into the workspace.",
    ),
    "invalid_options": FailureMeaning(
        "the options of the turn are invalid",
        "Fix the options of the turn.",
    ),
}

MODEL_FAILURES: Final = {
    category: failing.meaning for category, failing in FAILURE_MEANINGS.items()
}
"""Category → when."""


OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY: Final = "OPENAI_API_KEY"

EndpointLocation = Literal["loopback", "private", "public"]

_NEAR: Final = (".local", ".internal", ".lan", ".home.arpa")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`key_variable` is the name of a variable; without one, no key is sent."""

    base_url: str
    model: str
    key_variable: str | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def place(self) -> EndpointLocation:
        """How far away it is, as far as its name tells; nothing is looked up."""
        return _place(self.host)

    @property
    def provider(self) -> str:
        return "openai" if self.base_url == OPENAI_URL else "openai-compatible"

    @property
    def exposes_key(self) -> bool:
        """Whether the key would travel in the clear over other people's wires."""
        plain = urlsplit(self.base_url).scheme == "http"
        return plain and self.place == "public" and self.key_variable is not None

    def key(self, environment: Mapping[str, str]) -> str | None:
        """The key; raises `TurnFailed` where one is named and absent."""
        if self.key_variable is None:
            return None
        found = environment.get(self.key_variable, "").strip()
        if not found or not found.isascii() or not found.isprintable():
            state = "is not set" if not found else "does not contain a valid key"
            raise TurnFailed(
                "key_missing",
                f"the environment variable {self.key_variable} {state}",
                f"Set {self.key_variable} to the key, or name another variable in api_key_env.",
            )
        return found


def endpoint_of(settings: AgentSettings) -> Endpoint:
    """The endpoint that a configuration names; raises `InvalidAgent` where it names no model."""
    if settings.model is None:
        raise InvalidAgent("an openai agent needs a model; set agents.NAME.model, or use --model")
    own = settings.base_url is None
    return Endpoint(
        base_url=(settings.base_url or OPENAI_URL).rstrip("/"),
        model=settings.model,
        key_variable=settings.api_key_env or (OPENAI_KEY if own else None),
    )


def _place(host: str) -> EndpointLocation:
    try:
        address = ip_address(host)
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            return "loopback"
        return "private" if "." not in host or host.endswith(_NEAR) else "public"
    if address.is_loopback:
        return "loopback"
    return "private" if address.is_private else "public"


Effort = Literal["none", "minimal", "low", "medium", "high"]

_CONTEXT: Final = ("model", OUTPUT_SCHEMA, "teamState")
"""Options of a turn that are none of the model's; what a team says is in the prompt as well."""

_OF_A_TURN: Final = ("instructions", "max_tokens", "reasoning_effort", "steps", "temperature")


class OpenAIOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`instructions` are added to those that come with the agent; what is None is left to the
    endpoint. `context_window` is how many tokens the model takes, where that is not known of it.
    """

    instructions: str | None = None
    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)] = STEPS
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    reasoning_effort: Effort | None = None
    retries: Annotated[int, msgspec.Meta(ge=0, le=MOST_RETRIES)] = RETRIES
    history_characters: Annotated[int, msgspec.Meta(ge=0)] = HISTORY_CHARACTERS
    silence_seconds: Annotated[float, msgspec.Meta(gt=0)] = SILENCE_SECONDS
    context_window: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def of_turn(self, values: dict[str, Any]) -> "OpenAIOptions":
        """The options of one turn; raises `TurnFailed`."""
        unknown = sorted(set(values) - {*_OF_A_TURN, *_CONTEXT})
        if unknown:
            expected = ", ".join(("model", OUTPUT_SCHEMA, *_OF_A_TURN))
            raise _invalid(f"expected {expected}, got {', '.join(unknown)}")
        chosen = {name: values[name] for name in _OF_A_TURN if name in values}
        try:
            merged = msgspec.convert({**msgspec.structs.asdict(self), **chosen}, OpenAIOptions)
        except msgspec.ValidationError as error:
            raise _invalid(str(error)) from error
        return msgspec.structs.replace(merged, steps=min(merged.steps, self.steps))


def model_of_turn(options: dict[str, Any], configured: str) -> str:
    """The model of one turn; raises `TurnFailed`."""
    model = options.get("model", configured)
    if not isinstance(model, str) or not model.strip():
        raise _invalid(f"expected the name of a model, got {model!r}")
    return model


def _invalid(message: str) -> TurnFailed:
    return TurnFailed("invalid_options", f"the options of the turn: {message}", "Fix the options.")


class ModelTurnProgress:
    """A turn under way. A model that speaks is cut off; a tool that acts is told to stop and comes
    to its own end, so that what it did is told.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.result: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_acting = False

    @property
    def is_stopping(self) -> bool:
        return self.toolbox.is_stopping

    @contextmanager
    def hold_tools(self) -> Generator[None]:
        """While tools are at work."""
        self._is_acting = True
        try:
            yield
        finally:
            self._is_acting = False

    async def follow(self, task: "asyncio.Task[None]") -> bool:
        """Wait for the turn; whether it came to its end, and was not stopped."""
        self._task = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self.is_stopping:
            return False
        task.result()
        return True

    async def stop(self) -> None:
        await self.toolbox.stop()
        if self._task is not None and not self._is_acting:
            self._task.cancel()


EXTRA: Final = "openai"
_CONVERSATION: Final = "factwire.runtime.agents.openai_conversation"
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
        structured_output="yes",
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
        self._running: dict[str, ModelTurnProgress] = {}

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        progress = self._running[turn.turn_id] = ModelTurnProgress(Toolbox(turn.host))
        try:
            ended = await progress.follow(
                asyncio.create_task(self._hold_conversation(turn, progress))
            )
        finally:
            del self._running[turn.turn_id]
            await progress.toolbox.close()
        if ended:
            yield turn.host.mint.fact(turn.host.scope, "turn.completed", dict(progress.result))

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        progress = self._running.get(cancel.turn_id)
        if progress is not None:
            await progress.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:  # noqa: ARG002
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return read_from_facts(read)

    async def _hold_conversation(self, turn: StartTurn, progress: ModelTurnProgress) -> None:
        options = self._options.of_turn(turn.options)
        model = model_of_turn(turn.options, self._endpoint.model)
        endpoint = msgspec.structs.replace(self._endpoint, model=model)
        key = endpoint.key(self._environment)
        module = await asyncio.to_thread(import_module, _CONVERSATION)
        begin = cast("type[ModelConversation]", module.ModelConversation)
        await begin(turn, endpoint, options, progress, key).hold()


def openai_agent(settings: AgentSettings) -> OpenAIAgent:
    """The agent that a configuration asks for; raises `AgentError`."""
    for library in _LIBRARIES:
        if find_spec(library) is None:
            raise MissingAgentExtra(settings.kind, library, EXTRA)
    endpoint = endpoint_of(settings)
    try:
        options = msgspec.convert(settings.options, OpenAIOptions)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of an openai agent: {error}") from error
    return OpenAIAgent(endpoint, options)
