"""Timestamps: a time of a fact is one by RFC 3339, with its offset.

Every fact is asked about its own, and the facts of a stream come many to the second: whether a
second is one is remembered, and what follows it is nearly always `Z` or a fraction and `Z`.
"""

import re
from functools import lru_cache
from typing import Final

_PATTERN: Final = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_SECOND: Final = len("2026-06-10T00:00:00")


def is_timestamp(text: str) -> bool:
    """Whether a text is a time that anybody reads alike."""
    rest = text[_SECOND:]
    if rest == "Z":
        return _is_second(text[:_SECOND])
    if rest[:1] == "." and rest[-1] == "Z" and rest[1:-1].isdigit() and rest.isascii():
        return _is_second(text[:_SECOND])
    return _PATTERN.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _is_second(text: str) -> bool:
    return _PATTERN.fullmatch(f"{text}Z") is not None
