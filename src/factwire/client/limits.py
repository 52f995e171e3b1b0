"""Every number that bounds a client, each with its reason."""

from typing import Final

RETRY_SECONDS: Final = 5.0
"""Seconds in which a request is tried again that could not be answered; then its caller hears."""

RECONNECT_SECONDS: Final = 60.0
"""Seconds in which a stream that was cut tries to come back before its reader hears of it."""

FIRST_PAUSE: Final = 0.1
"""Seconds before the second try; each further pause may be twice as long."""

LONGEST_PAUSE: Final = 5.0
"""Seconds of the longest pause that is not asked for by the Edge."""

REQUEST_SECONDS: Final = 30.0
"""Seconds in which an Edge must begin to answer, and go on answering."""

CONNECT_SECONDS: Final = 10.0
"""Seconds in which a connection must stand."""

CLOSE_SECONDS: Final = 2.0
"""Seconds that a stream's end is waited for before its connection is cut."""

MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of one message of a stream; the state of a long thread comes as one."""

QUEUED_MESSAGES: Final = 64
"""Messages of a stream that are taken in before its reader asked for them."""

PIECE_BYTES: Final = 64 * 1024
"""Bytes of content handed over at once, however long the whole is."""

TOKEN_BYTES: Final = 4_096
"""Bytes that are read of a token's file; a token is far shorter."""
