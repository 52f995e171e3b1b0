"""One answer of a model as facts, from its first piece to its last.

Text streams as it comes, by one part each; a call is started when the model begins to write it, and
its arguments stream. Raw reasoning is neither answer nor summary: it is counted, and not kept.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)

from factwire.runtime.agents.openai.endpoints import Endpoint
from factwire.runtime.agents.openai.limits import PIECE_CHARACTERS
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Host

_FINISHED: Final = {"tool_call": "tool_calls"}
"""Why an answer ended, where our word is another."""


class Calls:
    """The calls of an answer that are started and not yet made: the model's id → ours.

    Models repeat their ids from one answer to the next; ours are never repeated.
    """

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def add(self, model_id: str, call_id: str) -> None:
        self._open[model_id] = call_id

    def take(self, model_id: str) -> str | None:
        return self._open.pop(model_id, None)


class Answer:
    """One answer; `begun` is whether anything of it has come."""

    def __init__(self, host: Host, endpoint: Endpoint, calls: Calls) -> None:
        self.message_id = host.mint.ids("msg")
        self.begun = False
        self._host = host
        self._endpoint = endpoint
        self._calls = calls
        self._texts: dict[int, str] = {}
        self._thoughts: dict[int, int] = {}
        self._call_ids: dict[int, str] = {}
        asked = {"model": endpoint.model, "provider": endpoint.provider}
        self._put("model.requested", asked)

    def hear(self, event: object) -> None:
        """Tell what an event of the stream brings."""
        self.begun = True
        if isinstance(event, PartStartEvent):
            self._start(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._grow(event.index, event.delta)
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
            message = "the answer was cut at the most tokens that it may have"
            self._put("runtime.warning", {"code": "answer_truncated", "message": message})
        self._tell_usage(response)

    def fail(self, failure: TurnFailed) -> None:
        said = {"failureCategory": failure.code, "message": str(failure)}
        self._put("model.failed", {**said, "recoveryHint": failure.hint})

    def _start(self, index: int, part: object) -> None:
        if isinstance(part, TextPart):
            self._texts[index] = ""
            self._say(index, part.content)
        elif isinstance(part, ThinkingPart):
            self._thoughts[index] = len(part.content)
            self._put("reasoning.started", {}, part_id=self._part(index))
        elif isinstance(part, ToolCallPart):
            call_id = self._call_ids[index] = self._host.mint.ids("call")
            self._put("tool.started", {"toolName": part.tool_name}, tool_call_id=call_id)
            self._spell(index, part.args)

    def _grow(self, index: int, delta: object) -> None:
        if isinstance(delta, TextPartDelta):
            self._say(index, delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            self._thoughts[index] += len(delta.content_delta or "")
        elif isinstance(delta, ToolCallPartDelta):
            self._spell(index, delta.args_delta)

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

    def _say(self, index: int, text: str) -> None:
        self._texts[index] += text
        for piece in _pieces(text):
            self._put("model.delta", {"delta": piece}, part_id=self._part(index))

    def _spell(self, index: int, text: object) -> None:
        for piece in _pieces(text if isinstance(text, str) else ""):
            self._put("tool.args.delta", {"delta": piece}, tool_call_id=self._call_ids[index])

    def _part(self, index: int) -> str:
        return f"{self.message_id}:{index}"

    def _tell_usage(self, response: ModelResponse) -> None:
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
