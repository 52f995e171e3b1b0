"""Numbers of mapping files."""

from typing import Final

FILE_BYTES: Final = 256 * 1024
"""Bytes of a mapping file; no person writes more."""

RULES: Final = 1_000
"""Rules of a mapping; each item is held against those of its type."""

PATH_STEPS: Final = 32
"""Steps of a path into an item."""

VALUE_DEPTH: Final = 16
"""How deep a value may be put together from other values."""

SHOWN_TYPE: Final = 80
"""Characters of an unknown type that a warning repeats."""
