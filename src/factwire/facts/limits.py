"""Every number that bounds a fact, each with its reason."""

from typing import Final

PAYLOAD_CHARACTERS: Final = 32_000
"""JSON characters of one payload; more is spilled to a blob, so that a feed stays cheap to move."""

PREVIEW_CHARACTERS: Final = 512
"""Characters of a spilled value that stay inline: enough to recognise it, too few to replace it."""

SPILL_FLOOR: Final = 1_024
"""Characters below which a value is not worth a blob of its own."""

SEQUENCE_MAX: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""

NESTING_DEPTH: Final = 200
"""Levels of lists and objects in one fact; deeper input is an attack on recursive readers."""

LINE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one NDJSON line; a longer one is refused before it is read into memory."""

DOCUMENT_BYTES: Final = 256 * 1024 * 1024
"""Bytes of one whole JSON document (an array or a fixture), which must be held in memory."""

IDENTITY_WINDOW: Final = 65_536
"""Ids a verifier remembers in each of its two generations, so that its memory has a bound."""

ISSUES_KEPT: Final = 10_000
"""Issues a report spells out; those after it are only counted."""
