"""Events: facts in the Edge's words, for clients that want a few typed events and no vocabulary.

Pure: an envelope follows from a fact, its seq, and the view that was asked for. No input or output,
no clock.
"""

from factwire.edge.events.asyncapi import asyncapi
from factwire.edge.events.envelope import Envelope, Scope
from factwire.edge.events.frames import (
    Checkpoint,
    ErrorDetails,
    ErrorEvent,
    ErrorPayload,
    FactFrame,
    ProjectionDelta,
    ProjectionSnapshot,
    encode_frame,
    error_event,
)
from factwire.edge.events.ids import (
    EventIdInvalid,
    event_id_of,
    fact_id_of,
    item_id_of,
    run_id_of,
    run_of,
    user_item_id_of,
)
from factwire.edge.events.payload import EventPayload
from factwire.edge.events.run_words import ERROR_CODES, run_error
from factwire.edge.events.telling import encode, encode_envelope, envelope_of
from factwire.edge.events.types import EVENT_TYPES, FRAME_TYPES, VIEWS, EventType
from factwire.edge.events.word import View

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
    "asyncapi",
    "encode",
    "encode_envelope",
    "encode_frame",
    "envelope_of",
    "error_event",
    "event_id_of",
    "fact_id_of",
    "item_id_of",
    "run_error",
    "run_id_of",
    "run_of",
    "user_item_id_of",
]
