"""What a model is given to read: the past of a thread as far as it fits, results of calls, and
what a person attached.

Every result stands right behind its call, whatever was left out.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from pydantic_ai.messages import BinaryContent, UserContent

from factwire.facts import (
    AssetInput,
    CapabilityInput,
    FactError,
    InputPart,
    TextInput,
    WorkspaceInput,
)
from factwire.journal.blobs import BlobError, BlobStore
from factwire.projection import ProjectionState
from factwire.projection.messages import Message, TextPart, ToolPreviewPart
from factwire.projection.tools import Tool
from factwire.runtime.agents.openai_agent import FAILURE_MEANINGS
from factwire.runtime.agents.openai_limits import DOCUMENT_BYTES, IMAGE_BYTES, RESULT_CHARACTERS
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import StartTurn
from factwire.runtime.toolbox import ToolOutcome
from factwire.runtime.toolbox.tool_calls import read_args

NOTHING: Final = "(no output)"


def describe_outcome(outcome: ToolOutcome) -> str:
    """A call that was just made."""
    code = outcome.data.get("exitCode")
    return _describe_failure(
        outcome.category, outcome.text, code if isinstance(code, int) else None
    )


def describe_past_call(tool: Tool, output: str) -> str:
    """A call of the past, with the output that is known of it."""
    if tool.completed_at is None:
        return "Interrupted: it is not known whether it was done."
    text = output or tool.message or tool.summary or ""
    return _describe_failure(tool.failure_category, text, tool.exit_code)


def _describe_failure(category: str | None, text: str, exit_code: int | None) -> str:
    shown = _shorten(text)
    if category is None:
        return shown or NOTHING
    if category == "permission_denied":
        return f"Denied: {shown or 'not allowed'}. It was not done."
    code = f", exit code {exit_code}" if exit_code is not None else ""
    return f"Failed ({category}{code}): {shown or NOTHING}"


def _shorten(text: str) -> str:
    """Both ends of a long text: files say most at their beginning, programs at their end."""
    if len(text) <= RESULT_CHARACTERS:
        return text
    tail = RESULT_CHARACTERS // 3
    head = RESULT_CHARACTERS - tail
    left_out = len(text) - RESULT_CHARACTERS
    return f"{text[:head]}\n… {left_out} characters left out …\n{text[-tail:]}"


class PastCall(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str
    name: str
    args: dict[str, Any]
    result: str


class Round(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    calls: tuple[PastCall, ...] = ()

    @property
    def characters(self) -> int:
        calls = (len(str(call.args)) + len(call.name) + len(call.result) for call in self.calls)
        return len(self.text) + sum(calls)


class PastTurn(msgspec.Struct, frozen=True, kw_only=True):
    prompt: str
    rounds: tuple[Round, ...] = ()

    @property
    def characters(self) -> int:
        return len(self.prompt) + sum(each.characters for each in self.rounds)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What of the past fits; `rounds_left_out` are those of a turn that fits in part."""

    turns: tuple[PastTurn, ...] = ()
    turns_left_out: int = 0
    rounds_left_out: int = 0

    @property
    def characters(self) -> int:
        return sum(turn.characters for turn in self.turns)


class Past:
    """What is known of the turns of a thread."""

    def __init__(self, state: ProjectionState, blobs: BlobStore) -> None:
        self._state = state
        self._blobs = blobs

    async def before(self, turn_id: str, budget: int) -> Window:
        """What of the turns before this one fits; what does not is not even read."""
        turns: dict[str | None, list[Message]] = {}
        for message in self._state.messages:
            if message.turn_id != turn_id and _is_sent(message):
                turns.setdefault(message.turn_id, []).append(message)
        newest_first = (self._turn(messages) for messages in reversed(turns.values()))
        return await window(newest_first, len(turns), budget)

    async def rounds(self, turn_id: str, results: Mapping[str, str]) -> tuple[Round, ...]:
        """What a turn has come to so far; `results` are those of calls that ended just now."""
        own = [message for message in self._state.messages if message.turn_id == turn_id]
        return await self._rounds(own, results)

    async def _turn(self, messages: Sequence[Message]) -> PastTurn:
        prompts = [_text(message) for message in messages if message.role == "user"]
        attached = [ref for message in messages for ref in message.input_refs or ()]
        prompt = "\n\n".join((*prompts, *(f"(attached then: {ref})" for ref in attached)))
        return PastTurn(prompt=prompt, rounds=await self._rounds(messages, {}))

    async def _rounds(
        self, messages: Iterable[Message], results: Mapping[str, str]
    ) -> tuple[Round, ...]:
        rounds = [
            Round(text=_text(message), calls=await self._calls(message, results))
            for message in messages
            if message.role != "user" and _is_sent(message)
        ]
        return tuple(each for each in rounds if each.text or each.calls)

    async def _calls(self, message: Message, results: Mapping[str, str]) -> tuple[PastCall, ...]:
        ids = [part.tool_call_id for part in message.parts if isinstance(part, ToolPreviewPart)]
        tools = [self._state.tools[each] for each in ids if each in self._state.tools]
        return tuple([await self._call(tool, results) for tool in tools])

    async def _call(self, tool: Tool, results: Mapping[str, str]) -> PastCall:
        result = results.get(tool.tool_call_id)
        return PastCall(
            call_id=tool.tool_call_id,
            name=tool.tool_name or "unknown",
            args=await read_args(tool, self._blobs),
            result=describe_past_call(tool, await self._output(tool)) if result is None else result,
        )

    async def _output(self, tool: Tool) -> str:
        shown = str(tool.output_text)
        if shown or tool.output_ref is None:
            return shown
        try:
            pieces = self._blobs.get(tool.output_ref, end=RESULT_CHARACTERS)
            return b"".join([piece async for piece in pieces]).decode("utf-8", "replace")
        except (BlobError, FactError):
            return ""


