"""Framing: how a stream is cut into items, recorded (lines) or as it arrives (bytes).

A line, or an event, that cannot be read is an item of its own: it becomes a warning, and what
follows it is read as if it were not there. Lines of server-sent events end where the format
says and nowhere else: a reader of text lines would also cut at line separators that JSON allows
within a string.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from factwire.facts import UnreadableInput, decode_json
from factwire.sources.kit.limits import LINE_BYTES

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
    return _read_events(lines) if framing == "events" else _read_lines(lines)


def _read_lines(lines: Iterable[bytes]) -> Iterator[Item]:
    for line in lines:
        if line.strip():
            yield _decode_item(line.strip())


def _read_events(lines: Iterable[bytes]) -> Iterator[Item]:
    """Server-sent events: the data of each, up to an empty line."""
    data: list[bytes] = []
    for line in lines:
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text.removeprefix(b"data:").removeprefix(b" "))
        elif not text and data:
            yield from _decode_event(data)
            data = []
    if data:
        yield from _decode_event(data)


def _decode_event(data: list[bytes]) -> Iterator[Item]:
    whole = b"\n".join(data)
    if whole.strip() != DONE.encode():
        yield _decode_item(whole)


def _decode_item(data: bytes) -> Item:
    try:
        value = decode_json(data)
    except UnreadableInput as error:
        return Unreadable(data, error.reason)
    if not isinstance(value, dict):
        return Unreadable(data, f"expected an object, got {type(value).__name__}")
    return value  # pyright: ignore[reportUnknownVariableType] - keys of JSON objects are strings


class EventReader:
    """The events of one stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Item]:
        """The items that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        items: list[Item] = []
        for line in lines:
            items += self._take_line(line.removesuffix(b"\r"))
        if len(self._rest) + self._size > LINE_BYTES:
            items.append(self._refuse_event())
        return items

    def finish(self) -> list[Item]:
        """The stream is over; what stands at its end is an event, whole or not."""
        items = self._take_line(self._rest.removesuffix(b"\r"))
        self._rest = b""
        return [*items, *self._take_line(b"")]

    def _take_line(self, line: bytes) -> list[Item]:
        if line:
            self._lines.append(line)
            self._size += len(line)
            return [self._refuse_event()] if self._size > LINE_BYTES else []
        lines, self._lines, self._size = self._lines, [], 0
        return list(read_items(lines, "events"))

    def _refuse_event(self) -> Unreadable:
        start = (b"\n".join(self._lines) or self._rest)[:1024]
        self._rest, self._lines, self._size = b"", [], 0
        return Unreadable(start, f"an event of more than {LINE_BYTES} bytes")
