"""Every number that bounds an outlet, each with its reason."""

from typing import Final

NAMES_REMEMBERED: Final = 10_000
"""Ids that one run has used on the wire; none of them names a second thing. Past this many the
oldest is forgotten, so that a run of any length takes bounded memory.
"""

PROMPTS_REMEMBERED: Final = 64
"""Prompts of turns that were submitted and have not started; more than wait in any queue."""
