"""What streams send beside envelopes: places, errors, facts and projections.

None of these is a fact in other words, so none has an event id; their types are reserved, and no
fact's class passes for one.
"""

from typing import Any, Literal

import msgspec

from factwire.edge.events.envelope import VERSION, Scope
from factwire.edge.events.payload import EventPayload
from factwire.facts import Fact
from factwire.projection import Operation, ProjectionState


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """The root of the frames that a `type` tells apart."""


class Checkpoint(Frame, frozen=True, kw_only=True, tag="checkpoint"):
    """Nothing of interest until here: a filtered stream may be resumed from this cursor."""

    cursor: str
    seq: int


class ErrorDetails(EventPayload, frozen=True):
    """What to do about an error: take the snapshot at `snapshot_url`, resume at `as_of_cursor`."""

    snapshot_required: bool | None = None
    snapshot_url: str | None = None
    as_of_cursor: str | None = None


class ErrorPayload(EventPayload, frozen=True):
    """Why a stream cannot go on; `code` is stable, `message` is for people."""

    code: str
    message: str
    trace_id: str
    details: ErrorDetails | None = None


class ErrorEvent(Frame, frozen=True, kw_only=True, tag="error"):
    """An error, in the form of an envelope but at no place in the journal; the stream ends."""

    version: Literal["v1"]
    scope: Scope
    trace_id: str
    sent_at: str
    payload: ErrorPayload


class FactFrame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A fact as it is stored, with its place."""

    cursor: str
    seq: int
    fact: Fact


class ProjectionSnapshot(Frame, frozen=True, kw_only=True, tag="projection.snapshot"):
    """The whole state of a thread."""

    thread_id: str
    cursor: str
    state: ProjectionState


class ProjectionDelta(Frame, frozen=True, kw_only=True, tag="projection.delta"):
    """What changed in the state since the frame before, to be carried out in order."""

    thread_id: str
    cursor: str
    operations: list[Operation]


def error_event(
    code: str,
    message: str,
    *,
    trace_id: str,
    sent_at: str,
    edge_id: str | None = None,
    details: ErrorDetails | None = None,
) -> ErrorEvent:
    """The error that a stream ends with."""
    payload = ErrorPayload(code=code, message=message, trace_id=trace_id, details=details)
    scope = Scope(edge_id=edge_id)
    return ErrorEvent(
        version=VERSION, scope=scope, trace_id=trace_id, sent_at=sent_at, payload=payload
    )


def encode_frame(frame: Any) -> bytes:
    """A frame as it is sent."""
    return msgspec.json.encode(frame)
