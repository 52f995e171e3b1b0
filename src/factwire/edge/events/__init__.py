"""Events: facts in the Edge's words, for clients that want a few typed events and no vocabulary.

Pure: an envelope follows from a fact, its seq, and the view that was asked for. No input or output,
no clock.
"""

from factwire.edge.events.event_schemas import build_asyncapi
from factwire.edge.events.event_types import (
    EVENT_TYPES,
    FRAME_TYPES,
    EventType,
    build_envelope,
    encode,
    encode_envelope,
)
from factwire.edge.events.run_events import ERROR_CODES, build_run_error
from factwire.runtime.mint import run_of
from factwire.serving.envelopes import (
    VIEWS,
    Checkpoint,
    Envelope,
    ErrorDetails,
    ErrorEvent,
    ErrorPayload,
    EventIdInvalid,
    EventPayload,
    FactFrame,
    ProjectionDelta,
    ProjectionSnapshot,
    Scope,
    View,
    build_error_event,
    encode_frame,
    event_id_of,
    fact_id_of,
    item_id_of,
    run_id_of,
    user_item_id_of,
)

__all__ = [
    "ERROR_CODES",
    "EVENT_TYPES",
    "FRAME_TYPES",
    "VIEWS",
    "Checkpoint",
    "Envelope",
    "ErrorDetails",
    "ErrorEvent",
    "ErrorPayload",
    "EventIdInvalid",
    "EventPayload",
    "EventType",
    "FactFrame",
    "ProjectionDelta",
    "ProjectionSnapshot",
    "Scope",
    "View",
    "build_asyncapi",
    "build_envelope",
    "build_error_event",
    "build_run_error",
    "encode",
    "encode_envelope",
    "encode_frame",
    "event_id_of",
    "fact_id_of",
    "item_id_of",
    "run_id_of",
    "run_of",
    "user_item_id_of",
]
