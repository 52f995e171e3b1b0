"""What the streams of an Edge promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_FEED: Final = requirements(
    "design.md; guarantees.md R15",
    {
        "edge.feed.order": "Every subscriber is handed each fact once, in order, uncopied.",
        "edge.feed.reached": "Whoever waits for a seq goes on once it has been handed out.",
        "edge.feed.degraded": "An absent journal is told, and followed on exactly where it was.",
        "edge.feed.isolated": "A subscriber that fails is told, and is the only one to lose.",
    },
)

_STREAMS: Final = requirements(
    "edge.md Cursor and resume; guarantees.md R6 R7 R8 R11 R14",
    {
        "edge.stream.order": "A reader gets what is kept and what comes, once and in order.",
        "edge.stream.bytes": "A fact is told with the bytes that are stored.",
        "edge.stream.resume": "A stream cut after any frame resumes without hole or repeat.",
        "edge.stream.cursor": "One cursor, event id or fact id serves every face and filter.",
        "edge.stream.now": "A stream that starts now says where that is.",
        "edge.stream.cursor-refused": "A cursor that is no place gets one error and a close code.",
        "edge.stream.filters": "Only facts of the ids and classes named are told.",
        "edge.stream.types": "A filter on types looks at the envelope in its view.",
        "edge.stream.checkpoints": "Facts passed over advance the reader, in few frames.",
        "edge.stream.query": "A query that is not understood is refused before the stream.",
        "edge.stream.methods": "A stream is read with GET, as events or over a socket.",
        "edge.stream.shared": "Readers of one stream are written the same bytes.",
        "edge.stream.any-server": "Without our protocol the same messages are sent.",
        "edge.stream.joining": "Whoever joins under writers loses and repeats nothing.",
        "edge.stream.converging": "Catching up ends, or the reader is closed as slow.",
        "edge.stream.slow": "A slow reader is closed at its limit and slows no other.",
        "edge.stream.storm": "A thousand readers cut at once all come back whole.",
        "edge.stream.unasked": "A message from a reader ends its stream.",
        "edge.stream.malformed": "Malformed frames end in a documented code, never in a fault.",
        "edge.stream.keepalive": "A socket is dead after two pings without an answer.",
        "edge.stream.stop": "A stop tells what is durable and closes with 1012.",
        "edge.stream.sse": "Server-sent events carry the same, with the cursor as their id.",
        "edge.stream.page": "A page has the bytes of the stream and the cursor to go on.",
    },
)

_PROJECTIONS: Final = requirements(
    "edge.md Commands; design.md",
    {
        "edge.stream.projection": "A snapshot and its changes give the state at every step.",
        "edge.stream.projection-shared": "Viewers of a thread are sent identical bytes.",
        "edge.stream.projection-resume": "A viewer goes on exactly, or from a new snapshot.",
        "edge.stream.projection-slow": "A slow viewer is closed at its limit.",
    },
)

EDGE_STREAM_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_FEED, *_STREAMS, *_PROJECTIONS)
