"""How a protocol's objects are written: one to a line, or as server-sent events."""

from typing import Any, Final, Literal

import msgspec

Framing = Literal["lines", "events"]

DONE: Final = b"data: [DONE]\n\n"
"""What some clients expect at the end of a stream of events."""

_ENCODER: Final = msgspec.json.Encoder()


def framed(item: dict[str, Any], framing: Framing) -> bytes:
    """The bytes of one object."""
    encoded = _ENCODER.encode(item)
    return b"data: " + encoded + b"\n\n" if framing == "events" else encoded + b"\n"
