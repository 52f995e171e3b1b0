"""The prompt of a turn and what is attached to it, as agents of SDKs are given it."""

from base64 import b64encode
from typing import Final

from factwire.runtime.provider import StartTurn
from factwire.sources.live.attachments import Picture, given_to, words_of

INPUTS: Final = ("text", "image", "document", "workspace")
"""What a manifest says of an agent that is given this."""


async def given(turn: StartTurn) -> str | list[str | Picture]:
    """Words alone are one text, because not every model takes a list; raises `TurnFailed`."""
    parts = await given_to(turn.prompt, turn.input, turn.host.means.blobs, images=True)
    found = [part if isinstance(part, Picture) else words_of(part) for part in parts]
    texts = [part for part in found if isinstance(part, str)]
    return "\n\n".join(texts) if len(texts) == len(found) else found


def data_url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
