"""The conversation so far, for an agent of an SDK that runs in this process.

An SDK's own state (its calls, its results, who was speaking) is better than anything that could be
made of facts, so it is kept while the process lives. It counts only if it is the state after the
thread's last turn; after a restart, or when somebody else had a turn in between, the words of the
thread are told again instead.
"""

from collections import OrderedDict
from typing import Generic, Literal, TypeVar

import msgspec

from factwire.projection import ProjectionState
from factwire.projection.parts import Message, TextPart
from factwire.runtime.provider import StartTurn
from factwire.sources.live.limits import HISTORY_CHARACTERS, THREADS_REMEMBERED

T = TypeVar("T")


class Said(msgspec.Struct, frozen=True):
    """What one of the two said."""

    role: Literal["user", "assistant"]
    text: str


class Memory(Generic[T]):
    """What an SDK knows of each thread after its last turn."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, T]] = OrderedDict()

    def recall(self, turn: StartTurn) -> T | None:
        """The state that this turn goes on from, if it is there."""
        kept = self._kept.get(turn.thread_id)
        if kept is None or kept[0] != _last_turn(turn):
            return None
        return kept[1]

    def keep(self, turn: StartTurn, value: T) -> None:
        self._kept[turn.thread_id] = (turn.turn_id, value)
        self._kept.move_to_end(turn.thread_id)
        while len(self._kept) > THREADS_REMEMBERED:
            self._kept.popitem(last=False)

    def forget(self, turn: StartTurn) -> None:
        """A turn that did not end well left nothing to go on from."""
        self._kept.pop(turn.thread_id, None)


def told_again(turn: StartTurn) -> list[Said]:
    """What was said in earlier turns, the newest that fits."""
    found: list[Said] = []
    room = HISTORY_CHARACTERS
    for message in reversed(_earlier(turn)):
        text = _text(message)
        room -= len(text)
        if room < 0:
            break
        if text:
            found.append(Said("user" if message.role == "user" else "assistant", text))
    return found[::-1]


def _last_turn(turn: StartTurn) -> str | None:
    earlier = _earlier(turn)
    return earlier[-1].turn_id if earlier else None


def _earlier(turn: StartTurn) -> list[Message]:
    history: ProjectionState | None = turn.history
    messages = [] if history is None else history.messages
    return [
        message
        for message in messages
        if message.turn_id != turn.turn_id
        and message.subagent_id is None
        and message.status != "retracted"
    ]


def _text(message: Message) -> str:
    texts = (str(part.text) for part in message.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)
