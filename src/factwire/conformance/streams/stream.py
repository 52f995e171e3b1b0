"""A stream that is judged: facts as somebody gave them, before anybody mended anything.

Items are kept as they came, so that what is no fact at all can be shown as well. `begun` are turns
that somebody else began, as a runtime does for its agent; `excused` are turns that need no end of
their own, because they were cut off or cancelled from outside. A `typed` stream is made in Python,
of `Fact` and nothing else.
"""

from collections.abc import Sequence

import msgspec

from factwire.facts import Fact


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Items in the order in which they came. Where there are several streams, each has a name."""

    items: Sequence[object]
    begun: tuple[str, ...] = ()
    excused: frozenset[str] = frozenset()
    gaps_declared: bool = False
    typed: bool = False
    name: str = ""

    @property
    def prefix(self) -> str:
        """What a finding begins with, where there are several streams."""
        return f"{self.name}: " if self.name else ""


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of which every item that is a fact has been read."""

    stream: Stream
    facts: tuple[Fact, ...]
