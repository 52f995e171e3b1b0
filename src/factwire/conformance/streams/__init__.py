"""Streams: facts of anybody's, and whether they are valid."""

from factwire.conformance.streams.judging import STREAM_CHECKS, StreamCheck, judged
from factwire.conformance.streams.stream import Read, Stream
from factwire.conformance.streams.validity import read_stream

__all__ = ["STREAM_CHECKS", "Read", "Stream", "StreamCheck", "judged", "read_stream"]
