"""Why a stream ends: the close codes, as a table that clients may rely on.

A code with `reconnect` invites the client to come again with its last cursor; after the others it
would only be closed again.
"""

from typing import Final

import msgspec


class Closing(msgspec.Struct, frozen=True):
    """One reason for the end of a stream."""

    code: int
    reason: str
    reconnect: bool


MALFORMED: Final = Closing(1002, "malformed frame", reconnect=False)
NOT_TEXT: Final = Closing(1007, "text is not UTF-8", reconnect=False)
UNASKED: Final = Closing(1008, "streams take no messages", reconnect=False)
TOO_BIG: Final = Closing(1009, "message too big", reconnect=False)
FAULT: Final = Closing(1011, "internal error", reconnect=True)
DEAD: Final = Closing(1011, "keepalive ping timeout", reconnect=True)
RESTART: Final = Closing(1012, "service restart", reconnect=True)
SLOW: Final = Closing(1013, "reader too slow, resume from the last cursor", reconnect=True)
UNAVAILABLE: Final = Closing(1013, "journal unavailable, try again", reconnect=True)
CURSOR_INVALID: Final = Closing(4400, "cursor invalid, take a snapshot", reconnect=True)
CURSOR_EXPIRED: Final = Closing(4410, "cursor expired, take a snapshot", reconnect=True)

WORDS: Final[dict[Closing | None, str]] = {
    MALFORMED: "malformed",
    NOT_TEXT: "not_text",
    UNASKED: "unasked",
    TOO_BIG: "too_big",
    FAULT: "fault",
    DEAD: "dead",
    RESTART: "restart",
    SLOW: "slow",
    UNAVAILABLE: "unavailable",
    CURSOR_INVALID: "cursor_invalid",
    CURSOR_EXPIRED: "cursor_expired",
    None: "left",
}
"""Each reason in one word, for logs and figures; None is a reader that left by itself."""

CLOSINGS: Final = (
    MALFORMED,
    NOT_TEXT,
    UNASKED,
    TOO_BIG,
    FAULT,
    DEAD,
    RESTART,
    SLOW,
    UNAVAILABLE,
    CURSOR_INVALID,
    CURSOR_EXPIRED,
)
"""Every way in which a stream may be ended by this side, but for what the guard refuses."""
