"""Lines out of verified blocks: a line is handed out only when all its bytes have been verified."""

from collections.abc import Iterable, Iterator

from factwire.evidence.errors import MalformedPack
from factwire.facts.limits import LINE_BYTES


def lines_of(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Each line without its end; raises `MalformedPack` where the last one has none."""
    left: list[bytes] = []
    size = 0
    for block in blocks:
        first, *rest = block.split(b"\n")
        left.append(first)
        size += len(first)
        if size > LINE_BYTES:
            message = f"{name}: a line is longer than {LINE_BYTES} bytes"
            raise MalformedPack(message, code="entry_malformed")
        if rest:
            yield b"".join(left)
            yield from rest[:-1]
            left, size = [rest[-1]], len(rest[-1])
    if size:
        raise MalformedPack(f"{name}: the last line has no end", code="entry_malformed")
