"""`Arrival`: facts on their way to everybody, read once however many look at them.

Lines, decoded facts and the places of each key are made when the first subscriber asks, and shared
by the rest. A channel that passes everything on as stored bytes never asks for more than lines.
"""

from functools import cached_property

from factwire.facts import Fact
from factwire.journal import Cursor, Filter, Stretch
from factwire.journal.chunk import decode_line, grouped
from factwire.journal.filter import Groups, keys_of


class Arrival:
    """One stretch of the journal, handed to every subscriber of a feed."""

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch

    @property
    def cursor(self) -> Cursor:
        return self.stretch.cursor

    @cached_property
    def lines(self) -> list[bytes]:
        """The stored bytes of each fact."""
        return self.stretch.lines()

    @cached_property
    def facts(self) -> list[Fact]:
        """Each fact, in the order of `stretch.seqs`."""
        return [decode_line(line) for line in self.lines]

    @cached_property
    def _groups(self) -> Groups:
        return grouped(map(keys_of, self.facts))

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for keys in self._groups for key in keys)

    def selected(self, wanted: Filter | None) -> "list[int] | range":
        """Positions of the facts that a filter lets through."""
        if wanted is None:
            return range(len(self.stretch.seqs))
        # Most channels of a busy Edge watch threads that this stretch says nothing of.
        if not self._keys.issuperset(wanted.keys()):
            return []
        return wanted.select(self._groups)
