"""One exchange with a model: the HTTP client of a turn, the answer as facts from its first
piece to its last, and what went wrong.

The client says no more about us than it must; failures have categories that never change, and
no key is ever in their words.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Final, Protocol, cast

import httpx2
import msgspec
from genai_prices.data_snapshot import get_snapshot
from openai import AsyncOpenAI
from pydantic_ai import exceptions as ai
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from factwire.facts import redact_text
from factwire.runtime.agents.openai_agent import FAILURE_MEANINGS, Endpoint, OpenAIOptions
from factwire.runtime.agents.openai_input import PastTurn, Round
from factwire.runtime.agents.openai_limits import (
    CONNECT_SECONDS,
    MESSAGE_CHARACTERS,
    PIECE_CHARACTERS,
)
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Host

_SENT: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
        *("transfer-encoding", "user-agent", "x-stainless-retry-count"),
    }
)
"""Headers that an endpoint gets, beside the key."""

_ATTEMPT: Final = "x-stainless-retry-count"
_NO_KEY: Final = "none"
"""What the library is told, which wants a key; no request carries it."""

_REFUSALS: Final = 400

_PROFILE: Final = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""An answer that does not say that it is at its end has broken off."""


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is none. `attempt` counts from 1; `wait_ms` is what the endpoint asks for."""

    status: int
    attempt: int
    wait_ms: float | None = None


class RequestListener(Protocol):
    def on_refusal(self, refused: RefusedRequest) -> None: ...

    def on_retry(self, attempt: int) -> None: ...


@lru_cache(maxsize=64)
def find_context_window(model: str) -> int | None:
    """How many tokens a model takes, where that is public knowledge."""
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    return found.context_window


@asynccontextmanager
async def open_model(
    endpoint: Endpoint, options: OpenAIOptions, key: str | None, listener: RequestListener
) -> AsyncGenerator[OpenAIChatModel]:
    """The model, as long as the turn lasts."""

    async def dress(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT]:
            del request.headers[name]
        if key is not None:
            request.headers["authorization"] = f"Bearer {key}"
        if (attempt := _attempt(request)) > 1:
            listener.on_retry(attempt)

    async def look(response: httpx2.Response) -> None:
        if response.status_code >= _REFUSALS:
            listener.on_refusal(_to_refused_request(response))

    async with httpx2.AsyncClient(
        timeout=httpx2.Timeout(options.silence_seconds, connect=CONNECT_SECONDS),
        trust_env=endpoint.place != "loopback",
        event_hooks={"request": [dress], "response": [look]},
    ) as http:
        client = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=_NO_KEY,
            http_client=http,
            max_retries=options.retries,
            timeout=http.timeout,
        )
        yield OpenAIChatModel(
            endpoint.model, provider=_provider(endpoint, client), profile=_PROFILE
        )


def _provider(endpoint: Endpoint, client: AsyncOpenAI) -> OpenAIProvider | OpenAICompatibleProvider:
    if endpoint.provider == "openai":
        return OpenAIProvider(openai_client=client)
    return OpenAICompatibleProvider(endpoint.provider, openai_client=client)


def _to_refused_request(response: httpx2.Response) -> RefusedRequest:
    return RefusedRequest(
        status=response.status_code,
        attempt=_attempt(response.request),
        wait_ms=_requested_wait(response.headers),
    )


def _attempt(request: httpx2.Request) -> int:
    count = request.headers.get(_ATTEMPT, "0")
    return (int(count) if count.isdecimal() else 0) + 1


def _requested_wait(headers: Mapping[str, str]) -> float | None:
    """Milliseconds that an endpoint asks to wait, where it says so in a number."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1_000.0)):
        try:
            return max(float(headers[name]) * factor, 0.0)
        except (KeyError, ValueError):
            continue
    return None


_CATEGORIES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ai.ModelAuthenticationError, "unauthorized"),
    (ai.ModelNotFoundError, "model_not_found"),
    (ai.ModelContextWindowExceededError, "context_too_long"),
    (ai.ModelQuotaExceededError, "quota_exceeded"),
    (ai.ModelRateLimitError, "rate_limited"),
    (ai.ModelRequestRejectedError, "request_rejected"),
    (ai.ModelUnavailableError, "endpoint_error"),
    (ai.ModelServerError, "endpoint_error"),
    (ai.ModelTimeoutError, "endpoint_silent"),
    (ai.ModelConnectionError, "endpoint_unreachable"),
    (httpx2.TimeoutException, "endpoint_silent"),
    (httpx2.TransportError, "endpoint_unreachable"),
    (ai.ModelHTTPError, "endpoint_error"),
    (ai.ContentFilterError, "content_filtered"),
    (ai.UsageLimitExceeded, "step_limit_reached"),
    (ai.ModelAPIError, "invalid_response"),
    (ai.UnexpectedModelBehavior, "invalid_response"),
)
"""The first type that fits counts."""

