"""Streams of a journal: facts, envelopes and projections, resumable from any cursor."""

from factwire.serving.streams.catch_up import MessagePage, read_message_page
from factwire.serving.streams.frame_encoder import EnvelopeBuilder, FrameEncoder, Selection
from factwire.serving.streams.journal_feed import DecodedBatch, FeedHealth, FeedStopped, JournalFeed
from factwire.serving.streams.stream_app import Streams, StreamStats
from factwire.serving.streams.stream_query import StreamQuery, StreamStart, read_cursor, read_query
from factwire.serving.streams.stream_sinks import CLOSE_REASONS, CloseReason
from factwire.serving.streams.uvicorn_protocols import (
    FactwireHttpProtocol,
    FactwireSocketProtocol,
    socket_settings,
)

__all__ = [
    "CLOSE_REASONS",
    "CloseReason",
    "DecodedBatch",
    "EnvelopeBuilder",
    "FactwireHttpProtocol",
    "FactwireSocketProtocol",
    "FeedHealth",
    "FeedStopped",
    "FrameEncoder",
    "JournalFeed",
    "MessagePage",
    "Selection",
    "StreamQuery",
    "StreamStart",
    "StreamStats",
    "Streams",
    "read_cursor",
    "read_message_page",
    "read_query",
    "socket_settings",
]
