"""Every number that bounds a runtime, each with its reason."""

from typing import Final

ENDED_TURNS: Final = 1_024
"""Turns of a thread remembered as ended; a fact for an older one is no longer recognized as late.
"""

ANSWERED_ACTIONS: Final = 1_024
"""Requests of a thread whose answer is remembered, to refuse another one."""

UNWRITTEN_FACTS: Final = 4_096
"""Facts of a thread that may wait to be written; an agent that is faster has to wait."""

TURN_SECONDS: Final = 30 * 60.0
"""How long a turn may take by default."""

APPROVAL_SECONDS: Final = 24 * 60 * 60.0
"""How long an approval may stay open; after that it is denied."""

RECENT_ACTIONS: Final = 200
"""Requests of a thread, the newest ones, among which a proposed rule is tried."""

RULE_SECONDS: Final = 10 * 365 * 24 * 60 * 60.0
"""How long a standing rule that expires may hold; one that shall hold longer need not expire."""

INTERRUPT_SECONDS: Final = 10.0
"""How long an agent may take to stop after it was asked to, before it is stopped."""

ACTIVE_TURNS: Final = 5
"""Turns that run at the same time; more are queued."""

QUEUED_TURNS: Final = 100
"""Turns that may wait on one thread."""

CHECKPOINT_FACTS: Final = 1_000
"""Facts of a thread after which its projection is worth a checkpoint."""

REPLAY_FACTS: Final = 16_384
"""Facts of a thread that are read again without a checkpoint on the way. One is saved after at
least a quarter of what came before it, so that checkpoints of a long thread stay few."""

REPLAY_SECONDS: Final = 0.01
"""How long the replay of a thread keeps the event loop before it lets others go on."""

LIVE_STATES: Final = 32
"""Projections of threads kept in memory for reads; others are read from the journal again."""

PAST_STATES: Final = 4
"""Threads whose last requested position is kept, so that stepping forward is cheap."""

ANCHOR_FACTS: Final = 512
"""Facts before a requested position from which an earlier state is kept as well, so that stepping
back is cheap; a shorter distance is replayed."""

PENDING_STEERS: Final = 100
"""Steers that may wait for one turn; a turn with more does not read them."""

STEER_CHARACTERS: Final = 24_000
"""JSON characters of one steer, which must fit into its fact; send longer messages as a turn."""

RETRY_SECONDS: Final = 5 * 60.0
"""The longest wait between two attempts, however often it was doubled."""

RETRY_ATTEMPTS: Final = 10
"""Attempts at one turn that may be made automatically."""

CLOSE_SECONDS: Final = 5.0
"""How long running turns may take to end while a runtime is closing."""

EDGE_OUTAGE_SECONDS: Final = 60.0
"""How long a recorder tries to reach its Edge before it raises; what it records waits meanwhile."""

DECISION_WAIT_SECONDS: Final = 20
"""How long one request of a recorder waits for a decision at the Edge."""

CONTEXT_WARNING_SHARE: Final = 0.8
"""The share of a model's context from which on people are warned that it is nearly full."""

OUTPUT_PROBLEM_CHARACTERS: Final = 500
"""Characters of what is said about an output that does not fit its schema; it quotes the output."""

FOLD_SECONDS: Final = 10.0
"""Seconds after which a runtime reads on in what it gathers from a whole journal."""

FOLD_SAVE_FACTS: Final = 16_384
"""Facts after which what a runtime gathered from a whole journal is saved again."""

IDLE_THREADS: Final = 256
"""Threads that stay in memory although nothing happens on them; the others are read again."""

RELOADS: Final = 20
"""Times that a thread is read again while a turn goes on writing it."""
