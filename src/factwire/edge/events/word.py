"""A word: how facts of a class are told in one view, and which types that may give.

A teller says nothing (None) of a fact that lacks what the payload needs; the fact then keeps its
own class as its type. What a teller may say is declared beside it, so that the list of types can be
held against the tellers and the tellers against the list.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from factwire.edge.events.payload import EventPayload
from factwire.facts import Fact

View = Literal["runtime", "conversation"]
Said = tuple[str, EventPayload]
"""A type and its payload."""


class Word(NamedTuple):
    """What tells a fact, and the types that it may give."""

    tell: Callable[[Fact], Said | None]
    types: tuple[str, ...]


class Words(NamedTuple):
    """The words of a class, one a view."""

    runtime: Word
    conversation: Word


Table = Mapping[str, Words]
"""The words of each class."""


def alike(tell: Callable[[Fact], Said | None], *types: str) -> Words:
    """The same word in both views."""
    word = Word(tell, types)
    return Words(word, word)
