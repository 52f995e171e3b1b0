"""Traces: one id from the request to the facts it led to, in the form of W3C trace context."""

import re
import secrets
from typing import Final

import msgspec

_TRACEPARENT: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_NO_TRACE: Final = b"0" * 32
_NO_SPAN: Final = b"0" * 16


class Traceparent(msgspec.Struct, frozen=True):
    """What a caller says of its own trace; all in hexadecimal digits."""

    trace_id: str
    span_id: str
    flags: str


def new_trace_id() -> str:
    """A fresh trace id: 32 hexadecimal digits."""
    return secrets.token_hex(16)


def read_traceparent(header: bytes | None) -> Traceparent | None:
    """The trace that a request belongs to; None where it names none."""
    found = _TRACEPARENT.fullmatch(header or b"")
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    return Traceparent(found[1].decode(), found[2].decode(), found[3].decode())


def trace_id_of(header: bytes | None) -> str:
    """The trace that a request belongs to; a new one where it names none."""
    given = read_traceparent(header)
    return new_trace_id() if given is None else given.trace_id
