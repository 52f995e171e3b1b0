"""What a person gives to a turn, as bytes and text that an outside agent can be handed.

Anything that the agent cannot take is refused by name before it is asked anything.
"""

from collections.abc import Iterable
from typing import Final

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
from factwire.runtime.errors import TurnFailed
from factwire.sources.live.limits import DOCUMENT_BYTES, IMAGE_BYTES

_IMAGES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
_TEXTS: Final = ("application/json", "application/toml", "application/xml", "application/yaml")
_HINT: Final = "Leave it out, or put it into the workspace and name it."


class Words(msgspec.Struct, frozen=True):
    """Text; `name` is that of the document it comes from."""

    text: str
    name: str | None = None
    media_type: str = "text/plain"


class Picture(msgspec.Struct, frozen=True):
    """An image."""

    data: bytes
    media_type: str


Given = Words | Picture


async def given_to(
    prompt: str, parts: Iterable[InputPart], blobs: BlobStore, *, images: bool
) -> list[Given]:
    """The prompt and what is attached to it; raises `TurnFailed`."""
    own: list[Given] = [Words(prompt)] if prompt.strip() else []
    return own + [await _given(part, blobs, images=images) for part in parts]


def words_of(each: Words) -> str:
    """A text that says where it comes from."""
    return each.text if each.name is None else f"(attached: {each.name})\n{each.text}"


async def _given(part: InputPart, blobs: BlobStore, *, images: bool) -> Given:
    if isinstance(part, TextInput):
        return Words(part.text)
    if isinstance(part, WorkspaceInput):
        kind = part.object_type or "object"
        return Words(f"(attached: the {kind} {part.title or part.ref}, {part.ref})")
    if isinstance(part, CapabilityInput):
        raise _refused(part.ref, "what is sensitive is not given to an outside agent")
    return await _asset(part, blobs, images=images)


async def _asset(part: AssetInput, blobs: BlobStore, *, images: bool) -> Given:
    media_type = part.media_type or ""
    if part.kind == "image" and images and media_type in _IMAGES:
        return Picture(await _bytes(part, blobs, IMAGE_BYTES), media_type)
    if part.kind == "document" and (media_type.startswith("text/") or media_type in _TEXTS):
        data = await _bytes(part, blobs, DOCUMENT_BYTES)
        return Words(data.decode("utf-8", "replace"), part.name or part.ref, media_type)
    raise _refused(part.name or part.ref, f"this agent takes no {media_type or part.kind}")


async def _bytes(part: AssetInput, blobs: BlobStore, most: int) -> bytes:
    name = part.name or part.ref
    try:
        data = b"".join([piece async for piece in blobs.get(part.ref, end=most + 1)])
    except (BlobError, FactError) as error:
        raise _refused(name, f"its content cannot be had: {error}") from error
    if len(data) > most:
        raise _refused(name, f"it has more than {most} bytes")
    return data


def _refused(name: str, why: str) -> TurnFailed:
    return TurnFailed("unsupported_input", f"{name}: {why}", _HINT)