_BROKEN: Final = ("endpoint_unreachable", "endpoint_silent", "invalid_response")
"""What, once an answer has begun, means that it broke off."""

MODEL_ERRORS: Final[tuple[type[Exception], ...]] = tuple(kind for kind, _ in _CATEGORIES)


def to_turn_failure(error: Exception, *, begun: bool, key: str | None) -> TurnFailed:
    """How a turn fails by an error; `begun` is whether an answer was under way."""
    fitting = (name for kind, name in _CATEGORIES if isinstance(error, kind))
    category = next(fitting, "invalid_response")
    if begun and category in _BROKEN and isinstance(error, _BREAKS):
        category = "stream_interrupted"
    failing = FAILURE_MEANINGS[category]
    text = _without_key(_error_text(error), key)
    message = f"{failing.meaning}: {text}" if text else failing.meaning
    return TurnFailed(category, message, failing.hint)


_BREAKS: Final = (ai.ModelAPIError, httpx2.TransportError)


def _error_text(error: Exception) -> str:
    if isinstance(error, ai.ModelHTTPError):
        words = next(_error_words(error.body), "")
        return f"{error.status_code} {words}".strip()
    return str(error) if isinstance(error, MODEL_ERRORS) and str(error) else type(error).__name__


def _error_words(body: object) -> Iterator[str]:
    """The sentence in an error's body, wherever an endpoint puts it."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        for name in ("message", "detail", "error"):
            yield from _error_words(fields.get(name))


def _without_key(text: str, key: str | None) -> str:
    if key:
        text = text.replace(key, "[redacted]")
    clean, _ = redact_text(" ".join(text.split()))
    return clean if len(clean) <= MESSAGE_CHARACTERS else f"{clean[:MESSAGE_CHARACTERS]}…"


_FINISHED: Final = {"tool_call": "tool_calls"}
"""Why an answer ended, where our word is another."""


class StartedCalls:
    """The calls of an answer that are started and not yet made: the model's id → ours.

    Models repeat their ids from one answer to the next; ours are never repeated.
    """

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def add(self, model_id: str, call_id: str) -> None:
        self._open[model_id] = call_id

    def take(self, model_id: str) -> str | None:
        return self._open.pop(model_id, None)


class ModelAnswer:
    """One answer; `begun` is whether anything of it has come."""

    def __init__(self, host: Host, endpoint: Endpoint, calls: StartedCalls) -> None:
        self.message_id = host.mint.ids("msg")
        self.begun = False
        self._host = host
        self._endpoint = endpoint
        self._calls = calls
        self._texts: dict[int, str] = {}
        self._thoughts: dict[int, int] = {}
        self._call_ids: dict[int, str] = {}
        model_fields = {"model": endpoint.model, "provider": endpoint.provider}
        self._put("model.requested", model_fields)

    def feed(self, event: object) -> None:
        """Tell what an event of the stream brings."""
        self.begun = True
        if isinstance(event, PartStartEvent):
            self._start(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._extend(event.index, event.delta)
        elif isinstance(event, PartEndEvent):
            self._end(event.index, event.part)

    def complete(self, response: ModelResponse) -> None:
        """The whole answer: its texts, why it ended, and what it took."""
        reason = response.finish_reason or "unknown"
        ended = {"finishReason": _FINISHED.get(reason, reason), "model": response.model_name}
        *texts, last = self._texts.items() or [(0, "")]
        for index, text in texts:
            self._put("model.completed", {"text": text}, part_id=self._part(index))
        self._put("model.completed", {"text": last[1], **ended}, part_id=self._part(last[0]))
        if reason == "length":
            message = "the answer was cut off at its token limit"
            self._put("runtime.warning", {"code": "answer_truncated", "message": message})
        self._record_usage(response)

    def fail(self, failure: TurnFailed) -> None:
        payload = {"failureCategory": failure.code, "message": str(failure)}
        self._put("model.failed", {**payload, "recoveryHint": failure.hint})

    def _start(self, index: int, part: object) -> None:
        if isinstance(part, TextPart):
            self._texts[index] = ""
            self._add_text(index, part.content)
        elif isinstance(part, ThinkingPart):
            self._thoughts[index] = len(part.content)
            self._put("reasoning.started", {}, part_id=self._part(index))
        elif isinstance(part, ToolCallPart):
            call_id = self._call_ids[index] = self._host.mint.ids("call")
            self._put("tool.started", {"toolName": part.tool_name}, tool_call_id=call_id)
            self._add_arguments(index, part.args)

    def _extend(self, index: int, delta: object) -> None:
        if isinstance(delta, TextPartDelta):
            self._add_text(index, delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            self._thoughts[index] += len(delta.content_delta or "")
        elif isinstance(delta, ToolCallPartDelta):
            self._add_arguments(index, delta.args_delta)

    def _end(self, index: int, part: object) -> None:
        if isinstance(part, TextPart) and index in self._texts:
            self._texts[index] = part.content
        elif isinstance(part, ThinkingPart) and index in self._thoughts:
            count = {"characters": self._thoughts[index]}
            self._put("reasoning.completed", count, part_id=self._part(index))
        elif isinstance(part, ToolCallPart) and index in self._call_ids:
            self._calls.add(part.tool_call_id, self._call_ids[index])
            args = _arguments(cast("ToolCallPart[Any]", part))
            if args is not None:
                self._put("tool.args", {"args": args}, tool_call_id=self._call_ids[index])

    def _add_text(self, index: int, text: str) -> None:
        first = {} if self._texts[index] else {"first": True}
        self._texts[index] += text
        for piece in _pieces(text):
            self._put("model.delta", {"delta": piece, **first}, part_id=self._part(index))
            first = {}

    def _add_arguments(self, index: int, text: object) -> None:
        for piece in _pieces(text if isinstance(text, str) else ""):
            self._put("tool.args.delta", {"delta": piece}, tool_call_id=self._call_ids[index])

    def _part(self, index: int) -> str:
        return f"{self.message_id}:{index}"

    def _record_usage(self, response: ModelResponse) -> None:
        usage = response.usage
        if not usage.has_values():
            return
        used: dict[str, Any] = {
            "model": response.model_name,
            "provider": self._endpoint.provider,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.total_tokens,
        }
        if usage.cache_read_tokens:
            used["cachedTokens"] = usage.cache_read_tokens
        if usage.cost is not None:
            used["totalCostUsd"] = float(usage.cost)
        self._put("cost.recorded", used)

    def _put(self, event_class: str, payload: dict[str, Any], **ids: Any) -> None:
        known = {name: value for name, value in payload.items() if value is not None}
        host = self._host
        host.emit(host.mint.fact(host.scope, event_class, known, message_id=self.message_id, **ids))


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that stay in their facts, however much of it comes at once."""
    for at in range(0, len(text), PIECE_CHARACTERS):
        yield text[at : at + PIECE_CHARACTERS]


