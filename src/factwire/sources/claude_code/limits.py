"""Numbers of the Claude Code converter."""

from typing import Final

LINES_KEPT: Final = 10_000
"""Lines whose uuid is remembered, so that a later line can take them back; older ones stand."""

MESSAGES_KEPT: Final = 1_000
"""Messages whose texts are counted, so that each text of a message is a part of its own."""
