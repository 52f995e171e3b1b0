"""Every number that bounds a client, each with its reason."""

from typing import Final

RETRY_SECONDS: Final = 5.0
"""Seconds in which an unanswered request is retried before its caller gets the error."""

RECONNECT_SECONDS: Final = 60.0
"""Seconds in which an interrupted stream tries to reconnect before its reader gets the error."""

FIRST_PAUSE: Final = 0.1
"""Seconds before the second try; each further pause may be twice as long."""

LONGEST_PAUSE: Final = 5.0
"""Seconds of the longest pause, unless the Edge asks for a longer one."""

REQUEST_SECONDS: Final = 30.0
"""Seconds in which an Edge must start to answer, and continue to answer."""

HUB_REQUEST_SECONDS: Final = 45.0
"""The same for a Hub, which waits 30 seconds for a device and 5 for its mirror."""

DEVICE_SECONDS: Final = 90.0
"""Seconds in which a device must answer what a Hub has passed on to it; a laptop that sleeps may
wake up meanwhile."""

WAIT_SECONDS: Final = 20
"""Seconds that one request waits at an Edge for a decision or the end of a run."""

CONNECT_SECONDS: Final = 10.0
"""Seconds in which a connection must be established."""

CLOSE_SECONDS: Final = 2.0
"""Seconds to wait for the end of a stream before its connection is cut."""

MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of one message of a stream; the state of a long thread comes as one."""

QUEUED_MESSAGES: Final = 64
"""Messages of a stream that are buffered for its reader."""

PIECE_BYTES: Final = 64 * 1024
"""Bytes of content delivered at once, however long the content is."""

SPARE_SECONDS: Final = 30
"""Seconds that an access token of a Hub must still last; one that does not is renewed first."""

LOCK_PAUSE: Final = 0.05
"""Seconds before a session is asked for again that another program renews."""

LOCK_SECONDS: Final = 60.0
"""Seconds in which another program must have renewed a session."""

TOKEN_BYTES: Final = 4_096
"""Bytes of a token file that are read; a token is far shorter."""
