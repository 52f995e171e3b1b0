"""Ranges: which bytes of a file are asked for, by RFC 9110, one stretch at a time.

A request for several stretches, or one that cannot be read, gets the whole file: that is allowed,
and a client that wants many small pieces at once gets no work out of us for it.
"""

import re
from typing import Final

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class Unsatisfiable(Exception):
    """The stretch begins after the end of the file."""


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last, or None for the whole; raises `Unsatisfiable`."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return _last(int(found[2]), size)
    start = int(found[1])
    if found[2] and int(found[2]) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return start, min(int(found[2]) + 1, size) if found[2] else size


def _last(count: int, size: int) -> tuple[int, int]:
    if count == 0 or size == 0:
        raise Unsatisfiable
    return max(0, size - count), size