async def window(newest_first: Iterable[Awaitable[PastTurn]], count: int, budget: int) -> Window:
    """The newest of so many turns that fit; of the first that does not, its prompt and newest
    rounds.
    """
    kept: list[PastTurn] = []
    for coming in newest_first:
        turn = await coming
        if turn.characters <= budget:
            kept.append(turn)
            budget -= turn.characters
            continue
        part = _fit_turn(turn, budget)
        kept += [part] if part is not None else []
        return Window(
            turns=tuple(reversed(kept)),
            turns_left_out=count - len(kept),
            rounds_left_out=0 if part is None else len(turn.rounds) - len(part.rounds),
        )
    return Window(turns=tuple(reversed(kept)))


def _fit_turn(turn: PastTurn, budget: int) -> PastTurn | None:
    budget -= len(turn.prompt)
    rounds: list[Round] = []
    for each in reversed(turn.rounds):
        budget -= each.characters
        if budget < 0:
            break
        rounds.append(each)
    return PastTurn(prompt=turn.prompt, rounds=tuple(reversed(rounds))) if rounds else None


def _is_sent(message: Message) -> bool:
    """Whether a message is of the conversation: not taken back, and nobody's but the agent's."""
    return message.subagent_id is None and message.status != "retracted"


def _text(message: Message) -> str:
    texts = (str(part.text) for part in message.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)


_IMAGES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
_TEXTS: Final = ("application/json", "application/toml", "application/xml", "application/yaml")


async def build_content(turn: StartTurn) -> str | list[UserContent]:
    """The prompt and what is attached to it; raises `TurnFailed`.

    Words alone are one text: not every endpoint takes a list of parts.
    """
    content: list[UserContent] = [turn.prompt] if turn.prompt.strip() else []
    for part in turn.input:
        content.append(await _content(part, turn.host.resources.blobs))
        if isinstance(part, AssetInput | WorkspaceInput) and not turn.resumed:
            _record_attachment(turn, part)
    texts = [part for part in content if isinstance(part, str)]
    return "\n\n".join(texts) if len(texts) == len(content) else content


async def _content(part: InputPart, blobs: BlobStore) -> UserContent:
    if isinstance(part, TextInput):
        return part.text
    if isinstance(part, WorkspaceInput):
        kind = part.object_type or "object"
        return f"(attached: the {kind} {part.title or part.ref}, {part.ref})"
    if isinstance(part, CapabilityInput):
        raise _attachment_error(part.ref, "sensitive content is not sent to a model")
    return await _asset(part, blobs)


async def _asset(part: AssetInput, blobs: BlobStore) -> UserContent:
    media_type = part.media_type or ""
    if part.kind == "image" and media_type in _IMAGES:
        data = await _bytes(part, blobs, IMAGE_BYTES)
        return BinaryContent(data=data, media_type=media_type)
    if part.kind == "document" and (media_type.startswith("text/") or media_type in _TEXTS):
        data = await _bytes(part, blobs, DOCUMENT_BYTES)
        return f"(attached: {part.name or part.ref})\n{data.decode('utf-8', 'replace')}"
    raise _attachment_error(
        part.name or part.ref, f"the model does not accept {media_type or part.kind}"
    )


async def _bytes(part: AssetInput, blobs: BlobStore, most: int) -> bytes:
    name = part.name or part.ref
    try:
        data = b"".join([piece async for piece in blobs.get(part.ref, end=most + 1)])
    except (BlobError, FactError) as error:
        raise _attachment_error(name, f"its content is not available: {error}") from error
    if len(data) > most:
        raise _attachment_error(name, f"it is larger than {most} bytes")
    return data


def _record_attachment(turn: StartTurn, part: AssetInput | WorkspaceInput) -> None:
    host = turn.host
    about = {"kind": part.kind if isinstance(part, AssetInput) else "workspace", "ref": part.ref}
    host.emit(host.mint.fact(host.scope, "context.attached", about))


def _attachment_error(name: str, why: str) -> TurnFailed:
    failing = FAILURE_MEANINGS["unsupported_input"]
    return TurnFailed("unsupported_input", f"{name}: {why}", failing.hint)
