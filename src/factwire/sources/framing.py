"""Framing: how a recorded stream is cut into items.

A line, or an event, that cannot be read is an item of its own: it is told as a warning, and what
follows it is read as if it were not there.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from factwire.facts import UnreadableInput, decode_json

Framing = Literal["lines", "events"]

DONE: Final = "[DONE]"
"""What some event streams end with; it is no item."""


class Unreadable(msgspec.Struct, frozen=True):
    """Bytes where an item should stand."""

    data: bytes
    reason: str


Item = dict[str, Any] | Unreadable


def read_items(lines: Iterable[bytes], framing: Framing) -> Iterator[Item]:
    """The items of a stream, in order, in constant memory."""
    return _events(lines) if framing == "events" else _lines(lines)


def _lines(lines: Iterable[bytes]) -> Iterator[Item]:
    for line in lines:
        if line.strip():
            yield _item(line.strip())


def _events(lines: Iterable[bytes]) -> Iterator[Item]:
    """Server-sent events: the data of each, up to an empty line."""
    data: list[bytes] = []
    for line in lines:
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text.removeprefix(b"data:").removeprefix(b" "))
        elif not text and data:
            yield from _event(data)
            data = []
    if data:
        yield from _event(data)


def _event(data: list[bytes]) -> Iterator[Item]:
    whole = b"\n".join(data)
    if whole.strip() != DONE.encode():
        yield _item(whole)


def _item(data: bytes) -> Item:
    try:
        value = decode_json(data)
    except UnreadableInput as error:
        return Unreadable(data, error.reason)
    if not isinstance(value, dict):
        return Unreadable(data, f"expected an object, got {type(value).__name__}")
    return value  # pyright: ignore[reportUnknownVariableType] - keys of JSON objects are strings