def _arguments(part: "ToolCallPart[Any]") -> dict[str, Any] | None:
    """The arguments, where they are a JSON object that can be told."""
    try:
        args = part.args_as_dict(raise_if_invalid=True)
        msgspec.json.encode(args)
    except (ValueError, TypeError, AssertionError, RecursionError):
        return None
    return args


def past_messages(turns: Sequence[PastTurn]) -> list[ModelMessage]:
    """Turns that have ended."""
    return [message for turn in turns for message in _turn(turn)]


def to_request(content: str | Sequence[UserContent]) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=content)])


def round_messages(each: Round) -> Iterator[ModelMessage]:
    """What a model said, and what came of its calls."""
    parts: list[ModelResponsePart] = [TextPart(content=each.text)] if each.text else []
    parts += [
        ToolCallPart(tool_name=call.name, args=call.args, tool_call_id=call.call_id)
        for call in each.calls
    ]
    yield ModelResponse(parts=parts)
    if each.calls:
        yield ModelRequest(
            parts=[
                ToolReturnPart(tool_name=call.name, content=call.result, tool_call_id=call.call_id)
                for call in each.calls
            ]
        )


def _turn(turn: PastTurn) -> Iterator[ModelMessage]:
    if turn.prompt:
        yield to_request(turn.prompt)
    for each in turn.rounds:
        yield from round_messages(each)
