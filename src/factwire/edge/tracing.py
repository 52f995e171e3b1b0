"""Traces: one id from the request to the facts it led to, in the form of W3C trace context."""

import re
import secrets
from typing import Final

_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_NONE: Final = b"0" * 32


def new_trace_id() -> str:
    """A fresh trace id: 32 hexadecimal digits."""
    return secrets.token_hex(16)


def trace_id_of(traceparent: bytes | None) -> str:
    """The trace that a request belongs to; a new one where it names none."""
    found = _TRACEPARENT.fullmatch(traceparent or b"")
    if found is None or found[1] == _NONE:
        return new_trace_id()
    return found[1].decode()
