"""Every number that bounds a runtime, each with its reason."""

from typing import Final

ENDED_TURNS: Final = 1_024
"""Turns of a thread remembered as ended; a fact for an older one is no longer told apart."""

ANSWERED_ACTIONS: Final = 1_024
"""Requests of a thread whose answer is remembered, to refuse another one."""

UNWRITTEN_FACTS: Final = 4_096
"""Facts of a thread that may wait to be written; an agent that is faster has to wait."""

TURN_SECONDS: Final = 30 * 60.0
"""How long a turn may take, if nobody says otherwise."""

APPROVAL_SECONDS: Final = 24 * 60 * 60.0
"""How long an approval may stay open; after that it is denied."""

INTERRUPT_SECONDS: Final = 10.0
"""How long an agent may take to stop after it was asked to, before it is stopped."""

ACTIVE_TURNS: Final = 5
"""Turns that run at the same time; more are queued."""

QUEUED_TURNS: Final = 100
"""Turns that may wait on one thread."""

CHECKPOINT_FACTS: Final = 1_000
"""Facts of a thread after which its projection is worth a checkpoint."""

LIVE_STATES: Final = 32
"""Projections of threads kept at hand for plain reads; others are read from the journal anew."""

PAST_STATES: Final = 4
"""Threads of which the moment that was asked for last is kept, so that a walk forwards is cheap."""

ANCHOR_FACTS: Final = 512
"""Facts on the way to a moment from which on the thread is kept as it was a little before, so that
steps back from there are cheap too; a shorter way is gone again."""

PENDING_STEERS: Final = 100
"""Steers that may wait for one turn to take them; whoever says more is not being heard."""

STEER_CHARACTERS: Final = 24_000
"""JSON characters of one steer, which stays whole in its fact; more is a turn of its own."""

RETRY_SECONDS: Final = 5 * 60.0
"""The longest wait between two attempts, however often it was doubled."""

RETRY_ATTEMPTS: Final = 10
"""Attempts at one turn that may be made without asking anybody."""

CLOSE_SECONDS: Final = 5.0
"""How long turns that run may take to end while a runtime is being closed."""
