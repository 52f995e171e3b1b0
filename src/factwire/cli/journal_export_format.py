"""The export format: NDJSON in which every line vouches for itself and for all lines before it.

A header, one line a fact, one line a thread, one line a snapshot, and an end. Each line closes with
`check`, a hash of its bytes and of the check before, so that a changed, missing, repeated or
misplaced line is named. Facts stand in it with the very bytes that the journal stores; in the place
of one that was removed is what the journal keeps of it. Threads are written where facts were
removed, because they then know more than the facts that are left.

The first version had neither removed facts nor threads; it is still read.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, Final

import msgspec

from factwire.facts.limits import LINE_BYTES
from factwire.journal import CatalogueRecord

FORMAT: Final = "journal-export/v2"
_FORMATS: Final = ("journal-export/v1", FORMAT)

_CHECK: Final = b',"check":"'
_CLOSE: Final = b'"}\n'
_DIGITS: Final = 16
_TAIL: Final = len(_CHECK) + _DIGITS + len(_CLOSE)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported: `facts` facts up to `head`, of a chain that was verified to `chain`."""

    factwire: str
    epoch: str
    head: int
    floor: int
    chain: str
    facts: int

    @property
    def lossless(self) -> bool:
        """Whether it has all that a journal keeps of what was removed."""
        return self.factwire == FORMAT


class FactLine(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    fact: msgspec.Raw


class RemovedLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the fact that stood at `removed`."""

    removed: int
    id: str
    sequence: int | None
    digest: bytes


class ThreadLine(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is kept of a thread."""

    thread: CatalogueRecord


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
    removed: int = 0
    threads: int = 0


Line = Header | FactLine | RemovedLine | ThreadLine | SnapshotLine | End

_TYPES: Final[dict[bytes, type[Line]]] = {
    b'{"factwire":': Header,
    b'{"seq":': FactLine,
    b'{"removed":': RemovedLine,
    b'{"thread":': ThreadLine,
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
        return self._close_line(b'{"seq":%d,"fact":%b' % (seq, stored))

    def line(self, content: Header | RemovedLine | ThreadLine | SnapshotLine | End) -> bytes:
        return self._close_line(msgspec.json.encode(content)[:-1])

    def _close_line(self, body: bytes) -> bytes:
        self._check = _next_check(self._check, body)
        return body + _CHECK + self._check + _CLOSE


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, Line]]:
    """Every line with its number, in order, once it is known to be whole and in its place."""
    number, check = 0, b""
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        check = _check_line(number, raw, check)
        yield number, _decode_line(number, raw)


def read_export(stream: BinaryIO) -> Iterator[tuple[int, Line]]:
    """The same, held to the form: a header, facts in order, threads, snapshots, an end."""
    form = _ExportOrder()
    number = 0
    for number, line in read_lines(stream):
        form.take(number, line)
        yield number, line
    if not form.ended:
        raise DamagedExport(number + 1, "the export is incomplete")


class _ExportOrder:
    """What an export has had so far, and what may come next."""

    def __init__(self) -> None:
        self.ended = False
        self._header: Header | None = None
        self._stage = 0
        self._last = 0
        self._counts = dict.fromkeys(_LINE_ORDER, 0)

    def take(self, number: int, line: Line) -> None:
        stage = _LINE_ORDER[type(line)]
        if self.ended or stage < self._stage or (number == 1) != isinstance(line, Header):
            raise DamagedExport(number, "unexpected line")
        self._stage = stage
        self._counts[type(line)] += 1
        if isinstance(line, Header):
            self._header = _require_known_format(line)
        elif isinstance(line, FactLine | RemovedLine):
            self._place(number, line.seq if isinstance(line, FactLine) else line.removed)
        elif isinstance(line, End):
            self._end(number, line)

    def _place(self, number: int, seq: int) -> None:
        if seq <= self._last:
            raise DamagedExport(number, f"seq {seq} comes after {self._last}")
        self._last = seq

    def _end(self, number: int, end: End) -> None:
        counts, self.ended = self._counts, True
        found = (counts[FactLine], counts[RemovedLine], counts[ThreadLine], counts[SnapshotLine])
        stated = (end.facts, end.removed, end.threads, end.snapshots)
        if not self._header or self._header.facts != end.facts or found != stated:
            reason = f"expected {end.facts} facts, got {counts[FactLine]}"
            raise DamagedExport(number, reason)


_LINE_ORDER: Final[dict[type[Line], int]] = {
    Header: 0,
    FactLine: 1,
    RemovedLine: 1,
    ThreadLine: 2,
    SnapshotLine: 3,
    End: 4,
}
"""The order of lines; none comes after one of a later stage."""


def _require_known_format(header: Header) -> Header:
    if header.factwire not in _FORMATS:
        raise DamagedExport(1, f"expected the format {FORMAT}, got {header.factwire[:40]!r}")
    return header


def _check_line(number: int, raw: bytes, check: bytes) -> bytes:
    if not raw.endswith(b"\n"):
        long = len(raw) > LINE_BYTES
        raise DamagedExport(number, "the line is too long" if long else "the line is incomplete")
    body, tail = raw[:-_TAIL], raw[-_TAIL:]
    found = _next_check(check, body)
    if tail != _CHECK + found + _CLOSE:
        first = number == 1 and _CHECK not in raw
        raise DamagedExport(number, "not a header" if first else "the line was changed or moved")
    return found


def _decode_line(number: int, raw: bytes) -> Line:
    for start, kind in _TYPES.items():
        if raw.startswith(start):
            try:
                return msgspec.json.decode(raw, type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DamagedExport(number, str(error)) from error
    raise DamagedExport(number, "unknown kind of line")


def _next_check(check: bytes, body: bytes) -> bytes:
    return sha256(check + body).hexdigest()[:_DIGITS].encode()
