"""The streaming faces of an Edge: facts, envelopes and projections, resumable from any cursor."""

from factwire.edge.streams.app import Streams
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.closing import CLOSINGS, Closing
from factwire.edge.streams.cursors import read_cursor
from factwire.edge.streams.feed import Feed, FeedHealth, FeedStopped
from factwire.edge.streams.http_protocol import FactwireHttpProtocol
from factwire.edge.streams.messages import EnvelopeOf, Teller
from factwire.edge.streams.pages import Page, page
from factwire.edge.streams.query import Query, Start, read_query
from factwire.edge.streams.readers import StreamStats
from factwire.edge.streams.selection import Selection
from factwire.edge.streams.socket_protocol import FactwireSocketProtocol, socket_settings

__all__ = [
    "CLOSINGS",
    "Arrival",
    "Closing",
    "EnvelopeOf",
    "FactwireHttpProtocol",
    "FactwireSocketProtocol",
    "Feed",
    "FeedHealth",
    "FeedStopped",
    "Page",
    "Query",
    "Selection",
    "Start",
    "StreamStats",
    "Streams",
    "Teller",
    "page",
    "read_cursor",
    "read_query",
    "socket_settings",
]
