"""What is a secret: keys that name one, and values that are one.

`find_secrets` reads from left to right; at each place the first row of the table that matches
wins, and reading goes on behind it. Whether a secret starts at a place depends only on the text
around that place, never on what was read before: the same search therefore works on a stream that
arrives in pieces. `may_hold_secret` answers the common case, text without any secret, without a
single pattern; it may be wrong only by saying yes.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from factwire.facts.secret_assignments import search_assignment
from factwire.facts.secret_names import names_secret, secret_name
from factwire.facts.secret_shapes import SHAPES, Found

__all__ = [
    "Secret",
    "find_secrets",
    "may_hold_secret",
    "may_name_secret",
    "names_secret",
    "scan",
    "secret_name",
]

SHORTEST: Final = 10
"""Characters of the shortest text that can hold a secret, such as ``pwd=abc123``."""

_NEAR: Final = 96
"""Characters before a separator in which the name that it belongs to stands."""

_ENDING: Final = 3

_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

_AROUND_SEPARATOR: Final = " \t\"'`*\\"


class Secret(msgspec.Struct, frozen=True):
    """A stretch of text that must not be shown, and the rule that found it."""

    start: int
    end: int
    rule: str


def find_secrets(text: str) -> list[Secret]:
    """All secrets in a text, in order, never overlapping."""
    if not may_hold_secret(text):
        return []
    return [Secret(found.value, found.end, found.rule) for found in scan(text, 0)]


def scan(text: str, start: int) -> Iterator[Found]:
    """Matches from left to right; what stands before `start` is seen, but starts nothing."""
    searches = _searches(text)
    ahead: list[Found | None] = [search(text, start) for search in searches]
    while True:
        first = min((found for found in ahead if found), key=_by_start, default=None)
        if first is None:
            return
        yield first
        for place, found in enumerate(ahead):
            if found is not None and found.start < first.end:
                ahead[place] = searches[place](text, first.end)


def _by_start(found: Found) -> int:
    return found.start


def _searches(text: str) -> list[Callable[[str, int], Found | None]]:
    searches: list[Callable[[str, int], Found | None]] = [
        shape.search for shape in SHAPES if any(trigger in text for trigger in shape.triggers)
    ]
    if ":" in text or "=" in text:
        searches.append(search_assignment)
    return searches


def _by_ending(mark: str) -> dict[str, tuple[str, ...]]:
    """The triggers with this mark, by the few characters that end with it."""
    endings: dict[str, tuple[str, ...]] = {}
    for trigger in (trigger for shape in SHAPES for trigger in shape.triggers):
        end = trigger.find(mark) + 1
        if end >= _ENDING:
            ending = trigger[end - _ENDING : end]
            endings[ending] = (*endings.get(ending, ()), trigger)
    return endings


_DASHED: Final = _by_ending("-")
_SCORED: Final = _by_ending("_")
_DOTTED: Final = _by_ending(".")
_JSON: Final = _by_ending("J")


def may_hold_secret(text: str) -> bool:
    """Whether a search is worth it: false means that there is no secret in the text."""
    # Looking for one character is many times cheaper than looking for two, hence the pairs.
    return len(text) >= SHORTEST and (
        ("-" in text and _has_marked(text, "-", _DASHED))
        or ("_" in text and _has_marked(text, "_", _SCORED))
        or ("=" in text and _has_named(text, "="))
        or (":" in text and _has_named(text, ":"))
        or ("J" in text and _has_marked(text, "J", _JSON))
        or ("K" in text and ("AKIA" in text or "SK" in text))
        or ("I" in text and "S" in text and "ASIA" in text)
        or ("B" in text and ("Bot " in text or ("-" in text and "-----BEGIN " in text)))
        or ("/" in text and ("hooks.slack.com/" in text or "/api/webhooks/" in text))
        or ("(" in text and ("run('" in text or 'run("' in text))
        or (_has_digit(text) and _has_digit_shape(text))
    )


def _has_marked(text: str, mark: str, endings: dict[str, tuple[str, ...]]) -> bool:
    place = text.find(mark, 2)
    while place >= 0:
        triggers = endings.get(text[place - 2 : place + 1])
        if triggers is not None and _starts_here(text, place, mark, triggers):
            return True
        place = text.find(mark, place + 1)
    return False


def _starts_here(text: str, place: int, mark: str, triggers: tuple[str, ...]) -> bool:
    for trigger in triggers:
        start = place - trigger.index(mark)
        if start >= 0 and text.startswith(trigger, start) and _is_boundary(text, start):
            return True
    return False


def _is_boundary(text: str, start: int) -> bool:
    if start == 0:
        return True
    before = text[start - 1]
    if before not in _WORD:
        return True
    return "\\" in text[start - 2 : start - 1] or "%" in text[max(start - 3, 0) : start]


def _has_named(text: str, separator: str) -> bool:
    """Whether a separator follows a name that may be a secret's, or belongs to another shape."""
    if "@" in text and "://" in text:
        return True
    place = text.find(separator)
    while place >= 0:
        near = text[place - _NEAR : place] if place > _NEAR else text[:place]
        near = near.rstrip(_AROUND_SEPARATOR)
        if may_name_secret(near[near.rfind(" ") + 1 :]) or text[place + 1 : place + 2] == "A":
            return True
        place = text.find(separator, place + 1)
    return False


def may_name_secret(name: str) -> bool:
    """Parts of names of secrets; `AC` and `sig` belong to shapes with a separator inside."""
    lowered = name.lower()
    return (
        "key" in lowered
        or "token" in lowered
        or "secret" in lowered
        or "pass" in lowered
        or "pwd" in lowered
        or "credential" in lowered
        or "authorization" in lowered
        or "cookie" in lowered
        or "bearer" in lowered
        or "AC" in name
        or name[-3:] == "sig"
    )


def _has_digit(text: str) -> bool:
    return (
        "0" in text
        or "1" in text
        or "2" in text
        or "3" in text
        or "4" in text
        or "5" in text
        or "6" in text
        or "7" in text
        or "8" in text
        or "9" in text
    )


def _has_digit_shape(text: str) -> bool:
    """Shapes that are no secret without a digit."""
    return (
        ("." in text and _has_marked(text, ".", _DOTTED))
        or ("z" in text and "I" in text and "AIza" in text)
        or ("B" in text and "Bearer " in text)
        or "dapi" in text
    )
