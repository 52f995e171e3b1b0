"""Server-sent events from a connection: bytes in, items out, nothing waits and nothing grows.

Lines end where the format says and nowhere else: a reader of text lines would also cut at line
separators that JSON allows within a string.
"""

from factwire.sources.framing import Item, Unreadable, read_items
from factwire.sources.live.limits import LINE_BYTES


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
            items += self._line(line.removesuffix(b"\r"))
        if len(self._rest) + self._size > LINE_BYTES:
            items.append(self._refused())
        return items

    def finish(self) -> list[Item]:
        """The stream is over; what stands at its end is an event, whole or not."""
        items = self._line(self._rest.removesuffix(b"\r"))
        self._rest = b""
        return [*items, *self._line(b"")]

    def _line(self, line: bytes) -> list[Item]:
        if line:
            self._lines.append(line)
            self._size += len(line)
            return [self._refused()] if self._size > LINE_BYTES else []
        lines, self._lines, self._size = self._lines, [], 0
        return list(read_items(lines, "events"))

    def _refused(self) -> Unreadable:
        start = (b"\n".join(self._lines) or self._rest)[:1024]
        self._rest, self._lines, self._size = b"", [], 0
        return Unreadable(start, f"an event of more than {LINE_BYTES} bytes")
