"""How often the long trials are run: a share of the figures of a guarantee in CI, all of them at
night (`make nightly`, which sets `FACTWIRE_TRIALS=full`).
"""

import os
from typing import Final

IS_FULL: Final = os.environ.get("FACTWIRE_TRIALS") == "full"

TRIAL_SECONDS: Final = 6 * 3_600 if IS_FULL else 600
"""Seconds after which a trial counts as stuck."""


def count_trials(*, full: int, share: int) -> int:
    """How many rounds or inputs there are this time."""
    return full if IS_FULL else share
