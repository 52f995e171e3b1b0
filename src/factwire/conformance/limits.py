"""Every number that bounds a conformance run, each with its reason."""

from typing import Final

TRIAL_SECONDS: Final = 60.0
"""How long an agent may take for one trial, if nobody says otherwise; a model may be slow."""

CASE_SECONDS: Final = 30.0
"""How long a case that only computes may take; those there are take milliseconds."""

GRACE_SECONDS: Final = 5.0
"""How long a trial that ran out of time may take to be taken down before it counts as stuck."""

INTERRUPT_SECONDS: Final = 5.0
"""How long an agent may take to stop after it was asked to, before it is stopped."""

UNDER_WAY_SECONDS: Final = 2.0
"""How long an agent gets to say something before it is cancelled all the same."""

AFTER_END_SECONDS: Final = 1.0
"""How long an agent is listened to after it said that its turn has ended."""

AFTER_END_FACTS: Final = 1_000
"""Facts that are taken after a turn's end; an agent that has more to say is broken enough."""

BIG_OUTPUT_CHARACTERS: Final = 32_000
"""Characters of output that must be behind a ref: what a payload may hold."""

CUTS: Final = 24
"""Places at which a stream is cut, saved and gone on from; a short one is cut everywhere."""

FEW_CUTS: Final = 3
"""Places at which even the longest stream is cut."""

CUT_FACTS: Final = 1_000_000
"""Facts that are projected anew over all cuts of a stream; a longer one is cut at fewer places."""

FINDINGS_KEPT: Final = 20
"""Findings of one requirement in one case that a report spells out; the others are counted."""

SHOWN_CHARACTERS: Final = 400
"""Characters of one text of a fact that a report shows."""

SHOWN_ITEMS: Final = 40
"""Members of one list or object of a fact that a report shows."""

ORDERED_FACTS: Final = 20_000
"""Facts of a recorded stream that are put in other orders; a longer one is not."""

SHUFFLES: Final = 4
"""Random orders in which each complete stream is given to a reducer, beside two that are worst."""
