"""The past of a thread as a model can be told of it: turns of a prompt and rounds.

A round is what a model said and the calls it made, each with its result; it is kept or dropped as
one, so that no call is ever without its result. The oldest goes first.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from factwire.facts import FactError
from factwire.journal.blobs import BlobError, BlobStore
from factwire.projection import ProjectionState
from factwire.projection.parts import Message, TextPart, ToolPreviewPart
from factwire.projection.tools import Tool
from factwire.runtime.agents.openai.answers import heard_of
from factwire.runtime.agents.openai.limits import RESULT_CHARACTERS
from factwire.runtime.agents.pending import kept_args


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

    async def before(self, turn_id: str, room: int) -> Window:
        """What of the turns before this one fits; what does not is not even read."""
        told: dict[str | None, list[Message]] = {}
        for message in self._state.messages:
            if message.turn_id != turn_id and _is_told(message):
                told.setdefault(message.turn_id, []).append(message)
        newest_first = (self._turn(messages) for messages in reversed(told.values()))
        return await window(newest_first, len(told), room)

    async def rounds(self, turn_id: str, results: Mapping[str, str]) -> tuple[Round, ...]:
        """What a turn has come to so far; `results` are those of calls that ended just now."""
        own = [message for message in self._state.messages if message.turn_id == turn_id]
        return await self._rounds(own, results)

    async def _turn(self, messages: Sequence[Message]) -> PastTurn:
        asked = [_text(message) for message in messages if message.role == "user"]
        attached = [ref for message in messages for ref in message.input_refs or ()]
        prompt = "\n\n".join((*asked, *(f"(attached then: {ref})" for ref in attached)))
        return PastTurn(prompt=prompt, rounds=await self._rounds(messages, {}))

    async def _rounds(
        self, messages: Iterable[Message], results: Mapping[str, str]
    ) -> tuple[Round, ...]:
        rounds = [
            Round(text=_text(message), calls=await self._calls(message, results))
            for message in messages
            if message.role != "user" and _is_told(message)
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
            args=await kept_args(tool, self._blobs),
            result=heard_of(tool, await self._output(tool)) if result is None else result,
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


async def window(newest_first: Iterable[Awaitable[PastTurn]], count: int, room: int) -> Window:
    """The newest of so many turns that fit; of the first that does not, its prompt and newest
    rounds.
    """
    kept: list[PastTurn] = []
    for coming in newest_first:
        turn = await coming
        if turn.characters <= room:
            kept.append(turn)
            room -= turn.characters
            continue
        part = _fitting(turn, room)
        kept += [part] if part is not None else []
        return Window(
            turns=tuple(reversed(kept)),
            turns_left_out=count - len(kept),
            rounds_left_out=0 if part is None else len(turn.rounds) - len(part.rounds),
        )
    return Window(turns=tuple(reversed(kept)))


def _fitting(turn: PastTurn, room: int) -> PastTurn | None:
    room -= len(turn.prompt)
    rounds: list[Round] = []
    for each in reversed(turn.rounds):
        room -= each.characters
        if room < 0:
            break
        rounds.append(each)
    return PastTurn(prompt=turn.prompt, rounds=tuple(reversed(rounds))) if rounds else None


def _is_told(message: Message) -> bool:
    """Whether a message is of the conversation: not taken back, and nobody's but the agent's."""
    return message.subagent_id is None and message.status != "retracted"


def _text(message: Message) -> str:
    texts = (str(part.text) for part in message.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)
