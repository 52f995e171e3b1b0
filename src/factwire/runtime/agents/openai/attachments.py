"""What a person gives a turn, as a model can be given it: text, or an image; anything else is
refused by name before anything is asked.
"""

from typing import Final

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
from factwire.runtime.agents.openai.failures import FAILINGS
from factwire.runtime.agents.openai.limits import DOCUMENT_BYTES, IMAGE_BYTES
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import StartTurn

_IMAGES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
_TEXTS: Final = ("application/json", "application/toml", "application/xml", "application/yaml")


async def content_of(turn: StartTurn) -> str | list[UserContent]:
    """The prompt and what is attached to it; raises `TurnFailed`.

    Words alone are one text: not every endpoint takes a list of parts.
    """
    content: list[UserContent] = [turn.prompt] if turn.prompt.strip() else []
    for part in turn.input:
        content.append(await _content(part, turn.host.means.blobs))
        if isinstance(part, AssetInput | WorkspaceInput) and not turn.resumed:
            _tell(turn, part)
    texts = [part for part in content if isinstance(part, str)]
    return "\n\n".join(texts) if len(texts) == len(content) else content


async def _content(part: InputPart, blobs: BlobStore) -> UserContent:
    if isinstance(part, TextInput):
        return part.text
    if isinstance(part, WorkspaceInput):
        kind = part.object_type or "object"
        return f"(attached: the {kind} {part.title or part.ref}, {part.ref})"
    if isinstance(part, CapabilityInput):
        raise _refused(part.ref, "what is sensitive is not given to a model")
    return await _asset(part, blobs)


async def _asset(part: AssetInput, blobs: BlobStore) -> UserContent:
    media_type = part.media_type or ""
    if part.kind == "image" and media_type in _IMAGES:
        data = await _bytes(part, blobs, IMAGE_BYTES)
        return BinaryContent(data=data, media_type=media_type)
    if part.kind == "document" and (media_type.startswith("text/") or media_type in _TEXTS):
        data = await _bytes(part, blobs, DOCUMENT_BYTES)
        return f"(attached: {part.name or part.ref})\n{data.decode('utf-8', 'replace')}"
    raise _refused(part.name or part.ref, f"a model is given no {media_type or part.kind}")


async def _bytes(part: AssetInput, blobs: BlobStore, most: int) -> bytes:
    name = part.name or part.ref
    try:
        data = b"".join([piece async for piece in blobs.get(part.ref, end=most + 1)])
    except (BlobError, FactError) as error:
        raise _refused(name, f"its content cannot be had: {error}") from error
    if len(data) > most:
        raise _refused(name, f"it has more than {most} bytes")
    return data


def _tell(turn: StartTurn, part: AssetInput | WorkspaceInput) -> None:
    host = turn.host
    about = {"kind": part.kind if isinstance(part, AssetInput) else "workspace", "ref": part.ref}
    host.emit(host.mint.fact(host.scope, "context.attached", about))


def _refused(name: str, why: str) -> TurnFailed:
    failing = FAILINGS["unsupported_input"]
    return TurnFailed("unsupported_input", f"{name}: {why}", failing.hint)
