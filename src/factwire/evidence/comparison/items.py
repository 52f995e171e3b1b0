"""Items: anything that two runs may have in common, as a subject and fields.

All aspects of a turn are compared by one rule because all of them come to this. `fields` are what
people are shown; `hidden` are the same without what is new in every run, and decide equality.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from factwire.evidence.comparison.limits import COMPARED_WORDS, FLAT_DEPTH
from factwire.evidence.comparison.volatile import Volatile

_WORDS: Final = re.compile(r"\w+")
_ASKED: Final = ("args", "command", "paths", "prompt", "objective")
"""Fields that say what was to be done, and not what came of it."""

_CHARACTERS_OF_WORDS: Final = 40 * COMPARED_WORDS


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing. Two with the same `key` are the same; with the same `name` the same was asked;
    with the same `about` they are at least of one subject.
    """

    subject: str
    about: str
    fields: dict[str, Any]
    hidden: dict[str, Any]
    key: str
    name: str
    words: frozenset[str]


def item_of(volatile: Volatile, subject: str, fields: dict[str, Any]) -> Item:
    """The item of a subject; fields of which nothing is known are left out."""
    flat = dict(_flat("", {name: value for name, value in fields.items() if _is_known(value)}, 0))
    hidden = volatile.hide(flat)
    about = volatile.hide(subject)
    text = msgspec.json.encode(hidden, order="sorted").decode()
    asked = {name: value for name, value in hidden.items() if name.startswith(_ASKED)}
    return Item(
        subject=subject,
        about=about,
        fields=flat,
        hidden=hidden,
        key=f"{about}\n{text}",
        name=f"{about}\n{msgspec.json.encode(asked, order='sorted').decode()}",
        words=words_of(text),
    )


def words_of(text: str) -> frozenset[str]:
    """The first words of a text."""
    return frozenset(_WORDS.findall(text[:_CHARACTERS_OF_WORDS].lower())[:COMPARED_WORDS])


def likeness(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of common words, from 0 to 1."""
    return len(a & b) / len(a | b) if a or b else 1.0


def _is_known(value: Any) -> bool:
    return value is not None and value not in ("", [])


def _flat(path: str, table: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """Tables taken apart into fields such as `args.path`; lists stay whole."""
    for name, value in table.items():
        place = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value and depth < FLAT_DEPTH:
            yield from _flat(place, cast("dict[str, Any]", value), depth + 1)
        else:
            yield place, value
