"""Every number that bounds the control channel, each with its reason."""

from typing import Final

LINE_BYTES: Final = 64 * 1024
"""Bytes of a request or an answer; a reason is a sentence, not a file."""

READ_SECONDS: Final = 5.0
"""How long a client may take to say what it wants."""

WORK_SECONDS: Final = 60.0
"""How long a request may take; cancelling waits for an agent that is asked to stop."""

CLIENT_SECONDS: Final = WORK_SECONDS + READ_SECONDS
"""How long a client waits for its answer."""

CONNECTIONS: Final = 32
"""Clients at the same time; there is one person behind all of them."""

REASON_CHARACTERS: Final = 4_000
"""Characters of a reason that goes into the journal with a decision."""

PROMPT_CHARACTERS: Final = 60
"""Characters of a prompt in a list of what waits; the journal has the whole of it."""

SOCKET_PATH_BYTES: Final = 100
"""Bytes of a socket's path that every system takes; Linux takes 107, others less."""
