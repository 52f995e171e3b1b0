"""The export format: NDJSON in which every line vouches for itself and for all lines before it.

A header, one line a fact, one line a snapshot, and an end. Each line closes with `check`, a hash of
its bytes and of the check before, so that a changed, missing, repeated or misplaced line is named.
Facts stand in it with the very bytes that the journal stores.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, Final

import msgspec

from factwire.facts.limits import LINE_BYTES

FORMAT: Final = "journal-export/v1"

_CHECK: Final = b',"check":"'
_CLOSE: Final = b'"}\n'
_DIGITS: Final = 16
_TAIL: Final = len(_CHECK) + _DIGITS + len(_CLOSE)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported: `facts` facts up to `head`, of a chain that ended in the hash `chain`."""

    factwire: str
    epoch: str
    head: int
    floor: int
    chain: str
    facts: int


class FactLine(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    fact: msgspec.Raw


class SnapshotLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Derived state of a thread as of `seq`."""

    snapshot: str
    thread_id: str
    seq: int
    data: bytes


class End(msgspec.Struct, frozen=True, kw_only=True):
    end: bool
    facts: int
    snapshots: int


Line = Header | FactLine | SnapshotLine | End

_TYPES: Final[dict[bytes, type[Line]]] = {
    b'{"factwire":': Header,
    b'{"seq":': FactLine,
    b'{"snapshot":': SnapshotLine,
    b'{"end":': End,
}
"""How a line begins → what it is."""


class DamagedExport(Exception):
    """A line that is not the one that was written; nothing was imported."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {reason}; the export is damaged, nothing was imported")


class LineWriter:
    """Gives lines their checks."""

    def __init__(self) -> None:
        self._check = b""

    def fact(self, seq: int, stored: bytes) -> bytes:
        """The line of a fact, from its stored bytes."""
        return self._closed(b'{"seq":%d,"fact":%b' % (seq, stored))

    def line(self, content: Header | SnapshotLine | End) -> bytes:
        return self._closed(msgspec.json.encode(content)[:-1])

    def _closed(self, body: bytes) -> bytes:
        self._check = _next_check(self._check, body)
        return body + _CHECK + self._check + _CLOSE


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, Line]]:
    """Every line with its number, in order, once it is known to be whole and in its place."""
    number, check = 0, b""
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        check = _checked(number, raw, check)
        yield number, _decoded(number, raw)


def read_export(stream: BinaryIO) -> Iterator[tuple[int, Line]]:
    """The same, held to the form: a header, facts in order, snapshots, an end, nothing more."""
    header: Header | None = None
    ended = False
    number = facts = snapshots = last = 0
    for number, line in read_lines(stream):
        if ended or isinstance(line, Header) != (number == 1):
            raise DamagedExport(number, "it is out of place")
        match line:
            case Header():
                header = _known(line)
            case FactLine():
                if line.seq <= last:
                    raise DamagedExport(number, f"seq {line.seq} comes after {last}")
                facts, last = facts + 1, line.seq
            case SnapshotLine():
                snapshots += 1
            case End():
                ended = True
                counts = (facts, facts, snapshots)
                if not header or (header.facts, line.facts, line.snapshots) != counts:
                    raise DamagedExport(number, f"expected {line.facts} facts, got {facts}")
        yield number, line
    if header is None or not ended:
        raise DamagedExport(number + 1, "the export ends here, before its end")


def _known(header: Header) -> Header:
    if header.factwire != FORMAT:
        raise DamagedExport(1, f"expected the format {FORMAT}, got {header.factwire[:40]!r}")
    return header


def _checked(number: int, raw: bytes, check: bytes) -> bytes:
    if not raw.endswith(b"\n"):
        long = len(raw) > LINE_BYTES
        raise DamagedExport(number, "it is too long" if long else "it ends before its line does")
    body, tail = raw[:-_TAIL], raw[-_TAIL:]
    found = _next_check(check, body)
    if tail != _CHECK + found + _CLOSE:
        first = number == 1 and _CHECK not in raw
        raise DamagedExport(number, "it is no header" if first else "it was changed or moved")
    return found


def _decoded(number: int, raw: bytes) -> Line:
    for start, kind in _TYPES.items():
        if raw.startswith(start):
            try:
                return msgspec.json.decode(raw, type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DamagedExport(number, str(error)) from error
    raise DamagedExport(number, "it is of no known kind")


def _next_check(check: bytes, body: bytes) -> bytes:
    return sha256(check + body).hexdigest()[:_DIGITS].encode()
