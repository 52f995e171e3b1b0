"""The control channel: other processes of the same user decide, cancel and ask in a runtime."""

from factwire.runtime.control.answering import answer
from factwire.runtime.control.client import ask, running
from factwire.runtime.control.errors import (
    ControlError,
    ControlUnavailable,
    NoAnswer,
    NobodyRunning,
)
from factwire.runtime.control.messages import (
    REFUSALS,
    Answer,
    Cancel,
    Canceled,
    Decide,
    Decided,
    Malformed,
    RefusalCode,
    Refused,
    Request,
    Running,
    Status,
    ThreadNow,
    decode_answer,
    decode_request,
    encode,
)
from factwire.runtime.control.server import ControlServer

__all__ = [
    "REFUSALS",
    "Answer",
    "Cancel",
    "Canceled",
    "ControlError",
    "ControlServer",
    "ControlUnavailable",
    "Decide",
    "Decided",
    "Malformed",
    "NoAnswer",
    "NobodyRunning",
    "RefusalCode",
    "Refused",
    "Request",
    "Running",
    "Status",
    "ThreadNow",
    "answer",
    "ask",
    "decode_answer",
    "decode_request",
    "encode",
    "running",
]
