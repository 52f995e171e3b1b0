"""Every number that bounds what observing takes from the observed program, each with its reason."""

from typing import Final

WAITING_BYTES: Final = 32 * 1024 * 1024
"""Bytes that wait to be sent; what comes while they do is dropped and counted."""

LINE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of one thing that happened; an Edge takes a body of twice that."""

BATCH_BYTES: Final = 2 * 1024 * 1024
"""Bytes of lines that are sent together: many small requests cost more than one."""

BATCH_FACTS: Final = 2_000
"""Facts that are sent together; an Edge takes five times as many."""

FIRST_PAUSE: Final = 0.2
"""Seconds before the second try to reach where facts go; then twice as long each time."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between tries, so that an Edge that is back is found soon."""

EXIT_SECONDS: Final = 5.0
"""Seconds that the end of a program may be held up to send what is left."""

WAITING_RUNS: Final = 1_024
"""Runs that ended at a question and may go on; the oldest is taken to have been given up."""
