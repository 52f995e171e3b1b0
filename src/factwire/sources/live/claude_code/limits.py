"""Numbers of Claude Code, live."""

from typing import Final

BACKGROUND_SECONDS: Final = 600.0
"""Seconds that a command in the background may outlive the answer: as long as Claude Code itself
waits for one before it gives up."""

FOLDERS_KEPT: Final = 1_000
"""Calls whose folder is remembered until somebody is asked about them; far more than are open."""
