"""What an agent is handed for a turn: the prompt, what is attached, the conversation so far.

Anything that the agent cannot take is refused by name before it is asked anything. An SDK's own
state is better than anything that could be made of facts, so it is kept while the process
lives. It counts only if it is the state after the thread's last turn; after a restart, or when
somebody else had a turn in between, the agent is given the text of the thread instead.
"""

from base64 import b64encode
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, Literal, TypeVar

import msgspec

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
from factwire.projection.messages import Message, TextPart
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import StartTurn
from factwire.sources.kit.limits import (
    DOCUMENT_BYTES,
    HISTORY_CHARACTERS,
    IMAGE_BYTES,
    THREADS_REMEMBERED,
)

_IMAGES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
_TEXTS: Final = ("application/json", "application/toml", "application/xml", "application/yaml")
_HINT: Final = "Leave it out, or put it into the workspace and mention it by name."


class TextPrompt(msgspec.Struct, frozen=True):
    """Text; `name` is that of the document it comes from."""

    text: str
    name: str | None = None
    media_type: str = "text/plain"


class ImagePrompt(msgspec.Struct, frozen=True):
    """An image."""

    data: bytes
    media_type: str


PromptPart = TextPrompt | ImagePrompt


async def read_prompt(
    prompt: str, parts: Iterable[InputPart], blobs: BlobStore, *, images: bool
) -> list[PromptPart]:
    """The prompt and what is attached to it; raises `TurnFailed`."""
    own: list[PromptPart] = [TextPrompt(prompt)] if prompt.strip() else []
    return own + [await _read_part(part, blobs, images=images) for part in parts]


def prompt_text(each: TextPrompt) -> str:
    """A text that says where it comes from."""
    return each.text if each.name is None else f"(attached: {each.name})\n{each.text}"


async def _read_part(part: InputPart, blobs: BlobStore, *, images: bool) -> PromptPart:
    if isinstance(part, TextInput):
        return TextPrompt(part.text)
    if isinstance(part, WorkspaceInput):
        kind = part.object_type or "object"
        return TextPrompt(f"(attached: the {kind} {part.title or part.ref}, {part.ref})")
    if isinstance(part, CapabilityInput):
        raise _unsupported_input(part.ref, "sensitive content is not sent to an outside agent")
    return await _read_asset(part, blobs, images=images)


async def _read_asset(part: AssetInput, blobs: BlobStore, *, images: bool) -> PromptPart:
    media_type = part.media_type or ""
    if part.kind == "image" and images and media_type in _IMAGES:
        return ImagePrompt(await _read_bytes(part, blobs, IMAGE_BYTES), media_type)
    if part.kind == "document" and (media_type.startswith("text/") or media_type in _TEXTS):
        data = await _read_bytes(part, blobs, DOCUMENT_BYTES)
        return TextPrompt(data.decode("utf-8", "replace"), part.name or part.ref, media_type)
    raise _unsupported_input(
        part.name or part.ref, f"this agent does not accept {media_type or part.kind}"
    )


async def _read_bytes(part: AssetInput, blobs: BlobStore, most: int) -> bytes:
    name = part.name or part.ref
    try:
        data = b"".join([piece async for piece in blobs.get(part.ref, end=most + 1)])
    except (BlobError, FactError) as error:
        raise _unsupported_input(name, f"its content is not available: {error}") from error
    if len(data) > most:
        raise _unsupported_input(name, f"it is larger than {most} bytes")
    return data


def _unsupported_input(name: str, why: str) -> TurnFailed:
    return TurnFailed("unsupported_input", f"{name}: {why}", _HINT)


INPUTS: Final = ("text", "image", "document", "workspace")
"""What a manifest says of an agent that is given this."""


async def read_sdk_prompt(turn: StartTurn) -> str | list[str | ImagePrompt]:
    """Words alone are one text, because not every model takes a list; raises `TurnFailed`."""
    parts = await read_prompt(turn.prompt, turn.input, turn.host.resources.blobs, images=True)
    found = [part if isinstance(part, ImagePrompt) else prompt_text(part) for part in parts]
    texts = [part for part in found if isinstance(part, str)]
    return "\n\n".join(texts) if len(texts) == len(found) else found


def to_data_url(picture: ImagePrompt) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"


T = TypeVar("T")


class PastMessage(msgspec.Struct, frozen=True):
    """What one of the two said."""

    role: Literal["user", "assistant"]
    text: str


class ThreadMemory(Generic[T]):
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


def past_messages(turn: StartTurn) -> list[PastMessage]:
    """What was said in earlier turns, the newest that fits."""
    found: list[PastMessage] = []
    budget = HISTORY_CHARACTERS
    for message in reversed(_earlier_messages(turn)):
        text = _message_text(message)
        budget -= len(text)
        if budget < 0:
            break
        if text:
            found.append(PastMessage("user" if message.role == "user" else "assistant", text))
    return found[::-1]


def _last_turn(turn: StartTurn) -> str | None:
    earlier = _earlier_messages(turn)
    return earlier[-1].turn_id if earlier else None


def _earlier_messages(turn: StartTurn) -> list[Message]:
    history: ProjectionState | None = turn.history
    messages = [] if history is None else history.messages
    return [
        message
        for message in messages
        if message.turn_id != turn.turn_id
        and message.subagent_id is None
        and message.status != "retracted"
    ]


def _message_text(message: Message) -> str:
    texts = (str(part.text) for part in message.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)
