"""Every number that bounds a live source, each with its reason."""

from typing import Final

LINE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one line of a program: agents put whole files and pictures into one, and no more."""

STDERR_CHARACTERS: Final = 2_000
"""Characters of what a program said beside its protocol that explain how it failed."""

FACTS_WAITING: Final = 1_024
"""Facts of a turn that wait to be written before its agent has to wait as well."""
