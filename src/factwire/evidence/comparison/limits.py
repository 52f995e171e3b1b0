"""Every number that bounds a comparison, each with its reason."""

from typing import Final

ALIGNED_CELLS: Final = 10_000
"""Pairs that are weighed against each other in one stretch between two things that are surely the
same; a longer stretch is paired in order, so that the work grows with the length of the runs.
"""

ALIGNED_LEVELS: Final = 6
"""How often a stretch is divided by what is unique in it; past that it is paired in order."""

COMPARED_WORDS: Final = 64
"""Words of one thing that tell how much it resembles another."""

SIMILAR: Final = 0.3
"""The share of common words from which two prompts count as one that was reworded."""

INLINE_CHARACTERS: Final = 160
"""Characters of a value that is shown whole on both sides; a longer text is shown as a diff."""

CONTEXT_LINES: Final = 2
"""Lines that are the same, shown around those that are not."""

DIFF_LINES: Final = 400
"""Lines of one text's diff that a comparison holds; the rest is counted."""

VALUE_CHARACTERS: Final = 2_000
"""Characters of one line or value that a comparison holds."""

FLAT_DEPTH: Final = 6
"""How deep arguments are taken apart into fields; what lies deeper is compared as a whole."""
