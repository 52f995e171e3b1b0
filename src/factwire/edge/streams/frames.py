"""Frames: how a message looks on a wire, made once for all who read it.

A WebSocket frame from a server is not masked and its header follows from its length alone, so the
same bytes serve every socket. So do those of a server-sent event.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

_SHORT: Final = 126
_LONG: Final = 1 << 16
_FINAL: Final = 0x80
_TEXT: Final = 0x81
_MORE: Final = 0x00
_SHORT_HEADER: Final = Struct(">BB").pack
_MIDDLE_HEADER: Final = Struct(">BBH").pack
_LONG_HEADER: Final = Struct(">BBQ").pack

COMMENT: Final = b":\n\n"
"""What keeps an idle event stream from looking dead."""


def text_frame(message: bytes) -> bytes:
    """A whole WebSocket text message, unmasked, in one frame."""
    return _frame(_TEXT, message)


def _frame(kind: int, part: bytes) -> bytes:
    size = len(part)
    if size < _SHORT:
        return _SHORT_HEADER(kind, size) + part
    if size < _LONG:
        return _MIDDLE_HEADER(kind, 126, size) + part
    return _LONG_HEADER(kind, 127, size) + part


def text_fragments(message: bytes, size: int) -> list[bytes]:
    """A WebSocket text message in frames of at most `size` bytes of it.

    A ping may stand between two frames, never inside of one; so whoever writes a big message with
    pauses writes it in these.
    """
    if len(message) <= size:
        return [text_frame(message)]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    kinds = [_TEXT & ~_FINAL, *[_MORE] * (len(parts) - 2), _MORE | _FINAL]
    return [_frame(kind, part) for kind, part in zip(kinds, parts, strict=True)]


class Messages:
    """Makes messages of frames again, for a server that frames them itself."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, frames: bytes) -> Iterator[bytes]:
        """The messages that are complete with these frames, as this module made them."""
        at = 0
        while at < len(frames):
            kind, size, at = frames[at], frames[at + 1], at + 2
            if size >= _SHORT:
                width = 2 if size == _SHORT else 8
                size, at = int.from_bytes(frames[at : at + width], "big"), at + width
            self._parts.append(frames[at : at + size])
            at += size
            if kind & _FINAL:
                yield b"".join(self._parts)
                self._parts.clear()


def server_sent_event(name: str, message: bytes, cursor: str | None = None) -> bytes:
    """An event whose id is the cursor; the message is JSON and so has no line end in it."""
    place = f"id: {cursor}\n" if cursor is not None else ""
    # A class is any text, and a line end in it would begin another field.
    shown = " ".join(name.splitlines())
    return b"%sevent: %s\ndata: %s\n\n" % (place.encode(), shown.encode(), message)
