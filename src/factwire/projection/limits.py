"""Every number that bounds a projection, each with its reason."""

from typing import Final

HELD_FACTS: Final = 1_024
"""Facts held back behind a hole; past that, waiting costs more than it can repair."""

REMEMBERED_IDS: Final = 8_192
"""Ids remembered in each of two generations; older repeats are known by their sequence alone."""

REMEMBERED_FACTS: Final = 256
"""Whole facts remembered in each of two generations, to tell a repeat from another body."""

REBUILD_POINTS: Final = 4
"""Places that a projection can go back to, to take a fact that came late in its right place."""

REBUILD_SPACING: Final = 32
"""Facts between two such places; each costs a copy of the state."""

OUTPUT_CHARACTERS: Final = 65_536
"""Characters of one tool's or process's output that a state shows; a log has the rest."""

DIFF_CHARACTERS: Final = 65_536
"""Characters of one inline diff that a state shows; a bigger one is behind a ref."""

ARGS_CHARACTERS: Final = 65_536
"""Characters of one tool's streamed input that a state shows."""

DIAGNOSTICS_KEPT: Final = 500
"""Diagnostics in a state; the oldest make room, and a counter says how many there were."""

LANE_EVENTS_KEPT: Final = 1_000
"""Entries of one list that only tells what happened (activities, notifications, lane events)."""

DETAIL_CHARACTERS: Final = 512
"""Characters of one detail line of the timeline."""

GAPS_KEPT: Final = 64
"""Holes that are listed one by one; a stream with more is degraded as a whole."""

LANES: Final = 256
"""Threads of subagents that one projection orders beside its own."""

IGNORED_THREADS: Final = 32
"""Threads that are named as left out; a stream that mixes in more says it of these alone."""

WAITING_CHILD_FACTS: Final = 1_000
"""Facts of threads that nothing ties to this one yet; they are taken once a fact names their thread
as a child's.
"""

GRAPH_DEPTH: Final = 1_000
"""Steps from a node up to its root; a longer line of descent is cut, so that no search grows."""

READ_MODEL_MESSAGES: Final = 200
"""Messages in a read model, the latest; those before them are counted."""

READ_MODEL_TEXT_CHARACTERS: Final = 100_000
"""Characters of one text in a read model; a longer one is cut, and restored as incomplete."""
