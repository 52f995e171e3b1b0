"""Every number that bounds a server, each with its reason."""

from typing import Final

UNSENT_BYTES: Final = 1024 * 1024
"""Bytes that a reader of a stream may be behind; beyond that it is closed and may reconnect."""

PIECE_BYTES: Final = 256 * 1024
"""Bytes of facts delivered at once, so that a burst does not block the event loop."""

PIECE_FACTS: Final = 128
"""Facts delivered at once; each may be the first one of a thread, which is the most work."""

WINDOW_BYTES: Final = 64 * 1024
"""Bytes of facts passed on at once to a reader that catches up; one that takes nothing holds few
more in memory."""

CATCH_UP_FACTS: Final = 512
"""Facts of one read while a reader catches up; no longer read holds back retention."""

CATCH_UP_ROUNDS: Final = 32
"""Times that a reader may reach the previous end and find a full buffer of newer facts."""

PASSED_OVER_FACTS: Final = 8_192
"""Facts skipped while a reader catches up, after which it gets a checkpoint."""

STALL_SECONDS: Final = 30.0
"""Seconds in which a reader that is catching up must receive at least something."""

CHECKPOINT_SECONDS: Final = 0.25
"""Seconds between two checkpoint frames of a filtered stream."""

PING_SECONDS: Final = 25.0
"""Seconds between two pings of a socket, and between two comments on an event stream."""

MISSED_PINGS: Final = 2
"""Pings without an answer after which a socket counts as dead."""

CLOSE_SECONDS: Final = 5.0
"""Seconds that a closed reader has to read the remaining data; then the connection is cut."""

CLIENT_FRAME_BYTES: Final = 64 * 1024
"""Bytes of one message from a client; streams accept none, so this only limits what is parsed."""

PROJECTION_RING_BYTES: Final = 1024 * 1024
"""Bytes of recent changes of a watched thread, from which a viewer resumes without a snapshot."""

PROJECTION_LINGER_SECONDS: Final = 30.0
"""Seconds that a watched thread stays in memory after its last viewer left, in case one returns."""

RETRY_SECONDS: Final = 1.0
"""Longest pause before an unreachable journal is tried again."""

PAGE_ITEMS: Final = 200
"""Facts or envelopes of a page by default."""

PAGE_ITEMS_MOST: Final = 1_000
"""Facts or envelopes of the largest page."""

QUERY_TYPES: Final = 64
"""Types or classes that one filter may name."""

QUERY_CHARACTERS: Final = 512
"""Characters of one value in a query, or of one name in a list; ids and cursors are far shorter."""

TOKEN_CHARACTERS: Final = 24
"""Minimum number of characters of a token that a person chooses; a generated one has more."""

TICKET_SECONDS: Final = 30.0
"""Seconds in which a ticket for one stream can be used."""

STREAM_TICKET_SECONDS: Final = 300.0
"""Seconds that a renewable ticket lasts after it was issued or renewed, or its stream ended."""

NAMED_TOKENS: Final = 100
"""Tokens that a server has beside its first one."""

TOKEN_USE_SECONDS: Final = 60.0
"""Seconds after which the last use of tokens is written down again."""

OPEN_TICKETS: Final = 1_000
"""Tickets that may be out at the same time."""

BODY_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a request's body; larger content is sent as a ref."""

BODY_SECONDS: Final = 30.0
"""Seconds in which a request must have arrived completely, so that slow senders block nothing."""

HEADER_SECONDS: Final = 10.0
"""Seconds in which a connection must have sent a request's headers."""

HEADER_BYTES: Final = 32 * 1024
"""Bytes of a request's line and headers."""

ADDRESS_BYTES: Final = 8 * 1024
"""Bytes of a URL with its query; the longest possible filter is far shorter."""

FRAMING_BYTES: Final = 8
"""Bytes of framing per byte of a chunked body, at most; beyond that it is not a real body."""

OPEN_CONNECTIONS: Final = 4_096
"""Connections that are open at the same time, whatever they do."""

IDLE_SECONDS: Final = 5
"""Whole seconds that a connection may wait between two requests."""

OPEN_STREAMS: Final = 2_000
"""Sockets and event streams that are open at the same time."""

CONNECTS_PER_SECOND: Final = 500
"""New streams per second; a storm of reconnects is accepted, a flood is not."""

REFUSALS_PER_MINUTE: Final = 120
"""Requests with wrong credentials from one address in a minute, after which it must wait."""

REFUSED_ADDRESSES: Final = 4_096
"""Addresses whose wrong credentials are counted; the oldest are forgotten first."""

KEPT_ANSWERS: Final = 2_000
"""Responses kept for requests with an Idempotency-Key."""

KEPT_ANSWER_BYTES: Final = 64 * 1024
"""Bytes of a response that is kept; a longer one is computed again, with the same effect."""

KEY_CHARACTERS: Final = 200
"""Characters of an Idempotency-Key."""

LIST_ITEMS: Final = 50
"""Rows of a list by default."""

LIST_ITEMS_MOST: Final = 500
"""Rows of the longest list."""


STOP_SECONDS: Final = 2.0
"""Seconds in which streams and requests are ended during a stop, half for each; five are promised.
"""

BACKLOG: Final = 2_048
"""Connections that may wait to be accepted; a storm of reconnects comes all at once."""

LAG_SECONDS: Final = 0.5
"""Seconds between two measurements of the event loop's lag."""

KEPT_SPANS: Final = 2_000
"""Runs, and requests that may lead to one, whose spans are kept; the oldest are dropped first."""

ROWS_IN_MEMORY: Final = 2_048
"""Rows of one list that stay in memory after they were used; the others are read from disk."""

ROWS_LOG_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the write-ahead log of the lists after which it is copied into their database."""

ROWS_UNSAVED: Final = 1_024
"""Changed rows after which the lists are saved."""

ROWS_UNSAVED_SECONDS: Final = 0.05
"""Seconds after which changed rows are saved, however few they are."""

ROWS_UNSAVED_FACTS: Final = 16_384
"""Facts after which the place of the lists is saved although nothing in them has changed."""

OUTGOING_SECONDS: Final = 10.0
"""Seconds for a request to an address that somebody else chose, from its name to its answer."""

OUTGOING_ANSWER_BYTES: Final = 64 * 1024
"""Bytes that are read of the answer to such a request, unless its kind needs more."""

LOG_WAITING_BYTES: Final = 1024 * 1024
"""Bytes of log lines that wait for their reader; what goes beyond is dropped and counted."""

LOG_END_SECONDS: Final = 2.0
"""Seconds that a process waits at its end for the reader of its log."""

REST_SECONDS: Final = 5.0
"""Seconds without work after which a process counts as resting."""

REST_SHARE: Final = 0.05
"""Share of a processor that a resting process may use: timers, pings, a reader that follows."""

YOUNG_COLLECTIONS: Final = 10
"""Young garbage collections after which everything is looked through at rest, as Python has it."""

YOUNG_COLLECTIONS_MOST: Final = 500
"""Young garbage collections, some 7,000 objects each, after which it is done without a rest."""

COLLECTION_SHARE: Final = 0.01
"""Share of the time that full garbage collections at rest may take."""
